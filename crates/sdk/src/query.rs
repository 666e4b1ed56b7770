//! One question, and everything that is said until it is answered.

use std::collections::HashSet;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::{Stream, stream};
use quipu_message::system::System;
use quipu_message::{Entry, Uuid};

use crate::client::Client;
use crate::options::Options;
use crate::prompt::Prompt;
use crate::received::Received;
use crate::transport::Transport;
use crate::{Error, Exit};

/// Asks an agent something and gives every message until it is done. The program is
/// started when the stream is first asked for a message, and ended when it is dropped.
///
/// A turn that fails ends with a result that says so; the stream ends with an error only
/// when there is no result.
///
/// ```no_run
/// use futures_util::StreamExt as _;
/// use quipu_sdk::{Entry, Options, query};
/// # async fn ask() -> Result<(), quipu_sdk::Error> {
/// let mut messages = query("What is 2 + 2?", Options::new().max_turns(1));
/// while let Some(message) = messages.next().await {
///     if let Entry::Result(result) = message? {
///         println!("{}", result.result.text().unwrap_or_default());
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub fn query(prompt: impl Into<Prompt>, options: Options) -> Query {
    let prompt = prompt.into();
    Query::new(async move {
        let command = options.command()?;
        ActiveQuery::start(Client::connect_over(command, options).await?, prompt)
    })
}

/// The same over a transport.
pub fn query_over(transport: impl Transport, prompt: impl Into<Prompt>, options: Options) -> Query {
    let prompt = prompt.into();
    Query::new(async move { ActiveQuery::start(Client::connect_over(transport, options).await?, prompt) })
}

/// The messages of one query, as a stream of entries.
pub struct Query(Pin<Box<dyn Stream<Item = Result<Received, Error>> + Send>>);

impl Query {
    fn new(begin: impl Future<Output = Result<ActiveQuery, Error>> + Send + 'static) -> Self {
        enum QueryStep<B> {
            Start(B),
            Active(Box<ActiveQuery>),
            End,
        }
        let steps = stream::unfold(QueryStep::Start(Box::pin(begin)), |at| async move {
            let mut asking = match at {
                QueryStep::Start(begin) => match begin.await {
                    Ok(asking) => Box::new(asking),
                    Err(error) => return Some((Err(error), QueryStep::End)),
                },
                QueryStep::Active(asking) => asking,
                QueryStep::End => return None,
            };
            match asking.next().await {
                Ok(Some(message)) => Some((Ok(message), QueryStep::Active(asking))),
                Ok(None) => None,
                Err(error) => Some((Err(error), QueryStep::End)),
            }
        });
        Self(Box::pin(steps))
    }

    /// The same messages, each with the line that it was read from.
    pub fn received(self) -> impl Stream<Item = Result<Received, Error>> + Send {
        self.0
    }
}

impl Stream for Query {
    type Item = Result<Entry, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx).map_ok(|message| message.entry)
    }
}

/// A query under way.
struct ActiveQuery {
    client: Client,
    /// Says the prompts; done when there are no more, with how many there were.
    prompt_task: Option<tokio::task::JoinHandle<Result<usize, Error>>>,
    prompts_sent: Option<usize>,
    results: usize,
    /// Prompts that the agent has put off.
    queued_prompts: HashSet<Uuid>,
}

impl ActiveQuery {
    fn start(client: Client, mut prompt: Prompt) -> Result<Self, Error> {
        let handle = client.handle();
        let saying = tokio::spawn(async move {
            let mut said = 0;
            while let Some(message) = prompt.next().await {
                handle.send_message(message).await?;
                said += 1;
            }
            Ok(said)
        });
        Ok(Self { client, prompt_task: Some(saying), prompts_sent: None, results: 0, queued_prompts: HashSet::new() })
    }

    async fn next(&mut self) -> Result<Option<Received>, Error> {
        loop {
            let Some(saying) = &mut self.prompt_task else {
                let message = self.client.next_received().await?;
                self.record(message.as_ref().map(|message| &message.entry));
                return Ok(message);
            };
            tokio::select! {
                biased;
                message = self.client.next_received() => {
                    let message = message?;
                    self.record(message.as_ref().map(|message| &message.entry));
                    return Ok(message);
                }
                said = saying => {
                    self.prompt_task = None;
                    // A panic of the caller's stream is the caller's.
                    let said = said.unwrap_or_else(|error| match error.try_into_panic() {
                        Ok(panic) => std::panic::resume_unwind(panic),
                        Err(_) => Err(Error::Closed),
                    });
                    self.prompts_sent = Some(said?);
                    self.close_when_done();
                }
            }
        }
    }

    /// Counts results. Answers to an agent's questions travel where prompts do, so the way
    /// stays open until every prompt has its result. An agent that took two prompts
    /// together gives one, and says that it is idle.
    fn record(&mut self, message: Option<&Entry>) {
        match message {
            Some(Entry::Result(_)) => self.results += 1,
            Some(Entry::CommandLifecycle(now)) => {
                if let Some(prompt) = now.command_uuid.get() {
                    match now.state.text() {
                        Some("queued") => self.queued_prompts.insert(prompt.clone()),
                        _ => self.queued_prompts.remove(prompt),
                    };
                }
            }
            Some(Entry::System(system)) => {
                if let System::SessionStateChanged(now) = &**system
                    && now.state.text() == Some("idle")
                    && self.results > 0
                    && self.queued_prompts.is_empty()
                {
                    self.results = self.results.max(self.prompts_sent.unwrap_or_default());
                }
            }
            _ => return,
        }
        self.close_when_done();
    }

    fn close_when_done(&self) {
        if self.prompts_sent.is_some_and(|said| self.results >= said) {
            self.client.close_after_turn();
        }
    }
}

impl Drop for ActiveQuery {
    fn drop(&mut self) {
        if let Some(saying) = &self.prompt_task {
            saying.abort();
        }
    }
}

/// Reads a query to its end and returns its result.
pub async fn query_result(
    prompt: impl Into<Prompt>,
    options: Options,
) -> Result<quipu_message::stream::TurnResult, Error> {
    use futures_util::StreamExt as _;
    let mut messages = query(prompt, options);
    let mut last = None;
    while let Some(message) = messages.next().await {
        if let Entry::Result(result) = message? {
            last = Some(*result);
        }
    }
    last.ok_or_else(|| Error::Ended(Exit::default()))
}

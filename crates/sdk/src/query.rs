//! One prompt, and all messages until its result.

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

/// Sends a prompt to a new agent and streams its messages up to the result. The agent is
/// started when the stream is first polled, and killed when the stream is dropped.
///
/// A turn that fails ends with a result whose `is_error` is true; the stream ends with an
/// error only if there is no result.
///
/// ```no_run
/// use futures_util::StreamExt as _;
/// use quipu_sdk::{Entry, Options, query};
/// # async fn example() -> Result<(), quipu_sdk::Error> {
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

/// Like [`query()`], over a transport.
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

    /// The messages, each with the line that it was read from.
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

/// A query whose agent is started.
struct ActiveQuery {
    client: Client,
    /// Sends the prompts; returns their number.
    prompt_task: Option<tokio::task::JoinHandle<Result<usize, Error>>>,
    prompts_sent: Option<usize>,
    results: usize,
    /// Prompts in the queue of the agent.
    queued_prompts: HashSet<Uuid>,
}

impl ActiveQuery {
    fn start(client: Client, mut prompt: Prompt) -> Result<Self, Error> {
        let handle = client.handle();
        let prompt_task = tokio::spawn(async move {
            let mut sent = 0;
            while let Some(message) = prompt.next().await {
                handle.send_message(message).await?;
                sent += 1;
            }
            Ok(sent)
        });
        Ok(Self {
            client,
            prompt_task: Some(prompt_task),
            prompts_sent: None,
            results: 0,
            queued_prompts: HashSet::new(),
        })
    }

    async fn next(&mut self) -> Result<Option<Received>, Error> {
        loop {
            let Some(prompt_task) = &mut self.prompt_task else {
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
                sent = prompt_task => {
                    self.prompt_task = None;
                    // A panic in the caller's stream continues in the caller.
                    let sent = sent.unwrap_or_else(|error| match error.try_into_panic() {
                        Ok(panic) => std::panic::resume_unwind(panic),
                        Err(_) => Err(Error::Closed),
                    });
                    self.prompts_sent = Some(sent?);
                    self.close_when_done();
                }
            }
        }
    }

    /// Counts results and closes the input when every prompt has one.
    ///
    /// Control responses are sent over the same input as prompts, so it must stay open until
    /// then. An agent that merged two prompts into one turn sends only one result; then its
    /// report that it is idle counts.
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
        if self.prompts_sent.is_some_and(|sent| self.results >= sent) {
            self.client.close_after_turn();
        }
    }
}

impl Drop for ActiveQuery {
    fn drop(&mut self) {
        if let Some(prompt_task) = &self.prompt_task {
            prompt_task.abort();
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

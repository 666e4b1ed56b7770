//! The client and the answerer, talking to each other.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says what must hold")]

mod docs_examples;
mod events;
mod network;
mod recorded;
mod retries;
mod rules;
mod secrets;

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use quipu_api::mock::{MockServer, Script};
use quipu_api::{ApiError, ApiEvent, Client, Endpoint, Request, RetryClock};
use quipu_message::{Message, Role};

/// Waits for nothing, remembers what it was asked to wait for, and is never lucky.
#[derive(Debug, Default)]
struct NoWait(Mutex<Vec<u64>>);

impl NoWait {
    /// The waits so far, in milliseconds.
    fn waits(&self) -> Vec<u64> {
        self.0.lock().unwrap().clone()
    }
}

impl RetryClock for NoWait {
    fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.0.lock().unwrap().push(time.as_millis() as u64);
        Box::pin(async {})
    }

    fn random(&self) -> f64 {
        0.5
    }

    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// An answerer with a script, and a client of it.
struct TestSetup {
    answerer: MockServer,
    client: Client,
    pace: Arc<NoWait>,
}

async fn start_server(script: &str) -> TestSetup {
    start_server_with(script, |_| {}).await
}

async fn start_server_with(script: &str, change: impl Fn(&mut Endpoint)) -> TestSetup {
    let answerer = MockServer::start(Script::parse(script).unwrap()).await.unwrap();
    let mut endpoint = Endpoint::new(&answerer.url()).unwrap();
    change(&mut endpoint);
    let pace = Arc::new(NoWait::default());
    let client = Client::with_clock(endpoint, Arc::clone(&pace) as Arc<dyn RetryClock>).unwrap();
    TestSetup { answerer, client, pace }
}

/// A request with one user message.
fn user_request(text: &str) -> Request {
    let messages = vec![Message::new(Role::User, text)];
    Request { model: "claude-test-1".to_owned(), max_tokens: 100_000, messages, ..Request::default() }
}

/// Everything that is heard, each as one short line.
async fn event_lines(client: &Client, request: &Request) -> Vec<String> {
    let mut asking = client.call(request);
    let mut lines = Vec::new();
    while let Some(heard) = asking.next().await {
        lines.push(match heard {
            Ok(heard) => event_line(heard),
            Err(error) => format!("error {}: {error}", error.code()),
        });
    }
    lines
}

fn event_line(heard: ApiEvent) -> String {
    match heard {
        ApiEvent::Started { message, .. } => format!("began {}", message.stop_reason.text().unwrap_or("streaming")),
        ApiEvent::Event(event) => format!("event {}", event.tag()),
        ApiEvent::Block { index, block } => format!("block {index} {}", block.tag()),
        ApiEvent::Withdrawn => "withdrawn".to_owned(),
        ApiEvent::Retry(retry) => {
            let status = retry.error.status().map_or("null".to_owned(), |status| status.to_string());
            format!(
                "retry {}/{} {} ms {status} {}",
                retry.attempt,
                retry.max_retries,
                retry.delay.as_millis(),
                retry.error.retry_reason()
            )
        }
        ApiEvent::ModelFallback { from, to } => format!("fell back from {from} to {to}"),
        ApiEvent::Completed(answer) => format!("done {:?}", answer.message.content.to_text()),
    }
}

/// What is heard besides the pieces of the answer.
async fn event_outline(client: &Client, request: &Request) -> Vec<String> {
    let lines = event_lines(client, request).await;
    lines.into_iter().filter(|line| !["began", "event", "block"].iter().any(|part| line.starts_with(part))).collect()
}

async fn error_of(client: &Client, request: &Request) -> ApiError {
    client.call(request).response().await.expect_err("the call fails")
}

//! The client and the mock server together.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "a failed unwrap is a failed test"
)]

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

/// A clock that records the requested waits instead of waiting, and whose random value is fixed.
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

/// A mock server with a script, and a client of it.
struct TestSetup {
    server: MockServer,
    client: Client,
    clock: Arc<NoWait>,
}

async fn start_server(script: &str) -> TestSetup {
    start_server_with(script, |_| {}).await
}

async fn start_server_with(script: &str, change: impl Fn(&mut Endpoint)) -> TestSetup {
    let server = MockServer::start(Script::parse(script).unwrap()).await.unwrap();
    let mut endpoint = Endpoint::new(&server.url()).unwrap();
    change(&mut endpoint);
    let clock = Arc::new(NoWait::default());
    let client = Client::with_clock(endpoint, Arc::clone(&clock) as Arc<dyn RetryClock>).unwrap();
    TestSetup { server, client, clock }
}

/// A request with one user message.
fn user_request(text: &str) -> Request {
    let messages = vec![Message::new(Role::User, text)];
    Request { model: "claude-test-1".to_owned(), max_tokens: 100_000, messages, ..Request::default() }
}

/// All events of a call, each as one short line.
async fn event_lines(client: &Client, request: &Request) -> Vec<String> {
    let mut call = client.call(request);
    let mut lines = Vec::new();
    while let Some(event) = call.next().await {
        lines.push(match event {
            Ok(event) => event_line(event),
            Err(error) => format!("error {}: {error}", error.code()),
        });
    }
    lines
}

fn event_line(event: ApiEvent) -> String {
    match event {
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

/// The events of a call except those of the response itself.
async fn event_outline(client: &Client, request: &Request) -> Vec<String> {
    let lines = event_lines(client, request).await;
    lines.into_iter().filter(|line| !["began", "event", "block"].iter().any(|part| line.starts_with(part))).collect()
}

async fn error_of(client: &Client, request: &Request) -> ApiError {
    client.call(request).response().await.expect_err("the call fails")
}

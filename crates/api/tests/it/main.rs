//! The client and the answerer, talking to each other.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says what must hold")]

mod docs;
mod hearing;
mod network;
mod recorded;
mod retries;
mod rules;
mod secrets;

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use quipu_api::answer::{Answerer, Script};
use quipu_api::{ApiError, Client, Endpoint, Heard, Pace, Request};
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

impl Pace for NoWait {
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
struct Stage {
    answerer: Answerer,
    client: Client,
    pace: Arc<NoWait>,
}

async fn stage(script: &str) -> Stage {
    stage_with(script, |_| {}).await
}

async fn stage_with(script: &str, change: impl Fn(&mut Endpoint)) -> Stage {
    let answerer = Answerer::start(Script::parse(script).unwrap()).await.unwrap();
    let mut endpoint = Endpoint::new(&answerer.url()).unwrap();
    change(&mut endpoint);
    let pace = Arc::new(NoWait::default());
    let client = Client::paced(endpoint, Arc::clone(&pace) as Arc<dyn Pace>).unwrap();
    Stage { answerer, client, pace }
}

/// A request with one message of the person.
fn says(text: &str) -> Request {
    let messages = vec![Message::new(Role::User, text)];
    Request { model: "claude-test-1".to_owned(), max_tokens: 100_000, messages, ..Request::default() }
}

/// Everything that is heard, each as one short line.
async fn heard(client: &Client, request: &Request) -> Vec<String> {
    let mut asking = client.ask(request);
    let mut lines = Vec::new();
    while let Some(heard) = asking.next().await {
        lines.push(match heard {
            Ok(heard) => line(heard),
            Err(error) => format!("error {}: {error}", error.code()),
        });
    }
    lines
}

fn line(heard: Heard) -> String {
    match heard {
        Heard::Began { message, .. } => format!("began {}", message.stop_reason.text().unwrap_or("streaming")),
        Heard::Event(event) => format!("event {}", event.tag()),
        Heard::Block { index, block } => format!("block {index} {}", block.tag()),
        Heard::Withdrawn => "withdrawn".to_owned(),
        Heard::Retry(retry) => {
            let status = retry.error.status().map_or("null".to_owned(), |status| status.to_string());
            format!(
                "retry {}/{} {} ms {status} {}",
                retry.attempt,
                retry.of,
                retry.delay.as_millis(),
                retry.error.word()
            )
        }
        Heard::FellBack { from, to } => format!("fell back from {from} to {to}"),
        Heard::Done(answer) => format!("done {:?}", answer.message.content.to_text()),
    }
}

/// What is heard besides the pieces of the answer.
async fn outline(client: &Client, request: &Request) -> Vec<String> {
    let lines = heard(client, request).await;
    lines.into_iter().filter(|line| !["began", "event", "block"].iter().any(|part| line.starts_with(part))).collect()
}

async fn error_of(client: &Client, request: &Request) -> ApiError {
    client.ask(request).answer().await.expect_err("the call fails")
}

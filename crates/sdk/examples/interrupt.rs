//! Interrupts a turn and continues with the next.
//!
//!     cargo run -p quipu-sdk --example interrupt -- --cli target/debug/quipu-agent
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "an example prints its results")]

mod common;

use quipu_sdk::{Client, Entry};

const SCRIPT: &str = "
- when: {says: story}
  reply: Once upon a time there was a very long story that went on and on and on and never came to an end.
  chunk: 6
  pause_ms: 200
- reply: As you like.
";

#[tokio::main]
async fn main() -> common::ExampleResult {
    let setup = common::ExampleSetup::new(SCRIPT).await?;
    let mut client = Client::connect(setup.options().include_partial_messages()).await?;
    client.send("tell me a story").await?;
    let mut pieces = 0;
    while let Some(message) = client.next_in_turn().await? {
        if let Entry::StreamEvent(piece) = &message
            && piece.event.tag() == "content_block_delta"
        {
            pieces += 1;
            if pieces == 3 {
                println!("That is enough.");
                client.interrupt().await?;
            }
        }
        if let Entry::Result(result) = &message {
            println!("The turn ended as {}.", result.subtype.as_str());
        }
    }
    client.send("never mind").await?;
    while let Some(message) = client.next_in_turn().await? {
        common::show(&message);
    }
    client.close().await?;
    Ok(())
}

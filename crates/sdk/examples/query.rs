//! Asks one thing and prints every message until it is answered.
//!
//!     cargo run -p quipu-sdk --example query -- --cli target/debug/quipu-agent
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "an example prints its results")]

mod common;

use futures_util::StreamExt as _;

#[tokio::main]
async fn main() -> common::ExampleResult {
    let setup = common::ExampleSetup::new("- reply: A quipu is a record kept in knotted cords.").await?;
    let mut messages = quipu_sdk::query("What is a quipu?", setup.options().max_turns(1));
    while let Some(message) = messages.next().await {
        let message = message?;
        println!("{}", message.kind());
        common::show(&message);
    }
    Ok(())
}

//! Talks for several turns: what you type, or a few lines of its own if standard input is not a terminal.
//!
//!     cargo run -p quipu-sdk --example chat -- --cli target/debug/quipu-agent
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "an example prints its results")]

mod common;

use std::io::{BufRead as _, IsTerminal as _};

use quipu_sdk::Client;

const SCRIPT: &str = "
- when: {turn: 1}
  reply: Good day. What shall we talk about?
- when: {says: weather}
  reply: I cannot see it from here.
- reply: Tell me more.
";

#[tokio::main]
async fn main() -> common::ExampleResult {
    let setup = common::ExampleSetup::new(SCRIPT).await?;
    let mut client = Client::connect(setup.options()).await?;
    println!("The agent is version {}.", client.initialize_response().claude_code_version.text().unwrap_or("unknown"));
    let stdin = std::io::stdin();
    let typed: Box<dyn Iterator<Item = String>> = match stdin.is_terminal() {
        true => Box::new(stdin.lock().lines().map_while(Result::ok)),
        false => Box::new(["Hello.", "How is the weather?", "I see."].map(str::to_owned).into_iter()),
    };
    for line in typed {
        println!("> {line}");
        client.send(line).await?;
        while let Some(message) = client.next_in_turn().await? {
            common::show(&message);
        }
    }
    let cost = client.handle().usage().await?.session.total_cost_usd;
    println!("That cost {} dollars.", cost.get().map_or("no".to_owned(), ToString::to_string));
    client.close().await?;
    Ok(())
}

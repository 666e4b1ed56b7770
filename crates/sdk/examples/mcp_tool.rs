//! Gives the model a tool that is a closure of this program.
//!
//!     cargo run -p quipu-sdk --example mcp_tool -- --cli target/debug/quipu-agent
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "an example prints its results")]

mod common;

use std::collections::BTreeMap;

use quipu_sdk::Client;
use quipu_sdk::mcp::Server;

const SCRIPT: &str = "
- when: {result_of: mcp__store__stock}
  reply: I have looked it up.
- when: {says: apples}
  reply: {tool: mcp__store__stock, input: {fruit: apples}}
- reply: {tool: mcp__store__stock, input: {fruit: melons}}
";

/// What the model must say to call the tool.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Question {
    /// The fruit, in the plural.
    fruit: String,
}

#[tokio::main]
async fn main() -> common::ExampleResult {
    let setup = common::ExampleSetup::new(SCRIPT).await?;
    let stock = BTreeMap::from([("apples", 7), ("pears", 2)]);
    let store = Server::new("store").tool("stock", "Says how many of a fruit there are.", move |question: Question| {
        let found = stock.get(question.fruit.as_str()).copied();
        println!("  (looked for {}: {found:?})", question.fruit);
        async move { found.map(|n| format!("{n} {}", question.fruit)).ok_or("We have none.") }
    });
    let options = setup.options().mcp_server(store).allow_tool("mcp__store__stock");
    let mut client = Client::connect(options).await?;
    for server in client.handle().mcp_status().await?.servers {
        println!("{} is {}", server.name, server.status);
    }
    for prompt in ["how many apples are there?", "and melons?"] {
        println!("> {prompt}");
        client.send(prompt).await?;
        while let Some(message) = client.next_in_turn().await? {
            common::show(&message);
        }
    }
    client.close().await?;
    Ok(())
}

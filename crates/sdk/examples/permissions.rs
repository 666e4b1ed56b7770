//! Decides about every tool call: allows one, changes one, refuses one.
//!
//!     cargo run -p quipu-sdk --example permissions -- --cli target/debug/quipu-agent
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "an example prints its results")]

mod common;

use quipu_sdk::{Client, Decision};
use serde_json::json;

const SCRIPT: &str = "
- when: {result_of: Bash}
  reply: Then I leave it at that.
- when: {says: list}
  reply: {tool: Bash, input: {command: mkdir listed && ls}}
- when: {says: publish}
  reply: {tool: Bash, input: {command: mkdir published && echo published to the world}}
- reply: {tool: Bash, input: {command: mkdir emptied && rm -rf important}}
";

#[tokio::main]
async fn main() -> common::ExampleResult {
    let setup = common::ExampleSetup::new(SCRIPT).await?;
    let options = setup.options().can_use_tool(|call, _| async move {
        let command = call.input.to_value()["command"].as_str().unwrap_or_default().to_owned();
        println!("? may {} run `{command}`", call.tool_name);
        if command.contains("rm -rf") {
            Decision::deny("Nothing is removed without a backup.")
        } else if command.contains("publish") {
            Decision::allow_with(&json!({ "command": "echo published as a draft" }))
        } else {
            Decision::allow()
        }
    });
    let mut client = Client::connect(options).await?;
    for prompt in ["list the files", "publish the report", "tidy up"] {
        println!("> {prompt}");
        client.send(prompt).await?;
        while let Some(message) = client.next_in_turn().await? {
            common::show(&message);
        }
    }
    client.close().await?;
    Ok(())
}

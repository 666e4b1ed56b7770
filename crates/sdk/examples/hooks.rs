//! Hooks that block a tool call, log tool calls, and add context for the model.
//!
//!     cargo run -p quipu-sdk --example hooks -- --cli target/debug/quipu-agent
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "an example prints its results")]

mod common;

use std::time::Duration;

use quipu_sdk::hook::{
    HookOutput, PostToolUse, PreToolUse, PreToolUseOutput, UserPromptSubmit, UserPromptSubmitSpecific,
};
use quipu_sdk::{Client, Hook};

const SCRIPT: &str = "
- when: {result_says: policy}
  reply: I was not allowed to.
- when: {result_of: Bash}
  reply: Done.
- when: {says: secret}
  reply: {tool: Bash, input: {command: cat secret.txt}}
- reply: {tool: Bash, input: {command: echo hello}}
";

#[tokio::main]
async fn main() -> common::ExampleResult {
    let setup = common::ExampleSetup::new(SCRIPT).await?;
    let guard = Hook::on(|call: PreToolUse, _| async move {
        match call.tool_input.text().contains("secret") {
            true => PreToolUseOutput::deny("Our policy: secrets stay secret."),
            false => PreToolUseOutput::allow(),
        }
    });
    let diary = Hook::on(|call: PostToolUse, _| async move {
        println!("  (diary: {} ran)", call.tool_name);
        HookOutput::empty()
    });
    let season = Hook::on(|_: UserPromptSubmit, _| async {
        let words =
            UserPromptSubmitSpecific { additional_context: "It is spring.".to_owned().into(), ..Default::default() };
        HookOutput::from(words)
    });
    let options = setup.options().hook(guard.matching("Bash").timeout(Duration::from_secs(5))).hook(diary).hook(season);
    let mut client = Client::connect(options).await?;
    for prompt in ["say hello", "show me the secret"] {
        println!("> {prompt}");
        client.send(prompt).await?;
        while let Some(message) = client.next_in_turn().await? {
            common::show(&message);
        }
    }
    client.close().await?;
    Ok(())
}

//! Asks for an answer that has the form of a Rust type.
//!
//!     cargo run -p quipu-sdk --example structured -- --cli target/debug/quipu-agent
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "an example prints its results")]

mod common;

const SCRIPT: &str = "
- when: {result_of: StructuredOutput}
  reply: Given.
- reply: {tool: StructuredOutput, input: {name: Ada Lovelace, born: 1815, wrote: [Notes on the Analytical Engine]}}
";

/// The form of the answer.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Person {
    name: String,
    born: u32,
    wrote: Vec<String>,
}

#[tokio::main]
async fn main() -> common::ExampleResult {
    let setup = common::ExampleSetup::new(SCRIPT).await?;
    let options = setup.options().output_type::<Person>();
    let result = quipu_sdk::query_result("Who wrote the first program?", options).await?;
    let person: Person = result.structured_output.get().ok_or("no answer of that form")?.read()?;
    println!("{} ({}) wrote {}.", person.name, person.born, person.wrote.join(", "));
    Ok(())
}

//! A chat through pipes: a prompt on each line, answers as plain text.

use std::io::Write;

use quipu_message::stream::TurnOutcome;
use quipu_render::sanitize;
use quipu_sdk::{Client, Decision};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

use crate::error::ChatError;

/// Reason for the model when a tool call needs a permission.
const DENIAL: &str = "This tool call needs the user's permission, and the user cannot be asked: the chat has no \
                      terminal. Allow the tool in the settings or with a permission mode.";

/// How a chat through pipes ended.
#[derive(Debug)]
pub struct PlainOutcome {
    /// Id of the session; `None` if there was no prompt.
    pub session_id: Option<String>,
    /// Number of turns that failed.
    pub failed_turns: usize,
}

/// Sends each line of `input` as a prompt and writes the answers to `output`, each without
/// control characters and with a line break at its end. Tool calls that need a permission are
/// denied. Failed turns, denied calls and lines that the agent writes to stderr go to `errors`.
pub async fn run_plain_chat(
    options: quipu_sdk::Options,
    input: impl AsyncBufRead + Unpin,
    output: &mut impl Write,
    errors: &mut impl Write,
) -> Result<PlainOutcome, ChatError> {
    let mut client = Client::connect(options.can_use_tool(|_, _| async { Decision::deny(DENIAL) })).await?;
    let mut outcome = PlainOutcome { session_id: None, failed_turns: 0 };
    let mut lines = input.lines();
    while let Some(line) = lines.next_line().await.map_err(ChatError::Input)? {
        if line.trim().is_empty() {
            continue;
        }
        client.send(line).await?;
        let result = client.read_result().await?;
        for call in result.denied_tool_calls() {
            let name = call.tool_name.to_string();
            let text = format!("denied {}: it needs a permission, and there is no terminal to ask on", sanitize(&name));
            writeln!(errors, "{text}").map_err(ChatError::Output)?;
        }
        let text = result.result.text().unwrap_or_default();
        if result.is_error || result.subtype != TurnOutcome::Success {
            outcome.failed_turns += 1;
            let text = if text.is_empty() { result.subtype.as_str() } else { text };
            writeln!(errors, "error: {}", sanitize(text)).map_err(ChatError::Output)?;
        } else {
            writeln!(output, "{}", sanitize(text).trim_end()).map_err(ChatError::Output)?;
            output.flush().map_err(ChatError::Output)?;
        }
        outcome.session_id = result.envelope.session_id.text().map(str::to_owned).or(outcome.session_id);
    }
    client.close().await?;
    Ok(outcome)
}

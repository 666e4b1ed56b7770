//! Shell commands inside a saved prompt: `` !`command` `` is replaced by its output.

use quipu_message::{Json, ToolName, ToolUse};
use serde_json::json;

use crate::agent_context::AgentContext;
use crate::clock::new_id;
use crate::permission_flow::{DeniedCall, PermissionOutcome};
use crate::tool::{CallContext, Tool, ToolOutput};
use crate::tools::bash::Bash;

/// The text before a command.
const COMMAND_MARKER: &str = "!`";

/// Replaces the commands in a text by their output. Each needs the permission that the same Bash call
/// of the model would need; one that fails or is denied is replaced by an error text.
pub(super) async fn expand_commands(ctx: &AgentContext<'_>, text: &str) -> String {
    let mut done = String::with_capacity(text.len());
    for piece in split_parts(text) {
        match piece {
            PromptPart::Text(words) => done.push_str(words),
            PromptPart::Command(command) => done.push_str(&run_command(ctx, command).await),
        }
    }
    done
}

async fn run_command(ctx: &AgentContext<'_>, command: &str) -> String {
    if ctx.find_tool(&ToolName::Bash).is_none() {
        return format!("[`{command}` failed: the session has no Bash tool]");
    }
    let interrupted = || format!("[`{command}` failed: it was interrupted]");
    if ctx.cancel.is_cancelled() {
        return interrupted();
    }
    let input = json!({ "command": command });
    let call = ToolUse {
        id: format!("toolu_{}", new_id().as_str().replace('-', "")).into(),
        name: ToolName::Bash,
        input: Json::from(input),
        ..ToolUse::default()
    };
    let permission = tokio::select! {
        biased;
        permission = ctx.request_permission(&call) => Some(permission),
        // An open request for permission never ends by itself.
        () = ctx.cancel.cancelled() => None,
    };
    let Some(permission) = permission else { return interrupted() };
    let output = match permission {
        PermissionOutcome::Allowed { input, profile, .. } => {
            let call = CallContext { cancel: ctx.cancel.child_token(), profile, ..CallContext::new(call.id.clone()) };
            Bash.run(input.to_value(), ctx.workspace, &call).await
        }
        PermissionOutcome::Denied(DeniedCall { message: text, .. }) => ToolOutput::failure(text),
    };
    match output.is_error {
        false => output.content.to_text(),
        true => format!("[`{command}` failed: {}]", output.content.to_text()),
    }
}

/// A part of a saved prompt.
#[derive(Debug, PartialEq, Eq)]
enum PromptPart<'a> {
    Text(&'a str),
    Command(&'a str),
}

/// Splits a prompt at its commands. A marker inside a word is text, and so is one whose command does
/// not end on the same line.
fn split_parts(text: &str) -> Vec<PromptPart<'_>> {
    let mut pieces = Vec::new();
    let (mut begun, mut at) = (0, 0);
    while let Some(mark) = text[at..].find(COMMAND_MARKER).map(|found| at + found) {
        let start = mark + COMMAND_MARKER.len();
        let free = text[..mark].chars().next_back().is_none_or(|before| !before.is_alphanumeric() && before != '`');
        let line = text[start..].lines().next().unwrap_or_default();
        match line.find('`').filter(|end| free && *end > 0) {
            Some(end) => {
                pieces.push(PromptPart::Text(&text[begun..mark]));
                pieces.push(PromptPart::Command(&text[start..start + end]));
                (begun, at) = (start + end + 1, start + end + 1);
            }
            None => at = start,
        }
    }
    pieces.push(PromptPart::Text(&text[begun..]));
    pieces.retain(|piece| *piece != PromptPart::Text(""));
    pieces
}

#[cfg(test)]
mod tests {
    use super::PromptPart::{Command, Text};
    use super::split_parts;

    #[test]
    fn a_command_is_in_backticks_after_an_exclamation_mark() {
        assert_eq!(
            split_parts("Now: !`git status` and\n!`ls`"),
            [Text("Now: "), Command("git status"), Text(" and\n"), Command("ls")]
        );
        assert_eq!(
            split_parts("no `code!` here, wow!`x` nor !`open\nend`"),
            [Text("no `code!` here, wow!`x` nor !`open\nend`")]
        );
        assert_eq!(split_parts("!``"), [Text("!``")]);
        assert!(split_parts("").is_empty());
    }
}

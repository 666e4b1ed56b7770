//! Commands inside a saved prompt: what `` !`command` `` prints takes its place.

use quipu_message::{Json, ToolUse};
use serde_json::json;

use crate::clock::fresh;
use crate::permit::{Permit, Refusal};
use crate::talk::Talk;
use crate::tool::{Call, Output, Tool};
use crate::tools::bash::Bash;

/// How such a command begins.
const MARK: &str = "!`";

/// Runs the commands of a text, each as if the model had called Bash: rules, hooks and
/// the host have their say. What may not run is named in its place.
pub(super) async fn run(talk: &Talk<'_>, text: &str) -> String {
    let mut done = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Words(words) => done.push_str(words),
            Piece::Command(command) => done.push_str(&printed(talk, command).await),
        }
    }
    done
}

async fn printed(talk: &Talk<'_>, command: &str) -> String {
    let input = json!({ "command": command });
    let call = ToolUse {
        id: format!("toolu_{}", fresh().as_str().replace('-', "")).into(),
        name: Bash.definition().name,
        input: Json::from(input),
        ..ToolUse::default()
    };
    let output = match talk.permit(&call).await {
        Permit::Allowed { input, profile, .. } => {
            let call = Call { cancel: talk.cancel.child_token(), profile, ..Call::new(call.id.clone()) };
            Bash.run(input.value(), talk.place, &call).await
        }
        Permit::Refused(Refusal { text, .. }) => Output::failure(text),
    };
    match output.is_error {
        false => output.content.to_text(),
        true => format!("[`{command}` failed: {}]", output.content.to_text()),
    }
}

/// A part of a prompt.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    Words(&'a str),
    Command(&'a str),
}

/// Cuts a prompt at its commands. A mark within a word is none, nor is one that does not
/// end on its line.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut begun, mut at) = (0, 0);
    while let Some(mark) = text[at..].find(MARK).map(|found| at + found) {
        let start = mark + MARK.len();
        let free = text[..mark].chars().next_back().is_none_or(|before| !before.is_alphanumeric() && before != '`');
        let line = text[start..].lines().next().unwrap_or_default();
        match line.find('`').filter(|end| free && *end > 0) {
            Some(end) => {
                pieces.push(Piece::Words(&text[begun..mark]));
                pieces.push(Piece::Command(&text[start..start + end]));
                (begun, at) = (start + end + 1, start + end + 1);
            }
            None => at = start,
        }
    }
    pieces.push(Piece::Words(&text[begun..]));
    pieces.retain(|piece| *piece != Piece::Words(""));
    pieces
}

#[cfg(test)]
mod tests {
    use super::Piece::{Command, Words};
    use super::pieces;

    #[test]
    fn a_command_stands_in_backticks_after_an_exclamation_mark() {
        assert_eq!(
            pieces("Now: !`git status` and\n!`ls`"),
            [Words("Now: "), Command("git status"), Words(" and\n"), Command("ls")]
        );
        assert_eq!(
            pieces("no `code!` here, wow!`x` nor !`open\nend`"),
            [Words("no `code!` here, wow!`x` nor !`open\nend`")]
        );
        assert_eq!(pieces("!``"), [Words("!``")]);
        assert!(pieces("").is_empty());
    }
}

//! Fixed texts that an agent writes in place of the user or of a tool.
//!
//! Some readers recognize them by their exact wording, so each prefix is that of the real files; the text
//! after a prefix is our own.

#[cfg(test)]
mod tests;

/// The `model` of an assistant message that no model wrote.
pub const SYNTHETIC_MODEL: &str = "<synthetic>";

/// Marks where the user interrupted the answer.
pub const INTERRUPT: &str = "[Request interrupted by user]";

/// Marks where the user interrupted a tool.
pub const INTERRUPT_FOR_TOOL_USE: &str = "[Request interrupted by user for tool use]";

/// Begins the tool result of a cancelled action.
pub const CANCEL_PREFIX: &str = "The user doesn't want to take this action right now.";

/// Begins the result of a tool call that the user rejected.
pub const REJECT_PREFIX: &str = "The user doesn't want to proceed with this tool use.";

/// Text of the assistant in an exchange without an answer.
pub const NO_RESPONSE_REQUESTED: &str = "No response requested.";

/// Replaces empty content, which the API rejects.
pub const NO_CONTENT: &str = "(no content)";

/// Replaces a tool result that was lost. It is never real data.
pub const MISSING_RESULT: &str = "[Tool result missing due to internal error]";

/// Begins the result of a tool call that was denied inside a subagent, where no user can answer.
pub const SUBAGENT_REJECT_PREFIX: &str = "Permission for this tool use was denied.";

/// Begins the result of a tool call that a rule or a classifier denied.
pub const AUTOMATIC_DENIAL_PREFIX: &str = "Permission for this action has been denied. Reason: ";

/// Begins the summary that replaces what was compacted. Readers that do not know `isCompactSummary`
/// recognize the summary by it.
pub const SUMMARY_PREFIX: &str = "This session is being continued from a previous conversation that ran out of context";

/// Text before the user's feedback in a rejection, in files of Claude Code and in ours.
const FEEDBACK_MARKER: &str = "the user said:\n";

/// The five synthetic texts that do not count as messages of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SyntheticText {
    /// [`INTERRUPT`].
    Interrupt,
    /// [`INTERRUPT_FOR_TOOL_USE`].
    InterruptForToolUse,
    /// A text that begins with [`CANCEL_PREFIX`].
    Cancel,
    /// A text that begins with [`REJECT_PREFIX`].
    Reject,
    /// [`NO_RESPONSE_REQUESTED`].
    NoResponseRequested,
}

impl SyntheticText {
    /// Recognizes one of the five texts. Line ends after the exact texts are allowed, because API requests
    /// add them.
    pub fn from_text(text: &str) -> Option<Self> {
        match text.trim_end_matches(['\r', '\n']) {
            INTERRUPT => Some(Self::Interrupt),
            INTERRUPT_FOR_TOOL_USE => Some(Self::InterruptForToolUse),
            NO_RESPONSE_REQUESTED => Some(Self::NoResponseRequested),
            text if text.starts_with(CANCEL_PREFIX) => Some(Self::Cancel),
            text if text.starts_with(REJECT_PREFIX) => Some(Self::Reject),
            _ => None,
        }
    }
}

/// Whether a text is one of the five that do not count as messages of the user.
pub fn is_synthetic(text: &str) -> bool {
    SyntheticText::from_text(text).is_some()
}

/// First words of messages by which the program continues a turn after the model stopped.
const CONTINUATION_PREFIXES: [&str; 2] = ["Stop hook feedback:", "[structured-output-enforce]"];

/// Whether the program wrote a text to continue a turn, because a stop hook refused its end
/// or the structured output is missing.
pub fn is_continuation_prompt(text: &str) -> bool {
    CONTINUATION_PREFIXES.iter().any(|prefix| text.starts_with(prefix))
}

/// Tags that begin a prompt written by a program: at a start, on a timer or for a goal.
const AUTOMATIC_PROMPT_TAGS: [&str; 3] = ["<session-start-hook>", "<tick>", "<goal>"];

/// Whether a prompt was written by a program instead of the user.
pub fn is_automatic_prompt(text: &str) -> bool {
    AUTOMATIC_PROMPT_TAGS.iter().any(|tag| text.trim_start().starts_with(tag))
}

/// Whether a tool result is the placeholder of a lost one.
pub fn is_missing_result(text: &str) -> bool {
    text.trim_end_matches(['\r', '\n']) == MISSING_RESULT
}

/// Whether a tool result is the denial of a call inside a subagent.
pub fn is_subagent_reject(text: &str) -> bool {
    text.starts_with(SUBAGENT_REJECT_PREFIX)
}

/// Whether a tool result is the denial by a rule or a classifier.
pub fn is_automatic_denial(text: &str) -> bool {
    text.starts_with(AUTOMATIC_DENIAL_PREFIX)
}

/// The feedback that the user gave with a rejection, in the main session or a subagent; `None` if there is none.
///
/// ```
/// use quipu_message::synthetic::{reject_text, rejection_feedback};
/// assert_eq!(rejection_feedback(&reject_text(Some("use tabs"))), Some("use tabs"));
/// assert_eq!(rejection_feedback(&reject_text(None)), None);
/// ```
pub fn rejection_feedback(text: &str) -> Option<&str> {
    if SyntheticText::from_text(text) != Some(SyntheticText::Reject) && !is_subagent_reject(text) {
        return None;
    }
    let (_, feedback) = text.split_once(FEEDBACK_MARKER)?;
    Some(feedback).filter(|feedback| !feedback.trim().is_empty())
}

/// Makes the message that replaces the compacted part of a conversation, from the model's summary.
pub fn compact_summary_text(text: &str) -> String {
    format!(
        "{SUMMARY_PREFIX}. This is the summary of it:\n\n{text}\n\nGo on with the work from there; do not mention the \
         summary."
    )
}

/// Makes the tool result of a cancelled action.
pub fn cancel_text() -> String {
    format!("{CANCEL_PREFIX} The action was not carried out. Wait for the user's next message.")
}

/// Makes the result of a tool call that the user rejected, with the user's feedback if there is any.
pub fn reject_text(feedback: Option<&str>) -> String {
    match feedback.filter(|words| !words.trim().is_empty()) {
        Some(words) => {
            format!("{REJECT_PREFIX} The tool did not run and nothing was changed. Instead, {FEEDBACK_MARKER}{words}")
        }
        None => format!(
            "{REJECT_PREFIX} The tool did not run and nothing was changed. Stop here and wait for the \
             user to say how to go on."
        ),
    }
}

/// Makes the result of a tool call that was stopped while it ran. Unlike [`reject_text`], it does not claim
/// that nothing was changed.
pub fn stopped_text() -> String {
    format!(
        "{REJECT_PREFIX} This call had already begun and was stopped while it ran: it may have run in part or \
         in full, and what it changed may still be changed. Check before you run it again. Stop here and wait for \
         the user to say how to go on."
    )
}

/// Makes the result of a tool call that was denied inside a subagent.
pub fn subagent_reject_text() -> String {
    format!(
        "{SUBAGENT_REJECT_PREFIX} The tool did not run and nothing was changed. Go on with what is \
         still possible, and say in your final report what could not be done."
    )
}

/// Makes the tool result of an action refused by a rule or a classifier.
///
/// After the reason the text says what is still allowed (another way within the rules) and what is not
/// (working around the denial).
pub fn automatic_denial_text(reason: &str) -> String {
    let reason = match reason.trim().trim_end_matches(['.', '。']) {
        "" => "none given",
        reason => reason,
    };
    format!(
        "{AUTOMATIC_DENIAL_PREFIX}{reason}. Work that does not depend on this action may go on. A \
         different tool or approach is welcome when it is an ordinary way to the same goal and stays \
         within what this refusal protects. Do not work around the refusal: no disguising, splitting up or \
         handing on the same action, and no changing of the rules that refused it. If the task cannot be \
         finished without it, stop, tell the user what is needed and why, and let them decide."
    )
}

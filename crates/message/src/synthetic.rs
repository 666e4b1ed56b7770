//! The fixed texts that an agent program writes in a user's or a tool's place.
//!
//! Some readers find them by their exact words, so the words up to each prefix
//! are those of the real files; what follows a prefix in our own makers is ours.

#[cfg(test)]
mod tests;

/// The `model` of an assistant message that no model wrote.
pub const SYNTHETIC_MODEL: &str = "<synthetic>";

/// Stands where the user interrupted the answer.
pub const INTERRUPT: &str = "[Request interrupted by user]";

/// Stands where the user interrupted a tool.
pub const INTERRUPT_FOR_TOOL_USE: &str = "[Request interrupted by user for tool use]";

/// Begins the tool result of a cancelled action.
pub const CANCEL_PREFIX: &str = "The user doesn't want to take this action right now.";

/// Begins the tool result of a use that the user refused.
pub const REJECT_PREFIX: &str = "The user doesn't want to proceed with this tool use.";

/// The assistant's part of an exchange that asked for no answer.
pub const NO_RESPONSE_REQUESTED: &str = "No response requested.";

/// Replaces content that would be empty, which the API refuses.
pub const NO_CONTENT: &str = "(no content)";

/// Replaces a tool result that was lost. It is never real data.
pub const MISSING_RESULT: &str = "[Tool result missing due to internal error]";

/// Begins the tool result of a use refused inside a subagent, where no person answers.
pub const SUBAGENT_REJECT_PREFIX: &str = "Permission for this tool use was denied.";

/// Begins the tool result of an action refused by a rule or a classifier.
pub const AUTOMATIC_DENIAL_PREFIX: &str = "Permission for this action has been denied. Reason: ";

/// Begins the summary that replaces what was compacted; readers that do not know
/// `isCompactSummary` tell it from the user's words by this.
pub const SUMMARY_PREFIX: &str = "This session is being continued from a previous conversation that ran out of context";

/// What comes before the user's words in a refusal, in the real files and in ours.
const FEEDBACK_MARKER: &str = "the user said:\n";

/// The five synthetic texts that never count as a user's messages.
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
    /// Recognises one of the five. API requests add a line end to some of them,
    /// so line ends after the exact texts are allowed.
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

/// Tells whether a text is one of the five that never count as a user's messages.
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

/// What begins a text that a program says in the user's place, at a start, on a timer or
/// for a goal.
const AUTOMATIC_PROMPT_TAGS: [&str; 3] = ["<session-start-hook>", "<tick>", "<goal>"];

/// Tells whether a text is one that a program says in the user's place.
pub fn is_automatic_prompt(text: &str) -> bool {
    AUTOMATIC_PROMPT_TAGS.iter().any(|tag| text.trim_start().starts_with(tag))
}

/// Tells whether a tool result is the placeholder of a lost one.
pub fn is_missing_result(text: &str) -> bool {
    text.trim_end_matches(['\r', '\n']) == MISSING_RESULT
}

/// Tells whether a tool result says that a use inside a subagent was refused.
pub fn is_subagent_reject(text: &str) -> bool {
    text.starts_with(SUBAGENT_REJECT_PREFIX)
}

/// Tells whether a tool result says that a rule or a classifier refused the action.
pub fn is_automatic_denial(text: &str) -> bool {
    text.starts_with(AUTOMATIC_DENIAL_PREFIX)
}

/// Returns the words the user gave with a refusal, in the main session or a subagent.
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
    let (_, words) = text.split_once(FEEDBACK_MARKER)?;
    Some(words).filter(|words| !words.trim().is_empty())
}

/// Makes the message that replaces what was compacted, from the model's summary of it.
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

/// Makes the tool result of a use that the user refused, with their words if they gave any.
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

/// Makes the tool result of a use that was stopped while it ran. Unlike [`reject_text`], it
/// does not claim that nothing was changed.
pub fn stopped_text() -> String {
    format!(
        "{REJECT_PREFIX} This call had already begun and was stopped while it ran: it may have run in part or \
         in full, and what it changed may still be changed. Check before you run it again. Stop here and wait for \
         the user to say how to go on."
    )
}

/// Makes the tool result of a use refused inside a subagent.
pub fn subagent_reject_text() -> String {
    format!(
        "{SUBAGENT_REJECT_PREFIX} The tool did not run and nothing was changed. Go on with what is \
         still possible, and say in your final report what could not be done."
    )
}

/// Makes the tool result of an action refused by a rule or a classifier.
///
/// The reason is followed by what is still allowed (an honest other way) and
/// what is not (getting round the refusal).
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

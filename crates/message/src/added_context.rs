//! Kinds of text that the program adds to a prompt by itself.

use crate::tagged_text::{TextPart, TextTag, split_parts};

/// What a text that the program added to a prompt is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum AddedContext {
    /// Instruction files such as CLAUDE.md, and memory.
    Instructions,
    /// The list of skills, or the text of one.
    Skills,
    /// Contents of files that were mentioned or read recently.
    Files,
    /// Commands that the user ran, with their output.
    CommandOutput,
    /// Any other reminder to the model.
    Reminder,
}

impl AddedContext {
    /// Words for output, for example `command output`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Skills => "skills",
            Self::Files => "files",
            Self::CommandOutput => "command output",
            Self::Reminder => "reminders",
        }
    }

    /// The kind of a whole text block of a prompt; `None` if it contains text that the
    /// program did not add.
    pub fn from_text(text: &str) -> Option<Self> {
        let mut kind = None;
        for part in split_parts(text) {
            let TextPart::Tagged { tag, body, .. } = part else {
                if is_blank(&part) {
                    continue;
                }
                return None;
            };
            let found = match tag {
                TextTag::SystemReminder => Self::from_reminder(body),
                TextTag::IdeOpenedFile | TextTag::IdeSelection => Self::Files,
                TextTag::UserMemoryInput => Self::Instructions,
                TextTag::TaskNotification => Self::Reminder,
                _ => Self::CommandOutput,
            };
            kind = kind.min(Some(found)).or(Some(found));
        }
        kind
    }

    /// The kind of a reminder's text, by the words with which programs introduce it.
    fn from_reminder(body: &str) -> Self {
        let start: String = body.chars().take(400).collect();
        let has = |words: &[&str]| words.iter().any(|word| start.contains(word));
        if has(&["claudeMd", "CLAUDE.md", "AGENTS.md", "# Memory"]) {
            Self::Instructions
        } else if has(&["skills are available", "Skill tool"]) {
            Self::Skills
        } else if has(&["Called the Read tool", "Result of calling the Read tool", "was modified", "Contents of "]) {
            Self::Files
        } else {
            Self::Reminder
        }
    }
}

fn is_blank(part: &TextPart<'_>) -> bool {
    matches!(part, TextPart::Typed(text) if text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::AddedContext;

    #[test]
    fn a_text_is_context_only_if_the_program_wrote_all_of_it() {
        for (text, kind) in [
            ("<system-reminder>\n# claudeMd\nUse tabs.\n</system-reminder>", Some(AddedContext::Instructions)),
            ("<system-reminder>The todo list is empty.</system-reminder>", Some(AddedContext::Reminder)),
            ("<local-command-stdout>done</local-command-stdout>", Some(AddedContext::CommandOutput)),
            ("fix the button\n\n<system-reminder>x</system-reminder>", None),
            ("fix the button", None),
            ("", None),
        ] {
            assert_eq!(AddedContext::from_text(text), kind, "{text}");
        }
    }
}

//! One line that names a conversation in a list.

use serde::{Deserialize, Serialize};

/// Lines before a pasted plan; the heading of the plan is a better name.
const PLAN_INTRODUCTIONS: [&str; 2] = ["implement the following plan:", "implement this plan:"];

/// The title or, without one, the first line of the first prompt; for a pasted plan, its
/// heading. `None` if both are empty.
///
/// ```
/// use quipu_conversation::headline;
/// assert_eq!(headline(None, Some("Implement the following plan:\n\n# Faster tides")), Some("Faster tides"));
/// assert_eq!(headline(Some("Tides"), Some("hello")), Some("Tides"));
/// assert_eq!(headline(None, Some("#104 crashes")), Some("#104 crashes"));
/// ```
pub fn headline<'a>(title: Option<&'a str>, first_prompt: Option<&'a str>) -> Option<&'a str> {
    let is_plan = |line: &str| PLAN_INTRODUCTIONS.iter().any(|text| line.eq_ignore_ascii_case(text));
    let mut lines = title.into_iter().chain(first_prompt).flat_map(str::lines).map(str::trim);
    lines.find_map(|line| {
        // `#104 crashes` is not a heading.
        let bare = line.trim_start_matches('#');
        let heading = if bare.starts_with(char::is_whitespace) || bare.is_empty() { bare.trim() } else { line };
        (!heading.is_empty() && !is_plan(heading)).then_some(heading)
    })
}

/// Finds the first prompt of a session. A local command without a response, such as `/clear`,
/// is replaced by a later prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstPrompt {
    text: Option<String>,
    is_unanswered_command: bool,
}

impl FirstPrompt {
    /// Adds the next prompt.
    pub fn record_prompt(&mut self, prompt: &str) {
        let is_unset = self.text.as_deref().is_none_or(str::is_empty);
        if is_unset || self.is_unanswered_command {
            self.text = Some(prompt.to_owned());
            self.is_unanswered_command = is_local_command(prompt);
        }
    }

    /// Records a response of the model to the last prompt.
    pub fn record_response(&mut self) {
        self.is_unanswered_command = false;
    }

    /// The first prompt so far; `None` if there is none.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Whether no later prompt can replace it, so that reading can stop.
    pub fn is_final(&self) -> bool {
        !self.is_unanswered_command && self.text.as_deref().is_some_and(|text| !text.is_empty())
    }
}

/// Whether a prompt is a command for the program: `/name` or `! shell command`.
pub(crate) fn is_local_command(prompt: &str) -> bool {
    prompt.starts_with('/') || prompt.starts_with("! ")
}

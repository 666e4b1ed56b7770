//! What to call a conversation in a list.

/// Words that users paste before a plan; its heading says more.
const PLAN_INTRODUCTIONS: [&str; 2] = ["implement the following plan:", "implement this plan:"];

/// A line that says what a conversation is about: its title or, without one, the first line
/// of the first prompt. A pasted plan is called by its heading.
///
/// ```
/// use quipu_conversation::headline;
/// assert_eq!(headline(None, Some("Implement the following plan:\n\n# Faster tides")), Some("Faster tides"));
/// assert_eq!(headline(Some("Tides"), Some("hello")), Some("Tides"));
/// ```
pub fn headline<'a>(title: Option<&'a str>, first_prompt: Option<&'a str>) -> Option<&'a str> {
    let is_plan = |line: &str| PLAN_INTRODUCTIONS.iter().any(|words| line.eq_ignore_ascii_case(words));
    let mut lines = title.into_iter().chain(first_prompt).flat_map(str::lines).map(str::trim);
    lines.find_map(|line| {
        let heading = line.trim_start_matches('#').trim();
        (!heading.is_empty() && !is_plan(heading)).then_some(heading)
    })
}

//! Output styles: instructions for how the model writes its answers.

use std::collections::BTreeMap;

/// An output style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutputStyle {
    /// The name that settings use.
    pub(crate) name: String,
    /// The instructions for the model.
    pub(crate) prompt: String,
    /// Whether the system prompt keeps the instructions about code.
    pub(crate) keeps_coding_instructions: bool,
    /// Whether it comes from the project, not from the user, a plugin or this program.
    pub(crate) is_from_project: bool,
}

/// The name that selects no style.
pub(crate) const DEFAULT_STYLE: &str = "default";

/// The names of all styles, built-in ones first.
pub(crate) fn style_names(styles: &BTreeMap<String, OutputStyle>) -> Vec<String> {
    let builtin = BUILTIN_STYLES.iter().map(|(name, _)| (*name).to_owned());
    let own = styles.keys().filter(|name| !BUILTIN_STYLES.iter().any(|(builtin, _)| builtin == name)).cloned();
    [DEFAULT_STYLE.to_owned()].into_iter().chain(builtin).chain(own).collect()
}

/// The built-in styles.
pub(crate) fn builtin_styles() -> impl Iterator<Item = OutputStyle> {
    BUILTIN_STYLES.iter().map(|(name, prompt)| OutputStyle {
        name: (*name).to_owned(),
        prompt: (*prompt).to_owned(),
        keeps_coding_instructions: true,
        is_from_project: false,
    })
}

const BUILTIN_STYLES: [(&str, &str); 4] = [
    (
        "Proactive",
        "Act on your own judgement. Where several ways are open, choose the one the project suggests, say in a line \
         what you assumed, and go on. Ask only when the choice cannot be undone or would waste the user's work.",
    ),
    (
        "Concise",
        "Use as few words as carry the meaning: the answer first, no introduction, no summary of what was done, no \
         offer of further help. One sentence is often enough. Code, commands and paths are never shortened.",
    ),
    (
        "Explanatory",
        "The user wants to understand as well as to get work done. Before and after a step that holds a decision, add \
         a short note headed **Insight**: two or three points on why this code is as it is, which alternatives there \
         were, and what is particular to this code base. Leave general knowledge out. The notes belong in your \
         answer, never in comments or files.",
    ),
    (
        "Learning",
        "The user wants to learn by writing part of the code. Do the routine parts yourself. Where a piece of two to \
         ten lines holds a real decision (behaviour, error handling, data structure), leave a `TODO(human)` comment \
         there, one at a time, and ask the user to write it: say what is in place, what is to be decided and what \
         speaks for each way. Then wait. When it is written, say what follows from the choice, without praise, and \
         go on. Add short notes headed **Insight** on what is particular to this code base.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_styles_come_first_and_once() {
        let own = |name: &str| OutputStyle { name: name.to_owned(), ..builtin_styles().next().unwrap() };
        let mut styles: BTreeMap<String, OutputStyle> =
            builtin_styles().map(|style| (style.name.clone(), style)).collect();
        styles.insert("Brief".to_owned(), own("Brief"));
        assert_eq!(style_names(&styles), ["default", "Proactive", "Concise", "Explanatory", "Learning", "Brief"]);
    }
}

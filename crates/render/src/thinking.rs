//! How much of the model's thinking an output shows.

/// How much of the model's thinking is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ThinkingDisplay {
    /// The first line, and the number of lines after it.
    #[default]
    Folded,
    /// All lines.
    Full,
    /// Nothing, not even that there was thinking.
    Hidden,
}

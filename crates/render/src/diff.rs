//! Compares two texts line by line and word by word.

use std::borrow::Cow;

use similar::{ChangeTag, TextDiff};

/// One line of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    /// Whether the line is added, removed or unchanged.
    pub kind: DiffLineKind,
    /// The text of the line in parts; `true` marks words that differ from the other side.
    pub parts: Vec<(bool, String)>,
}

/// Kind of a line in a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffLineKind {
    /// In both texts.
    Unchanged,
    /// In the old text only.
    Removed,
    /// In the new text only.
    Added,
    /// Placeholder for unchanged lines that are left out.
    Gap,
}

impl DiffLineKind {
    /// The character before the line: as in a unified diff, `⋯` for a gap.
    pub fn mark(self) -> char {
        match self {
            Self::Unchanged => ' ',
            Self::Removed => '-',
            Self::Added => '+',
            Self::Gap => '⋯',
        }
    }
}

/// Unchanged lines kept around a change.
const CONTEXT_LINES: usize = 3;
/// Longer texts are not compared: all old lines are removed and all new lines are added.
const MAX_DIFF_BYTES: usize = 128 * 1024;
/// Lines longer than this are not compared word by word.
const MAX_WORD_DIFF_LINE_BYTES: usize = 2_000;

/// Compares two texts; unchanged lines far from a change are replaced by a gap.
pub(crate) fn diff_lines(old: &str, new: &str) -> Vec<DiffLine> {
    if old.len() + new.len() > MAX_DIFF_BYTES {
        let whole = |text: &str, kind| text.lines().map(|line| plain_line(kind, line)).collect::<Vec<_>>();
        return [whole(old, DiffLineKind::Removed), whole(new, DiffLineKind::Added)].concat();
    }
    // A missing line break at the end of the text is not shown as a change.
    let (old, new) = (ensure_final_newline(old), ensure_final_newline(new));
    let diff = TextDiff::from_lines(old.as_ref(), new.as_ref());
    let by_word = !old.lines().chain(new.lines()).any(|line| line.len() > MAX_WORD_DIFF_LINE_BYTES);
    let mut lines = Vec::new();
    for (i, group) in diff.grouped_ops(CONTEXT_LINES).iter().enumerate() {
        if i > 0 {
            lines.push(plain_line(DiffLineKind::Gap, ""));
        }
        for op in group {
            if by_word {
                // No deadline: the size is bounded, and this crate reads no clock.
                lines.extend(diff.iter_inline_changes_deadline(op, None).map(|change| {
                    let parts = change.values().iter().map(|&(is_changed, text)| (is_changed, text)).collect();
                    to_diff_line(change.tag(), parts)
                }));
            } else {
                lines.extend(
                    diff.iter_changes(op).map(|change| to_diff_line(change.tag(), vec![(false, change.value())])),
                );
            }
        }
    }
    lines
}

/// Number of added and of removed lines.
pub(crate) fn count_changes(lines: &[DiffLine]) -> (usize, usize) {
    let of = |kind| lines.iter().filter(|line| line.kind == kind).count();
    (of(DiffLineKind::Added), of(DiffLineKind::Removed))
}

fn ensure_final_newline(text: &str) -> Cow<'_, str> {
    if text.is_empty() || text.ends_with('\n') { Cow::Borrowed(text) } else { Cow::Owned(format!("{text}\n")) }
}

fn plain_line(kind: DiffLineKind, text: &str) -> DiffLine {
    DiffLine { kind, parts: vec![(false, text.to_owned())] }
}

fn to_diff_line(tag: ChangeTag, parts: Vec<(bool, &str)>) -> DiffLine {
    let kind = match tag {
        ChangeTag::Equal => DiffLineKind::Unchanged,
        ChangeTag::Delete => DiffLineKind::Removed,
        ChangeTag::Insert => DiffLineKind::Added,
    };
    // A line that differs as a whole needs no emphasis on its words.
    let whole = parts.iter().all(|(is_changed, text)| *is_changed || text.trim().is_empty());
    let parts = parts
        .into_iter()
        .map(|(is_changed, text)| (is_changed && !whole, text.trim_end_matches(['\n', '\r']).to_owned()));
    DiffLine { kind, parts: parts.filter(|(_, text)| !text.is_empty()).collect() }
}

#[cfg(test)]
mod tests {
    use super::diff_lines;

    /// The diff as text, emphasised words in brackets.
    fn diff_text(old: &str, new: &str) -> String {
        let part = |(is_changed, text): &(bool, String)| if *is_changed { format!("[{text}]") } else { text.clone() };
        let line = |line: super::DiffLine| {
            format!("{}{}\n", line.kind.mark(), line.parts.iter().map(part).collect::<String>())
        };
        diff_lines(old, new).into_iter().map(line).collect()
    }

    #[test]
    fn changed_words_are_marked() {
        assert_eq!(diff_text("let a = 1;\nb\n", "let a = 2;\nb\n"), "-let a = [1];\n+let a = [2];\n b\n");
    }

    #[test]
    fn unchanged_lines_far_away_are_left_out() {
        let old: String = (0..20).map(|n| format!("{n}\n")).collect();
        let new = old.replace("0\n1\n", "zero\n1\n").replace("19\n", "nineteen\n");
        assert_eq!(diff_text(&old, &new), "-0\n+zero\n 1\n 2\n 3\n⋯\n 16\n 17\n 18\n-19\n+nineteen\n");
    }

    #[test]
    fn a_missing_last_line_break_is_no_noise() {
        assert_eq!(diff_text("a", "a\nb"), " a\n+b\n");
    }
}

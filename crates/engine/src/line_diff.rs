//! The lines that differ between two texts.

use quipu_message::tool::output::Hunk;
use similar::{ChangeTag, TextDiff};

/// Unchanged lines kept around a change.
const CONTEXT_LINES: usize = 3;

/// The most lines, of both texts together, that are compared one by one. Counted and not timed, so that a
/// result does not depend on the machine.
const MAX_COMPARED_LINES: usize = 100_000;

/// Returns the differences between two texts as hunks; none if there are more than `MAX_COMPARED_LINES` lines
/// from the first difference to the last.
pub(crate) fn diff_hunks(old: &str, new: &str) -> Vec<Hunk> {
    let Some(part) = ComparedPart::find(old, new) else { return Vec::new() };
    let diff = TextDiff::from_lines(part.old, part.new);
    let hunk = |group: &Vec<similar::DiffOp>| {
        let (first, last) = (group.first()?, group.last()?);
        let mut lines = Vec::new();
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            lines.push(format!("{sign}{}", change.value().trim_end_matches('\n')));
            if change.missing_newline() {
                lines.push("\\ No newline at end of file".to_owned());
            }
        }
        Some(Hunk {
            old_start: (part.lines_before + first.old_range().start) as u64 + 1,
            old_lines: (last.old_range().end - first.old_range().start) as u64,
            new_start: (part.lines_before + first.new_range().start) as u64 + 1,
            new_lines: (last.new_range().end - first.new_range().start) as u64,
            lines,
            ..Hunk::default()
        })
    };
    diff.grouped_ops(CONTEXT_LINES).iter().filter_map(hunk).collect()
}

/// Returns the number of lines that were added and removed between two texts. If there are more than
/// `MAX_COMPARED_LINES` lines from the first difference to the last, all of them count.
pub(crate) fn count_changed_lines(old: &str, new: &str) -> (u64, u64) {
    let Some(part) = ComparedPart::find(old, new) else {
        let (start, old_end, new_end) = changed_range(old, new);
        return (count_lines(&new[start..new_end]) as u64, count_lines(&old[start..old_end]) as u64);
    };
    let diff = TextDiff::from_lines(part.old, part.new);
    let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count() as u64;
    (count(ChangeTag::Insert), count(ChangeTag::Delete))
}

/// The parts of two texts that are compared. The lines before and after them are equal.
struct ComparedPart<'a> {
    old: &'a str,
    new: &'a str,
    /// Number of lines before the parts.
    lines_before: usize,
}

impl<'a> ComparedPart<'a> {
    /// The whole texts, or if they are too long the changed lines with their context; `None` if even these are
    /// too many.
    fn find(old: &'a str, new: &'a str) -> Option<Self> {
        let is_short = |old: &str, new: &str| count_lines(old) + count_lines(new) <= MAX_COMPARED_LINES;
        if is_short(old, new) {
            return Some(Self { old, new, lines_before: 0 });
        }
        let (start, old_end, new_end) = changed_range(old, new);
        let first = old[..start].rmatch_indices('\n').nth(CONTEXT_LINES).map_or(0, |(at, _)| at + 1);
        let after = &old[old_end..];
        let more = after.match_indices('\n').nth(CONTEXT_LINES - 1).map_or(after.len(), |(at, _)| at + 1);
        let (part_of_old, part_of_new) = (&old[first..old_end + more], &new[first..new_end + more]);
        let is_compared = is_short(part_of_old, part_of_new);
        is_compared.then(|| Self { old: part_of_old, new: part_of_new, lines_before: count_lines(&old[..first]) })
    }
}

/// Finds the lines from the first to the last that differ: where they start in both texts, and where they end
/// in each.
fn changed_range(old: &str, new: &str) -> (usize, usize, usize) {
    let (old_bytes, new_bytes) = (old.as_bytes(), new.as_bytes());
    let equal = old_bytes.iter().zip(new_bytes).take_while(|(old, new)| old == new).count();
    let start = old_bytes[..equal].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let from_end = old_bytes[start..].iter().rev().zip(new_bytes[start..].iter().rev());
    let equal = from_end.take_while(|(old, new)| old == new).count();
    let end = &old_bytes[old.len() - equal..];
    // The line in which the equal end starts differs.
    let equal = end.iter().position(|byte| *byte == b'\n').map_or(0, |at| end.len() - at - 1);
    (start, old.len() - equal, new.len() - equal)
}

/// Returns the number of lines, which end as those of [`TextDiff::from_lines`] do: with `\n`, `\r` or `\r\n`.
fn count_lines(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_end = |at: usize| bytes[at] == b'\n' || bytes[at] == b'\r' && bytes.get(at + 1) != Some(&b'\n');
    let ends = (0..bytes.len()).filter(|at| is_end(*at)).count();
    ends + usize::from(bytes.last().is_some_and(|last| *last != b'\n' && *last != b'\r'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text that the hunks make of `old`. Texts end with a line end.
    fn apply(old: &str, hunks: &[Hunk]) -> String {
        let lines: Vec<&str> = old.lines().collect();
        let (mut done, mut at) = (Vec::new(), 0);
        for hunk in hunks {
            let start = hunk.old_start as usize - 1;
            done.extend(&lines[at..start]);
            at = start;
            assert_eq!(done.len() + 1, hunk.new_start as usize);
            for line in &hunk.lines {
                let (sign, text) = line.split_at(1);
                if sign != "+" {
                    assert_eq!(lines[at], text);
                    at += 1;
                }
                done.extend((sign != "-").then_some(text));
            }
            assert_eq!(at - start, hunk.old_lines as usize);
            assert_eq!(done.len() + 1, (hunk.new_start + hunk.new_lines) as usize);
        }
        done.extend(&lines[at..]);
        done.iter().flat_map(|line| [line, "\n"]).collect()
    }

    #[test]
    fn the_hunks_of_a_long_text_make_the_new_one() {
        const COUNT: usize = MAX_COMPARED_LINES;
        let lines: Vec<String> = (0..COUNT).map(|at| format!("line {at}\n")).collect();
        let old = lines.concat();
        for (at, removed, added) in [
            (0, 0, "new\n"),
            (0, 2, ""),
            (1, 1, "new\nnewer\n"),
            (3, 0, "line 2\n"),
            (5000, 1, "line\n"),
            (5000, 0, "line 4999\n"),
            (20_000, 40_000, "short\n"),
            (COUNT - 2, 1, "new\n"),
            (COUNT - 1, 1, ""),
            (COUNT, 0, "new\n\n"),
        ] {
            let new = [lines[..at].concat(), added.to_owned(), lines[at + removed..].concat()].concat();
            let hunks = diff_hunks(&old, &new);
            assert!(hunks.len() == 1 && apply(&old, &hunks) == new, "{at} {removed} {added}");
            let added = added.lines().count() as u64;
            assert_eq!(count_changed_lines(&old, &new), (added, removed as u64), "{at}");
        }
        let new = old.replace("line 4012", "row 4012").replace("line 43210\n", "");
        let hunks = diff_hunks(&old, &new);
        assert!(hunks.len() == 3 && apply(&old, &hunks) == new);
    }

    #[test]
    fn a_last_line_of_a_long_text_may_have_no_end() {
        let old = "line\n".repeat(MAX_COMPARED_LINES);
        let hunks = diff_hunks(&format!("{old}é"), &format!("{old}è\n"));
        assert_eq!(hunks[0].lines, [" line", " line", " line", "-é", "\\ No newline at end of file", "+è"]);
        assert_eq!(hunks[0].old_start as usize, MAX_COMPARED_LINES - 2);
        let hunks = diff_hunks(&old, &old);
        assert_eq!(hunks, []);
    }

    #[test]
    fn lines_of_very_long_texts_are_counted_and_not_compared() {
        let mut state = 1_u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            ["a\n", "b\n", "c\n", "d\n"][(state >> 30) as usize]
        };
        let old: String = (0..2_000_000).map(|_| random()).collect();
        let new = old.replace("a\n", "b\nc\n");
        let (old, new) = (format!("same\n1\n{old}2\nsame\n"), format!("same\n3\n{new}4\nsame\n"));
        assert_eq!(diff_hunks(&old, &new), []);
        let all = |text: &str| text.lines().count() as u64 - 2;
        assert_eq!(count_changed_lines(&old, &new), (all(&new), all(&old)));
    }
}

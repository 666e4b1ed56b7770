//! Rows of styled text: measures, wraps, truncates and writes them.

use std::fmt::{self, Write};
use std::ops::Range;

use anstyle::Style;
use unicode_linebreak::linebreaks;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::sanitize::sanitize;

/// Text in one style; sanitized, without tabs and line breaks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Span {
    style: Style,
    text: String,
}

impl Span {
    /// Sanitizes the text; a tab becomes four spaces, a line break one. The only way to put text on
    /// a row.
    pub(super) fn new(style: Style, text: &str) -> Self {
        Self { style, text: sanitize(text).replace('\t', "    ").replace('\n', " ") }
    }

    pub(super) fn plain(text: &str) -> Self {
        Self::new(Style::new(), text)
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// The spans of one row, from left to right.
pub(super) type Row = Vec<Span>;

/// Width of a row in columns.
pub(super) fn row_width(row: &[Span]) -> usize {
    row.iter().map(|span| span.text.width()).sum()
}

/// Writes a row and a line break, with colour sequences if `color` is set. Spaces at the end are
/// left out.
pub(super) fn write_row(row: &[Span], color: bool, out: &mut dyn Write) -> fmt::Result {
    let end = row.iter().rposition(|span| !span.text.trim_end_matches(' ').is_empty()).map_or(0, |i| i + 1);
    for (i, span) in row[..end].iter().enumerate() {
        let text = if i + 1 == end { span.text.trim_end_matches(' ') } else { &span.text };
        if color && span.style != Style::new() {
            write!(out, "{}{text}{}", span.style.render(), span.style.render_reset())?;
        } else {
            out.write_str(text)?;
        }
    }
    out.write_char('\n')
}

/// Wraps a row to at most `max_columns` columns, between words where possible.
pub(super) fn wrap(row: &[Span], max_columns: usize) -> Vec<Row> {
    if row_width(row) <= max_columns {
        return vec![row.to_vec()];
    }
    let flat: String = row.iter().map(|span| &*span.text).collect();
    let mut ranges = Vec::new();
    let (mut start, mut end, mut used) = (0, 0, 0);
    for segment in break_segments(&flat) {
        let text = &flat[segment.clone()];
        let (word, whole) = (text.trim_end_matches(' ').width(), text.width());
        if used + word > max_columns && end > start {
            ranges.push(start..end);
            (start, used) = (segment.start, 0);
        }
        if word > max_columns {
            for (at, grapheme) in text.grapheme_indices(true) {
                let columns = grapheme.width();
                if used + columns > max_columns && segment.start + at > start {
                    ranges.push(start..segment.start + at);
                    (start, used) = (segment.start + at, 0);
                }
                used += columns;
            }
        } else {
            used += whole;
        }
        end = segment.end;
    }
    if end > start {
        ranges.push(start..end);
    }
    // The spaces at a break are neither shown nor counted.
    let shown = |r: Range<usize>| r.start..r.start + flat[r].trim_end_matches(' ').len();
    ranges.into_iter().map(|range| slice_row(row, shown(range))).collect()
}

/// Wraps a row at any character, as code needs it.
pub(super) fn hard_wrap(row: &[Span], max_columns: usize) -> Vec<Row> {
    let mut rows = vec![Row::new()];
    let mut used = 0;
    for span in row {
        let mut start = 0;
        for (at, grapheme) in span.text.grapheme_indices(true) {
            let columns = grapheme.width();
            if used + columns > max_columns.max(2) {
                push_span(&mut rows, span, start..at);
                rows.push(Row::new());
                (start, used) = (at, 0);
            }
            used += columns;
        }
        push_span(&mut rows, span, start..span.text.len());
    }
    rows
}

/// Truncates a row to at most `max_columns` columns, with `…` at the end if something is left
/// out.
pub(super) fn truncate_row(row: &[Span], max_columns: usize) -> Row {
    if row_width(row) <= max_columns {
        return row.to_vec();
    }
    let mut first = hard_wrap(row, max_columns.saturating_sub(1)).swap_remove(0);
    first.push(Span::new(Style::new().dimmed(), "…"));
    first
}

fn push_span(rows: &mut [Row], span: &Span, range: Range<usize>) {
    if let Some(row) = rows.last_mut()
        && !range.is_empty()
    {
        row.push(Span { style: span.style, text: span.text[range].to_owned() });
    }
}

/// The part of a row that a range of its flat text covers.
fn slice_row(row: &[Span], range: Range<usize>) -> Row {
    let mut cut = Row::new();
    let mut offset = 0;
    for span in row {
        let start = range.start.clamp(offset, offset + span.text.len()) - offset;
        let end = range.end.clamp(offset, offset + span.text.len()) - offset;
        if start < end {
            cut.push(Span { style: span.style, text: span.text[start..end].to_owned() });
        }
        offset += span.text.len();
        if offset >= range.end {
            break;
        }
    }
    cut
}

/// Ranges of the text between which a line may be broken; spaces belong to the range before.
///
/// A line may be broken after any space and, by the rules of Unicode, next to a wide character.
/// Between narrow characters these rules would also break paths, options and ranges of numbers,
/// after `/`, `-` and `–`, and would keep a path on the line of the word before it.
fn break_segments(text: &str) -> Vec<Range<usize>> {
    let mut opportunities = linebreaks(text).map(|(at, _)| at).peekable();
    let (mut start, mut before) = (0, None);
    let mut segments = Vec::new();
    for (at, after) in text.char_indices() {
        while opportunities.next_if(|opportunity| *opportunity < at).is_some() {}
        let is_wide = |c: Option<char>| c.is_some_and(|c| c.width() == Some(2));
        let is_after_space = before == Some(' ') && after != ' ';
        let is_next_to_wide = (is_wide(before) || is_wide(Some(after))) && opportunities.peek() == Some(&at);
        if at > 0 && (is_after_space || is_next_to_wide) {
            segments.push(start..at);
            start = at;
        }
        before = Some(after);
    }
    if start < text.len() {
        segments.push(start..text.len());
    }
    segments
}

/// Whether a line break after it needs no space in Markdown, as in Chinese and Japanese.
pub(super) fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{a4cf}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe4f}'
        | '\u{ff00}'..='\u{ff60}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::{Span, hard_wrap, truncate_row, wrap};

    fn texts(rows: Vec<super::Row>) -> Vec<String> {
        rows.iter().map(|row| row.iter().map(Span::text).collect::<String>().trim_end().to_owned()).collect()
    }

    #[test]
    fn words_stay_whole() {
        let row = [Span::plain("one two three"), Span::plain("four five")];
        assert_eq!(texts(wrap(&row, 9)), ["one two", "threefour", "five"]);
        assert_eq!(texts(wrap(&[Span::plain("abcdefghij k")], 4)), ["abcd", "efgh", "ij k"]);
    }

    #[test]
    fn ideographs_take_two_columns_and_keep_their_punctuation() {
        assert_eq!(texts(wrap(&[Span::plain("每人最多中一次奖，不重复")], 16)), ["每人最多中一次", "奖，不重复"]);
        assert_eq!(texts(hard_wrap(&[Span::plain("抽奖脚本")], 5)), ["抽奖", "脚本"]);
        assert_eq!(texts(vec![truncate_row(&[Span::plain("抽奖脚本")], 6)]), ["抽奖…"]);
    }

    #[test]
    fn joined_emoji_stay_whole() {
        let family = "👩\u{200d}👩\u{200d}👧";
        let row = [Span::plain(&family.repeat(3))];
        assert_eq!(texts(hard_wrap(&row, 4)), [family.repeat(2), family.to_owned()]);
        assert_eq!(texts(vec![truncate_row(&row, 4)]), [format!("{family}…")]);
    }

    #[test]
    fn paths_and_options_are_not_broken() {
        assert_eq!(texts(wrap(&[Span::plain("run a/b-c --all-targets")], 14)), ["run a/b-c", "--all-targets"]);
        assert_eq!(texts(wrap(&[Span::plain("in 0–360 at /home/sam")], 11)), ["in 0–360 at", "/home/sam"]);
    }

    #[test]
    fn text_is_cleaned_on_its_way_in() {
        assert_eq!(Span::plain("a\x1b[31m\tb\nc").text(), "a    b c");
    }
}

//! Splits text into the words of the index.
//!
//! A word is letters and digits in lower case. An identifier gives its parts, and as one
//! word the whole of it: `getUserById` and `get_user_by_id` are *get user by id* and
//! *·getuserbyid*. The parts are in the order of the text, so that phrases can be found;
//! the whole identifiers follow, once each, with a mark that makes them words of their own: a
//! query for them does not read the places of a common word. Chinese and Japanese, which have no
//! spaces, give every pair of neighbours and the last character of a run.

use std::collections::HashSet;

use quipu_conversation::usage::stable_hash;

/// Longer words are data and not indexed.
pub(crate) const MAX_WORD_BYTES: usize = 64;

/// First character of a whole identifier in the index. No word contains it, and FTS5's
/// tokenizer `ascii` takes it for a letter.
pub(crate) const WHOLE_MARK: char = '·';

/// The words of a text, each followed by a space: words and parts of identifiers in the order of
/// the text, then whole identifiers.
pub(crate) fn index_words(text: &str) -> String {
    let (mut out, mut wholes, mut seen) = (String::new(), String::new(), HashSet::new());
    // Start of the current identifier in `out`, and the number of its parts.
    let (mut start, mut parts) = (0, 0);
    let mut close = |out: &String, start: usize, parts: usize| {
        if parts > 1 {
            let before = wholes.len();
            wholes.push(WHOLE_MARK);
            wholes.extend(out[start..].split(' '));
            let whole = &wholes[before + WHOLE_MARK.len_utf8()..];
            if whole.len() > MAX_WORD_BYTES || !seen.insert(stable_hash(whole.as_bytes())) {
                wholes.truncate(before);
            } else {
                wholes.push(' ');
            }
        }
    };
    for_each_run(text, |kind, run| match kind {
        CharClass::Word => {
            if parts == 0 {
                start = out.len();
            }
            for_each_part(run, |part| {
                parts += 1;
                push_word(part, &mut out);
            });
        }
        // An underscore joins the parts of an identifier.
        CharClass::Separator if run.bytes().all(|byte| byte == b'_') => {}
        _ => {
            close(&out, start, parts);
            parts = 0;
            if kind == CharClass::Ideograph {
                append_pairs(run, &mut out);
            }
        }
    });
    close(&out, start, parts);
    out.push_str(&wholes);
    out
}

/// Calls `visit` with each maximal run of characters of one class.
pub(crate) fn for_each_run<'t>(text: &'t str, mut visit: impl FnMut(CharClass, &'t str)) {
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let kind = CharClass::from_char(first);
        let end = rest.find(|c| CharClass::from_char(c) != kind).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        visit(kind, run);
        rest = after;
    }
}

/// Class of a character in the index.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CharClass {
    Word,
    Ideograph,
    Separator,
}

impl CharClass {
    pub(crate) fn from_char(c: char) -> Self {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' => Self::Word,
            _ if c.is_ascii() => Self::Separator,
            // Han, Hiragana and Katakana with their extensions.
            '\u{2e80}'..='\u{2fdf}' | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' => {
                Self::Ideograph
            }
            '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}' => {
                Self::Ideograph
            }
            _ if c.is_alphanumeric() => Self::Word,
            _ => Self::Separator,
        }
    }
}

/// Calls `visit` with each part of a run of letters and digits.
pub(crate) fn for_each_part(run: &str, mut visit: impl FnMut(&str)) {
    let mut start = 0;
    for (at, _) in run.char_indices().skip(1) {
        if is_part_boundary(run, at) {
            visit(&run[start..at]);
            start = at;
        }
    }
    visit(&run[start..]);
}

/// Whether a word starts or ends at an offset of a text: at its ends, next to characters other
/// than letters and digits, and between the parts of an identifier.
pub(crate) fn is_word_boundary(text: &str, at: usize) -> bool {
    let kind = |c: Option<char>| c.map(CharClass::from_char);
    let is_inside = kind(text[..at].chars().next_back()) == Some(CharClass::Word)
        && kind(text[at..].chars().next()) == Some(CharClass::Word);
    !is_inside || is_part_boundary(text, at)
}

/// Whether an offset between two letters or digits separates parts of an identifier: before a
/// capital after a small letter (`userId`) or at the start of a word (`HTTPServer`,
/// `v2Client`), and around the `T` of a time (`2026-02-12T22:40`).
fn is_part_boundary(text: &str, at: usize) -> bool {
    let (mut left, mut right) = (text[..at].chars(), text[at..].chars());
    let (Some(before), Some(c)) = (left.next_back(), right.next()) else { return false };
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    if c.is_ascii_lowercase() {
        return false;
    }
    if c.is_ascii_digit() {
        return before == 'T' && is_digit(left.next_back());
    }
    if !c.is_uppercase() {
        return false;
    }
    let next = right.next();
    before.is_lowercase()
        || next.is_some_and(char::is_lowercase) && (before.is_uppercase() || before.is_ascii_digit())
        || c == 'T' && before.is_ascii_digit() && is_digit(next)
}

fn push_word(word: &str, out: &mut String) {
    if word.len() > MAX_WORD_BYTES {
        return;
    }
    if word.is_ascii() {
        out.extend(word.bytes().map(|byte| char::from(byte.to_ascii_lowercase())));
    } else {
        out.extend(word.chars().flat_map(char::to_lowercase));
    }
    out.push(' ');
}

/// Appends the pairs of a run of ideographs and its last character.
pub(crate) fn append_pairs(run: &str, out: &mut String) {
    let mut before = None;
    for c in run.chars() {
        if let Some(before) = before {
            out.extend([before, c, ' ']);
        }
        before = Some(c);
    }
    if let Some(last) = before {
        out.extend([last, ' ']);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        assert_eq!(index_words(text).trim_end(), expect, "{text}");
    }

    #[test]
    fn identifiers_give_their_parts_and_their_whole() {
        check("getUserById(id)", "get user by id id ·getuserbyid");
        check("user_id, HTTPServer2 __init__", "user id http server2 init ·userid ·httpserver2");
        check("userId user_id USER_ID userid", "user id user id user id userid ·userid");
        check("getV2Client", "get v2 client ·getv2client");
        check("src/tide/table.rs:12", "src tide table rs 12");
        check("Größe ÜBER", "größe über");
    }

    #[test]
    fn a_day_is_found_in_a_time() {
        check("2026-02-12T22:40Z", "2026 02 12 t 22 40z ·12t22");
    }

    #[test]
    fn chinese_gives_pairs() {
        check("抽奖脚本 a", "抽奖 奖脚 脚本 本 a");
        check("潮", "潮");
    }

    #[test]
    fn data_is_left_out() {
        check(&format!("a {} b", "x".repeat(65)), "a b");
    }

    #[test]
    fn words_begin_and_end_at_the_boundaries_of_the_index() {
        let check = |text: &str, at: usize, expect: bool| assert_eq!(is_word_boundary(text, at), expect, "{text} {at}");
        check("tide", 0, true);
        check("tide", 2, false);
        check("tide", 4, true);
        check("userId", 4, true);
        check("USERID", 4, false);
        check("HTTPServer", 4, true);
        check("#104", 1, true);
        check("12T22", 2, true);
        check("12T22", 3, true);
        check("T22", 1, false);
        check("抽奖", 3, true);
    }
}

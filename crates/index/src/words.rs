//! Text as words to search for.
//!
//! A word is letters and digits. An identifier gives its parts: `getUserById` and
//! `user_id` are *get user by id* and *user id*, and are looked for as these words one
//! after the other. Chinese and Japanese, which have no spaces, give every pair of
//! neighbours and the last character.

/// Words longer than this are data, not words.
const LONGEST: usize = 64;

/// Appends the words of a text, in lower case, a space after each.
pub(crate) fn words(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let kind = Kind::of(first);
        let end = rest.find(|c| Kind::of(c) != kind).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        match kind {
            Kind::Word => word(run, out),
            Kind::Ideograph => pairs(run, out),
            Kind::Between => {}
        }
        rest = after;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Ideograph,
    Between,
}

impl Kind {
    fn of(c: char) -> Self {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' => Self::Word,
            _ if c.is_ascii() => Self::Between,
            // Han, Hiragana and Katakana with their extensions.
            '\u{2e80}'..='\u{2fdf}' | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' => {
                Self::Ideograph
            }
            '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}' => {
                Self::Ideograph
            }
            _ if c.is_alphanumeric() => Self::Word,
            _ => Self::Between,
        }
    }
}

fn word(run: &str, out: &mut String) {
    let mut rest = run;
    while !rest.is_empty() {
        let (part, after) = rest.split_at(part_end(rest));
        push(part, out);
        rest = after;
    }
}

/// Where the first part of an identifier ends: before a capital that follows a small
/// letter, or that begins a word after an abbreviation (`HTTPServer`).
fn part_end(run: &str) -> usize {
    let mut letters = run.char_indices().peekable();
    let mut before = letters.next().map(|(_, c)| c);
    while let Some((at, c)) = letters.next() {
        let begins = c.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase()
                    || before.is_uppercase() && letters.peek().is_some_and(|(_, next)| next.is_lowercase())
            });
        if begins {
            return at;
        }
        before = Some(c);
    }
    run.len()
}

fn push(word: &str, out: &mut String) {
    if word.len() > LONGEST {
        return;
    }
    if word.is_ascii() {
        out.extend(word.bytes().map(|byte| char::from(byte.to_ascii_lowercase())));
    } else {
        out.extend(word.chars().flat_map(char::to_lowercase));
    }
    out.push(' ');
}

fn pairs(run: &str, out: &mut String) {
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

/// What a person looks for, as the database's own language: all terms must be there,
/// those in quotes word for word. None when there is no word in it.
pub(crate) fn query(text: &str) -> Option<String> {
    let mut terms = Vec::new();
    for (n, part) in text.split('"').enumerate() {
        if n % 2 == 1 {
            terms.extend(phrase(part));
        } else {
            terms.extend(part.split_whitespace().filter_map(term));
        }
    }
    (!terms.is_empty()).then(|| terms.join(" AND "))
}

fn term(text: &str) -> Option<String> {
    let is_start = text.ends_with('*');
    let text = text.trim_end_matches('*');
    let lone = {
        let mut letters = text.chars();
        matches!((letters.next().map(Kind::of), letters.next()), (Some(Kind::Ideograph), None))
    };
    let found = phrase(text);
    found.map(|found| if is_start || lone { format!("{found}*") } else { found })
}

fn phrase(text: &str) -> Option<String> {
    let mut found = String::new();
    words(text, &mut found);
    let mut list: Vec<&str> = found.split_whitespace().collect();
    // The last character of a run stands alone only where the run ends.
    let ends_in_pair = text.trim_end().chars().next_back().is_some_and(|c| Kind::of(c) == Kind::Ideograph);
    if ends_in_pair && list.len() > 1 {
        list.pop();
    }
    (!list.is_empty()).then(|| format!("\"{}\"", list.join(" ")))
}

/// The words of a query as they are written, to mark them in a text.
pub(crate) fn spellings(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (n, part) in text.split('"').enumerate() {
        if n % 2 == 1 {
            found.push(part.trim().to_lowercase());
        } else {
            found.extend(part.split_whitespace().map(|term| term.trim_end_matches('*').to_lowercase()));
        }
    }
    found.retain(|spelling| !spelling.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        let mut out = String::new();
        words(text, &mut out);
        assert_eq!(out.trim_end(), expect, "{text}");
    }

    #[test]
    fn identifiers_give_their_parts() {
        check("getUserById(id)", "get user by id id");
        check("user_id, HTTPServer2 __init__", "user id http server2 init");
        check("src/tide/table.rs:12", "src tide table rs 12");
        check("Größe ÜBER", "größe über");
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
    fn queries_are_words_phrases_and_beginnings() {
        let check = |text: &str, expect: Option<&str>| assert_eq!(query(text).as_deref(), expect, "{text}");
        check("tide Table", Some("\"tide\" AND \"table\""));
        check("getUserById", Some("\"get user by id\""));
        check("\"the tide turns\" noon", Some("\"the tide turns\" AND \"noon\""));
        check("src/tide.rs", Some("\"src tide rs\""));
        check("抽奖", Some("\"抽奖\""));
        check("抽奖脚本", Some("\"抽奖 奖脚 脚本\""));
        check("潮", Some("\"潮\"*"));
        check("har*", Some("\"har\"*"));
        check(" -- ", None);
    }
}

//! Arguments of saved prompts.

/// Length at which no more is added to a prompt: each placeholder adds all arguments.
const MAX_FILLED_BYTES: usize = 4 << 20;

/// Replaces the placeholders in a saved prompt by arguments; adds the arguments at the end if it has no
/// placeholder.
///
/// `$ARGUMENTS` is all of them as typed. `$0` and `$ARGUMENTS[0]` are the first: words as a shell
/// splits them, so quotes hold several together. A placeholder without an argument stays as it is, and
/// so does one after a backslash, which is removed. What would be longer than [`MAX_FILLED_BYTES`] is cut off.
pub(super) fn fill_arguments(text: &str, arguments: &str) -> String {
    let words = split_words(arguments);
    let (mut filled, mut rest, mut used) = (String::with_capacity(text.len()), text, false);
    // In one pass, so that placeholders in the arguments themselves are not replaced.
    while let Some(at) = rest.find('$').filter(|_| filled.len() < MAX_FILLED_BYTES) {
        let (before, place) = rest.split_at(at);
        let (value, length) = match Placeholder::parse(place) {
            Some((_, length)) if before.ends_with('\\') => {
                filled.push_str(&before[..before.len() - 1]);
                filled.push_str(&place[..length]);
                rest = &place[length..];
                continue;
            }
            Some((Placeholder::All, length)) => (Some(arguments), length),
            Some((Placeholder::Nth(index), length)) => (words.get(index).map(String::as_str), length),
            None => (None, 1),
        };
        used |= value.is_some();
        filled.push_str(before);
        filled.push_str(value.unwrap_or(&place[..length]));
        rest = &place[length..];
    }
    filled.push_str(if filled.len() < MAX_FILLED_BYTES { rest } else { "" });
    if !used && !arguments.is_empty() {
        filled.push_str("\n\nARGUMENTS: ");
        filled.push_str(arguments);
    }
    filled
}

/// A placeholder for arguments.
enum Placeholder {
    All,
    /// The argument of this index.
    Nth(usize),
}

impl Placeholder {
    /// The placeholder at the start of a text, and its length in bytes.
    fn parse(text: &str) -> Option<(Self, usize)> {
        let name = text.strip_prefix('$')?;
        if let Some(after) = name.strip_prefix("ARGUMENTS") {
            let index = after.strip_prefix('[').and_then(|inside| inside.split_once(']'));
            return match index.and_then(|(digits, after)| Some((digits.parse().ok()?, after))) {
                Some((index, after)) => Some((Self::Nth(index), text.len() - after.len())),
                None => Some((Self::All, text.len() - after.len())),
            };
        }
        let digits = name.bytes().take_while(u8::is_ascii_digit).count();
        let in_a_word = name[digits..].starts_with(|next: char| next.is_alphanumeric() || next == '_');
        let index = name[..digits].parse().ok().filter(|_| !in_a_word)?;
        Some((Self::Nth(index), 1 + digits))
    }
}

/// Splits arguments into words as a shell does, without expansions and comments. After a quote that is
/// never closed, the rest is one word.
fn split_words(arguments: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = arguments;
    while let Some(next) = rest.chars().next() {
        let after = &rest[next.len_utf8()..];
        rest = after;
        match next {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                match after.split_once(next) {
                    Some((quoted, after)) => {
                        word.push_str(quoted);
                        rest = after;
                    }
                    None => {
                        word.push(next);
                        word.push_str(after);
                        rest = "";
                    }
                }
            }
            '\\' => {
                let escaped = after.chars().next().unwrap_or(next);
                word.get_or_insert_default().push(escaped);
                rest = after.strip_prefix(escaped).unwrap_or(after);
            }
            next if next.is_whitespace() => words.extend(word.take()),
            next => word.get_or_insert_default().push(next),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::{fill_arguments, split_words};

    /// What the real program makes of the same texts.
    #[test]
    fn arguments_go_where_the_text_has_places_for_them() {
        let all = "0=[$0] 1=[$1] 2=[$2] first=[$ARGUMENTS[0]] all=[$ARGUMENTS]";
        for (text, arguments, filled) in [
            (all, "one two", "0=[one] 1=[two] 2=[$2] first=[one] all=[one two]"),
            (all, "\"one two\" three", "0=[one two] 1=[three] 2=[$2] first=[one two] all=[\"one two\" three]"),
            (all, "", "0=[$0] 1=[$1] 2=[$2] first=[$ARGUMENTS[0]] all=[]"),
            ("$ARGUMENTS, $0", "$1 $ARGUMENTS", "$1 $ARGUMENTS, $1"),
            ("[$ARGUMENTS[x]] [$ARGUMENTSX] [$0.] [${ARGUMENTS}]", "a", "[a[x]] [aX] [a.] [${ARGUMENTS}]"),
            ("\\$0 is $0", "a", "$0 is a"),
            ("It costs $100, $1st or $ 5", "a b", "It costs $100, $1st or $ 5\n\nARGUMENTS: a b"),
            ("Fix it", "now", "Fix it\n\nARGUMENTS: now"),
            ("Fix it\n", "now", "Fix it\n\n\nARGUMENTS: now"),
            ("Fix it", "", "Fix it"),
        ] {
            assert_eq!(fill_arguments(text, arguments), filled, "{text} {arguments}");
        }
    }

    #[test]
    fn quotes_group_words() {
        for (typed, split) in [
            ("a  b", &["a", "b"][..]),
            ("'a b' c\\ d", &["a b", "c d"]),
            ("a it's one", &["a", "it's one"]),
            ("a \"b c", &["a", "\"b c"]),
            ("$HOME #12", &["$HOME", "#12"]),
            ("'' x", &["", "x"]),
            ("", &[]),
        ] {
            assert_eq!(split_words(typed), split, "{typed}");
        }
    }
}

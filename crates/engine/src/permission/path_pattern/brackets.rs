//! Brackets in patterns for files, as ignore files have them: `[a-z_]`, `[!a]`, `[[:digit:]-]`, `[\]]`.
//!
//! The matcher has other rules for brackets, and it compares bytes: in it, brackets may match `/`, a backslash is a
//! character of them, and one that it cannot read makes the pattern match nothing. So brackets are replaced by
//! alternatives in braces, which mean the same for the matcher.

use std::ops::RangeInclusive;

/// Most characters of a range that are listed one by one; only those that are not ASCII are.
const MAX_LISTED: u32 = 256;

/// Matches one byte of a character that is not ASCII.
const HIGH_BYTE: &str = "[!\u{1}-\u{7f}]";

/// What a pattern means besides.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Meaning {
    /// Whether it protects files, so that it may match too much but not too little.
    pub(super) protects: bool,
    /// Whether the matcher ignores case. Then what brackets exclude is excluded in both cases.
    pub(super) ignores_case: bool,
    /// Whether braces are a part of names.
    pub(super) braces_are_names: bool,
}

/// Returns a pattern in a form that the matcher reads as ignore files are read; `None` if it matches nothing there, as
/// with brackets that are not closed.
///
/// Brackets match whole characters. If the pattern protects files, `?` does too, and it matches rather more: brackets with
/// a long range that is not ASCII, or that exclude characters, match all characters that are not ASCII. Otherwise they
/// match none of these.
pub(super) fn for_matcher(pattern: &str, meaning: Meaning) -> Option<String> {
    let Meaning { protects, ignores_case, braces_are_names } = meaning;
    let any_high = (2..=4).map(|bytes| HIGH_BYTE.repeat(bytes)).collect::<Vec<_>>().join(",");
    let chars: Vec<char> = pattern.chars().collect();
    let mut form = String::with_capacity(pattern.len());
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        at += 1;
        match c {
            '\\' => {
                form.extend([c, *chars.get(at)?]);
                at += 1;
            }
            // More than two stars are two.
            '*' if form.ends_with("**") => {}
            '?' if protects => form.push_str(&format!("{{?,{any_high}}}")),
            '{' | '}' if braces_are_names => form.extend(['\\', c]),
            '[' => {
                let set = CharacterSet::parse(&chars, &mut at)?;
                let high = set.excludes || set.ranges.iter().any(CharacterSet::is_long);
                let alternatives =
                    set.alternatives(ignores_case).chain(high.then(|| any_high.clone()).filter(|_| protects));
                let alternatives: Vec<String> = alternatives.collect();
                if alternatives.is_empty() {
                    return None;
                }
                form.push_str(&format!("{{{}}}", alternatives.join(",")));
            }
            c => form.push(c),
        }
    }
    Some(form)
}

/// The characters that brackets match or exclude.
struct CharacterSet {
    excludes: bool,
    ranges: Vec<RangeInclusive<char>>,
}

impl CharacterSet {
    /// Parses the rest of brackets, and moves `at` behind them; `None` if they are not closed or name an unknown class.
    fn parse(chars: &[char], at: &mut usize) -> Option<Self> {
        let excludes = matches!(chars.get(*at)?, '!' | '^');
        *at += usize::from(excludes);
        let mut ranges = Vec::new();
        let mut last = None;
        let first = *at;
        loop {
            let c = *chars.get(*at)?;
            *at += 1;
            match c {
                // Directly after the opening bracket it is one of the characters.
                ']' if *at > first + 1 => return Some(Self { excludes, ranges }),
                '-' if chars.get(*at).is_some_and(|next| *next != ']') && last.is_some() => {
                    ranges.extend(last.take().zip(escaped(chars, at)).map(|(start, end)| start..=end));
                }
                '[' if chars.get(*at) == Some(&':') => {
                    let end = *at + chars[*at..].iter().position(|c| *c == ']')?;
                    if end > *at + 1 && chars[end - 1] == ':' {
                        let name: String = chars[*at + 1..end - 1].iter().collect();
                        ranges.extend(class(&name)?.iter().cloned());
                        *at = end + 1;
                        last = None;
                    } else {
                        ranges.push('['..='[');
                        last = Some('[');
                    }
                }
                _ => {
                    *at -= 1;
                    let c = escaped(chars, at)?;
                    ranges.push(c..=c);
                    last = Some(c);
                }
            }
        }
    }

    /// Whether a range has more characters that are not ASCII than are listed.
    fn is_long(range: &RangeInclusive<char>) -> bool {
        u32::from(*range.end()).saturating_sub(u32::from(*range.start()).max(0x80)) > MAX_LISTED
    }

    /// Returns patterns for all ASCII characters of the set, and for the others that are listed.
    fn alternatives(&self, ignores_case: bool) -> impl Iterator<Item = String> {
        let is_named = |c: char| self.ranges.iter().any(|range| range.contains(&c));
        let other = |c: char| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
        let is_in = |c: &char| match self.excludes {
            true => !is_named(*c) && *c != '/' && !(ignores_case && is_named(other(*c))),
            false => is_named(*c) && *c != '/',
        };
        let ascii = || ('\u{1}'..='\u{7f}').filter(is_in);
        let letters: String = ascii().filter(char::is_ascii_alphanumeric).collect();
        let letters = (!letters.is_empty()).then(|| format!("[{letters}]"));
        let signs = ascii().filter(|c| !c.is_ascii_alphanumeric()).map(|c| format!("\\{c}"));
        let listed = self.ranges.iter().filter(|range| !self.excludes && !Self::is_long(range)).cloned();
        let listed = listed.flatten().filter(|c| !c.is_ascii()).map(String::from);
        let all: Vec<String> = letters.into_iter().chain(signs).chain(listed).collect();
        all.into_iter()
    }
}

/// Returns the character at a place, or the one after a backslash there, and moves behind it.
fn escaped(chars: &[char], at: &mut usize) -> Option<char> {
    *at += usize::from(*chars.get(*at)? == '\\');
    *at += 1;
    chars.get(*at - 1).copied()
}

/// Returns the ASCII characters of a class such as `[:digit:]`.
fn class(name: &str) -> Option<&'static [RangeInclusive<char>]> {
    Some(match name {
        "alnum" => &['0'..='9', 'A'..='Z', 'a'..='z'],
        "alpha" => &['A'..='Z', 'a'..='z'],
        "blank" => &[' '..=' ', '\t'..='\t'],
        "cntrl" => &['\u{1}'..='\u{1f}', '\u{7f}'..='\u{7f}'],
        "digit" => &['0'..='9'],
        "graph" => &['!'..='~'],
        "lower" => &['a'..='z'],
        "print" => &[' '..='~'],
        "punct" => &['!'..='/', ':'..='@', '['..='`', '{'..='~'],
        "space" => &['\t'..='\r', ' '..=' '],
        "upper" => &['A'..='Z'],
        "xdigit" => &['0'..='9', 'A'..='F', 'a'..='f'],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use globset::GlobBuilder;

    use super::*;

    /// Checks which of the characters brackets match.
    fn check(brackets: &str, among: &str, matching: &str) {
        let form = for_matcher(brackets, Meaning::default()).unwrap_or_default();
        let glob = GlobBuilder::new(&form).literal_separator(true).backslash_escape(true).build().unwrap();
        let glob = glob.compile_matcher();
        let found: String = among.chars().filter(|c| glob.is_match(c.to_string())).collect();
        assert_eq!(found, matching, "{brackets} is {form}");
    }

    #[test]
    fn brackets_match_what_they_match_in_ignore_files() {
        let among = "aczAZ059-_^!]\\[,{} /é文";
        check("[a-c]", among, "ac");
        check("[a-z0-9-_]", among, "acz059-_");
        check("[a-z-_]", among, "acz-_");
        check("[a-z\\-0]", among, "acz0-");
        check("[\\-a-z]", among, "acz-");
        check("[]a]", among, "a]");
        check("[\\]a]", among, "a]");
        check("[^\\]]", among, "aczAZ059-_^!\\[,{} ");
        check("[!a-z]", among, "AZ059-_^!]\\[,{} ");
        check("[a!]", among, "a!");
        check("[\\[]", among, "[");
        check("[[:alnum:]-_]", among, "aczAZ059-_");
        check("[[:punct:]]", among, "-_^!]\\[,{}");
        check("[[:graph:]]", among, "aczAZ059-_^!]\\[,{}");
        check("[+-9]", among, "059-,");
        check("[[:a]", among, "a[");
        check("[é-ü文]", among, "é文");
        check("[,]", among, ",");
        check("[z-a5]", among, "z5");
    }

    #[test]
    fn brackets_that_match_nothing_are_no_pattern() {
        let form = |pattern: &str| for_matcher(pattern, Meaning { braces_are_names: true, ..Meaning::default() });
        for pattern in ["[", "[a", "a[]", "[!]", "[[:x:]]", "[/]", "[a\\]", "a\\"] {
            assert_eq!(form(pattern), None, "{pattern}");
        }
        assert_eq!(form("***/a**b*").as_deref(), Some("**/a**b*"));
        assert_eq!(form("{a,b}").as_deref(), Some("\\{a,b\\}"));
    }
}

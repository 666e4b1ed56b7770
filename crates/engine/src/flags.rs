//! Parsing the values of flags.

/// Splits a list of tool names or rules at commas and spaces, except inside parentheses. A parenthesis in a
/// quoted word does not count.
///
/// ```
/// use quipu_engine::split_list;
/// assert_eq!(split_list("Read, Bash(git log:*, x) Edit"), ["Read", "Bash(git log:*, x)", "Edit"]);
/// assert_eq!(split_list(r#"Bash(grep "(":*),Edit"#), [r#"Bash(grep "(":*)"#, "Edit"]);
/// ```
pub fn split_list(text: &str) -> Vec<String> {
    let (mut names, mut name) = (Vec::new(), String::new());
    for (c, depth) in bracket_depths(text) {
        if depth == 0 && (c == ',' || c.is_whitespace()) {
            names.extend(Some(std::mem::take(&mut name)).filter(|name| !name.is_empty()));
        } else {
            name.push(c);
        }
    }
    names.extend(Some(name).filter(|name| !name.is_empty()));
    names
}

/// Whether the parentheses of a text are balanced, and the first is closed by the last character.
pub(crate) fn has_closed_brackets(text: &str) -> bool {
    let depths: Vec<(char, usize)> = bracket_depths(text.trim()).collect();
    let Some(((_, last), before)) = depths.split_last() else { return true };
    let after_first = before.iter().skip_while(|(_, depth)| *depth == 0);
    *last == 0 && after_first.copied().all(|(_, depth)| depth > 0)
}

/// Returns each character of a text with the number of parentheses that are open after it.
///
/// Those in a quoted word do not count. It has no spaces and commas and only one kind of parenthesis: other
/// quotes may belong to several rules (`Bash(it's),Read(it's)`).
fn bracket_depths(text: &str) -> impl Iterator<Item = (char, usize)> {
    let (mut depth, mut quoted_until) = (0_usize, 0);
    text.char_indices().map(move |(at, c)| {
        if at >= quoted_until && matches!(c, '"' | '\'') {
            quoted_until = quoted_word_end(text, at, c).unwrap_or(quoted_until);
        }
        match c {
            '(' if at >= quoted_until => depth += 1,
            ')' if at >= quoted_until => depth = depth.saturating_sub(1),
            _ => {}
        }
        (c, depth)
    })
}

/// Returns where the quoted word ends that starts with a quote at a position; `None` if there is none.
fn quoted_word_end(text: &str, start: usize, quote: char) -> Option<usize> {
    let word = &text[start + 1..];
    let word = &word[..word.find(quote)?];
    let is_list = word.contains(|c: char| c == ',' || c.is_whitespace());
    let has_both_kinds = word.contains('(') && word.contains(')');
    let is_word = !is_list && !has_both_kinds;
    is_word.then_some(start + word.len() + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_in_one_text_are_told_apart_or_refused() {
        let check = |text: &str, expected: &[(&str, bool)]| {
            let found = split_list(text);
            let found: Vec<_> = found.iter().map(|name| (name.as_str(), has_closed_brackets(name))).collect();
            assert_eq!(found, expected, "{text}");
        };
        check(
            "Bash(npm run test:*) mcp__a__b,Edit",
            &[("Bash(npm run test:*)", true), ("mcp__a__b", true), ("Edit", true)],
        );
        check("Bash(echo $(date) x),Read", &[("Bash(echo $(date) x)", true), ("Read", true)]);
        check(r#"Bash(grep "(":*),Read(.env)"#, &[(r#"Bash(grep "(":*)"#, true), ("Read(.env)", true)]);
        check("Bash(grep ')' x) Read(.env)", &[("Bash(grep ')' x)", true), ("Read(.env)", true)]);
        check("Bash(it's),Read(it's)", &[("Bash(it's)", true), ("Read(it's)", true)]);
        for text in [
            "Bash(ls)Read(.env)",
            "Bash(it's)Read(it's)",
            "Read(.env);Edit",
            "Read(.env))",
            "Bash(ls",
            "Bash(ls, Read(.env)",
            "Bash(it's, Read(it's)",
            "Read((.env)",
        ] {
            check(text, &[(text, false)]);
        }
        check(r"Bash(echo \() Read(.env)", &[(r"Bash(echo \() Read(.env)", false)]);
        check("Bash(echo :)) Read(.env)", &[("Bash(echo :))", false), ("Read(.env)", true)]);
    }
}

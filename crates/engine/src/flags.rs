//! Parsing the values of flags.

/// Splits a list of tool names or rules at commas and spaces, except inside parentheses.
///
/// ```
/// use quipu_engine::split_list;
/// assert_eq!(split_list("Read, Bash(git log:*, x) Edit"), ["Read", "Bash(git log:*, x)", "Edit"]);
/// ```
pub fn split_list(text: &str) -> Vec<String> {
    let (mut names, mut name, mut depth) = (Vec::new(), String::new(), 0_usize);
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (c == ',' || c.is_whitespace()) {
            names.extend(Some(std::mem::take(&mut name)).filter(|name| !name.is_empty()));
        } else {
            name.push(c);
        }
    }
    names.extend(Some(name).filter(|name| !name.is_empty()));
    names
}

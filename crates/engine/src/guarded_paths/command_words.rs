//! Splits the command lines of hooks, helpers and MCP servers.
//!
//! The parser of `permission::shell` refuses what it does not understand, because it decides what may run. Here every text
//! must give words, and a word too many only guards a file too many, so lines are split in a simpler way.

/// Splits a command line into its simple commands and their words, without quotes. Commands in substitutions are among
/// them.
pub(super) fn split_commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = split_line(line);
    for text in substitutions(line) {
        commands.extend(split_commands(text));
    }
    commands
}

/// Returns the texts of the outermost `$(…)` and `` `…` `` of a line.
fn substitutions(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find("$(").into_iter().chain(rest.find('`')).min() {
        let is_backtick = rest[at..].starts_with('`');
        let inside = &rest[at + if is_backtick { 1 } else { 2 }..];
        let end = match is_backtick {
            true => inside.find('`').unwrap_or(inside.len()),
            false => closing_bracket(inside),
        };
        found.push(&inside[..end]);
        rest = &inside[end..];
        rest = rest.get(1..).unwrap_or_default();
    }
    found
}

/// Returns where the bracket closes that was opened before the text; its end if it does not.
fn closing_bracket(text: &str) -> usize {
    let mut depth = 1;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

fn split_line(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![vec![String::new()]];
    let mut quote = None;
    let mut chars = line.chars().peekable();
    let (mut depth, mut in_backticks) = (0_i32, false);
    while let Some(c) = chars.next() {
        let word = commands.last_mut().and_then(|command| command.last_mut());
        let Some(word) = word else { unreachable!("there is always a word") };
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None | Some('"'), '\\') => word.extend(chars.next()),
            // `$(…)` and `${…}` are parts of a word.
            (None, '$') if matches!(chars.peek(), Some('(' | '{')) => {
                depth += 1;
                word.push(c);
                word.extend(chars.next());
            }
            (None, ')' | '}') if depth > 0 => {
                depth -= 1;
                word.push(c);
            }
            (None, '`') => {
                depth = if in_backticks { depth - 1 } else { depth + 1 };
                in_backticks = !in_backticks;
                word.push(c);
            }
            (None, c) if ";&|\n()<>".contains(c) && depth == 0 => commands.push(vec![String::new()]),
            (None, c) if c.is_whitespace() && depth == 0 => {
                commands.last_mut().into_iter().for_each(|command| command.push(String::new()));
            }
            (_, c) => word.push(c),
        }
    }
    commands.iter_mut().for_each(|command| command.retain(|word| !word.is_empty() && word != "{" && word != "}"));
    commands.retain(|command| !command.is_empty());
    commands
}

/// Replaces the variables whose values are known.
pub(super) fn expand_variables(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> String {
    let mut parts = text.split('$');
    let mut expanded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let braced = part.strip_prefix('{').and_then(|part| part.split_once('}'));
        let end = part.find(|c| !is_name_char(c)).unwrap_or(part.len());
        let (name, rest) = braced.unwrap_or(part.split_at(end));
        match variable(name) {
            Some(value) => expanded.extend([value.as_str(), rest]),
            None => expanded.extend(["$", part]),
        }
    }
    expanded
}

pub(super) fn is_python(program: &str) -> bool {
    program.starts_with("python") || program.starts_with("pypy")
}

pub(super) fn program_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or_default()
}

pub(super) fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

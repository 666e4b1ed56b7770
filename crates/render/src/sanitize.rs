//! Removes escape sequences, control characters and invisible characters from text, so that it
//! is safe to show.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::CharIndices;

use quipu_message::text::is_invisible;

#[cfg(test)]
mod tests;

/// Removes what could control a terminal or mislead a reader.
///
/// Removes whole escape sequences (CSI, OSC, DCS and the rest, in their 7-bit and 8-bit forms),
/// control characters except line break and tab, bidirectional overrides and other invisible
/// characters. A lone carriage return and the Unicode line separators become line breaks.
/// Returns the text unchanged, without copying it, if there is nothing to remove.
///
/// ```
/// use quipu_render::sanitize;
/// assert_eq!(sanitize("\x1b[31mred\x1b[0m \x1b]0;title\x07end"), "red end");
/// ```
pub fn sanitize(text: &str) -> Cow<'_, str> {
    match text.char_indices().find(|&(_, c)| is_unsafe_char(c)) {
        None => Cow::Borrowed(text),
        Some((start, _)) => {
            let mut output = String::with_capacity(text.len());
            output.push_str(&text[..start]);
            strip_into(&text[start..], &mut output);
            Cow::Owned(output)
        }
    }
}

/// Sanitizes a text and joins its lines, for titles, names and paths.
pub(crate) fn sanitize_line(text: &str) -> String {
    sanitize(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether the character is removed or replaced.
fn is_unsafe_char(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        ' '..='~' => false,
        _ => c.is_control() || is_invisible(c) || matches!(c, '\u{2028}' | '\u{2029}'),
    }
}

type Chars<'a> = Peekable<CharIndices<'a>>;

fn strip_into(text: &str, output: &mut String) {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\u{1b}' => skip_escape(text, &mut chars),
            '\u{9b}' => skip_control_sequence(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip_control_string(text, at + c.len_utf8(), &mut chars),
            '\r' => {
                if chars.peek().is_some_and(|&(_, next)| next != '\n') {
                    output.push('\n');
                }
            }
            '\u{2028}' | '\u{2029}' => output.push('\n'),
            _ if is_unsafe_char(c) => {}
            _ => output.push(c),
        }
    }
}

/// Skips what follows an escape character.
fn skip_escape(text: &str, chars: &mut Chars<'_>) {
    match chars.peek() {
        Some((_, '[')) => {
            chars.next();
            skip_control_sequence(chars);
        }
        Some(&(at, ']' | 'P' | 'X' | '^' | '_')) => {
            chars.next();
            skip_control_string(text, at + 1, chars);
        }
        Some((_, ' '..='/')) => {
            while chars.next_if(|(_, c)| matches!(c, ' '..='/')).is_some() {}
            chars.next_if(|(_, c)| matches!(c, '0'..='~'));
        }
        Some((_, '0'..='~')) => {
            chars.next();
        }
        _ => {}
    }
}

/// Skips the parameter, intermediate and final bytes of a control sequence.
fn skip_control_sequence(chars: &mut Chars<'_>) {
    while chars.next_if(|(_, c)| matches!(c, '0'..='?')).is_some() {}
    while chars.next_if(|(_, c)| matches!(c, ' '..='/')).is_some() {}
    chars.next_if(|(_, c)| matches!(c, '@'..='~'));
}

/// Skips a control string such as OSC up to its terminator. If it does not end on its line, only
/// its introducer is skipped: otherwise an unterminated string would hide the text after it.
fn skip_control_string(text: &str, start: usize, chars: &mut Chars<'_>) {
    let ends = |c: char| matches!(c, '\u{7}' | '\u{9c}' | '\u{1b}' | '\n');
    let Some(length) = text[start..].find(ends) else { return };
    let rest = &text[start + length..];
    let terminator = if rest.starts_with("\u{1b}\\") {
        2
    } else if rest.starts_with(['\u{7}', '\u{9c}']) {
        1
    } else {
        return;
    };
    while chars.next_if(|&(at, _)| at < start + length).is_some() {}
    for _ in 0..terminator {
        chars.next();
    }
}

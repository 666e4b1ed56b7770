//! Words: removes quotes, detects expansions and parses command substitutions.

use super::{Parser, Script, ShellParseError, Word, parse};

/// Characters that end a word.
const WORD_TERMINATORS: [char; 10] = [' ', '\t', '\n', ';', '&', '|', '<', '>', '(', ')'];

impl Parser {
    /// Parses one word, which may be empty only if it is quoted.
    pub(super) fn parse_word(&mut self) -> Result<Word, ShellParseError> {
        let start = self.position;
        // Comments are passed over between commands. Elsewhere one would hide what follows it.
        if self.peek() == Some('#') {
            return Err(ShellParseError("a comment is inside of a command"));
        }
        let mut text = String::new();
        let mut plain = true;
        while let Some(c) = self.peek() {
            if WORD_TERMINATORS.contains(&c) {
                break;
            }
            self.position += 1;
            match c {
                '\\' => match self.peek() {
                    None => return Err(ShellParseError("it ends in a backslash")),
                    Some('\n') => self.position += 1,
                    Some(next) => {
                        text.push(next);
                        self.position += 1;
                    }
                },
                '\'' => loop {
                    match self.peek() {
                        None => return Err(ShellParseError("a quote is not closed")),
                        Some('\'') => break self.position += 1,
                        Some(inner) => {
                            text.push(inner);
                            self.position += 1;
                        }
                    }
                },
                '"' => plain &= self.parse_double_quoted(&mut text, Some('"'))?,
                '$' | '`' => plain &= self.parse_expansion(c, &mut text, false)?,
                '*' | '?' => {
                    plain = false;
                    text.push(c);
                }
                // Bash also expands it in words that look like assignments.
                '~' if self.position == start + 1 || text.ends_with(['=', ':']) => {
                    plain = false;
                    text.push(c);
                }
                // Alone these are literal words: the command `[`, a group, `{}`.
                '[' | '{' if self.position == start + 1 && self.is_at_word_end() => text.push(c),
                '{' if self.position == start + 1 && self.is_empty_braces() => {
                    text.push_str("{}");
                    self.position += 1;
                }
                '[' | '{' => {
                    plain = false;
                    text.push(c);
                }
                _ => text.push(c),
            }
        }
        if self.position == start {
            return Err(ShellParseError("a word is missing"));
        }
        let text = if plain { text } else { self.source_from(start) };
        Ok(Word { text, is_literal: plain })
    }

    /// Whether `}` follows and ends the word, as in `find -exec x {} +`.
    fn is_empty_braces(&self) -> bool {
        self.starts_with("}") && self.chars.get(self.position + 1).is_none_or(|c| WORD_TERMINATORS.contains(c))
    }

    pub(super) fn is_at_word_end(&self) -> bool {
        self.peek().is_none_or(|c| WORD_TERMINATORS.contains(&c))
    }

    /// Parses text in double quotes up to `end` or the end of the text. Returns whether it
    /// contains nothing that the shell expands.
    pub(super) fn parse_double_quoted(
        &mut self,
        text: &mut String,
        end: Option<char>,
    ) -> Result<bool, ShellParseError> {
        let mut plain = true;
        while let Some(c) = self.peek() {
            self.position += 1;
            match c {
                c if Some(c) == end => return Ok(plain),
                '\\' => match self.peek() {
                    Some('\n') => self.position += 1,
                    Some(next @ ('$' | '`' | '"' | '\\')) => {
                        text.push(next);
                        self.position += 1;
                    }
                    _ => text.push('\\'),
                },
                '$' | '`' => plain &= self.parse_expansion(c, text, true)?,
                _ => text.push(c),
            }
        }
        if end.is_none() { Ok(plain) } else { Err(ShellParseError("a quote is not closed")) }
    }

    /// Parses what follows a dollar sign or a backtick. Returns whether it was a literal `$`.
    fn parse_expansion(&mut self, sign: char, text: &mut String, in_quotes: bool) -> Result<bool, ShellParseError> {
        if sign == '`' {
            self.parse_backticks()?;
            return Ok(false);
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        match self.peek() {
            Some('(') if self.starts_with("((") => return Err(ShellParseError("it has arithmetic")),
            Some('(') => {
                self.position += 1;
                self.parse_substitution()?;
            }
            Some('{') => {
                self.position += 1;
                let start = self.position;
                while self.peek().is_some_and(is_name) {
                    self.position += 1;
                }
                if self.position == start || !self.eat("}") {
                    return Err(ShellParseError("it has an expansion that is not followed"));
                }
            }
            Some('\'' | '"') if !in_quotes => return Err(ShellParseError("it has a quote that is not followed")),
            Some('[') => return Err(ShellParseError("it has arithmetic")),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                while self.peek().is_some_and(is_name) {
                    self.position += 1;
                }
            }
            Some(c) if c.is_ascii_digit() || "?$!#@*-".contains(c) => self.position += 1,
            _ => {
                text.push('$');
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Parses a command between backticks, after the opening one.
    fn parse_backticks(&mut self) -> Result<(), ShellParseError> {
        let mut inner = String::new();
        loop {
            match self.peek() {
                None => return Err(ShellParseError("a backtick is not closed")),
                Some('`') => break self.position += 1,
                Some('\\') => {
                    self.position += 1;
                    match self.peek() {
                        Some(c @ ('`' | '\\' | '$')) => inner.push(c),
                        // Inside double quotes the shell treats this differently.
                        Some('"') => return Err(ShellParseError("it has a quote that is not followed")),
                        Some(c) => inner.extend(['\\', c]),
                        None => return Err(ShellParseError("a backtick is not closed")),
                    }
                    self.position += 1;
                }
                Some(c) => {
                    inner.push(c);
                    self.position += 1;
                }
            }
        }
        if self.depth >= super::MAX_NESTING {
            return Err(ShellParseError("it is nested too deep"));
        }
        self.merge_script(parse(&inner)?);
        Ok(())
    }

    /// Adds the commands of a nested script.
    pub(super) fn merge_script(&mut self, inner: Script) {
        self.script.commands.extend(inner.commands);
        self.script.has_loop |= inner.has_loop;
        self.script.concurrency.add(inner.concurrency);
        self.script.concurrency.has_compound = true;
        self.script.loop_variables.extend(inner.loop_variables);
        self.script.loop_words.extend(inner.loop_words);
        self.script.stdin_texts.extend(inner.stdin_texts);
    }
}

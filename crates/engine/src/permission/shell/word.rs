//! Words: quotes taken off, expansions noticed, substitutions followed.

use super::{Confusion, Reader, Script, Word, parse};

/// What ends a word.
const ENDS: [char; 10] = [' ', '\t', '\n', ';', '&', '|', '<', '>', '(', ')'];

impl Reader {
    /// Reads one word, which may be empty only when it is quoted.
    pub(super) fn word(&mut self) -> Result<Word, Confusion> {
        let start = self.at;
        let mut text = String::new();
        let mut plain = true;
        while let Some(c) = self.peek() {
            if ENDS.contains(&c) {
                break;
            }
            self.at += 1;
            match c {
                '\\' => match self.peek() {
                    None => return Err(Confusion("it ends in a backslash")),
                    Some('\n') => self.at += 1,
                    Some(next) => {
                        text.push(next);
                        self.at += 1;
                    }
                },
                '\'' => loop {
                    match self.peek() {
                        None => return Err(Confusion("a quote is not closed")),
                        Some('\'') => break self.at += 1,
                        Some(inner) => {
                            text.push(inner);
                            self.at += 1;
                        }
                    }
                },
                '"' => plain &= self.quoted(&mut text, Some('"'))?,
                '$' | '`' => plain &= self.expansion(c, &mut text, false)?,
                '*' | '?' => {
                    plain = false;
                    text.push(c);
                }
                '~' if self.at == start + 1 => {
                    plain = false;
                    text.push(c);
                }
                // Alone these are words of their own: the command `[`, a group, an empty pair.
                '[' | '{' if self.at == start + 1 && self.ends_here() => text.push(c),
                '{' if self.at == start + 1 && self.is_pair() => {
                    text.push_str("{}");
                    self.at += 1;
                }
                '[' | '{' => {
                    plain = false;
                    text.push(c);
                }
                _ => text.push(c),
            }
        }
        if self.at == start {
            return Err(Confusion("a word is missing"));
        }
        let text = if plain { text } else { self.source(start) };
        Ok(Word { text, plain })
    }

    /// Whether `}` follows and ends the word, as in `find -exec x {} +`.
    fn is_pair(&self) -> bool {
        self.follows("}") && self.chars.get(self.at + 1).is_none_or(|c| ENDS.contains(c))
    }

    fn ends_here(&self) -> bool {
        self.peek().is_none_or(|c| ENDS.contains(&c))
    }

    /// Reads what stands between double quotes, up to `end` or the end of the text.
    /// Tells whether the shell changes nothing in it.
    pub(super) fn quoted(&mut self, text: &mut String, end: Option<char>) -> Result<bool, Confusion> {
        let mut plain = true;
        while let Some(c) = self.peek() {
            self.at += 1;
            match c {
                c if Some(c) == end => return Ok(plain),
                '\\' => match self.peek() {
                    Some('\n') => self.at += 1,
                    Some(next @ ('$' | '`' | '"' | '\\')) => {
                        text.push(next);
                        self.at += 1;
                    }
                    _ => text.push('\\'),
                },
                '$' | '`' => plain &= self.expansion(c, text, true)?,
                _ => text.push(c),
            }
        }
        if end.is_none() { Ok(plain) } else { Err(Confusion("a quote is not closed")) }
    }

    /// Reads what follows a dollar sign or a backtick. Tells whether it was just that sign.
    fn expansion(&mut self, sign: char, text: &mut String, in_quotes: bool) -> Result<bool, Confusion> {
        if sign == '`' {
            self.backticks()?;
            return Ok(false);
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        match self.peek() {
            Some('(') if self.follows("((") => return Err(Confusion("it has arithmetic")),
            Some('(') => {
                self.at += 1;
                self.list(Some(')'))?;
            }
            Some('{') => {
                self.at += 1;
                let start = self.at;
                while self.peek().is_some_and(is_name) {
                    self.at += 1;
                }
                if self.at == start || !self.take("}") {
                    return Err(Confusion("it has an expansion that is not followed"));
                }
            }
            Some('\'' | '"') if !in_quotes => return Err(Confusion("it has a quote that is not followed")),
            Some('[') => return Err(Confusion("it has arithmetic")),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                while self.peek().is_some_and(is_name) {
                    self.at += 1;
                }
            }
            Some(c) if c.is_ascii_digit() || "?$!#@*-".contains(c) => self.at += 1,
            _ => {
                text.push('$');
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads a command between backticks, whose opening one is read.
    fn backticks(&mut self) -> Result<(), Confusion> {
        let mut inner = String::new();
        loop {
            match self.peek() {
                None => return Err(Confusion("a backtick is not closed")),
                Some('`') => break self.at += 1,
                Some('\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(c @ ('`' | '\\' | '$')) => inner.push(c),
                        // Inside double quotes the shell treats this differently.
                        Some('"') => return Err(Confusion("it has a quote that is not followed")),
                        Some(c) => inner.extend(['\\', c]),
                        None => return Err(Confusion("a backtick is not closed")),
                    }
                    self.at += 1;
                }
                Some(c) => {
                    inner.push(c);
                    self.at += 1;
                }
            }
        }
        if self.depth >= super::DEEPEST {
            return Err(Confusion("it is nested too deep"));
        }
        self.add(parse(&inner)?);
        Ok(())
    }

    /// Adds what was found in an inner text.
    pub(super) fn add(&mut self, inner: Script) {
        self.script.parts.extend(inner.parts);
        self.script.repeats |= inner.repeats;
        self.script.inputs.extend(inner.inputs);
    }
}

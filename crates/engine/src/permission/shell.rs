//! A shell command taken apart, far enough to judge it.
//!
//! Every simple command anywhere in the text becomes a [`SimpleCommand`]: in lists, pipes,
//! groups, loops, substitutions and here-documents. What this reader does not
//! understand is an error, and nobody allows what was not understood.

use crate::guarded_paths::is_invisible;

mod heredoc;
#[cfg(test)]
mod tests;
mod word;

/// The text is not understood; why, in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct ShellParseError(pub(super) &'static str);

/// A command taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Script {
    /// Its simple commands; those inside others come first.
    pub(super) commands: Vec<SimpleCommand>,
    /// Whether some may run more than once.
    pub(super) has_loop: bool,
    /// Texts that commands read: here-documents and here-strings.
    pub(super) stdin_texts: Vec<String>,
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SimpleCommand {
    /// `NAME=value` before it.
    pub(super) assignments: Vec<String>,
    /// The command and its arguments.
    pub(super) words: Vec<Word>,
    /// Where its input and output go.
    pub(super) redirects: Vec<Redirect>,
}

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// What the command is given when `plain`, otherwise the source.
    pub(super) text: String,
    /// Whether the shell changes nothing in it.
    pub(super) is_literal: bool,
}

/// A file a command reads or writes through the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Redirect {
    /// Whether the file is written.
    pub(super) is_write: bool,
    /// The file.
    pub(super) target: Word,
}

impl SimpleCommand {
    fn is_empty(&self) -> bool {
        self.assignments.is_empty() && self.words.is_empty() && self.redirects.is_empty()
    }
}

/// Words as rules see them: joined by one space, each quoted if it needs to be.
pub(super) fn format_words(words: &[Word]) -> String {
    words.iter().map(Word::quoted).collect::<Vec<_>>().join(" ")
}

impl Word {
    /// The word such that no two different words look alike.
    fn quoted(&self) -> String {
        let bare = |c: char| c.is_alphanumeric() || "_@%+=:,./-[]{}!^".contains(c);
        if !self.is_literal || (!self.text.is_empty() && self.text.chars().all(bare)) {
            return self.text.clone();
        }
        format!("'{}'", self.text.replace('\'', "'\\''"))
    }
}

/// Takes a command apart.
pub(super) fn parse(command: &str) -> Result<Script, ShellParseError> {
    if command.chars().any(|c| c != '\n' && c != '\t' && c != ' ' && (c.is_control() || is_invisible(c))) {
        return Err(ShellParseError("it has characters that cannot be seen"));
    }
    if has_unsupported_continuation(command) {
        return Err(ShellParseError("it continues a line in the middle of a word or beside a here-document"));
    }
    let mut reader = Parser { chars: command.chars().collect(), ..Parser::default() };
    reader.parse_list(None)?;
    if reader.heredocs.is_empty() { Ok(reader.script) } else { Err(ShellParseError("a here-document has no end")) }
}

/// Whether a backslash ends a line elsewhere than between words. There bash joins what
/// stands on both sides into one token, also the two halves of `$(` and of the word that
/// ends a here-document, and this reader does not follow that.
fn has_unsupported_continuation(command: &str) -> bool {
    let mut ends = command.match_indices("\\\n");
    let between_words = |at: usize| command[..at].ends_with([' ', '\t', '\n']);
    ends.any(|(at, _)| !between_words(at) || command.contains("<<"))
}

/// Words after which another command begins.
const KEYWORDS_BEFORE_COMMAND: [&str; 9] = ["if", "then", "elif", "else", "while", "until", "do", "{", "!"];
/// Words that end what others began.
const CLOSING_KEYWORDS: [&str; 3] = ["fi", "done", "}"];
/// Words that begin what this reader does not follow.
const UNSUPPORTED_KEYWORDS: [&str; 6] = ["case", "select", "function", "coproc", "[[", "time"];

const MAX_NESTING: usize = 32;

/// A here-document whose body begins at the next line.
struct Heredoc {
    delimiter: String,
    is_literal: bool,
    strips_tabs: bool,
}

#[derive(Default)]
struct Parser {
    chars: Vec<char>,
    position: usize,
    script: Script,
    heredocs: Vec<Heredoc>,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.position).copied()
    }

    fn starts_with(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(i, c)| self.chars.get(self.position + i) == Some(&c))
    }

    fn eat(&mut self, text: &str) -> bool {
        let follows = self.starts_with(text);
        if follows {
            self.position += text.chars().count();
        }
        follows
    }

    /// Reads commands until `end`, or the end of the text.
    fn parse_list(&mut self, end: Option<char>) -> Result<(), ShellParseError> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return Err(ShellParseError("it is nested too deep"));
        }
        let mut part = SimpleCommand::default();
        loop {
            while self.eat(" ") || self.eat("\t") || self.eat("\\\n") {}
            match self.peek() {
                None if end.is_none() => break,
                None => return Err(ShellParseError("a bracket is not closed")),
                Some('#') => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.position += 1;
                    }
                }
                Some('\n') => {
                    self.position += 1;
                    self.parse_heredoc_bodies()?;
                    self.finish_command(&mut part);
                }
                Some(';') if self.starts_with(";;") || self.starts_with(";&") => {
                    return Err(ShellParseError("it chooses between cases"));
                }
                Some('&') if self.starts_with("&>") => {
                    self.position += 1;
                    self.parse_redirect(&mut part)?;
                }
                Some(';' | '&' | '|') => {
                    let _ = self.eat("&&") || self.eat("||") || self.eat("|&") || self.advance();
                    self.finish_command(&mut part);
                }
                Some('(') if part.is_empty() && !self.starts_with("((") => {
                    self.position += 1;
                    self.parse_list(Some(')'))?;
                }
                Some('(') => return Err(ShellParseError("it has a function, an array or arithmetic")),
                Some(')') if end == Some(')') => {
                    self.position += 1;
                    break;
                }
                Some(')') => return Err(ShellParseError("a bracket is not open")),
                Some('<' | '>') if self.starts_with("<(") || self.starts_with(">(") => {
                    let start = self.position;
                    self.position += 2;
                    self.parse_list(Some(')'))?;
                    part.words.push(Word { text: self.source_from(start), is_literal: false });
                }
                Some('<' | '>') => self.parse_redirect(&mut part)?,
                Some(c) if c.is_ascii_digit() && self.is_descriptor() => {
                    while self.peek().is_some_and(|c| c.is_ascii_digit()) {
                        self.position += 1;
                    }
                    self.parse_redirect(&mut part)?;
                }
                Some(_) => self.parse_word_or_keyword(&mut part)?,
            }
        }
        self.finish_command(&mut part);
        self.depth -= 1;
        Ok(())
    }

    fn advance(&mut self) -> bool {
        self.position += 1;
        true
    }

    fn source_from(&self, start: usize) -> String {
        self.chars[start..self.position].iter().collect()
    }

    fn finish_command(&mut self, part: &mut SimpleCommand) {
        let part = std::mem::take(part);
        if !part.is_empty() {
            self.script.commands.push(part);
        }
    }

    /// Whether digits stand right before a redirection.
    fn is_descriptor(&self) -> bool {
        let rest = self.chars[self.position..].iter().find(|c| !c.is_ascii_digit());
        matches!(rest, Some('<' | '>'))
    }

    /// Adds a word to the part, or follows a reserved word.
    fn parse_word_or_keyword(&mut self, part: &mut SimpleCommand) -> Result<(), ShellParseError> {
        let start = self.position;
        let word = self.parse_word()?;
        let source = self.source_from(start);
        if part.words.is_empty() && is_assignment(&source)? {
            part.assignments.push(source);
            return Ok(());
        }
        if !part.is_empty() {
            part.words.push(word);
            return Ok(());
        }
        self.script.has_loop |= ["for", "while", "until"].contains(&source.as_str());
        match source.as_str() {
            "for" => self.parse_for_loop(),
            source if UNSUPPORTED_KEYWORDS.contains(&source) => {
                Err(ShellParseError("it has a construct that is not followed"))
            }
            source if KEYWORDS_BEFORE_COMMAND.contains(&source) || CLOSING_KEYWORDS.contains(&source) => Ok(()),
            _ => {
                part.words.push(word);
                Ok(())
            }
        }
    }

    /// Reads `NAME in words` after `for`; the body follows as commands.
    fn parse_for_loop(&mut self) -> Result<(), ShellParseError> {
        let confused = ShellParseError("it has a loop that is not followed");
        while self.eat(" ") || self.eat("\t") || self.eat("\\\n") {}
        let name = self.parse_word()?;
        // A loop over a variable the system knows would change what commands mean.
        let harmless = name.is_literal
            && !name.text.contains("proxy")
            && name.text.starts_with(|c: char| c.is_ascii_lowercase())
            && name.text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        while self.eat(" ") || self.eat("\t") || self.eat("\\\n") {}
        if !harmless || self.parse_word()?.text != "in" {
            return Err(confused);
        }
        loop {
            while self.eat(" ") || self.eat("\t") || self.eat("\\\n") {}
            match self.peek() {
                Some(';' | '\n') if self.heredocs.is_empty() && !self.starts_with(";;") => {
                    self.position += 1;
                    return Ok(());
                }
                None | Some(';' | '\n' | '&' | '|' | '<' | '>' | '(' | ')') => return Err(confused),
                Some(_) => self.parse_word()?,
            };
        }
    }

    /// Reads a redirection, from its operator on.
    fn parse_redirect(&mut self, part: &mut SimpleCommand) -> Result<(), ShellParseError> {
        if self.eat("<<<") {
            self.skip_blanks();
            let word = self.parse_word()?;
            self.script.stdin_texts.push(word.text);
            return Ok(());
        }
        if self.eat("<<") {
            return self.parse_heredoc_start();
        }
        let joins = self.starts_with(">&") || self.starts_with("<&");
        let reads = self.starts_with("<") && !self.starts_with("<>");
        let _ = ["<>", "<&", "<", ">>", ">|", ">&", ">"].iter().any(|operator| self.eat(operator));
        self.skip_blanks();
        let target = self.parse_word()?;
        let descriptor = target.text.trim_end_matches('-').chars().all(|c| c.is_ascii_digit());
        if joins && target.is_literal && descriptor {
            return Ok(());
        }
        if joins && reads {
            return Err(ShellParseError("it reads from a descriptor that is not a number"));
        }
        part.redirects.push(Redirect { is_write: !reads, target });
        Ok(())
    }

    fn skip_blanks(&mut self) {
        while self.eat(" ") || self.eat("\t") || self.eat("\\\n") {}
    }
}

/// Whether a word before the command sets a variable.
fn is_assignment(source: &str) -> Result<bool, ShellParseError> {
    let Some((name, _)) = source.split_once('=') else { return Ok(false) };
    let name = name.strip_suffix('+').unwrap_or(name);
    if name.contains('[') && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return Err(ShellParseError("it sets an element of an array"));
    }
    let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    Ok(letters && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}

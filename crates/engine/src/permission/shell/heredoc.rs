//! Here-documents, whose bodies may contain command substitutions.

use super::{Heredoc, Parser, ShellParseError};

impl Parser {
    /// Parses what follows `<<`: the delimiter.
    pub(super) fn parse_heredoc_start(&mut self) -> Result<(), ShellParseError> {
        let tabs = self.eat("-");
        self.skip_blanks();
        let start = self.position;
        let word = self.parse_word()?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !word.is_literal || word.text.is_empty() || !word.text.chars().all(is_plain) {
            return Err(ShellParseError("a here-document ends in a word that is not plain"));
        }
        let literal = self.source_from(start) != word.text;
        self.heredocs.push(Heredoc { delimiter: word.text, is_literal: literal, strips_tabs: tabs });
        Ok(())
    }

    /// Parses the bodies that start on this line.
    pub(super) fn parse_heredoc_bodies(&mut self) -> Result<(), ShellParseError> {
        for heredoc in std::mem::take(&mut self.heredocs) {
            let body = self.parse_heredoc_body(&heredoc)?;
            if !heredoc.is_literal {
                self.parse_substitutions(&body)?;
            }
            self.script.stdin_texts.push(body);
        }
        Ok(())
    }

    fn parse_heredoc_body(&mut self, heredoc: &Heredoc) -> Result<String, ShellParseError> {
        let mut body = String::new();
        loop {
            if self.peek().is_none() {
                return Err(ShellParseError("a here-document has no end"));
            }
            let rest = &self.chars[self.position..];
            let length = rest.iter().position(|c| *c == '\n').unwrap_or(rest.len());
            let line: String = rest[..length].iter().collect();
            self.position = (self.position + length + 1).min(self.chars.len());
            let line = if heredoc.strips_tabs { line.trim_start_matches('\t') } else { &line };
            if line == heredoc.delimiter {
                return Ok(body);
            }
            // Within a substitution, bash ends the body at such a line too if a bracket follows.
            if line.starts_with(&heredoc.delimiter) {
                return Err(ShellParseError("a here-document has a line that begins like its end"));
            }
            body.push_str(line);
            body.push('\n');
        }
    }

    /// Parses the command substitutions inside a body.
    fn parse_substitutions(&mut self, body: &str) -> Result<(), ShellParseError> {
        let mut inner = Self { chars: body.chars().collect(), depth: self.depth, ..Self::default() };
        inner.parse_double_quoted(&mut String::new(), None)?;
        self.merge_script(inner.script);
        Ok(())
    }
}

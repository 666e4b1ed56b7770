//! Here-documents: text for a command, in which substitutions may hide.

use super::{Confusion, Heredoc, Reader};

impl Reader {
    /// Reads what follows `<<`: the word that will end the body.
    pub(super) fn heredoc(&mut self) -> Result<(), Confusion> {
        let tabs = self.take("-");
        self.spaces();
        let start = self.at;
        let word = self.word()?;
        if !word.plain {
            return Err(Confusion("a here-document ends in a word that is not plain"));
        }
        let literal = self.source(start) != word.text;
        self.heredocs.push(Heredoc { end: word.text, literal, tabs });
        Ok(())
    }

    /// Reads the bodies that begin at this line.
    pub(super) fn bodies(&mut self) -> Result<(), Confusion> {
        for heredoc in std::mem::take(&mut self.heredocs) {
            let body = self.body(&heredoc)?;
            if !heredoc.literal {
                self.substitutions(&body)?;
            }
            self.script.inputs.push(body);
        }
        Ok(())
    }

    fn body(&mut self, heredoc: &Heredoc) -> Result<String, Confusion> {
        let mut body = String::new();
        loop {
            if self.peek().is_none() {
                return Err(Confusion("a here-document has no end"));
            }
            let rest = &self.chars[self.at..];
            let length = rest.iter().position(|c| *c == '\n').unwrap_or(rest.len());
            let line: String = rest[..length].iter().collect();
            self.at = (self.at + length + 1).min(self.chars.len());
            let line = if heredoc.tabs { line.trim_start_matches('\t') } else { &line };
            if line == heredoc.end {
                return Ok(body);
            }
            body.push_str(line);
            body.push('\n');
        }
    }

    /// Follows the commands inside a body.
    fn substitutions(&mut self, body: &str) -> Result<(), Confusion> {
        let mut inner = Self { chars: body.chars().collect(), depth: self.depth, ..Self::default() };
        inner.quoted(&mut String::new(), None)?;
        self.add(inner.script);
        Ok(())
    }
}

//! A shell command taken apart, far enough to judge it.
//!
//! Every simple command anywhere in the text becomes a [`Part`]: in lists, pipes,
//! groups, loops, substitutions and here-documents. What this reader does not
//! understand is an error, and nobody allows what was not understood.

mod heredoc;
#[cfg(test)]
mod tests;
mod word;

/// The text is not understood; why, in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Confusion(pub(super) &'static str);

/// A command taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Script {
    /// Its simple commands; those inside others come first.
    pub(super) parts: Vec<Part>,
    /// Whether some may run more than once.
    pub(super) repeats: bool,
    /// Texts that commands read: here-documents and here-strings.
    pub(super) inputs: Vec<String>,
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Part {
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
    pub(super) plain: bool,
}

/// A file a command reads or writes through the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Redirect {
    /// Whether the file is written.
    pub(super) writes: bool,
    /// The file.
    pub(super) target: Word,
}

impl Part {
    fn is_empty(&self) -> bool {
        self.assignments.is_empty() && self.words.is_empty() && self.redirects.is_empty()
    }
}

/// Words as rules see them: joined by one space, each quoted if it needs to be.
pub(super) fn text(words: &[Word]) -> String {
    words.iter().map(Word::quoted).collect::<Vec<_>>().join(" ")
}

impl Word {
    /// The word such that no two different words look alike.
    fn quoted(&self) -> String {
        let bare = |c: char| c.is_alphanumeric() || "_@%+=:,./-[]{}!^".contains(c);
        if !self.plain || (!self.text.is_empty() && self.text.chars().all(bare)) {
            return self.text.clone();
        }
        format!("'{}'", self.text.replace('\'', "'\\''"))
    }
}

/// Takes a command apart.
pub(super) fn parse(command: &str) -> Result<Script, Confusion> {
    if command.chars().any(|c| c != '\n' && c != '\t' && c != ' ' && (c.is_control() || is_hidden(c))) {
        return Err(Confusion("it has characters that cannot be seen"));
    }
    if continues_oddly(command) {
        return Err(Confusion("it continues a line in the middle of a word or beside a here-document"));
    }
    let mut reader = Reader { chars: command.chars().collect(), ..Reader::default() };
    reader.list(None)?;
    if reader.heredocs.is_empty() { Ok(reader.script) } else { Err(Confusion("a here-document has no end")) }
}

/// Whether a backslash ends a line elsewhere than between words. There bash joins what
/// stands on both sides into one token, also the two halves of `$(` and of the word that
/// ends a here-document, and this reader does not follow that.
fn continues_oddly(command: &str) -> bool {
    let mut ends = command.match_indices("\\\n");
    let between_words = |at: usize| command[..at].ends_with([' ', '\t', '\n']);
    ends.any(|(at, _)| !between_words(at) || command.contains("<<"))
}

/// Spaces that are no spaces to the shell, and marks that change how text looks.
pub(super) fn is_hidden(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}

/// Words after which another command begins.
const BEFORE_COMMAND: [&str; 9] = ["if", "then", "elif", "else", "while", "until", "do", "{", "!"];
/// Words that end what others began.
const ENDS: [&str; 3] = ["fi", "done", "}"];
/// Words that begin what this reader does not follow.
const NOT_FOLLOWED: [&str; 6] = ["case", "select", "function", "coproc", "[[", "time"];

const DEEPEST: usize = 32;

/// A here-document whose body begins at the next line.
struct Heredoc {
    end: String,
    literal: bool,
    tabs: bool,
}

#[derive(Default)]
struct Reader {
    chars: Vec<char>,
    at: usize,
    script: Script,
    heredocs: Vec<Heredoc>,
    depth: usize,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn follows(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(i, c)| self.chars.get(self.at + i) == Some(&c))
    }

    fn take(&mut self, text: &str) -> bool {
        let follows = self.follows(text);
        if follows {
            self.at += text.chars().count();
        }
        follows
    }

    /// Reads commands until `end`, or the end of the text.
    fn list(&mut self, end: Option<char>) -> Result<(), Confusion> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Confusion("it is nested too deep"));
        }
        let mut part = Part::default();
        loop {
            while self.take(" ") || self.take("\t") || self.take("\\\n") {}
            match self.peek() {
                None if end.is_none() => break,
                None => return Err(Confusion("a bracket is not closed")),
                Some('#') => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                Some('\n') => {
                    self.at += 1;
                    self.bodies()?;
                    self.end_part(&mut part);
                }
                Some(';') if self.follows(";;") || self.follows(";&") => {
                    return Err(Confusion("it chooses between cases"));
                }
                Some('&') if self.follows("&>") => {
                    self.at += 1;
                    self.redirect(&mut part)?;
                }
                Some(';' | '&' | '|') => {
                    let _ = self.take("&&") || self.take("||") || self.take("|&") || self.skip();
                    self.end_part(&mut part);
                }
                Some('(') if part.is_empty() && !self.follows("((") => {
                    self.at += 1;
                    self.list(Some(')'))?;
                }
                Some('(') => return Err(Confusion("it has a function, an array or arithmetic")),
                Some(')') if end == Some(')') => {
                    self.at += 1;
                    break;
                }
                Some(')') => return Err(Confusion("a bracket is not open")),
                Some('<' | '>') if self.follows("<(") || self.follows(">(") => {
                    let start = self.at;
                    self.at += 2;
                    self.list(Some(')'))?;
                    part.words.push(Word { text: self.source(start), plain: false });
                }
                Some('<' | '>') => self.redirect(&mut part)?,
                Some(c) if c.is_ascii_digit() && self.is_descriptor() => {
                    while self.peek().is_some_and(|c| c.is_ascii_digit()) {
                        self.at += 1;
                    }
                    self.redirect(&mut part)?;
                }
                Some(_) => self.word_of(&mut part)?,
            }
        }
        self.end_part(&mut part);
        self.depth -= 1;
        Ok(())
    }

    fn skip(&mut self) -> bool {
        self.at += 1;
        true
    }

    fn source(&self, start: usize) -> String {
        self.chars[start..self.at].iter().collect()
    }

    fn end_part(&mut self, part: &mut Part) {
        let part = std::mem::take(part);
        if !part.is_empty() {
            self.script.parts.push(part);
        }
    }

    /// Whether digits stand right before a redirection.
    fn is_descriptor(&self) -> bool {
        let rest = self.chars[self.at..].iter().find(|c| !c.is_ascii_digit());
        matches!(rest, Some('<' | '>'))
    }

    /// Adds a word to the part, or follows a reserved word.
    fn word_of(&mut self, part: &mut Part) -> Result<(), Confusion> {
        let start = self.at;
        let word = self.word()?;
        let source = self.source(start);
        if part.words.is_empty() && is_assignment(&source)? {
            part.assignments.push(source);
            return Ok(());
        }
        if !part.is_empty() {
            part.words.push(word);
            return Ok(());
        }
        self.script.repeats |= ["for", "while", "until"].contains(&source.as_str());
        match source.as_str() {
            "for" => self.for_loop(),
            source if NOT_FOLLOWED.contains(&source) => Err(Confusion("it has a construct that is not followed")),
            source if BEFORE_COMMAND.contains(&source) || ENDS.contains(&source) => Ok(()),
            _ => {
                part.words.push(word);
                Ok(())
            }
        }
    }

    /// Reads `NAME in words` after `for`; the body follows as commands.
    fn for_loop(&mut self) -> Result<(), Confusion> {
        let confused = Confusion("it has a loop that is not followed");
        while self.take(" ") || self.take("\t") || self.take("\\\n") {}
        let name = self.word()?;
        // A loop over a variable the system knows would change what commands mean.
        let harmless = name.plain
            && !name.text.contains("proxy")
            && name.text.starts_with(|c: char| c.is_ascii_lowercase())
            && name.text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        while self.take(" ") || self.take("\t") || self.take("\\\n") {}
        if !harmless || self.word()?.text != "in" {
            return Err(confused);
        }
        loop {
            while self.take(" ") || self.take("\t") || self.take("\\\n") {}
            match self.peek() {
                Some(';' | '\n') if self.heredocs.is_empty() && !self.follows(";;") => {
                    self.at += 1;
                    return Ok(());
                }
                None | Some(';' | '\n' | '&' | '|' | '<' | '>' | '(' | ')') => return Err(confused),
                Some(_) => self.word()?,
            };
        }
    }

    /// Reads a redirection, from its operator on.
    fn redirect(&mut self, part: &mut Part) -> Result<(), Confusion> {
        if self.take("<<<") {
            self.spaces();
            let word = self.word()?;
            self.script.inputs.push(word.text);
            return Ok(());
        }
        if self.take("<<") {
            return self.heredoc();
        }
        let joins = self.follows(">&") || self.follows("<&");
        let reads = self.follows("<") && !self.follows("<>");
        let _ = ["<>", "<&", "<", ">>", ">|", ">&", ">"].iter().any(|operator| self.take(operator));
        self.spaces();
        let target = self.word()?;
        let descriptor = target.text.trim_end_matches('-').chars().all(|c| c.is_ascii_digit());
        if joins && target.plain && descriptor {
            return Ok(());
        }
        if joins && reads {
            return Err(Confusion("it reads from a descriptor that is not a number"));
        }
        part.redirects.push(Redirect { writes: !reads, target });
        Ok(())
    }

    fn spaces(&mut self) {
        while self.take(" ") || self.take("\t") || self.take("\\\n") {}
    }
}

/// Whether a word before the command sets a variable.
fn is_assignment(source: &str) -> Result<bool, Confusion> {
    let Some((name, _)) = source.split_once('=') else { return Ok(false) };
    let name = name.strip_suffix('+').unwrap_or(name);
    if name.contains('[') && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return Err(Confusion("it sets an element of an array"));
    }
    let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    Ok(letters && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}

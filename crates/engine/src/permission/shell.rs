//! Parser for shell commands, as far as permissions need it.
//!
//! Every simple command anywhere in the text becomes a [`SimpleCommand`]: in lists, pipes,
//! groups, loops, substitutions and here-documents. Anything the parser does not support is
//! an error, and a command that cannot be parsed is never allowed without approval.

use crate::guarded_paths::is_invisible;

mod heredoc;
mod plain_text;
#[cfg(test)]
mod tests;
mod word;

pub(super) use plain_text::is_plain_text;

/// Why a command could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct ShellParseError(pub(super) &'static str);

/// A parsed shell script.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Script {
    /// All simple commands; nested ones come before the command that contains them.
    pub(super) commands: Vec<SimpleCommand>,
    /// Whether some commands may run more than once.
    pub(super) has_loop: bool,
    /// Which commands may run at the same time.
    pub(super) concurrency: Concurrency,
    /// Variables that loops set.
    pub(super) loop_variables: Vec<String>,
    /// The words that loops go over.
    pub(super) loop_words: Vec<Word>,
    /// Texts that commands read: here-documents and here-strings.
    pub(super) stdin_texts: Vec<String>,
}

/// Which commands of a script may run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Concurrency {
    /// Whether there is a pipe.
    has_pipe: bool,
    /// Whether a command runs in the background.
    pub(super) has_background: bool,
    /// Whether there is a group, a condition, a loop or a substitution, so that a list may be a part of
    /// a pipe.
    has_compound: bool,
}

impl Concurrency {
    /// Whether two commands may run at the same time.
    pub(super) fn allows(self, one: &SimpleCommand, other: &SimpleCommand) -> bool {
        self.has_background || self.has_pipe && (self.has_compound || one.pipeline == other.pipeline)
    }

    fn add(&mut self, inner: Self) {
        self.has_pipe |= inner.has_pipe;
        self.has_background |= inner.has_background;
        self.has_compound |= inner.has_compound;
    }
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SimpleCommand {
    /// Number of the pipeline that contains it, if the script has no compound commands.
    pub(super) pipeline: usize,
    /// `NAME=value` words before the command.
    pub(super) assignments: Vec<String>,
    /// The command and its arguments.
    pub(super) words: Vec<Word>,
    /// Files that input or output is redirected to.
    pub(super) redirects: Vec<Redirect>,
}

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// The unquoted text if `is_literal`, otherwise the source text.
    pub(super) text: String,
    /// Whether the word contains nothing that the shell expands.
    pub(super) is_literal: bool,
}

/// A redirection to or from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Redirect {
    /// Whether the file is written.
    pub(super) is_write: bool,
    /// Name of the file.
    pub(super) target: Word,
}

impl SimpleCommand {
    fn is_empty(&self) -> bool {
        self.assignments.is_empty() && self.words.is_empty() && self.redirects.is_empty()
    }
}

/// Formats words for comparison with rules: joined by a space, quoted where necessary.
pub(super) fn format_words(words: &[Word]) -> String {
    let quoted = |(at, word): (usize, &Word)| match at {
        // Without quotes it would be an assignment.
        0 if word.is_literal && word.text.contains('=') => word.in_quotes(),
        _ => word.quoted(),
    };
    words.iter().enumerate().map(quoted).collect::<Vec<_>>().join(" ")
}

impl Word {
    /// Quotes the word so that different words have different texts.
    fn quoted(&self) -> String {
        let bare = |c: char| c.is_alphanumeric() || "_@%+=:,./-]}!^".contains(c);
        let is_bare = !self.text.is_empty() && self.text.chars().all(bare);
        if !self.is_literal || is_bare || ["[", "{", "{}"].contains(&self.text.as_str()) {
            return self.text.clone();
        }
        self.in_quotes()
    }

    fn in_quotes(&self) -> String {
        format!("'{}'", self.text.replace('\'', "'\\''"))
    }
}

/// Parses a command.
pub(super) fn parse(command: &str) -> Result<Script, ShellParseError> {
    if command.chars().any(|c| c != '\n' && c != '\t' && c != ' ' && (c.is_control() || is_invisible(c))) {
        return Err(ShellParseError("it has characters that cannot be seen"));
    }
    if has_ambiguous_escape(command) {
        return Err(ShellParseError("it has a backslash that some encodings join with the character before it"));
    }
    if has_unsupported_continuation(command) {
        return Err(ShellParseError("it continues a line in the middle of a word or beside a here-document"));
    }
    let mut reader = Parser { chars: command.chars().collect(), ..Parser::default() };
    reader.parse_list(None)?;
    if reader.heredocs.is_empty() { Ok(reader.script) } else { Err(ShellParseError("a here-document has no end")) }
}

/// Whether a backslash or backtick that may change the structure of the command follows a character
/// that is not ASCII. If the shell's encoding is not UTF-8 but, for example, Shift JIS, the last byte
/// of the character and the backslash may be one character for it.
fn has_ambiguous_escape(command: &str) -> bool {
    let mut signs = command.match_indices(['\\', '`']);
    signs.any(|(at, sign)| {
        let is_letter = command[at + 1..].starts_with(|c: char| c.is_alphanumeric());
        command[..at].ends_with(|c: char| !c.is_ascii()) && (sign == "`" || !is_letter)
    })
}

/// Whether a line ends in a backslash other than between words. Bash then joins the two
/// lines into one token, even within `$(` or the delimiter of a here-document, which this
/// parser does not support.
fn has_unsupported_continuation(command: &str) -> bool {
    let mut ends = command.match_indices("\\\n");
    let between_words = |at: usize| command[..at].ends_with([' ', '\t', '\n']);
    ends.any(|(at, _)| !between_words(at) || command.contains("<<"))
}

/// Reserved words that are followed by a command.
const KEYWORDS_BEFORE_COMMAND: [&str; 9] = ["if", "then", "elif", "else", "while", "until", "do", "{", "!"];
/// Reserved words that close a compound command.
const CLOSING_KEYWORDS: [&str; 3] = ["fi", "done", "}"];
/// Reserved words of constructs that are not supported.
const UNSUPPORTED_KEYWORDS: [&str; 6] = ["case", "select", "function", "coproc", "[[", "time"];

const MAX_NESTING: usize = 32;

/// A here-document whose body starts on the next line.
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
    /// Number of the current pipeline.
    pipeline: usize,
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

    /// Parses commands until `end` or the end of the text.
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
                    // After `|` the pipeline goes on in the next line.
                    let ends_pipeline = !part.is_empty();
                    self.finish_command(&mut part);
                    self.pipeline += usize::from(ends_pipeline);
                }
                Some(';') if self.starts_with(";;") || self.starts_with(";&") => {
                    return Err(ShellParseError("it chooses between cases"));
                }
                Some('&') if self.starts_with("&>") => {
                    self.position += 1;
                    self.parse_redirect(&mut part)?;
                }
                Some(';' | '&' | '|') => {
                    self.finish_command(&mut part);
                    self.parse_operator();
                }
                Some('(') if part.is_empty() && !self.starts_with("((") => {
                    self.position += 1;
                    self.script.concurrency.has_compound = true;
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
                    self.parse_substitution()?;
                    if !self.is_whole_word(start) {
                        return Err(ShellParseError("a process substitution is a part of a word"));
                    }
                    part.words.push(Word { text: self.source_from(start), is_literal: false });
                }
                Some('<' | '>') => self.parse_redirect(&mut part)?,
                Some(c) if c.is_ascii_digit() && self.is_descriptor() => {
                    self.position += 1;
                    // For bash a large number is a word.
                    if self.peek().is_some_and(|c| c.is_ascii_digit()) {
                        return Err(ShellParseError("it has a descriptor of more than one digit"));
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

    /// Parses the commands of a substitution, after its opening bracket. Shells differ in where the body
    /// of a here-document is if a substitution ends or continues on another line before it.
    fn parse_substitution(&mut self) -> Result<(), ShellParseError> {
        let start = self.position;
        let outer = std::mem::take(&mut self.heredocs);
        self.script.concurrency.has_compound = true;
        self.parse_list(Some(')'))?;
        let has_lines = self.chars[start..self.position].contains(&'\n');
        if !self.heredocs.is_empty() || !outer.is_empty() && has_lines {
            return Err(ShellParseError("a here-document and a substitution overlap"));
        }
        self.heredocs = outer;
        Ok(())
    }

    /// Whether the text from `start` to this position is a word of its own: bash joins `<(a)#` and
    /// `x<(a)` into one.
    fn is_whole_word(&self, start: usize) -> bool {
        let is_joined = start.checked_sub(1).is_some_and(|before| !" \t\n;&|(".contains(self.chars[before]));
        !is_joined && self.is_at_word_end() && !self.starts_with("<(") && !self.starts_with(">(")
    }

    /// Parses an operator between commands: `;`, `&`, `|`, `|&`, `&&`, `||`.
    fn parse_operator(&mut self) {
        let joins = self.chars.get(self.position + 1) == self.chars.get(self.position);
        match self.peek() {
            Some('|') if !joins => self.script.concurrency.has_pipe = true,
            Some('&') if !joins => self.script.concurrency.has_background = true,
            _ => self.pipeline += 1,
        }
        let _ = self.eat("&&") || self.eat("||") || self.eat("|&") || self.advance();
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
            self.script.commands.push(SimpleCommand { pipeline: self.pipeline, ..part });
        }
    }

    /// Whether the digits at this position are the descriptor of a redirection.
    fn is_descriptor(&self) -> bool {
        let rest = self.chars[self.position..].iter().find(|c| !c.is_ascii_digit());
        matches!(rest, Some('<' | '>'))
    }

    /// Adds a word to the command, or handles a reserved word.
    fn parse_word_or_keyword(&mut self, part: &mut SimpleCommand) -> Result<(), ShellParseError> {
        let start = self.position;
        let word = self.parse_word()?;
        let source = self.source_from(start);
        // `{PATH}<file` sets PATH to the number of the descriptor.
        if source.starts_with('{') && source.ends_with('}') && matches!(self.peek(), Some('<' | '>')) {
            return Err(ShellParseError("it sets a variable to a descriptor"));
        }
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
            "for" => {
                self.script.concurrency.has_compound = true;
                self.parse_for_loop()
            }
            source if UNSUPPORTED_KEYWORDS.contains(&source) => {
                Err(ShellParseError("it has a construct that is not followed"))
            }
            source if KEYWORDS_BEFORE_COMMAND.contains(&source) || CLOSING_KEYWORDS.contains(&source) => {
                self.script.concurrency.has_compound = true;
                Ok(())
            }
            _ => {
                part.words.push(word);
                Ok(())
            }
        }
    }

    /// Parses `NAME in words` after `for`; the body is parsed as ordinary commands.
    fn parse_for_loop(&mut self) -> Result<(), ShellParseError> {
        let error = ShellParseError("it has a loop that is not followed");
        while self.eat(" ") || self.eat("\t") || self.eat("\\\n") {}
        let name = self.parse_word()?;
        // A loop over a variable such as PATH would change what commands mean.
        let harmless = name.is_literal
            && !name.text.contains("proxy")
            && !name.text.starts_with("npm_")
            && name.text.starts_with(|c: char| c.is_ascii_lowercase())
            && name.text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        while self.eat(" ") || self.eat("\t") || self.eat("\\\n") {}
        if !harmless || self.parse_word()?.text != "in" {
            return Err(error);
        }
        self.script.loop_variables.push(name.text);
        loop {
            while self.eat(" ") || self.eat("\t") || self.eat("\\\n") {}
            match self.peek() {
                Some(';' | '\n') if self.heredocs.is_empty() && !self.starts_with(";;") => {
                    self.position += 1;
                    return Ok(());
                }
                None | Some(';' | '\n' | '&' | '|' | '<' | '>' | '(' | ')') => return Err(error),
                Some(_) => {
                    let word = self.parse_word()?;
                    self.script.loop_words.push(word);
                }
            }
        }
    }

    /// Parses a redirection, starting at its operator.
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
        if self.eat(">&") || self.eat("<&") {
            return self.parse_joined_descriptor();
        }
        if self.starts_with("<>") {
            return Err(ShellParseError("it opens a file for reading and writing"));
        }
        let is_write = self.starts_with(">");
        let _ = [">>", ">|", ">", "<"].iter().any(|operator| self.eat(operator));
        self.skip_blanks();
        let target = self.parse_word()?;
        part.redirects.push(Redirect { is_write, target });
        Ok(())
    }

    /// Parses what follows `>&` or `<&`: the number of a descriptor, or `-` to close it. Bash reads other words
    /// in several ways, `>&-x` as `>&-` and the word `x`.
    fn parse_joined_descriptor(&mut self) -> Result<(), ShellParseError> {
        let is_known = self.peek().is_some_and(|c| c.is_ascii_digit() || c == '-');
        self.position += 1;
        if is_known && self.is_at_word_end() {
            return Ok(());
        }
        Err(ShellParseError("it joins something that is not a descriptor of one digit"))
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

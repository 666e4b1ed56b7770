//! The small part of the shell language in which a command line may be written that runs without a sandbox
//! because rules allow its commands.
//!
//! The parser reads more of the language than this, and where it errs, the sandbox limits the effect. Without a
//! sandbox nothing does. So such a line is also read by this scanner, which knows only words, quotes, lists,
//! pipes, conditions, loops, simple redirections, variables and here-documents, and rejects everything else.

/// Reserved words after which a command or an operator follows.
const KNOWN_RESERVED_WORDS: [&str; 9] = ["do", "done", "elif", "else", "fi", "if", "then", "until", "while"];

/// Reserved words that are not known here.
const OTHER_RESERVED_WORDS: [&str; 12] =
    ["!", "[[", "]]", "case", "coproc", "esac", "function", "in", "select", "time", "{", "}"];

/// Whether a command line is written in that part of the language.
pub(in crate::permission) fn is_plain_text(command: &str) -> bool {
    Scanner { rest: command, delimiters: Vec::new() }.scan().is_some()
}

struct Scanner<'a> {
    rest: &'a str,
    /// Delimiters of here-documents whose bodies start on the next line, and whether they are quoted.
    delimiters: Vec<(&'a str, bool)>,
}

impl<'a> Scanner<'a> {
    /// Reads the whole text; `None` if it contains anything else.
    fn scan(mut self) -> Option<()> {
        let mut starts_command = true;
        loop {
            self.skip_blanks();
            let Some(next) = self.rest.chars().next() else { break };
            if next == '\n' {
                self.rest = &self.rest[1..];
                self.skip_bodies()?;
                starts_command = true;
            } else if next == '#' {
                self.rest = &self.rest[self.rest.find('\n').unwrap_or(self.rest.len())..];
            } else if ["&&", "||", ";", "|"].into_iter().any(|operator| self.eat(operator)) {
                // `;;`, `|&` and a command in the background are not known.
                (!self.rest.starts_with([';', '&', '|'])).then_some(())?;
                starts_command = true;
            } else if self.eat("<<") {
                self.read_delimiter()?;
            } else if self.read_redirection() {
                self.skip_blanks();
                self.read_word()?;
            } else {
                let word = self.read_word()?;
                let is_reserved = |words: &[&str]| starts_command && words.contains(&word);
                if is_reserved(&OTHER_RESERVED_WORDS) {
                    return None;
                }
                if is_reserved(&["for"]) {
                    self.read_loop_variable()?;
                }
                // Variables may come before the command.
                starts_command &= word.contains('=') || KNOWN_RESERVED_WORDS.contains(&word);
            }
        }
        self.delimiters.is_empty().then_some(())
    }

    /// Reads `NAME in` after `for`.
    fn read_loop_variable(&mut self) -> Option<()> {
        self.skip_blanks();
        self.rest = &self.rest[name_length(self.rest)?..];
        self.rest.starts_with([' ', '\t']).then_some(())?;
        self.skip_blanks();
        (self.read_word()? == "in").then_some(())
    }

    fn eat(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Skips spaces and tabs, and line ends after them that a backslash continues.
    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest.trim_start_matches([' ', '\t']);
            let is_separate = rest.len() < self.rest.len();
            self.rest = rest;
            if !is_separate || !self.eat("\\\n") {
                return;
            }
        }
    }

    /// Reads the operator of a redirection, if one follows.
    fn read_redirection(&mut self) -> bool {
        let joins = ["2>&1", "1>&2", ">&2"].into_iter().find(|text| self.rest.starts_with(text));
        if let Some(text) = joins.filter(|text| self.rest[text.len()..].is_empty() || self.is_end_after(text.len())) {
            // What follows is read as a word, so the descriptor is left as one.
            self.rest = &self.rest[text.len() - 1..];
            return true;
        }
        let operators = ["2>>", "1>>", "&>>", ">>", "2>", "1>", "&>", ">", "<"];
        operators.into_iter().any(|operator| self.eat(operator))
    }

    /// Whether a word ends after so many bytes.
    fn is_end_after(&self, length: usize) -> bool {
        self.rest[length..].starts_with([' ', '\t', '\n', ';', '|'])
    }

    /// Reads a word of at least one character.
    fn read_word(&mut self) -> Option<&'a str> {
        let start = self.rest;
        while let Some(next) = self.rest.chars().next() {
            let length = match next {
                ' ' | '\t' | '\n' | ';' | '|' | '<' | '>' => break,
                '&' if self.rest.starts_with("&&") => break,
                '\'' => self.rest[1..].find('\'')? + 2,
                '"' => self.quoted_length()?,
                '$' => variable_length(self.rest)?,
                '&' | '(' | ')' | '`' | '\\' => return None,
                next => next.len_utf8(),
            };
            self.rest = &self.rest[length..];
        }
        let word = &start[..start.len() - self.rest.len()];
        // The digits before a redirection are its descriptor, or not.
        let ends_in_digit = word.ends_with(|c: char| c.is_ascii_digit());
        let is_ambiguous = self.rest.starts_with(['<', '>']) && ends_in_digit;
        (!word.is_empty() && !is_ambiguous).then_some(word)
    }

    /// Returns the length of the text in double quotes that follows.
    fn quoted_length(&self) -> Option<usize> {
        if let Some(length) = quoted_document_length(self.rest) {
            return Some(length);
        }
        let mut at = 1;
        loop {
            let rest = &self.rest[at..];
            at += match rest.chars().next()? {
                '"' => return Some(at + 1),
                '$' => variable_length(rest)?,
                '`' => return None,
                '\\' if rest[1..].starts_with(['"', '\\', '$', '`']) => 2,
                '\\' if rest[1..].starts_with('\n') => return None,
                next => next.len_utf8(),
            };
        }
    }

    /// Reads the delimiter of a here-document.
    fn read_delimiter(&mut self) -> Option<()> {
        self.skip_blanks();
        let quote = self.rest.chars().next().filter(|c| ['\'', '"'].contains(c));
        let rest = &self.rest[usize::from(quote.is_some())..];
        let length = name_length(rest)?;
        let after = &rest[length..];
        self.rest = match quote {
            Some(quote) => after.strip_prefix(quote)?,
            None => after,
        };
        self.rest.starts_with([' ', '\t', '\n', ';', '|', '>']).then_some(())?;
        self.delimiters.push((&rest[..length], quote.is_some()));
        Some(())
    }

    /// Skips the bodies of here-documents that start here.
    fn skip_bodies(&mut self) -> Option<()> {
        for (delimiter, is_quoted) in std::mem::take(&mut self.delimiters) {
            let length = body_length(self.rest, delimiter)?;
            let body = &self.rest[..length];
            (is_quoted || !body.contains(['$', '`', '\\'])).then_some(())?;
            self.rest = &self.rest[length..];
        }
        Some(())
    }
}

/// Returns the length of the body of a here-document with its last line but not the line end after it; `None` if
/// it has no end, or a line that begins like it.
fn body_length(text: &str, delimiter: &str) -> Option<usize> {
    let mut length = 0;
    for line in text.split_inclusive('\n') {
        let is_like_end = line.trim_start_matches('\t').starts_with(delimiter);
        if line.trim_end_matches('\n') == delimiter {
            return Some(length + delimiter.len());
        }
        if is_like_end {
            return None;
        }
        length += line.len();
    }
    None
}

/// Returns the length of `"$(cat <<'EOF'`, a body and `)"`: the usual form of a message of several lines.
fn quoted_document_length(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("\"$(cat <<'")?;
    let name = &rest[..name_length(rest)?];
    let body = rest[name.len()..].strip_prefix("'\n")?;
    let after = body[body_length(body, name)?..].trim_start_matches(['\n', ' ', '\t']).strip_prefix(")\"")?;
    Some(text.len() - after.len())
}

/// Returns the length of the variable that follows: `$name` or `${name}`. A lone `$` is one character.
fn variable_length(text: &str) -> Option<usize> {
    let rest = &text[1..];
    match rest.strip_prefix('{') {
        Some(rest) => {
            let length = name_length(rest)?;
            rest[length..].starts_with('}').then_some(length + 3)
        }
        None if rest.starts_with(['(', '[', '\'']) => None,
        None => Some(1 + name_length(rest).unwrap_or_default()),
    }
}

/// Returns the length of the name that follows; `None` if there is none.
fn name_length(text: &str) -> Option<usize> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let length = text.find(|c: char| !is_name(c)).unwrap_or(text.len());
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts_well.then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_lines_are_plain() {
        for text in [
            "npm test",
            "npm run build -- --out \"$PWD/dist\" 2>&1 | tail -n 5",
            "cd src && make all; make install || echo failed",
            "NODE_ENV=test npm test > log.txt 2>&1",
            "git commit -m 'first line\n\nsecond line'",
            "git commit -m \"say \\\"hi\\\" to \\$x\"",
            "git add -A && git commit -m \"$(cat <<'EOF'\nTitle (x)\n\nBody with $(this) and `that`.\nEOF\n)\"",
            "python3 - <<'EOF'\nprint(\"x\")\nEOF",
            "python3 - <<EOF | head\nprint(1)\nEOF\nmake",
            "docker run \\\n  --rm \\\n  image",
            "# build\nmake # now\nmake test",
            "cargo test ${name} *.rs {a,b} ~/x a=b",
            "make &> log; make &>> log; make >> log; sort < in",
            "echo \u{4f60}\u{597d} $",
            "make >/dev/null 2>&1; make 1>&2",
            "for i in 1 $x *; do make $i; done | tail",
            "if make; then echo yes; elif x; then y; else z; fi > log",
            "while sleep 1; do make; done",
        ] {
            assert!(is_plain_text(text), "{text}");
        }
    }

    #[test]
    fn everything_else_is_not() {
        for text in [
            "make $(x)",
            "make `x`",
            "make \"$(x)\"",
            "make \"`x`\"",
            "make <(x)",
            "make >(x)",
            "(make)",
            "{ make; }",
            "! make",
            "if ! make; then x; fi",
            "A=1 case",
            "for i; do make; done",
            "for i in $(x); do make; done",
            "for i$x in 1; do make; done",
            "while x; do { make; }; done",
            "select i in 1; do make; done",
            "make & x",
            "make |& x",
            "make ;; x",
            "make \\x",
            "make a\\\nb",
            "make \"a\\\nb\"",
            "make $'x'",
            "make $((1))",
            "make $[1]",
            "make ${x:-y}",
            "make 3>x",
            "make 12>x",
            "make x2>y",
            "make >&x",
            "make >&-x",
            "make 2>&-",
            "make 2>&12",
            "make <<< x",
            "make <<-E\nE",
            "make <<E\n$(x)\nE",
            "make <<'E'\nE)\nE",
            "make <<'E'\nx",
            "make <<E",
            "make <<'E F'\nE F",
            "cat \"$(cat <<'E'\nE)\"; x #\"\nE\n)\"",
            "make 'x",
            "make \"x",
            "f() { x; }",
            "make >",
        ] {
            assert!(!is_plain_text(text), "{text}");
        }
    }
}

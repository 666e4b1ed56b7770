//! Definitions in source files, found by name. A quick scan by lines, without a parser for each
//! language: it finds `fn`, `class`, `def` and the like where a line begins with them.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use nucleo_matcher::Config;
use regex::Regex;

use crate::file_list::FileList;
use crate::fuzzy::rank;

/// Source files larger than this are generated or data.
const MAX_FILE_BYTES: u64 = 512 << 10;
/// Bytes of source that one scan reads at most.
const MAX_TOTAL_BYTES: u64 = 128 << 20;
/// Definitions of a list at most.
const MAX_SYMBOLS: usize = 200_000;

/// Endings of files that are scanned.
const SOURCE_ENDINGS: [&str; 32] = [
    "c", "cc", "cpp", "cs", "cts", "dart", "ex", "exs", "go", "groovy", "h", "hpp", "java", "jl", "js", "jsx", "kt",
    "kts", "lua", "mjs", "mts", "php", "pl", "py", "rb", "rs", "scala", "svelte", "swift", "ts", "tsx", "vue",
];

/// A definition: modifiers, the keyword, the receiver of a method in Go, and the name.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, compiled by a test")]
static DEFINITION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?m)^[ \t]*(?:(?:export|default|declare|public|private|protected|internal|static|final|abstract|sealed|",
        r#"open|override|async|const|unsafe|extern|"C"|partial|inline|suspend|data|pub(?:\([^)\n]*\))?)[ \t]+)*"#,
        r"(fn|func|function\*?|fun|def|defp|sub|class|struct|record|enum|union|interface|trait|protocol|object|",
        r"type|mod|module|defmodule|namespace)[ \t]+(?:\([^)\n]*\)[ \t]*)?([\p{L}_$][\p{L}\p{N}_$]*)",
    ))
    .unwrap()
});

/// The kind of a definition, in the words that context references use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolKind {
    /// A function or a method.
    Function,
    /// A class, struct or record.
    Class,
    /// An enum or a union.
    Enum,
    /// An interface, trait or protocol.
    Interface,
    /// A name for a type.
    Type,
    /// A module or namespace.
    Module,
}

impl SymbolKind {
    /// The word of a context reference, such as `FUNCTION`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Function => "FUNCTION",
            Self::Class => "CLASS",
            Self::Enum => "ENUM",
            Self::Interface => "INTERFACE",
            Self::Type => "TYPE",
            Self::Module => "MODULE",
        }
    }

    fn from_keyword(keyword: &str) -> Self {
        match keyword {
            "class" | "struct" | "record" | "object" => Self::Class,
            "enum" | "union" => Self::Enum,
            "interface" | "trait" | "protocol" => Self::Interface,
            "type" => Self::Type,
            "mod" | "module" | "defmodule" | "namespace" => Self::Module,
            _ => Self::Function,
        }
    }
}

/// A definition whose name matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolMatch {
    /// Kind of definition.
    pub kind: SymbolKind,
    /// Name of the definition.
    pub name: String,
    /// Path of its file, relative to the working folder.
    pub path: String,
    /// Its line, from 1.
    pub line: u64,
    /// Characters of the name that matched, as ascending indices.
    pub positions: Vec<u32>,
}

/// The definitions in the source files of a list, at the time of the scan.
#[derive(Debug, Default)]
pub struct SymbolList {
    symbols: Vec<Symbol>,
    is_complete: bool,
}

#[derive(Debug)]
struct Symbol {
    kind: SymbolKind,
    name: String,
    path: Arc<str>,
    line: u64,
}

impl SymbolList {
    /// Reads the source files of `files` in the folder `root`. Files that are large or no text are
    /// left out.
    pub fn scan(root: &Path, files: &FileList) -> Self {
        let mut list = Self { symbols: Vec::new(), is_complete: files.is_complete() };
        let (mut text, mut total) = (String::new(), 0);
        for path in files.files().filter(|path| is_source(path)) {
            if total > MAX_TOTAL_BYTES || list.symbols.len() > MAX_SYMBOLS {
                list.is_complete = false;
                break;
            }
            text.clear();
            let Ok(file) = File::open(root.join(path)) else { continue };
            let is_plain = file.metadata().is_ok_and(|data| data.is_file() && data.len() <= MAX_FILE_BYTES);
            if is_plain && file.take(MAX_FILE_BYTES).read_to_string(&mut text).is_ok() {
                total += text.len() as u64;
                list.add_file(path, &text);
            }
        }
        list
    }

    /// The best `limit` matches, best first; none without a query.
    pub fn find(&self, query: &str, limit: usize) -> Vec<SymbolMatch> {
        if query.trim().is_empty() {
            return Vec::new();
        }
        let ranked = rank(query, &self.symbols, |symbol| symbol.name.as_str(), limit, Config::DEFAULT);
        let to_match = |symbol: &Symbol, positions| SymbolMatch {
            kind: symbol.kind,
            name: symbol.name.clone(),
            path: symbol.path.to_string(),
            line: symbol.line,
            positions,
        };
        ranked.into_iter().map(|row| to_match(&self.symbols[row.index], row.positions)).collect()
    }

    /// Whether all source files were read.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn add_file(&mut self, path: &str, text: &str) {
        let path: Arc<str> = path.into();
        let (mut line, mut counted) = (1, 0);
        for found in DEFINITION.captures_iter(text) {
            let (Some(keyword), Some(name)) = (found.get(1), found.get(2)) else { continue };
            line += text[counted..name.start()].matches('\n').count() as u64;
            counted = name.start();
            let kind = SymbolKind::from_keyword(keyword.as_str());
            self.symbols.push(Symbol { kind, name: name.as_str().to_owned(), path: Arc::clone(&path), line });
        }
    }
}

fn is_source(path: &str) -> bool {
    let ending = path.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| SOURCE_ENDINGS.binary_search(&ending).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_of_many_languages_are_found_with_their_lines() {
        let text = "use x;\n\npub(crate) async fn read_line() {}\nexport default class Reader {\n  static async load() {}\n\
                    def parse(self):\nfunc (s *Server) Serve() {\nexport function* walk() {\ninterface Shape {}\n\
                    pub struct 名字;\n// fn in_comment()\nlet function = 1;\n";
        let mut list = SymbolList::default();
        list.add_file("a.rs", text);
        let found: Vec<_> = list.symbols.iter().map(|s| (s.name.as_str(), s.kind.as_str(), s.line)).collect();
        assert_eq!(
            found,
            [
                ("read_line", "FUNCTION", 3),
                ("Reader", "CLASS", 4),
                ("parse", "FUNCTION", 6),
                ("Serve", "FUNCTION", 7),
                ("walk", "FUNCTION", 8),
                ("Shape", "INTERFACE", 9),
                ("名字", "CLASS", 10),
            ]
        );
    }

    #[test]
    fn the_endings_are_sorted() {
        assert!(SOURCE_ENDINGS.is_sorted());
        assert!(is_source("a/b.rs") && !is_source("a/b.md") && !is_source("rs"));
    }
}

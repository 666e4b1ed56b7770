//! Context references: what a user attached to a message, as text and as structure.
//!
//! As text they are a Markdown quote block at the very start of the message:
//!
//! ```text
//! > **上下文资料**
//! >                              (optional: `>` and one space)
//! > - 📄 `src/main.rs`
//! > - 📁 `src` (15个文件)
//!
//! what the user typed
//! ```
//!
//! [`split_block`] reads the block and [`write_block`] writes it; [`prepend_block`] inserts it into a
//! message. Reading is exact: a line is one of the nine kinds only if writing that kind gives the same line,
//! and [`ContextKind::Other`] otherwise. So writing the header and references that were read gives the same
//! block. The serde form is that of the `contexts` field.

use std::ops::Not;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use serde_json::{Map, Value};

use crate::{Block, Content};

#[cfg(test)]
mod tests;

const BLOCK_TITLE: &str = "> **上下文资料**\n";
const BLOCK_SPACER: &str = "> \n";
const BULLET: &str = "> - ";

/// One reference: a line of the block, or an element of the `contexts` field.
///
/// In the `contexts` field, an unknown type is read as [`ContextKind::Other`] with its name, and `extra` is
/// the complete object; a known type with an invalid body is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextRef {
    /// The referenced thing, with the fields that the block's line shows.
    pub kind: ContextKind,
    /// Fields that the line does not show, such as `fullPath`, in order.
    pub extra: Map<String, Value>,
}

impl ContextRef {
    /// Makes a file reference with the fields that other programs expect.
    pub fn file(path: impl Into<String>, full_path: impl Into<String>) -> Self {
        let mut extra = Map::new();
        extra.insert("fullPath".to_owned(), Value::String(full_path.into()));
        extra.insert("displayType".to_owned(), Value::from("TAG"));
        Self { kind: ContextKind::File { path: path.into() }, extra }
    }
}

impl From<ContextKind> for ContextRef {
    fn from(kind: ContextKind) -> Self {
        Self { kind, extra: Map::new() }
    }
}

/// The referenced thing, with the fields that the block's line shows.
///
/// The block has no escapes: line breaks in a field are written as spaces, a space in a URL as `%20`, and the
/// two character sequences that would end a symbol's name or type early (`` ` ( `` and `) - `) as `' (` and
/// `)-`. The serde form has only the shown fields; [`ContextRef`] also keeps the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum ContextKind {
    /// A file.
    #[serde(rename = "FileReference")]
    File {
        /// Path as shown to the user.
        path: String,
    },
    /// A web page.
    #[serde(rename = "WebReference")]
    Web {
        /// URL of the page.
        url: String,
        /// Title of the page, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    },
    /// A folder.
    #[serde(rename = "FolderReference", rename_all = "camelCase")]
    Folder {
        /// Path as shown to the user.
        path: String,
        /// Number of files in the folder.
        file_count: u64,
    },
    /// A symbol in source code.
    #[serde(rename = "SymbolReference", rename_all = "camelCase")]
    Symbol {
        /// Name of the symbol, such as `Name.method()`.
        name: String,
        /// Kind of symbol, such as `FUNCTION`.
        symbol_type: String,
        /// File that defines the symbol.
        file: String,
        /// Line number in the file.
        line: u64,
    },
    /// Output of a terminal.
    #[serde(rename = "TerminalReference", rename_all = "camelCase")]
    Terminal {
        /// Number of lines.
        lines: u64,
        /// Whether it is error output.
        #[serde(default, skip_serializing_if = "Not::not")]
        is_error: bool,
    },
    /// Problems reported by the editor.
    #[serde(rename = "ProblemsReference")]
    Problems {
        /// Number of problems.
        count: u64,
        /// Severity, such as `ERROR`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        severity: Option<String>,
    },
    /// Output of git.
    #[serde(rename = "GitReference", rename_all = "camelCase")]
    Git {
        /// Kind of output, such as `DIFF`.
        git_type: String,
    },
    /// The text selected in the editor.
    #[serde(rename = "SelectionReference")]
    Selection,
    /// The whole workspace.
    #[serde(rename = "WorkspaceReference")]
    Workspace,
    /// A line of another form.
    #[serde(rename = "OtherReference")]
    Other {
        /// The text after the bullet.
        text: String,
    },
}

/// Form of the block's first lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BlockHeader {
    /// A quoted empty line follows the title. [`write_block`] uses this form.
    #[default]
    Spaced,
    /// The first reference follows the title.
    Tight,
}

/// A text split into its context block and the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitText<'a> {
    /// The references, one for each line; at least one.
    pub contexts: Vec<ContextRef>,
    /// Form of the block's first lines.
    pub header: BlockHeader,
    /// Exact text of the block, with the blank line that ends it.
    pub block: &'a str,
    /// The message after the block.
    pub rest: &'a str,
}

/// Splits the context block off the start of a text, if the text has one.
///
/// The block is what `^> \*\*上下文资料\*\*\n(?:> \n)?((?:> - .+\n)+)\n` matches.
///
/// ```
/// use quipu_message::context_ref::{ContextKind, split_block};
///
/// let split = split_block("> **上下文资料**\n> \n> - 📄 `a.rs`\n\nexplain").unwrap();
/// assert_eq!(split.contexts[0].kind, ContextKind::File { path: "a.rs".into() });
/// assert_eq!(split.rest, "explain");
/// ```
pub fn split_block(text: &str) -> Option<SplitText<'_>> {
    let after_title = text.strip_prefix(BLOCK_TITLE)?;
    let (header, mut rest) = match after_title.strip_prefix(BLOCK_SPACER) {
        Some(rest) => (BlockHeader::Spaced, rest),
        None => (BlockHeader::Tight, after_title),
    };
    let mut contexts = Vec::new();
    while let Some(line) = rest.strip_prefix(BULLET) {
        let (bullet, after) = line.split_once('\n').filter(|(bullet, _)| !bullet.is_empty())?;
        contexts.push(ContextKind::from_bullet(bullet).into());
        rest = after;
    }
    let rest = rest.strip_prefix('\n').filter(|_| !contexts.is_empty())?;
    Some(SplitText { contexts, header, block: &text[..text.len() - rest.len()], rest })
}

/// Writes the block of references; returns an empty text if there are none.
pub fn write_block(contexts: &[ContextRef]) -> String {
    write_block_with_header(BlockHeader::Spaced, contexts)
}

/// Writes the block of references with the given form of its first lines.
pub fn write_block_with_header(header: BlockHeader, contexts: &[ContextRef]) -> String {
    if contexts.is_empty() {
        return String::new();
    }
    let mut block = BLOCK_TITLE.to_owned();
    if header == BlockHeader::Spaced {
        block.push_str(BLOCK_SPACER);
    }
    for context in contexts {
        block.extend([BULLET, &context.kind.to_bullet(), "\n"]);
    }
    block.push('\n');
    block
}

/// Inserts the block of references before the first text of a message's content, or as a text block before
/// other blocks. If the first text already begins with a block, the content is not changed.
pub fn prepend_block(content: &mut Content, contexts: &[ContextRef]) {
    if contexts.is_empty() {
        return;
    }
    let prepend = |text: &mut String| {
        if split_block(text).is_none() {
            text.insert_str(0, &write_block(contexts));
        }
    };
    match content {
        Content::Text(text) => prepend(text),
        Content::Blocks(blocks) => {
            let first = blocks.iter_mut().find_map(|block| match block {
                Block::Text(text) => Some(&mut text.text),
                _ => None,
            });
            match first {
                Some(text) => prepend(text),
                None => blocks.insert(0, Block::new_text(write_block(contexts))),
            }
        }
        Content::Other(_) => {}
    }
}

impl ContextKind {
    /// Returns the kind as it would be read from its line.
    pub fn as_displayed(&self) -> Self {
        Self::from_bullet(&self.to_bullet())
    }

    fn from_bullet(bullet: &str) -> Self {
        parse_bullet(bullet)
            .filter(|reference| reference.to_bullet() == bullet)
            .unwrap_or_else(|| Self::Other { text: bullet.to_owned() })
    }

    /// Returns the text after the bullet: one line, never empty.
    fn to_bullet(&self) -> String {
        match self {
            Self::File { path } => format!("📄 `{}`", to_one_line(path)),
            Self::Web { url, title } => {
                let url = to_one_line(url).replace(' ', "%20");
                let title = title.as_deref().map(|title| format!(" ({})", to_one_line(title)));
                format!("🌐 {url}{}", title.unwrap_or_default())
            }
            Self::Folder { path, file_count } => {
                format!("📁 `{}` ({file_count}个文件)", to_one_line(path))
            }
            Self::Symbol { name, symbol_type, file, line } => {
                let name = to_one_line(name).replace("` (", "' (");
                let symbol_type = to_one_line(symbol_type).replace(") - ", ")-");
                format!("🔗 `{name}` ({symbol_type}) - {}:{line}", to_one_line(file))
            }
            Self::Terminal { lines, is_error } => {
                format!("💻 终端输出 ({lines}行){}", if *is_error { " ⚠️" } else { "" })
            }
            Self::Problems { count, severity } => {
                let severity = severity.as_deref().map(|level| format!(" [{}]", to_one_line(level)));
                format!("⚠️ 问题报告 ({count}个){}", severity.unwrap_or_default())
            }
            Self::Git { git_type } => format!("🔀 Git {}", to_one_line(git_type)),
            Self::Selection => "✏️ 当前选择内容".to_owned(),
            Self::Workspace => "🏠 当前工作区".to_owned(),
            Self::Other { text } if text.is_empty() => "?".to_owned(),
            // A line that was read may contain other line breaks than `\n`.
            Self::Other { text } => text.replace('\n', " "),
        }
    }
}

impl Serialize for ContextRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if matches!(self.kind, ContextKind::Other { .. }) && self.extra.contains_key("type") {
            return self.extra.serialize(serializer);
        }
        let mut object = to_object(&self.kind).map_err(ser::Error::custom)?;
        for (name, value) in &self.extra {
            object.entry(name).or_insert_with(|| value.clone());
        }
        object.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ContextRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut extra = Map::deserialize(deserializer)?;
        let Some(name) = extra.get("type").and_then(Value::as_str).map(str::to_owned) else {
            return Err(de::Error::custom("context reference without a `type`"));
        };
        if !KNOWN_TYPES.contains(&name.as_str()) {
            return Ok(Self { kind: ContextKind::Other { text: name }, extra });
        }
        let named = |error: serde_json::Error| de::Error::custom(format!("{name}: {error}"));
        let kind = ContextKind::deserialize(&Value::Object(extra.clone())).map_err(named)?;
        let known = to_object(&kind).map_err(named)?;
        // A null or a default value stays in the extra fields, so that it is written again.
        extra.retain(|name, _| !known.contains_key(name));
        Ok(Self { kind, extra })
    }
}

/// The types that have a variant in [`ContextKind`].
const KNOWN_TYPES: [&str; 10] = [
    "FileReference",
    "WebReference",
    "FolderReference",
    "SymbolReference",
    "TerminalReference",
    "ProblemsReference",
    "GitReference",
    "SelectionReference",
    "WorkspaceReference",
    "OtherReference",
];

fn to_object(kind: &ContextKind) -> Result<Map<String, Value>, serde_json::Error> {
    match serde_json::to_value(kind)? {
        Value::Object(fields) => Ok(fields),
        _ => unreachable!("a tagged enum is an object"),
    }
}

/// Parses the text after a bullet without strict checks; the caller checks that writing the result gives the
/// same text.
fn parse_bullet(bullet: &str) -> Option<ContextKind> {
    let (icon, text) = bullet.split_once(' ')?;
    Some(match icon {
        "📄" => ContextKind::File { path: strip_delimiters(text, "`", "`")?.to_owned() },
        "🌐" => match text.split_once(' ') {
            None => ContextKind::Web { url: text.to_owned(), title: None },
            Some((url, title)) => {
                let title = Some(strip_delimiters(title, "(", ")")?.to_owned());
                ContextKind::Web { url: url.to_owned(), title }
            }
        },
        "📁" => {
            let (path, count) = strip_delimiters(text, "`", "个文件)")?.rsplit_once("` (")?;
            ContextKind::Folder { path: path.to_owned(), file_count: count.parse().ok()? }
        }
        "🔗" => {
            let (name, rest) = text.strip_prefix('`')?.split_once("` (")?;
            let (symbol_type, place) = rest.split_once(") - ")?;
            let (file, line) = place.rsplit_once(':')?;
            ContextKind::Symbol {
                name: name.to_owned(),
                symbol_type: symbol_type.to_owned(),
                file: file.to_owned(),
                line: line.parse().ok()?,
            }
        }
        "💻" => {
            let (lines, mark) = text.strip_prefix("终端输出 (")?.split_once("行)")?;
            ContextKind::Terminal { lines: lines.parse().ok()?, is_error: !mark.is_empty() }
        }
        "⚠️" => {
            let (count, level) = text.strip_prefix("问题报告 (")?.split_once("个)")?;
            let severity = strip_delimiters(level, " [", "]").map(str::to_owned);
            ContextKind::Problems { count: count.parse().ok()?, severity }
        }
        "🔀" => ContextKind::Git { git_type: text.strip_prefix("Git ")?.to_owned() },
        "✏️" => ContextKind::Selection,
        "🏠" => ContextKind::Workspace,
        _ => return None,
    })
}

fn strip_delimiters<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    text.strip_prefix(start)?.strip_suffix(end)
}

/// Replaces characters that a reader of the block could treat as the end of a line.
fn to_one_line(text: &str) -> String {
    text.replace(['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'], " ")
}

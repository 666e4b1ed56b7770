//! Context references: what a user attached to a message, as text and as structure.
//!
//! In text they are a Markdown quote block at the very start of the message:
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
//! [`split_block`] takes the block off, [`write_block`] writes it, [`prepend_block`] puts it before a
//! message. Reading is exact: a line
//! is one of the nine kinds only if writing that kind gives the same line, and
//! otherwise [`ContextKind::Other`], so header and references always write the block
//! they were read from. The serde form is that of the `contexts` field.

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
/// Read from the field, an unknown type is [`ContextKind::Other`] with its name, and
/// `extra` is the whole object; a known type with a bad body is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextRef {
    /// What it is to, and what its line shows.
    pub kind: ContextKind,
    /// The fields that no line shows, such as `fullPath`, in order.
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

/// What a reference is to, with what its line shows.
///
/// The block has no escape, so line breaks in a field are written as spaces, a
/// space in a URL as `%20`, and the two marks that would end a symbol's name or
/// type early (`` ` ( `` and `) - `) as `' (` and `)-`. The serde form is that of
/// the shown fields alone; [`ContextRef`] keeps the others too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum ContextKind {
    /// A file.
    #[serde(rename = "FileReference")]
    File {
        /// Its path as shown.
        path: String,
    },
    /// A web page.
    #[serde(rename = "WebReference")]
    Web {
        /// Its address.
        url: String,
        /// Its title, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    },
    /// A folder.
    #[serde(rename = "FolderReference", rename_all = "camelCase")]
    Folder {
        /// Its path as shown.
        path: String,
        /// How many files it holds.
        file_count: u64,
    },
    /// A symbol in source code.
    #[serde(rename = "SymbolReference", rename_all = "camelCase")]
    Symbol {
        /// Its name, such as `Name.method()`.
        name: String,
        /// Its kind, such as `FUNCTION`.
        symbol_type: String,
        /// The file it is in.
        file: String,
        /// The line it is on.
        line: u64,
    },
    /// Output of a terminal.
    #[serde(rename = "TerminalReference", rename_all = "camelCase")]
    Terminal {
        /// How many lines.
        lines: u64,
        /// Whether it is an error's.
        #[serde(default, skip_serializing_if = "Not::not")]
        is_error: bool,
    },
    /// A report of problems.
    #[serde(rename = "ProblemsReference")]
    Problems {
        /// How many problems.
        count: u64,
        /// How bad they are, such as `ERROR`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        severity: Option<String>,
    },
    /// Something from Git.
    #[serde(rename = "GitReference", rename_all = "camelCase")]
    Git {
        /// What, such as `DIFF`.
        git_type: String,
    },
    /// The text selected in the editor.
    #[serde(rename = "SelectionReference")]
    Selection,
    /// The whole workspace.
    #[serde(rename = "WorkspaceReference")]
    Workspace,
    /// A line of none of these kinds.
    #[serde(rename = "OtherReference")]
    Other {
        /// Its text after the bullet.
        text: String,
    },
}

/// Whether a quoted empty line follows the block's title.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BlockHeader {
    /// It does, as in what we write.
    #[default]
    Spaced,
    /// It does not.
    Tight,
}

/// A text split into its context block and the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitText<'a> {
    /// The references, one for each line; at least one.
    pub contexts: Vec<ContextRef>,
    /// The form of the block's head.
    pub header: BlockHeader,
    /// The block's exact text, with the blank line that ends it.
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

/// Writes the block of some references; nothing for none.
pub fn write_block(contexts: &[ContextRef]) -> String {
    write_block_with_header(BlockHeader::Spaced, contexts)
}

/// Writes the block of some references under the given form of head.
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

/// Writes the block of some references before the first text of a message's content, or as a
/// text of its own before blocks without any. Content whose first text begins with a block
/// keeps it as it is.
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
    /// Returns the kind as it is read back from its line.
    pub fn as_displayed(&self) -> Self {
        Self::from_bullet(&self.to_bullet())
    }

    fn from_bullet(bullet: &str) -> Self {
        parse_bullet(bullet)
            .filter(|reference| reference.to_bullet() == bullet)
            .unwrap_or_else(|| Self::Other { text: bullet.to_owned() })
    }

    /// Writes what follows the bullet: one line, never empty.
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
            // Other line breaks than `\n` may stand in a line that was read.
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
        // A null or a default stays among the extras, so that it is written again.
        extra.retain(|name, _| !known.contains_key(name));
        Ok(Self { kind, extra })
    }
}

/// The types that [`ContextKind`] has a kind for.
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

/// Reads the kind of a line loosely; the caller checks that it writes back the same.
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

/// Replaces what some reader of the block may take for the end of its line.
fn to_one_line(text: &str) -> String {
    text.replace(['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'], " ")
}

//! The searchable texts of a line: everything the screen shows of it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use quipu_conversation::{Conversation, ItemKind, ScreenItem, UserText, classify_user_text, standalone_notice};
use quipu_message::progress::{ProgressData, ProgressKind};
use quipu_message::view::{BlockView, ContentView};
use quipu_message::{Entry, View};
use quipu_transcript::find;
use serde_json::Value;
use serde_json::value::RawValue;

/// Kinds of text. The index stores these numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextKind {
    /// Typed by the user.
    Prompt = 0,
    /// Response of the model, or its prompt to a subagent.
    Response = 1,
    /// Thinking of the model.
    Thinking = 2,
    /// Name and input of a tool call.
    ToolCall = 3,
    /// Result of a tool call.
    ToolResult = 4,
    /// Written by the program: notices, hooks, summaries, texts for the model only.
    Notice = 5,
    /// Title of the session.
    Title = 6,
}

impl TextKind {
    pub(crate) const ALL: [Self; 7] =
        [Self::Prompt, Self::Response, Self::Thinking, Self::ToolCall, Self::ToolResult, Self::Notice, Self::Title];

    /// The value of `role` in `search --json`.
    pub(crate) fn role_name(self) -> &'static str {
        match self {
            Self::Prompt => "user",
            Self::Response | Self::Thinking | Self::ToolCall => "assistant",
            Self::ToolResult => "tool",
            Self::Notice | Self::Title => "system",
        }
    }
}

/// One text of a line.
#[derive(Debug)]
pub(crate) struct LineText<'a> {
    pub(crate) kind: TextKind,
    /// Name of the tool, for tool calls and results.
    pub(crate) tool: Option<String>,
    pub(crate) text: Cow<'a, str>,
}

/// Tool names by tool call id.
pub(crate) type ToolNameByCall = HashMap<String, String>;

/// Extracts the texts of the lines of one file.
#[derive(Debug)]
pub(crate) struct TextExtractor {
    /// Tool calls without a result so far.
    pub(crate) tool_names: ToolNameByCall,
    path: PathBuf,
    /// Names of the session's subagent files; listed on first use.
    subagent_files: Option<HashSet<OsString>>,
}

impl TextExtractor {
    /// Starts or continues a file; `calls` are the tool calls without a result so far.
    pub(crate) fn new(path: &Path, calls: ToolNameByCall) -> Self {
        Self { tool_names: calls, path: path.to_owned(), subagent_files: None }
    }

    /// The texts of a line. `line` is the text that `view` was read from.
    pub(crate) fn line_texts<'a>(&mut self, view: &'a View<'_>, line: &str) -> Vec<LineText<'a>> {
        let mut texts = Vec::new();
        match view.kind.as_deref().unwrap_or_default() {
            "user" | "assistant" => self.push_message(view, line, &mut texts),
            // Titles are shown above the conversation, not in it.
            "ai-title" | "custom-title" | "summary" => {
                let titles = [&view.custom_title, &view.ai_title, &view.summary].into_iter().flatten();
                texts.extend(titles.map(|title| LineText {
                    kind: TextKind::Title,
                    tool: None,
                    text: Cow::Borrowed(title),
                }));
            }
            "progress" => self.push_progress(line, &mut texts),
            kind if HIDDEN_ENTRY_TYPES.contains(&kind) => {}
            _ => texts.extend(Entry::read(line).ok().and_then(standalone_notice).and_then(item_text)),
        }
        texts.retain(|text| !text.text.trim().is_empty());
        texts
    }

    fn push_message<'a>(&mut self, view: &'a View<'_>, line: &str, texts: &mut Vec<LineText<'a>>) {
        let is_user = view.kind.as_deref() == Some("user");
        let is_hidden = [view.is_meta, view.is_compact_summary, view.is_synthetic].contains(&Some(true));
        let words = |text: &'a str, texts: &mut Vec<LineText<'a>>| match (is_hidden, is_user) {
            (true, _) => texts.push(notice_text(Cow::Borrowed(text))),
            (false, false) => texts.push(LineText { kind: TextKind::Response, tool: None, text: Cow::Borrowed(text) }),
            // The prompt of a subagent is written by the model.
            (false, true) if view.is_sidechain == Some(true) => {
                texts.push(LineText { kind: TextKind::Response, tool: None, text: Cow::Borrowed(text) });
            }
            (false, true) => push_user_text(text, texts),
        };
        match view.message.as_ref().and_then(|message| message.content.as_ref()) {
            None => {}
            Some(ContentView::Text(text)) => words(text, texts),
            Some(ContentView::Blocks(blocks)) => {
                for block in blocks {
                    match (block.kind.as_deref(), block.text.as_deref()) {
                        (Some("text"), Some(text)) => words(text, texts),
                        _ => texts.extend(self.block_text(block, view)),
                    }
                }
                if blocks.iter().any(is_rare_block) {
                    texts.extend(rare_block_texts(line));
                }
            }
        }
    }

    fn block_text<'a>(&mut self, block: &'a BlockView<'_>, view: &View<'_>) -> Option<LineText<'a>> {
        match block.kind.as_deref()? {
            "thinking" => {
                let text = Cow::Borrowed(block.text.as_deref()?);
                Some(LineText { kind: TextKind::Thinking, tool: None, text })
            }
            "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                let name = block.name.as_deref()?.to_owned();
                if let Some(id) = &block.id {
                    self.tool_names.insert(id.to_string(), name.clone());
                }
                let mut text = format!("{name}\n");
                block.input.into_iter().for_each(|input| append_strings(input, &mut text));
                Some(LineText { kind: TextKind::ToolCall, tool: Some(name), text: text.into() })
            }
            _ => {
                let tool = self.tool_names.remove(block.tool_use_id.as_deref()?);
                let mut text = String::new();
                block.content.into_iter().for_each(|content| append_result_text(content, &mut text));
                if text.trim().is_empty() {
                    view.tool_use_result.into_iter().for_each(|output| append_strings(output, &mut text));
                }
                Some(LineText { kind: TextKind::ToolResult, tool, text: text.into() })
            }
        }
    }

    /// Adds the text of a hook, or of a subagent that has no file of its own.
    fn push_progress(&mut self, line: &str, texts: &mut Vec<LineText<'_>>) {
        let Ok(entry) = Entry::read(line) else { return };
        let Entry::Progress(progress) = &entry else { return };
        match &progress.data {
            ProgressData::Tagged(ProgressKind::Agent(data)) => {
                let agent = data.agent_id.get().map(|id| id.as_str()).unwrap_or_default();
                let Some(message) = data.message.get().filter(|_| !self.has_own_file(agent)) else { return };
                let Ok(mut view) = View::read(message.text()) else { return };
                view.is_sidechain = Some(true);
                let mut inner = Vec::new();
                self.push_message(&view, message.text(), &mut inner);
                texts.extend(inner.into_iter().map(|inner| LineText { text: inner.text.into_owned().into(), ..inner }));
            }
            _ => texts.extend(standalone_notice(entry).and_then(item_text)),
        }
    }

    /// Whether a subagent has its own file.
    fn has_own_file(&mut self, agent: &str) -> bool {
        let name = format!("agent-{agent}.jsonl");
        let subagents = self.subagent_files.get_or_insert_with(|| {
            let (files, _) = find::list_jsonl_files(&self.path.with_extension("").join("subagents"));
            files.iter().filter_map(|path| path.file_name().map(ToOwned::to_owned)).collect()
        });
        !agent.is_empty() && (subagents.contains(OsStr::new(&name)) || self.path.with_file_name(&name).exists())
    }
}

/// Types of entries that are not shown and are many or large.
const HIDDEN_ENTRY_TYPES: [&str; 8] = [
    "file-history-snapshot",
    "file-history-delta",
    "queue-operation",
    "last-prompt",
    "api-request",
    "api-request-blob",
    "api-request-shape",
    "stream_event",
];

fn notice_text(text: Cow<'_, str>) -> LineText<'_> {
    LineText { kind: TextKind::Notice, tool: None, text }
}

/// Adds the typed part of a `user` text, and what the program wrote around it as a notice.
fn push_user_text<'a>(text: &'a str, texts: &mut Vec<LineText<'a>>) {
    match classify_user_text(text) {
        UserText::Prompt { text: shown, .. } => {
            let is_all = shown.trim() == text.trim();
            let rest = text.replacen(&shown, " ", 1);
            let shown = if is_all { Cow::Borrowed(text) } else { Cow::Owned(shown) };
            texts.push(LineText { kind: TextKind::Prompt, tool: None, text: shown });
            if !is_all {
                texts.push(notice_text(rest.into()));
            }
        }
        UserText::Notice(shown) => texts.push(notice_text(shown.into())),
        UserText::Hidden => texts.push(notice_text(text.into())),
    }
}

/// The texts of documents and unknown blocks, as the screen shows them.
fn rare_block_texts(line: &str) -> Vec<LineText<'static>> {
    let mut alone = Conversation::default();
    alone.push_line(1, line);
    let items = alone.for_ui().into_iter();
    items.filter(|item| matches!(item.kind, ItemKind::Attachment | ItemKind::Unknown)).filter_map(item_text).collect()
}

/// The text of an item.
fn item_text(item: ScreenItem) -> Option<LineText<'static>> {
    let kind = if item.kind == ItemKind::User { TextKind::Prompt } else { TextKind::Notice };
    Some(LineText { kind, tool: None, text: item.text?.into() })
}

/// Whether the text of a block must be taken from its screen item.
fn is_rare_block(block: &BlockView<'_>) -> bool {
    let is_common = matches!(
        block.kind.as_deref(),
        Some("text" | "thinking" | "redacted_thinking" | "tool_use" | "server_tool_use" | "mcp_tool_use" | "image")
    );
    !is_common && block.tool_use_id.is_none()
}

/// Longer ASCII strings without white space are data (images, signatures) and not indexed.
/// Chinese and Japanese, which have no spaces, are not ASCII.
const MAX_STRING_BYTES: usize = 400;

fn is_data(text: &str) -> bool {
    text.len() > MAX_STRING_BYTES && text.is_ascii() && !text.contains(char::is_whitespace)
}

/// Appends the strings and numbers of a JSON value, each on a line.
fn append_strings(raw: &RawValue, out: &mut String) {
    fn collect(value: &Value, out: &mut String) {
        match value {
            Value::String(text) if is_data(text) => {}
            Value::String(text) => out.extend([text, "\n"]),
            Value::Number(number) => out.extend([&number.to_string(), "\n"]),
            Value::Array(items) => items.iter().for_each(|item| collect(item, out)),
            Value::Object(fields) => fields.values().for_each(|value| collect(value, out)),
            Value::Null | Value::Bool(_) => {}
        }
    }
    if let Ok(value) = serde_json::from_str(raw.get()) {
        collect(&value, out);
    }
}

/// Appends the text of a tool result: a string, the texts of its blocks, or all its strings.
fn append_result_text(raw: &RawValue, out: &mut String) {
    if let Ok(text) = serde_json::from_str::<Cow<'_, str>>(raw.get()) {
        out.push_str(&text);
        return;
    }
    let Ok(blocks) = serde_json::from_str::<Vec<&RawValue>>(raw.get()) else { return append_strings(raw, out) };
    for raw in blocks {
        let block: BlockView<'_> = serde_json::from_str(raw.get()).unwrap_or_default();
        match (block.kind.as_deref(), block.text.as_deref()) {
            (Some("image"), _) => {}
            (_, Some(text)) => out.extend([text, "\n"]),
            _ => append_strings(raw, out),
        }
    }
}

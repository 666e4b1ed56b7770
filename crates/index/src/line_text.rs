//! What a line says, text by text, for searching: all that the screen shows of it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use quipu_conversation::{
    Conversation, ItemKind, ScreenItem, UserText as Typed, classify_user_text as typed, standalone_notice,
};
use quipu_message::progress::{ProgressData, ProgressKind};
use quipu_message::view::{BlockView, ContentView};
use quipu_message::{Entry, View};
use quipu_transcript::find;
use serde_json::Value;
use serde_json::value::RawValue;

/// Who says it, and how. The index keeps these numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextKind {
    /// What the user typed.
    Prompt = 0,
    /// What the model answers; also what it asks a subagent.
    Response = 1,
    /// What the model thinks.
    Thinking = 2,
    /// What a tool is called with.
    ToolCall = 3,
    /// What a tool returned.
    ToolResult = 4,
    /// What the program says: notices, hooks, summaries, texts for the model alone.
    Notice = 5,
    /// A title of the session.
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
    /// The tool that is called or that returned it.
    pub(crate) tool: Option<String>,
    pub(crate) text: Cow<'a, str>,
}

/// Names of tools that were called, by the id of the call.
pub(crate) type ToolNameByCall = HashMap<String, String>;

/// Reads the lines of one file.
#[derive(Debug)]
pub(crate) struct TextExtractor {
    /// Calls without a result so far.
    pub(crate) tool_names: ToolNameByCall,
    path: PathBuf,
    /// Names of the files of the session's subagents, once someone asks for them.
    subagent_files: Option<HashSet<OsString>>,
}

impl TextExtractor {
    /// Begins or goes on to read a file; `calls` are those that the lines before left open.
    pub(crate) fn new(path: &Path, calls: ToolNameByCall) -> Self {
        Self { tool_names: calls, path: path.to_owned(), subagent_files: None }
    }

    /// What a line says. `line` is the text that `view` was read from.
    pub(crate) fn line_texts<'a>(&mut self, view: &'a View<'_>, line: &str) -> Vec<LineText<'a>> {
        let mut said = Vec::new();
        match view.kind.as_deref().unwrap_or_default() {
            "user" | "assistant" => self.push_message(view, line, &mut said),
            // Titles are shown above the conversation, not in it.
            "ai-title" | "custom-title" | "summary" => {
                let titles = [&view.custom_title, &view.ai_title, &view.summary].into_iter().flatten();
                said.extend(titles.map(|title| LineText {
                    kind: TextKind::Title,
                    tool: None,
                    text: Cow::Borrowed(title),
                }));
            }
            "progress" => self.push_progress(line, &mut said),
            kind if HIDDEN_ENTRY_TYPES.contains(&kind) => {}
            _ => said.extend(Entry::read(line).ok().and_then(standalone_notice).and_then(item_text)),
        }
        said.retain(|said| !said.text.trim().is_empty());
        said
    }

    fn push_message<'a>(&mut self, view: &'a View<'_>, line: &str, said: &mut Vec<LineText<'a>>) {
        let is_user = view.kind.as_deref() == Some("user");
        let is_hidden = [view.is_meta, view.is_compact_summary, view.is_synthetic].contains(&Some(true));
        let words = |text: &'a str, said: &mut Vec<LineText<'a>>| match (is_hidden, is_user) {
            (true, _) => said.push(notice_text(Cow::Borrowed(text))),
            (false, false) => said.push(LineText { kind: TextKind::Response, tool: None, text: Cow::Borrowed(text) }),
            // A subagent's prompt is what the model asks of it.
            (false, true) if view.is_sidechain == Some(true) => {
                said.push(LineText { kind: TextKind::Response, tool: None, text: Cow::Borrowed(text) });
            }
            (false, true) => push_user_text(text, said),
        };
        match view.message.as_ref().and_then(|message| message.content.as_ref()) {
            None => {}
            Some(ContentView::Text(text)) => words(text, said),
            Some(ContentView::Blocks(blocks)) => {
                for block in blocks {
                    match (block.kind.as_deref(), block.text.as_deref()) {
                        (Some("text"), Some(text)) => words(text, said),
                        _ => said.extend(self.block_text(block, view)),
                    }
                }
                if blocks.iter().any(is_rare_block) {
                    said.extend(rare_block_texts(line));
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

    /// A hook that runs, or what a subagent says whose own file is not there.
    fn push_progress(&mut self, line: &str, said: &mut Vec<LineText<'_>>) {
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
                said.extend(inner.into_iter().map(|said| LineText { text: said.text.into_owned().into(), ..said }));
            }
            _ => said.extend(standalone_notice(entry).and_then(item_text)),
        }
    }

    /// Whether a subagent has a file of its own.
    fn has_own_file(&mut self, agent: &str) -> bool {
        let name = format!("agent-{agent}.jsonl");
        let subagents = self.subagent_files.get_or_insert_with(|| {
            let (files, _) = find::list_jsonl_files(&self.path.with_extension("").join("subagents"));
            files.iter().filter_map(|path| path.file_name().map(ToOwned::to_owned)).collect()
        });
        !agent.is_empty() && (subagents.contains(OsStr::new(&name)) || self.path.with_file_name(&name).exists())
    }
}

/// Types of lines that no screen shows and that are many or large.
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

/// What is typed in a text of a `user` line, and apart from it what the program wrote there.
fn push_user_text<'a>(text: &'a str, said: &mut Vec<LineText<'a>>) {
    match typed(text) {
        Typed::Prompt { text: shown, .. } => {
            let is_all = shown.trim() == text.trim();
            let rest = text.replacen(&shown, " ", 1);
            let shown = if is_all { Cow::Borrowed(text) } else { Cow::Owned(shown) };
            said.push(LineText { kind: TextKind::Prompt, tool: None, text: shown });
            if !is_all {
                said.push(notice_text(rest.into()));
            }
        }
        Typed::Notice(shown) => said.push(notice_text(shown.into())),
        Typed::Hidden => said.push(notice_text(text.into())),
    }
}

/// What the screen shows of the rare blocks of a message: documents and unknown blocks.
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

/// Whether a block is of a type that only the screen knows how to show.
fn is_rare_block(block: &BlockView<'_>) -> bool {
    let is_common = matches!(
        block.kind.as_deref(),
        Some("text" | "thinking" | "redacted_thinking" | "tool_use" | "server_tool_use" | "mcp_tool_use" | "image")
    );
    !is_common && block.tool_use_id.is_none()
}

/// ASCII strings of more bytes without white space are data: pictures, signatures, ciphers.
/// Chinese and Japanese are written without white space.
const MAX_STRING_BYTES: usize = 400;

fn is_data(text: &str) -> bool {
    text.len() > MAX_STRING_BYTES && text.is_ascii() && !text.contains(char::is_whitespace)
}

/// Appends the strings and numbers in a JSON value, a line each.
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

/// Appends what a result says: a string, the texts of its blocks, or whatever strings it has.
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

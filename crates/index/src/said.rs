//! What a line says, block by block, for those who search.

use std::borrow::Cow;
use std::collections::HashMap;

use quipu_message::View;
use quipu_message::view::{BlockView, ContentView};
use serde_json::value::RawValue;

/// Who says it, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// What a person asks, or the program in their name.
    Prompt = 0,
    /// What the model answers.
    Answer = 1,
    /// What the model thinks.
    Thinking = 2,
    /// What a tool is called with.
    Call = 3,
    /// What a tool gives back.
    Result = 4,
}

impl Kind {
    pub(crate) const ALL: [Self; 5] = [Self::Prompt, Self::Answer, Self::Thinking, Self::Call, Self::Result];

    /// In the words of `--role` and of `search --json`.
    pub(crate) fn role(self) -> &'static str {
        match self {
            Self::Prompt => "user",
            Self::Answer | Self::Thinking | Self::Call => "assistant",
            Self::Result => "tool",
        }
    }
}

/// One block that says something.
#[derive(Debug)]
pub(crate) struct Said<'a> {
    /// Which block of the line it is.
    pub(crate) block: usize,
    pub(crate) kind: Kind,
    /// The tool called or answering.
    pub(crate) tool: Option<String>,
    pub(crate) text: Cow<'a, str>,
}

/// Tools that were called, by the id of the call.
pub(crate) type Calls = HashMap<String, String>;

/// What a line says. Calls are remembered until they are answered.
pub(crate) fn said<'a>(view: &'a View<'_>, calls: &mut Calls) -> Vec<Said<'a>> {
    let kind = match view.kind.as_deref() {
        Some("user") => Kind::Prompt,
        Some("assistant") => Kind::Answer,
        _ => return Vec::new(),
    };
    match view.message.as_ref().and_then(|message| message.content.as_ref()) {
        None => Vec::new(),
        Some(ContentView::Text(text)) => vec![Said { block: 0, kind, tool: None, text: Cow::Borrowed(text) }],
        Some(ContentView::Blocks(blocks)) => {
            blocks.iter().enumerate().filter_map(|(n, block)| one(n, block, kind, calls)).collect()
        }
    }
}

fn one<'a>(n: usize, block: &'a BlockView<'_>, kind: Kind, calls: &mut Calls) -> Option<Said<'a>> {
    let (kind, tool, text) = match block.kind.as_deref()? {
        "text" => (kind, None, Cow::Borrowed(&**block.text.as_ref()?)),
        "thinking" => (Kind::Thinking, None, Cow::Borrowed(&**block.text.as_ref()?)),
        "tool_use" | "server_tool_use" | "mcp_tool_use" => {
            let name = block.name.as_deref()?.to_owned();
            if let Some(id) = &block.id {
                calls.insert(id.to_string(), name.clone());
            }
            (Kind::Call, Some(name), Cow::Owned(strings(block.input?)))
        }
        _ => {
            let tool = calls.remove(&**block.tool_use_id.as_ref()?);
            (Kind::Result, tool, Cow::Owned(result(block.content?)))
        }
    };
    (!text.trim().is_empty()).then_some(Said { block: n, kind, tool, text })
}

/// The strings in a tool's input, a line each.
fn strings(raw: &RawValue) -> String {
    fn collect(value: &serde_json::Value, out: &mut String) {
        match value {
            serde_json::Value::String(text) => {
                out.push_str(text);
                out.push('\n');
            }
            serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, out)),
            serde_json::Value::Object(fields) => fields.values().for_each(|value| collect(value, out)),
            _ => {}
        }
    }
    let mut out = String::new();
    if let Ok(value) = serde_json::from_str(raw.get()) {
        collect(&value, &mut out);
    }
    out
}

/// What a result says: a string, or the words in its blocks.
fn result(raw: &RawValue) -> String {
    if let Ok(text) = serde_json::from_str::<String>(raw.get()) {
        return text;
    }
    let blocks: Vec<BlockView<'_>> = serde_json::from_str(raw.get()).unwrap_or_default();
    blocks.iter().filter_map(|block| block.text.as_deref()).collect::<Vec<_>>().join("\n")
}

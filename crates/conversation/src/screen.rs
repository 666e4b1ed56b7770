//! The conversation for people: one item per block, each tool call with its
//! result, nothing shown twice, nothing meant for the model alone.

use std::collections::{HashMap, HashSet};

use quipu_message::context::ContextRef;
use quipu_message::local_command::{output, typed};
use quipu_message::progress::{ProgressData, ProgressKind};
use quipu_message::synthetic::NO_RESPONSE_REQUESTED;
use quipu_message::turn::{Assistant, User};
use quipu_message::{
    AgentId, Block, Content, Entry, Json, Message, Role, Source, ToolResult, ToolUse, ToolUseId, Uuid,
};
use serde::Serialize;

use crate::conversation::{Conversation, DEEPEST, Node};
use crate::pair::{Answer, Results, Status};
use crate::person::{Said, said};

mod notice;
mod place;

pub use place::notice_of;

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Kind {
    User,
    Assistant,
    Thinking,
    Tool,
    Image,
    Hook,
    System,
    Summary,
    Attachment,
    Unknown,
    Problem,
}

/// One thing on the screen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScreenItem {
    /// The line's id, or one derived from it.
    pub uuid: Option<Uuid>,
    /// What it is.
    pub kind: Kind,
    /// When.
    pub timestamp: Option<String>,
    /// Its words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What the person attached.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contexts: Vec<ContextRef>,
    /// The tool call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolCard>,
    /// The line's own id, when `uuid` is derived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub derived_from: Option<Uuid>,
    /// The model that said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The bytes of a picture or document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Whether it reports a failure.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Whether it is a hook that succeeded without output, which readers rarely want.
    #[serde(skip)]
    pub is_silent: bool,
    /// The line it came in, counted from 1.
    pub line: u64,
}

/// A tool call with its result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolCard {
    /// Joins call and result.
    pub id: ToolUseId,
    /// The tool; empty when a result has no call.
    pub name: String,
    /// What it was called with.
    pub input: Json,
    /// How it stands.
    pub status: Status,
    /// What the model was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Content>,
    /// What the tool gave, in its own form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// The subagent that worked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent: Option<Subagent>,
}

/// A subagent's conversation, seen from the call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Subagent {
    /// The agent.
    pub agent_id: Option<AgentId>,
    /// What it said and did.
    pub items: Vec<ScreenItem>,
}

impl Conversation {
    /// The conversation for people, in order. Two passes, linear.
    pub fn for_ui(&self) -> Vec<ScreenItem> {
        self.items(0)
    }

    fn items(&self, depth: usize) -> Vec<ScreenItem> {
        let path = self.path();
        let mut calls: HashSet<&ToolUseId> = HashSet::with_capacity(path.len() / 2);
        calls.extend(path.iter().flat_map(|node| node.calls()).map(|call| &call.id));
        let results = Results::new(path.iter().copied());
        let hooks = Hooks::new(&path, &calls);
        let asked = self.sides_asked();
        let items = Vec::with_capacity(path.len());
        let mut screen = Screen { talk: self, results, calls, hooks, asked, split: false, depth, items };
        for node in &path {
            screen.node(node);
        }
        screen.unfinished(&path);
        screen.faults();
        screen.items
    }
}

impl Node {
    /// The tool calls the node makes.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &ToolUse> {
        self.assistant().into_iter().flat_map(|line| line.message.content.blocks()).filter_map(Block::tool_use)
    }
}

/// Messages of the API as items, with nothing hidden: reminders and meta texts are
/// there, and each result stands with its call.
pub fn messages_for_ui(messages: &[Message]) -> Vec<ScreenItem> {
    let results: HashMap<&ToolUseId, &ToolResult> = messages
        .iter()
        .flat_map(|message| message.content.blocks())
        .filter_map(|block| block.tool_result().map(|result| (&result.tool_use_id, result)))
        .collect();
    let mut items = Vec::new();
    for (line, message) in (1..).zip(messages) {
        let kind = if message.role == Role::Assistant { Kind::Assistant } else { Kind::User };
        for block in message.content.clone().into_blocks() {
            let item = ScreenItem { line, ..blank(kind) };
            match block {
                Block::Text(text) => items.push(ScreenItem { text: Some(text.text), ..item }),
                Block::Thinking(block) => {
                    items.push(ScreenItem { kind: Kind::Thinking, text: Some(block.thinking), ..item });
                }
                Block::ToolUse(call) => {
                    let result = results.get(&call.id);
                    let status = match result.map(|result| result.is_error.is_true()) {
                        None => Status::Pending,
                        Some(true) => Status::Failed,
                        Some(false) => Status::Success,
                    };
                    let result = result.and_then(|result| result.content.get().cloned());
                    let ToolUse { id, name, input, .. } = *call;
                    let card = ToolCard { id, name, input, status, result, output: None, subagent: None };
                    items.push(ScreenItem { kind: Kind::Tool, tool: Some(card), ..item });
                }
                other => items.extend(media(&other, item)),
            }
        }
    }
    items
}

struct Screen<'a> {
    talk: &'a Conversation,
    results: Results<'a>,
    calls: HashSet<&'a ToolUseId>,
    hooks: Hooks<'a>,
    /// Old side conversations by the words they began with.
    asked: HashMap<String, &'a Conversation>,
    /// Whether a message has been split: from then on ids are derived.
    split: bool,
    depth: usize,
    items: Vec<ScreenItem>,
}

impl<'a> Screen<'a> {
    fn node(&mut self, node: &'a Node) {
        match &node.entry {
            Entry::User(user) => self.user(node, user),
            Entry::Assistant(assistant) => self.assistant(node, assistant),
            Entry::Progress(_) | Entry::Attachment(_) if self.hooks.is_shown_with_call(node) => {}
            Entry::Progress(_) => self.items.extend(hook(node)),
            _ => self.items.extend(notice::item(node)),
        }
    }

    fn user(&mut self, node: &'a Node, user: &'a User) {
        let ids = self.ids(node, user.message.content.blocks().len());
        if user.is_compact_summary.is_true() {
            let text = user.message.content.to_text();
            self.items.push(ScreenItem { text: Some(text), ..ids.item(node, Kind::Summary, 0) });
            return;
        }
        if user.is_meta.is_true() {
            return;
        }
        match &user.message.content {
            Content::Text(text) => self.said(text, user, ids.item(node, Kind::User, 0)),
            Content::Blocks(blocks) => {
                for (i, block) in blocks.iter().enumerate() {
                    match block {
                        Block::Text(text) => self.said(&text.text, user, ids.item(node, Kind::User, i)),
                        Block::ToolResult(result) if self.calls.contains(&result.tool_use_id) => {}
                        Block::ToolResult(result) => {
                            let answer = Answer { result, output: user.tool_use_result.get(), node };
                            let card = self.card(&result.tool_use_id, "", Json::default(), Some(&answer), None);
                            self.items.push(ScreenItem { tool: Some(card), ..ids.item(node, Kind::Tool, i) });
                        }
                        other => self.items.extend(media(other, ids.item(node, Kind::User, i))),
                    }
                }
            }
        }
    }

    fn said(&mut self, text: &str, user: &User, item: ScreenItem) {
        match said(text) {
            Said::Hidden => {}
            Said::Notice(text) => self.items.push(ScreenItem { kind: Kind::System, text: Some(text), ..item }),
            Said::Prompt { text, mut contexts } => {
                if let Some(structured) = user.contexts.get().filter(|list| !list.is_empty()) {
                    contexts = structured.clone();
                }
                // A person's own words, unless the program spoke for them.
                let kind = if user.is_synthetic.is_true() { Kind::System } else { item.kind };
                self.items.push(ScreenItem { kind, text: Some(text), contexts, ..item });
            }
        }
    }

    fn assistant(&mut self, node: &'a Node, line: &'a Assistant) {
        let ids = self.ids(node, line.message.content.blocks().len());
        if line.is_meta.is_true() {
            return;
        }
        if let Content::Text(text) = &line.message.content {
            self.words(text, line, ids.item(node, Kind::Assistant, 0));
        }
        for (i, block) in line.message.content.blocks().iter().enumerate() {
            let model = line.message.model.text().map(str::to_owned);
            self.block(block, line, ScreenItem { model, ..ids.item(node, Kind::Assistant, i) });
        }
    }

    fn words(&mut self, text: &str, line: &Assistant, item: ScreenItem) {
        if text.trim().is_empty() || text == NO_RESPONSE_REQUESTED {
            return;
        }
        let model = line.message.model.text().map(str::to_owned);
        let is_error = line.is_api_error();
        // The stream carries a local command's output as if the model had said it.
        let local = line.local_command_source.is_value();
        // Old files confirm a local command in the model's name.
        let printed = output(text).filter(|_| typed(text).trim().is_empty());
        let (kind, text) = match (said(text), printed) {
            (_, Some(printed)) => {
                (Kind::System, printed.stdout.or(printed.stderr).unwrap_or_default().trim().to_owned())
            }
            (Said::Notice(text), None) => (Kind::System, text),
            _ if local => (Kind::System, text.to_owned()),
            _ => (item.kind, text.to_owned()),
        };
        self.items.push(ScreenItem { kind, text: Some(text), model, is_error, ..item });
    }

    fn block(&mut self, block: &'a Block, line: &Assistant, item: ScreenItem) {
        match block {
            Block::Text(text) => self.words(&text.text, line, item),
            Block::Thinking(block) => {
                if !block.thinking.trim().is_empty() {
                    let text = Some(block.thinking.clone());
                    self.items.push(ScreenItem { kind: Kind::Thinking, text, ..item });
                }
            }
            Block::RedactedThinking(_) => {
                let text = Some("[redacted by the server]".to_owned());
                self.items.push(ScreenItem { kind: Kind::Thinking, text, ..item });
            }
            Block::ToolUse(call) => {
                let answer = self.results.get(&call.id).copied();
                let card = self.card(&call.id, &call.name, call.input.clone(), answer.as_ref(), Some(call));
                self.items.push(ScreenItem { kind: Kind::Tool, tool: Some(card), ..item });
                self.items.extend(self.hooks.of(&call.id));
            }
            Block::ServerToolUse(call) => {
                let input = call.input.get().cloned().unwrap_or_default();
                let answer = server_answer(line, &call.id);
                let status = answer.as_ref().map_or(Status::Pending, |_| Status::Success);
                let (id, name) = (call.id.clone(), call.name.clone());
                let card = ToolCard { id, name, input, status, result: None, output: answer, subagent: None };
                self.items.push(ScreenItem { kind: Kind::Tool, tool: Some(card), ..item });
            }
            other => self.items.extend(media(other, item)),
        }
    }

    fn card(
        &self,
        id: &ToolUseId,
        name: &str,
        input: Json,
        answer: Option<&Answer<'_>>,
        call: Option<&ToolUse>,
    ) -> ToolCard {
        let status = match answer {
            None => Status::Pending,
            Some(answer) if answer.result.is_error.is_true() => Status::Failed,
            Some(_) => Status::Success,
        };
        let side = call.filter(|_| self.depth < DEEPEST).and_then(|call| {
            let asked = || self.asked.get(&Conversation::asked(call)?).copied();
            self.talk.side_of(id).or_else(asked)
        });
        ToolCard {
            id: id.clone(),
            name: name.to_owned(),
            input,
            status,
            result: answer.and_then(|answer| answer.result.content.get().cloned()),
            output: answer.and_then(|answer| answer.output.cloned()),
            subagent: side
                .map(|talk| Subagent { agent_id: self.talk.agent_of(id).cloned(), items: talk.items(self.depth + 1) }),
        }
    }

    /// What the stream is writing and no whole line has brought yet.
    fn unfinished(&mut self, path: &[&'a Node]) {
        let Some(message) = self.talk.writing() else { return };
        let written = path.iter().filter(|n| n.message_id().is_some() && n.message_id() == message.id.text()).count();
        let line = Assistant { message: message.clone(), ..Assistant::default() };
        for block in message.content.into_blocks().into_iter().skip(written) {
            let item = blank(Kind::Assistant);
            match &block {
                Block::ToolUse(call) => {
                    let card = self.card(&call.id, &call.name, call.input.clone(), None, None);
                    self.items.push(ScreenItem { kind: Kind::Tool, tool: Some(card), ..item });
                }
                Block::Thinking(thinking) => {
                    let text = Some(thinking.thinking.clone());
                    self.items.push(ScreenItem { kind: Kind::Thinking, text, ..item });
                }
                Block::Text(text) => self.words(&text.text, &line, item),
                _ => {}
            }
        }
    }

    /// Lines that could not be read, each where it stands.
    fn faults(&mut self) {
        if self.talk.faults().is_empty() {
            return;
        }
        for fault in self.talk.faults() {
            let text = Some(format!("line {}: {}", fault.line, fault.message));
            self.items.push(ScreenItem { text, line: fault.line, is_error: true, ..blank(Kind::Problem) });
        }
        // Stable: items of one line keep their order.
        self.items.sort_by_key(|item| item.line);
    }

    /// The ids of a line's items.
    fn ids(&mut self, node: &Node, blocks: usize) -> Ids {
        self.split |= blocks > 1;
        let uuid = node.uuid().cloned();
        let derive = self.split && !(blocks <= 1 && uuid.as_ref().is_some_and(Uuid::is_child));
        Ids { uuid, derive }
    }
}

struct Ids {
    uuid: Option<Uuid>,
    derive: bool,
}

impl Ids {
    fn item(&self, node: &Node, kind: Kind, index: usize) -> ScreenItem {
        let uuid = if self.derive { self.uuid.as_ref().map(|uuid| uuid.child(index)) } else { self.uuid.clone() };
        let derived_from = self.uuid.clone().filter(|_| self.derive);
        ScreenItem { uuid, derived_from, ..plain(node, kind) }
    }
}

fn blank(kind: Kind) -> ScreenItem {
    ScreenItem {
        uuid: None,
        kind,
        timestamp: None,
        text: None,
        contexts: Vec::new(),
        tool: None,
        derived_from: None,
        model: None,
        source: None,
        is_error: false,
        is_silent: false,
        line: u64::MAX,
    }
}

/// An item with the line's own id and nothing to say yet.
fn plain(node: &Node, kind: Kind) -> ScreenItem {
    let timestamp = node.timestamp().map(str::to_owned);
    ScreenItem { uuid: node.uuid().cloned(), timestamp, line: node.line, ..blank(kind) }
}

/// Pictures, documents and blocks nobody knows.
fn media(block: &Block, item: ScreenItem) -> Option<ScreenItem> {
    let size = |source: &Source| {
        let kind = source.media_type.text().unwrap_or(&source.kind);
        match source.data.get() {
            Some(data) => format!("{kind}, {} bytes of {}", data.len(), source.kind),
            None => source.url.text().unwrap_or(kind).to_owned(),
        }
    };
    let (kind, text) = match block {
        Block::Image(image) => (Kind::Image, size(&image.source)),
        Block::Document(document) => {
            let title = document.title.text().map(|title| format!("{title}: ")).unwrap_or_default();
            (Kind::Attachment, format!("{title}{}", size(&document.source)))
        }
        Block::Unknown(unknown) => (Kind::Unknown, unknown.json().text().to_owned()),
        Block::Text(_) | Block::ToolResult(_) | Block::ToolUse(_) => return None,
        _ if item.kind == Kind::Assistant => return None,
        other => (Kind::Attachment, other.tag().to_owned()),
    };
    let source = match block {
        Block::Image(image) => Some(image.source.clone()),
        Block::Document(document) => Some(document.source.clone()),
        _ => None,
    };
    Some(ScreenItem { kind, text: Some(text), source, ..item })
}

/// The answer of a server tool, which stands in the same message as its call.
fn server_answer(line: &Assistant, call: &ToolUseId) -> Option<Json> {
    line.message.content.blocks().iter().find_map(|block| match block {
        Block::WebSearchResult(result) if &result.tool_use_id == call => result.content.get().cloned(),
        Block::WebFetchResult(result) if &result.tool_use_id == call => result.content.get().cloned(),
        Block::CodeResult(result) if &result.tool_use_id == call => result.content.get().cloned(),
        Block::ToolSearchResult(result) if &result.tool_use_id == call => result.content.get().cloned(),
        _ => None,
    })
}

/// The hooks of calls, to stand with them: before and after the result.
struct Hooks<'a> {
    of_call: HashMap<&'a ToolUseId, (Vec<&'a Node>, Vec<&'a Node>)>,
    shown: HashSet<u64>,
}

impl<'a> Hooks<'a> {
    fn new(path: &[&'a Node], calls: &HashSet<&'a ToolUseId>) -> Self {
        let mut hooks = Self { of_call: HashMap::new(), shown: HashSet::new() };
        for node in path {
            let Some((call, event)) = hook_of(node).filter(|(call, _)| calls.contains(call)) else { continue };
            let (before, after) = hooks.of_call.entry(call).or_default();
            if event.starts_with("Pre") {
                before.push(*node)
            } else {
                after.push(*node)
            }
            hooks.shown.insert(node.line);
        }
        hooks
    }

    fn of(&self, call: &ToolUseId) -> Vec<ScreenItem> {
        let Some((before, after)) = self.of_call.get(call) else { return Vec::new() };
        before.iter().chain(after).filter_map(|node| hook(node)).collect()
    }

    fn is_shown_with_call(&self, node: &Node) -> bool {
        self.shown.contains(&node.line)
    }
}

/// The call and event of a hook's line.
fn hook_of(node: &Node) -> Option<(&ToolUseId, &str)> {
    match &node.entry {
        Entry::Attachment(line) => line.attachment.hook(),
        Entry::Progress(line) => match &line.data {
            ProgressData::Tagged(ProgressKind::Hook(hook)) => {
                Some((line.tool_use_id.get()?, hook.hook_event.text().unwrap_or_default()))
            }
            _ => None,
        },
        _ => None,
    }
}

/// A hook's line as an item; none for other progress, which its tool card replaces.
fn hook(node: &Node) -> Option<ScreenItem> {
    match &node.entry {
        Entry::Progress(line) => match &line.data {
            ProgressData::Tagged(ProgressKind::Hook(hook)) => {
                let name = hook.hook_name.text().unwrap_or_default();
                let text = match hook.command.text() {
                    Some(command) => format!("{name}: {command}"),
                    None => name.to_owned(),
                };
                // It says that the hook runs; its output, if any, has an entry of its own.
                Some(ScreenItem { text: Some(text), is_silent: true, ..plain(node, Kind::Hook) })
            }
            ProgressData::Tagged(ProgressKind::Unknown(unknown)) => {
                Some(ScreenItem { text: Some(unknown.json().text().to_owned()), ..plain(node, Kind::Unknown) })
            }
            _ => None,
        },
        Entry::Attachment(line) => notice::hook(node, &line.attachment),
        _ => None,
    }
}

//! The reducer: entries of a file and events of a stream build the same conversation.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;
use std::sync::OnceLock;

use quipu_message::api::StreamEvent;
use quipu_message::progress::{AgentProgress, ProgressData, ProgressKind};
use quipu_message::stream::TurnResult;
use quipu_message::system::System;
use quipu_message::tool::{AgentOutput, ToolInput};
use quipu_message::user_assistant::{Assistant, User};
use quipu_message::{AgentId, Block, Entry, Maybe, Message, SessionId, ToolUse, ToolUseId, Uuid};

use crate::accumulate::Accumulator;
use crate::problem::Problem;
use crate::tree::Tree;

/// One entry of a conversation, with its position in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Line number in the file, counted from 1; 0 if the entry did not come from a file.
    pub line: u64,
    /// The entry itself.
    pub entry: Entry,
}

impl Node {
    /// UUID of the entry; `None` if it has none.
    pub fn uuid(&self) -> Option<&Uuid> {
        self.entry.envelope()?.uuid.get()
    }

    /// Timestamp of the entry, as written.
    pub fn timestamp(&self) -> Option<&str> {
        self.entry.envelope()?.timestamp.text()
    }

    /// Id of the API message that an `assistant` entry holds a block of.
    pub fn message_id(&self) -> Option<&str> {
        self.assistant()?.message.id.text()
    }

    /// The blocks of a `user` or `assistant` entry; empty for other entries and if the
    /// content is not a list.
    pub fn blocks(&self) -> &[Block] {
        match &self.entry {
            Entry::User(line) => line.message.content.blocks(),
            Entry::Assistant(line) => line.message.content.blocks(),
            _ => &[],
        }
    }

    /// The tool calls of the entry that the agent runs (not those the server runs).
    pub(crate) fn tool_uses(&self) -> impl Iterator<Item = &ToolUse> {
        self.blocks().iter().filter_map(Block::tool_use)
    }

    /// The `user` entry; `None` if it is another type.
    pub fn user(&self) -> Option<&User> {
        match &self.entry {
            Entry::User(line) => Some(line),
            _ => None,
        }
    }

    /// The `assistant` entry; `None` if it is another type.
    pub fn assistant(&self) -> Option<&Assistant> {
        match &self.entry {
            Entry::Assistant(line) => Some(line),
            _ => None,
        }
    }
}

/// Entries beside the active path: the user rewound to an earlier entry, or a response broke
/// off and was requested again.
#[derive(Debug, Clone)]
pub struct Branch<'a> {
    /// Entries of the branch in the order of the file; at least one.
    pub nodes: Vec<&'a Node>,
}

impl Branch<'_> {
    /// Whether the branch is a response that broke off rather than a rewind: it holds only
    /// blocks of one API message that has no stop reason.
    pub fn is_incomplete_response(&self) -> bool {
        let id = self.nodes.first().and_then(|node| node.message_id());
        let is_part = |node: &&Node| {
            let is_incomplete = node.assistant().is_some_and(|line| line.message.stop_reason == Maybe::Null);
            is_incomplete && node.message_id() == id
        };
        id.is_some() && self.nodes.iter().all(is_part)
    }
}

/// The entries of one session and how they belong together.
///
/// Push lines in their order, then ask for a view. Views share the active path, which is
/// built on first use after a change, in linear time.
///
/// ```
/// use quipu_conversation::Conversation;
/// let mut conversation = Conversation::default();
/// conversation.push_line(1, r#"{"type":"user","uuid":"a","parentUuid":null,"message":{"role":"user","content":"hi"}}"#);
/// conversation.push_line(2, r#"{"type":"assistant","uuid":"b","parentUuid":"a","message":{"role":"assistant","content":[{"type":"text","text":"hello"}]}}"#);
/// let texts: Vec<_> = conversation.for_ui().into_iter().filter_map(|item| item.text).collect();
/// assert_eq!(texts, ["hi", "hello"]);
/// assert_eq!(conversation.for_api().len(), 2);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    /// Entries of the main conversation; changed only through `add_node`.
    pub(crate) nodes: Vec<Node>,
    paths: OnceLock<Paths>,
    by_uuid: HashMap<Uuid, usize>,
    pub(crate) tombstoned: HashSet<Uuid>,
    sidechains: BTreeMap<SidechainKey, Conversation>,
    /// Sidechain of each entry, by UUID.
    sidechain_by_line: HashMap<Uuid, SidechainKey>,
    agent_by_call: HashMap<ToolUseId, AgentId>,
    partial_message: Option<Accumulator>,
    turn_results: Vec<TurnResult>,
    problems: Vec<Problem>,
    session_id: Option<SessionId>,
    custom_title: Option<String>,
    ai_title: Option<String>,
    /// 0 for a session, 1 for a subagent, 2 for a subagent of a subagent.
    depth: usize,
}

/// Positions of the active path and of the branches in `nodes`.
#[derive(Debug, Clone, Default)]
struct Paths {
    path: Vec<usize>,
    branches: Vec<Vec<usize>>,
}

/// Whether an entry repeats an earlier one with the same UUID, perhaps with more content.
fn is_same_entry(earlier: &Node, later: &Node) -> bool {
    match (&earlier.entry, &later.entry) {
        (Entry::User(a), Entry::User(b)) => {
            b.is_replay.is_true() || a.is_replay.is_true() || has_same_content(&a.message, &b.message)
        }
        (Entry::Assistant(a), Entry::Assistant(b)) => {
            // The same block of the message, perhaps longer; not another block of it.
            let tags = |line: &Assistant| line.message.content.blocks().first().map(|block| block.tag().to_owned());
            let same_id = a.message.id.is_value() && a.message.id == b.message.id;
            same_id && tags(a) == tags(b) || has_same_content(&a.message, &b.message)
        }
        (Entry::System(a), Entry::System(b)) => {
            let without_envelope = |system: &System| {
                let mut system = system.clone();
                system.envelope_mut().map(mem::take);
                system
            };
            without_envelope(a) == without_envelope(b)
        }
        (Entry::Attachment(a), Entry::Attachment(b)) => a.attachment == b.attachment,
        (Entry::Progress(a), Entry::Progress(b)) => a.data == b.data,
        (a, b) => a == b,
    }
}

/// Whether two messages have the same content; a string and one text block are the same.
fn has_same_content(a: &Message, b: &Message) -> bool {
    a.content == b.content || a.content.clone().into_blocks() == b.content.clone().into_blocks()
}

/// Nesting limit for subagents of subagents.
pub(crate) const MAX_SUBAGENT_DEPTH: usize = 8;

/// Identifies a sidechain, the conversation of a subagent: by the tool call that started it,
/// by the id of the agent, or, in old files, by its first entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SidechainKey {
    ToolCall(ToolUseId),
    Agent(AgentId),
    Root(Uuid),
}

impl Conversation {
    /// Adds one line. A line that is not an entry becomes a [problem](Self::problems).
    pub fn push_line(&mut self, line: u64, text: &str) {
        match Entry::read(text) {
            Ok(entry) => self.push(line, entry),
            Err(error) => self.push_problem(Problem::from_read_error(line, &error)),
        }
    }

    /// Adds a problem, to be shown at its line.
    pub fn push_problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Adds one entry or stream event. `line` is its line number, or 0.
    pub fn push(&mut self, line: u64, entry: Entry) {
        if self.session_id.is_none()
            && let Some(id) = entry.envelope().and_then(|e| e.session_id.get())
        {
            self.session_id = Some(id.clone());
        }
        match Self::sidechain_of(&entry, &self.sidechain_by_line) {
            Some(key) => self.push_to_sidechain(key, line, entry),
            None => self.push_own(line, entry),
        }
    }

    /// Adds an entry that belongs to this conversation and not to a sidechain.
    fn push_own(&mut self, line: u64, entry: Entry) {
        match entry {
            Entry::StreamEvent(event) => self.push_stream_event(&event.event),
            Entry::Tombstone(tombstone) => {
                self.paths.take();
                self.tombstoned.extend(tombstone.message.uuid.into_option());
            }
            Entry::Result(result) => self.turn_results.push(*result),
            Entry::Summary(title) if !title.is_compact_summary.is_true() => self.ai_title = Some(title.summary),
            Entry::CustomTitle(title) => self.custom_title = Some(title.title),
            Entry::AiTitle(title) => self.ai_title = Some(title.title),
            Entry::System(system) => {
                let system = system.flatten_data().map_or(system, Box::new);
                self.add_node(Node { line, entry: Entry::System(system) });
            }
            Entry::User(_)
            | Entry::Assistant(_)
            | Entry::Attachment(_)
            | Entry::Progress(_)
            | Entry::Summary(_)
            | Entry::ToolUseSummary(_)
            | Entry::Error(_)
            | Entry::ConversationReset(_)
            | Entry::Unknown(_) => self.add_node(Node { line, entry }),
            _ => {}
        }
    }

    /// Adds the conversation of a subagent that has its own file. It is shown below `call`,
    /// the tool call that started it, if that is known.
    pub fn attach_subagent(&mut self, agent: &AgentId, call: Option<&ToolUseId>, conversation: Conversation) {
        if let Some(call) = call {
            self.agent_by_call.insert(call.clone(), agent.clone());
        }
        self.sidechains.insert(SidechainKey::Agent(agent.clone()), conversation);
    }

    /// Lines and files that could not be read.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The `result` messages of the stream, one for each turn.
    pub fn turn_results(&self) -> &[TurnResult] {
        &self.turn_results
    }

    /// Session id of the first entry that has one.
    pub fn session_id(&self) -> Option<&SessionId> {
        self.session_id.as_ref()
    }

    /// Title given by the user, or else the generated one.
    pub fn title(&self) -> Option<&str> {
        self.custom_title.as_deref().or(self.ai_title.as_deref())
    }

    /// The nodes of the active path, in order: from the first entry to the leaf that a resume
    /// continues from. If the file holds only the entries of one subagent, the path of that
    /// subagent.
    pub fn path(&self) -> Vec<&Node> {
        let shown = self.shown();
        shown.paths().path.iter().map(|&i| &shown.nodes[i]).collect()
    }

    /// The nodes of the path that ends at the entry with this UUID; `None` if there is no
    /// such entry.
    pub fn path_to(&self, uuid: &Uuid) -> Option<Vec<&Node>> {
        let nodes = self.effective_nodes();
        let leaf = nodes.iter().position(|node| node.uuid() == Some(uuid))?;
        let path = Tree::new(&nodes).path(&nodes, leaf);
        Some(path.into_iter().map(|i| nodes[i]).collect())
    }

    /// The branches beside the active path, in the order of the file. Every entry is either
    /// in [`path`](Self::path) or in one of them.
    pub fn branches(&self) -> Vec<Branch<'_>> {
        let shown = self.shown();
        let nodes = |branch: &Vec<usize>| branch.iter().map(|&i| &shown.nodes[i]).collect();
        shown.paths().branches.iter().map(|branch| Branch { nodes: nodes(branch) }).collect()
    }

    /// The conversation whose nodes are shown: this one, or that of the first subagent if
    /// this one has no nodes.
    fn shown(&self) -> &Self {
        match self.sidechains.values().next() {
            Some(sidechain) if self.nodes.is_empty() => sidechain.shown(),
            _ => self,
        }
    }

    /// The active path and the branches, built once after each change.
    fn paths(&self) -> &Paths {
        self.paths.get_or_init(|| {
            let positions: Vec<usize> = (0..self.nodes.len()).filter(|&i| self.is_effective(&self.nodes[i])).collect();
            let nodes: Vec<&Node> = positions.iter().map(|&i| &self.nodes[i]).collect();
            let tree = Tree::new(&nodes);
            let Some(leaf) = tree.leaf() else { return Paths::default() };
            let path = tree.path(&nodes, leaf);
            let branches = tree.branches(&nodes, &path);
            let in_all_nodes = |list: Vec<usize>| list.into_iter().map(|i| positions[i]).collect();
            Paths { path: in_all_nodes(path), branches: branches.into_iter().map(in_all_nodes).collect() }
        })
    }

    fn is_effective(&self, node: &Node) -> bool {
        node.uuid().is_none_or(|uuid| !self.tombstoned.contains(uuid))
    }

    /// The message that is being streamed; `None` if no message is incomplete.
    pub fn partial_message(&self) -> Option<Message> {
        self.partial_message.as_ref()?.partial_message()
    }

    /// Conversation of the subagent that a tool call started.
    pub(crate) fn subagent_conversation(&self, call: &ToolUseId) -> Option<&Conversation> {
        // The agent's own file holds more than the messages forwarded under the tool call.
        let own_file =
            self.agent_by_call.get(call).and_then(|agent| self.sidechains.get(&SidechainKey::Agent(agent.clone())));
        own_file.or_else(|| self.sidechains.get(&SidechainKey::ToolCall(call.clone())))
    }

    /// Conversations of the subagents, in no particular order.
    pub(crate) fn sidechains(&self) -> impl Iterator<Item = &Conversation> {
        self.sidechains.values()
    }

    /// Id of the subagent that a tool call started.
    pub(crate) fn agent_for_call(&self, call: &ToolUseId) -> Option<&AgentId> {
        self.agent_by_call.get(call)
    }

    /// Sidechains of old files by their first prompt; the first of those with the same prompt.
    /// Old files do not record which tool call started a sidechain.
    pub(crate) fn sidechains_by_prompt(&self) -> HashMap<String, &Conversation> {
        let mut by_prompt = HashMap::new();
        for (key, sidechain) in &self.sidechains {
            if let (SidechainKey::Root(_), Some(user)) = (key, sidechain.nodes.first().and_then(Node::user)) {
                by_prompt.entry(user.message.content.to_text()).or_insert(sidechain);
            }
        }
        by_prompt
    }

    /// All nodes that were not withdrawn by a tombstone, in the order of the file.
    pub(crate) fn effective_nodes(&self) -> Vec<&Node> {
        let shown = self.shown();
        shown.nodes.iter().filter(|node| shown.is_effective(node)).collect()
    }

    /// Adds a node to this conversation without looking for a sidechain.
    pub(crate) fn add_node(&mut self, node: Node) {
        self.paths.take();
        self.record_subagents(&node);
        match node.uuid().and_then(|uuid| self.by_uuid.get(uuid)) {
            // A replayed entry replaces the first one. Another entry with the same UUID is
            // kept beside it.
            Some(&i) if is_same_entry(&self.nodes[i], &node) => self.nodes[i] = node,
            _ => {
                if let Some(uuid) = node.uuid() {
                    self.by_uuid.insert(uuid.clone(), self.nodes.len());
                }
                self.nodes.push(node);
            }
        }
    }

    fn push_to_sidechain(&mut self, key: SidechainKey, line: u64, entry: Entry) {
        // Stream events are many and are never the parent of an entry.
        if let Some(uuid) = entry.envelope().and_then(|e| e.uuid.get())
            && !matches!(entry, Entry::StreamEvent(_) | Entry::Tombstone(_))
        {
            self.sidechain_by_line.insert(uuid.clone(), key.clone());
        }
        let sidechain = self.sidechains.entry(key).or_default();
        sidechain.depth = self.depth + 1;
        sidechain.push_own(line, entry);
    }

    /// The sidechain an entry belongs to; `None` for the main conversation. `known` holds the
    /// sidechains of earlier entries by UUID.
    pub(crate) fn sidechain_of(entry: &Entry, known: &HashMap<Uuid, SidechainKey>) -> Option<SidechainKey> {
        let envelope = entry.envelope()?;
        if let Entry::Tombstone(tombstone) = entry
            && let Some(side) = tombstone.message.uuid.get().and_then(|uuid| known.get(uuid))
        {
            return Some(side.clone());
        }
        if let Some(call) = envelope.parent_tool_use_id.get() {
            return Some(SidechainKey::ToolCall(call.clone()));
        }
        if !envelope.is_sidechain.is_true() {
            return None;
        }
        if let Some(agent) = envelope.agent_id.get() {
            return Some(SidechainKey::Agent(agent.clone()));
        }
        let of_parent = envelope.parent_uuid.get().and_then(|parent| known.get(parent).cloned());
        of_parent.or_else(|| envelope.uuid.get().cloned().map(SidechainKey::Root))
    }

    /// Records which subagent belongs to which tool call, and the messages of subagents that
    /// `progress` entries repeat.
    fn record_subagents(&mut self, node: &Node) {
        match &node.entry {
            Entry::User(user) => {
                let mut results = user.message.content.blocks().iter().filter_map(Block::tool_result);
                if let (Some(result), Some(output)) = (results.next(), user.tool_use_result.get())
                    && let Ok(AgentOutput { agent_id, .. }) = output.read::<AgentOutput>()
                    && let Some(agent) = agent_id.into_option()
                {
                    self.agent_by_call.insert(result.tool_use_id.clone(), agent);
                }
            }
            Entry::System(system) => {
                if let System::TaskStarted(task) = system.as_ref()
                    && let (Some(agent), Some(call)) = (task.task_id.get(), task.tool_use_id.get())
                {
                    self.agent_by_call.insert(call.clone(), agent.clone());
                }
            }
            Entry::Progress(progress) => {
                if let ProgressData::Tagged(ProgressKind::Agent(data)) = &progress.data
                    && let Some(call) = progress.parent_tool_use_id.get()
                {
                    self.record_subagent_progress(node.line, call.clone(), data);
                }
            }
            _ => {}
        }
    }

    fn record_subagent_progress(&mut self, line: u64, call: ToolUseId, data: &AgentProgress) {
        if let Some(agent) = data.agent_id.get() {
            self.agent_by_call.insert(call.clone(), agent.clone());
        }
        if self.depth < MAX_SUBAGENT_DEPTH
            && let Some(message) = data.message.get()
            && let Ok(entry) = Entry::read(message.text())
        {
            self.push_to_sidechain(SidechainKey::ToolCall(call), line, entry);
        }
    }

    fn push_stream_event(&mut self, event: &StreamEvent) {
        let partial = self.partial_message.get_or_insert_default();
        if partial.push(event).is_err() {
            self.partial_message = None;
            return;
        }
        if matches!(event, StreamEvent::MessageStop(_)) {
            self.partial_message = None;
        }
    }

    /// The prompt of a tool call that starts a subagent; `None` for other tool calls.
    pub(crate) fn subagent_prompt(call: &ToolUse) -> Option<String> {
        match ToolInput::from_tool_use(call) {
            ToolInput::Agent(input) => Some(input.prompt),
            _ => None,
        }
    }
}

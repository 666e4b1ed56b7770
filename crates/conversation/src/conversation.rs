//! The one reducer: entries of a file and events of the stream fold into the
//! same conversation.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;

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

/// One entry that is part of the conversation, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The line it came in, counted from 1; 0 when it came in no line.
    pub line: u64,
    /// The entry.
    pub entry: Entry,
}

impl Node {
    /// The entry's id.
    pub fn uuid(&self) -> Option<&Uuid> {
        self.entry.envelope()?.uuid.get()
    }

    /// When it was written.
    pub fn timestamp(&self) -> Option<&str> {
        self.entry.envelope()?.timestamp.text()
    }

    /// The API message it is a part of.
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

    /// The calls of the agent's own tools that the line makes.
    pub(crate) fn tool_uses(&self) -> impl Iterator<Item = &ToolUse> {
        self.blocks().iter().filter_map(Block::tool_use)
    }

    /// The `user` line, when it is one.
    pub fn user(&self) -> Option<&User> {
        match &self.entry {
            Entry::User(line) => Some(line),
            _ => None,
        }
    }

    /// The `assistant` line, when it is one.
    pub fn assistant(&self) -> Option<&Assistant> {
        match &self.entry {
            Entry::Assistant(line) => Some(line),
            _ => None,
        }
    }
}

/// A branch that was left: the user went back to an earlier point, or an answer broke and
/// was asked for again.
#[derive(Debug, Clone)]
pub struct Branch<'a> {
    /// Its entries, in the order of the file; at least one.
    pub nodes: Vec<&'a Node>,
}

impl Branch<'_> {
    /// Whether it is an answer that broke: blocks of one API message that never ended, and
    /// nothing after them. No user rewound it.
    pub fn is_incomplete_response(&self) -> bool {
        let id = self.nodes.first().and_then(|node| node.message_id());
        let is_part = |node: &&Node| {
            let unended = node.assistant().is_some_and(|line| line.message.stop_reason == Maybe::Null);
            unended && node.message_id() == id
        };
        id.is_some() && self.nodes.iter().all(is_part)
    }
}

/// A conversation: push lines in the order they come, then look at it.
///
/// ```
/// use quipu_conversation::Conversation;
/// let mut talk = Conversation::default();
/// talk.push_line(1, r#"{"type":"user","uuid":"a","parentUuid":null,"message":{"role":"user","content":"hi"}}"#);
/// talk.push_line(2, r#"{"type":"assistant","uuid":"b","parentUuid":"a","message":{"role":"assistant","content":[{"type":"text","text":"hello"}]}}"#);
/// let texts: Vec<_> = talk.for_ui().into_iter().filter_map(|item| item.text).collect();
/// assert_eq!(texts, ["hi", "hello"]);
/// assert_eq!(talk.for_api().len(), 2);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    pub(crate) nodes: Vec<Node>,
    by_uuid: HashMap<Uuid, usize>,
    pub(crate) tombstoned: HashSet<Uuid>,
    sidechains: BTreeMap<SidechainKey, Conversation>,
    /// Which side each line of the sides is in.
    sidechain_by_line: HashMap<Uuid, SidechainKey>,
    agent_by_call: HashMap<ToolUseId, AgentId>,
    partial_message: Option<Accumulator>,
    turn_results: Vec<TurnResult>,
    problems: Vec<Problem>,
    session_id: Option<SessionId>,
    custom_title: Option<String>,
    ai_title: Option<String>,
    /// How deep it lies: 0, or 1 for a side, 2 for a side of a side.
    depth: usize,
}

/// Whether a line with the id of an earlier one says the same again.
fn is_same_entry(earlier: &Node, later: &Node) -> bool {
    match (&earlier.entry, &later.entry) {
        (Entry::User(a), Entry::User(b)) => {
            b.is_replay.is_true() || a.is_replay.is_true() || has_same_content(&a.message, &b.message)
        }
        (Entry::Assistant(a), Entry::Assistant(b)) => {
            // The same message again, perhaps with more in it; not another block of it.
            let tags = |line: &Assistant| line.message.content.blocks().first().map(|block| block.tag().to_owned());
            let same_id = a.message.id.is_value() && a.message.id == b.message.id;
            same_id && tags(a) == tags(b) || has_same_content(&a.message, &b.message)
        }
        (Entry::System(a), Entry::System(b)) => {
            let bare = |system: &System| {
                let mut system = system.clone();
                system.envelope_mut().map(mem::take);
                system
            };
            bare(a) == bare(b)
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

/// How deep subagents of subagents are followed.
pub(crate) const MAX_SUBAGENT_DEPTH: usize = 8;

/// Whose side conversation: told by the call it works for, by the agent that
/// speaks, or, in old files, by the line it begins with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SidechainKey {
    ToolCall(ToolUseId),
    Agent(AgentId),
    Root(Uuid),
}

impl Conversation {
    /// Takes one line of text; one that cannot be read is kept as a fault.
    pub fn push_line(&mut self, line: u64, text: &str) {
        match Entry::read(text) {
            Ok(entry) => self.push(line, entry),
            Err(error) => self.push_problem(Problem::from_read_error(line, &error)),
        }
    }

    /// Keeps a line that could not be read.
    pub fn push_problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Takes one entry or event.
    pub fn push(&mut self, line: u64, entry: Entry) {
        if self.session_id.is_none()
            && let Some(id) = entry.envelope().and_then(|e| e.session_id.get())
        {
            self.session_id = Some(id.clone());
        }
        match Self::sidechain_of(&entry, &self.sidechain_by_line) {
            Some(side) => self.push_to_sidechain(side, line, entry),
            None => self.push_own(line, entry),
        }
    }

    /// Takes what belongs to this conversation itself.
    fn push_own(&mut self, line: u64, entry: Entry) {
        match entry {
            Entry::StreamEvent(event) => self.push_stream_event(&event.event),
            Entry::Tombstone(tombstone) => self.tombstoned.extend(tombstone.message.uuid.into_option()),
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

    /// Attaches a subagent's own conversation to the call it worked for, or to
    /// the agent when the call is not known.
    pub fn attach_subagent(&mut self, agent: &AgentId, call: Option<&ToolUseId>, conversation: Conversation) {
        if let Some(call) = call {
            self.agent_by_call.insert(call.clone(), agent.clone());
        }
        self.sidechains.insert(SidechainKey::Agent(agent.clone()), conversation);
    }

    /// The lines that could not be read.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The ends of turns seen on the stream.
    pub fn turn_results(&self) -> &[TurnResult] {
        &self.turn_results
    }

    /// The session of the first line that names one.
    pub fn session_id(&self) -> Option<&SessionId> {
        self.session_id.as_ref()
    }

    /// The title: the person's own, or else the one made up.
    pub fn title(&self) -> Option<&str> {
        self.custom_title.as_deref().or(self.ai_title.as_deref())
    }

    /// The nodes of the conversation as it stands, in order. Of a file that holds
    /// nothing but one subagent's lines, that subagent's conversation.
    pub fn path(&self) -> Vec<&Node> {
        let nodes = self.effective_nodes();
        let tree = Tree::new(&nodes);
        let Some(leaf) = tree.leaf() else { return Vec::new() };
        tree.path(&nodes, leaf).into_iter().map(|i| nodes[i]).collect()
    }

    /// The nodes of the conversation that ends in a given line; `None` if the line is
    /// not there.
    pub fn path_to(&self, uuid: &Uuid) -> Option<Vec<&Node>> {
        let nodes = self.effective_nodes();
        let leaf = nodes.iter().position(|node| node.uuid() == Some(uuid))?;
        let path = Tree::new(&nodes).path(&nodes, leaf);
        Some(path.into_iter().map(|i| nodes[i]).collect())
    }

    /// The branches that were left by a rewind, in the order of the file. Every entry is
    /// either in [`path`](Self::path) or in one of them.
    pub fn branches(&self) -> Vec<Branch<'_>> {
        self.path_and_branches().1
    }

    /// Both the path and the branches beside it, for less than asking twice.
    pub(crate) fn path_and_branches(&self) -> (Vec<&Node>, Vec<Branch<'_>>) {
        let nodes = self.effective_nodes();
        let tree = Tree::new(&nodes);
        let Some(leaf) = tree.leaf() else { return Default::default() };
        let path = tree.path(&nodes, leaf);
        let all = |places: Vec<usize>| places.into_iter().map(|i| nodes[i]).collect();
        let branches = tree.branches(&nodes, &path).into_iter().map(|places| Branch { nodes: all(places) }).collect();
        (all(path), branches)
    }

    /// The message that is being written on the stream and has not come whole.
    pub fn partial_message(&self) -> Option<Message> {
        self.partial_message.as_ref()?.partial_message()
    }

    /// The side conversation of a tool call.
    pub(crate) fn subagent_conversation(&self, call: &ToolUseId) -> Option<&Conversation> {
        // The agent's own file says more than what its call let through.
        let own =
            self.agent_by_call.get(call).and_then(|agent| self.sidechains.get(&SidechainKey::Agent(agent.clone())));
        own.or_else(|| self.sidechains.get(&SidechainKey::ToolCall(call.clone())))
    }

    /// The agent that worked for a call.
    pub(crate) fn agent_for_call(&self, call: &ToolUseId) -> Option<&AgentId> {
        self.agent_by_call.get(call)
    }

    /// The old side conversations by the words they began with; of several that
    /// began with the same words, the first.
    pub(crate) fn sidechains_by_prompt(&self) -> HashMap<String, &Conversation> {
        let mut asked = HashMap::new();
        for (side, talk) in &self.sidechains {
            if let (SidechainKey::Root(_), Some(user)) = (side, talk.nodes.first().and_then(Node::user)) {
                asked.entry(user.message.content.to_text()).or_insert(talk);
            }
        }
        asked
    }

    pub(crate) fn effective_nodes(&self) -> Vec<&Node> {
        if self.nodes.is_empty()
            && let Some(side) = self.sidechains.values().next()
        {
            return side.effective_nodes();
        }
        self.nodes.iter().filter(|node| node.uuid().is_none_or(|uuid| !self.tombstoned.contains(uuid))).collect()
    }

    /// Takes a node as part of the main conversation, whatever its entry says.
    pub(crate) fn add_node(&mut self, node: Node) {
        self.record_subagents(&node);
        match node.uuid().and_then(|uuid| self.by_uuid.get(uuid)) {
            // A replayed line takes the place of the first, with all it says. Another
            // message under the same id is another line.
            Some(&at) if is_same_entry(&self.nodes[at], &node) => self.nodes[at] = node,
            _ => {
                if let Some(uuid) = node.uuid() {
                    self.by_uuid.insert(uuid.clone(), self.nodes.len());
                }
                self.nodes.push(node);
            }
        }
    }

    fn push_to_sidechain(&mut self, side: SidechainKey, line: u64, entry: Entry) {
        // Only lines can be named as a parent later; events of the stream are many.
        if let Some(uuid) = entry.envelope().and_then(|e| e.uuid.get())
            && !matches!(entry, Entry::StreamEvent(_) | Entry::Tombstone(_))
        {
            self.sidechain_by_line.insert(uuid.clone(), side.clone());
        }
        let talk = self.sidechains.entry(side).or_default();
        talk.depth = self.depth + 1;
        talk.push_own(line, entry);
    }

    /// Which side conversation an entry belongs to; `None` for the main one. `known` are the
    /// sides of earlier lines.
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

    /// Learns which subagent works for which call, and what it says, from lines
    /// of the main conversation.
    fn record_subagents(&mut self, node: &Node) {
        match &node.entry {
            Entry::User(user) => {
                let mut calls = user.message.content.blocks().iter().filter_map(Block::tool_result);
                if let (Some(result), Some(output)) = (calls.next(), user.tool_use_result.get())
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
        let writing = self.partial_message.get_or_insert_default();
        if writing.push(event).is_err() {
            self.partial_message = None;
            return;
        }
        if matches!(event, StreamEvent::MessageStop(_)) {
            self.partial_message = None;
        }
    }

    /// The prompt of a call that sets a subagent to work.
    pub(crate) fn subagent_prompt(call: &ToolUse) -> Option<String> {
        match ToolInput::from_tool_use(call) {
            ToolInput::Agent(input) => Some(input.prompt),
            _ => None,
        }
    }
}

//! The reducer: entries of a file and events of a stream build the same conversation.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;
use std::sync::OnceLock;

use quipu_message::api::StreamEvent;
use quipu_message::progress::{AgentProgress, ProgressData, ProgressKind};
use quipu_message::stream::TurnResult;
use quipu_message::system::System;
use quipu_message::tool::{AgentOutput, ToolInput};
use quipu_message::user_assistant::Assistant;
use quipu_message::{AgentId, Block, Entry, Message, SessionId, ToolUse, ToolUseId, Uuid};

use crate::accumulate::Accumulator;
use crate::id_key::IdKey;
use crate::node::{EntryNode, Node, Place};
use crate::problem::Problem;
use crate::sidechain::{Routing, SidechainKey};
use crate::tree::{NodeList, Tree};

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
        is_incomplete_response(self.nodes.iter().copied())
    }
}

/// Whether nodes hold only blocks of one API message without a stop reason.
pub(crate) fn is_incomplete_response<'a, N: EntryNode + 'a>(nodes: impl IntoIterator<Item = &'a N>) -> bool {
    let mut facts = nodes.into_iter().map(EntryNode::facts).peekable();
    let id = facts.peek().and_then(|first| first.message);
    id.is_some() && facts.all(|part| part.is_incomplete && part.message == id)
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
#[derive(Debug, Clone)]
pub struct Conversation<N = Node> {
    /// Entries of the main conversation; changed only through `add_unless_known`.
    pub(crate) nodes: Vec<N>,
    paths: OnceLock<Paths>,
    pub(crate) by_uuid: HashMap<IdKey, u32>,
    pub(crate) tombstoned: HashSet<IdKey>,
    pub(crate) sidechains: BTreeMap<SidechainKey, Conversation<N>>,
    /// Sidechain of each entry, by UUID.
    pub(crate) sidechain_by_line: HashMap<IdKey, SidechainKey>,
    pub(crate) agent_by_call: HashMap<ToolUseId, AgentId>,
    pub(crate) partial_message: Option<Accumulator>,
    turn_results: Vec<TurnResult>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) session_id: Option<SessionId>,
    pub(crate) custom_title: Option<String>,
    pub(crate) ai_title: Option<String>,
    /// 0 for a session, 1 for a subagent, 2 for a subagent of a subagent.
    pub(crate) depth: usize,
    /// Index of the file that the entries are in: 0 for that of the session.
    pub(crate) file: u32,
}

impl<N> Default for Conversation<N> {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            paths: OnceLock::new(),
            by_uuid: HashMap::new(),
            tombstoned: HashSet::new(),
            sidechains: BTreeMap::new(),
            sidechain_by_line: HashMap::new(),
            agent_by_call: HashMap::new(),
            partial_message: None,
            turn_results: Vec::new(),
            problems: Vec::new(),
            session_id: None,
            custom_title: None,
            ai_title: None,
            depth: 0,
            file: 0,
        }
    }
}

/// Positions of the active path and of the branches in `nodes`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Paths {
    pub(crate) path: Vec<u32>,
    pub(crate) branches: Vec<Vec<u32>>,
}

/// Whether an entry repeats an earlier one with the same UUID, perhaps with more content.
fn is_same_entry(earlier: &Node, later: &Node) -> bool {
    earlier.uuid() == later.uuid() && has_same_body(earlier, later)
}

fn has_same_body(earlier: &Node, later: &Node) -> bool {
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

impl Conversation {
    /// Adds one line. A line that is not an entry becomes a [problem](Self::problems).
    pub fn push_line(&mut self, line: u64, text: &str) {
        match Entry::read(text) {
            Ok(entry) => self.push(line, entry),
            Err(error) => self.push_problem(Problem::from_read_error(line, &error)),
        }
    }

    /// Adds one entry or stream event. `line` is its line number, or 0.
    pub fn push(&mut self, line: u64, entry: Entry) {
        self.push_entry(Place { line, ..Place::default() }, entry, &());
    }

    /// Adds a node to this conversation without looking for a sidechain.
    pub(crate) fn add_node(&mut self, node: Node) {
        self.add_entry(Place { line: node.line, ..Place::default() }, node.entry, &());
    }

    /// The nodes of the active path, in order: from the first entry to the leaf that a resume
    /// continues from. If the file holds only the entries of one subagent, the path of that
    /// subagent.
    pub fn path(&self) -> Vec<&Node> {
        let shown = self.shown();
        shown.paths(&()).path.iter().map(|&i| &shown.nodes[i as usize]).collect()
    }

    /// The nodes of the path that ends at the entry with this UUID; `None` if there is no
    /// such entry.
    pub fn path_to(&self, uuid: &Uuid) -> Option<Vec<&Node>> {
        let nodes = self.shown().effective_nodes(&());
        let leaf = nodes.positions().find(|&i| nodes.get(i).uuid() == Some(uuid))?;
        let path = Tree::new(&nodes).path(&nodes, leaf);
        Some(path.into_iter().map(|i| nodes.get(i)).collect())
    }

    /// The branches beside the active path, in the order of the file. Every entry is either
    /// in [`path`](Self::path) or in one of them.
    pub fn branches(&self) -> Vec<Branch<'_>> {
        let shown = self.shown();
        let nodes = |branch: &Vec<u32>| branch.iter().map(|&i| &shown.nodes[i as usize]).collect();
        shown.paths(&()).branches.iter().map(|branch| Branch { nodes: nodes(branch) }).collect()
    }

    /// The prompt of a tool call that starts a subagent; `None` for other tool calls.
    pub(crate) fn subagent_prompt(call: &ToolUse) -> Option<String> {
        match ToolInput::from_tool_use(call) {
            ToolInput::Agent(input) => Some(input.prompt),
            _ => None,
        }
    }
}

impl<N> Conversation<N> {
    /// Adds a problem, to be shown at its line.
    pub fn push_problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Adds the conversation of a subagent that has its own file. It is shown below `call`,
    /// the tool call that started it, if that is known.
    pub fn attach_subagent(&mut self, agent: &AgentId, call: Option<&ToolUseId>, conversation: Conversation<N>) {
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

    /// The message that is being streamed; `None` if no message is incomplete.
    pub fn partial_message(&self) -> Option<Message> {
        self.partial_message.as_ref()?.partial_message()
    }

    /// The conversation whose nodes are shown: this one, or that of the first subagent if
    /// this one has no nodes.
    pub(crate) fn shown(&self) -> &Self {
        match self.sidechains.values().next() {
            Some(sidechain) if self.nodes.is_empty() => sidechain.shown(),
            _ => self,
        }
    }

    /// Conversation of the subagent that a tool call started.
    pub(crate) fn subagent_conversation(&self, call: &ToolUseId) -> Option<&Self> {
        // The agent's own file holds more than the messages forwarded under the tool call.
        let own_file =
            self.agent_by_call.get(call).and_then(|agent| self.sidechains.get(&SidechainKey::Agent(agent.clone())));
        own_file.or_else(|| self.sidechains.get(&SidechainKey::ToolCall(call.clone())))
    }

    /// Conversations of the subagents, in no particular order.
    pub(crate) fn sidechains(&self) -> impl Iterator<Item = &Self> {
        self.sidechains.values()
    }

    /// Id of the subagent that a tool call started.
    pub(crate) fn agent_for_call(&self, call: &ToolUseId) -> Option<&AgentId> {
        self.agent_by_call.get(call)
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
}

impl<N: EntryNode> Conversation<N> {
    /// Adds one entry or stream event.
    pub(crate) fn push_entry(&mut self, place: Place, entry: Entry, reader: &N::Reader) {
        let routing = Routing::from_entry(&entry);
        if self.session_id.is_none() {
            self.session_id = entry.envelope().and_then(|e| e.session_id.get()).cloned();
        }
        match routing.and_then(|routing| routing.sidechain(&self.sidechain_by_line)) {
            Some(key) => self.push_to_sidechain(key, place, entry, reader),
            None => self.push_own(place, entry, reader),
        }
    }

    /// Adds an entry that belongs to this conversation and not to a sidechain.
    fn push_own(&mut self, place: Place, entry: Entry, reader: &N::Reader) {
        match entry {
            Entry::StreamEvent(event) => self.push_stream_event(&event.event),
            Entry::Tombstone(tombstone) => {
                self.paths.take();
                self.tombstoned.extend(tombstone.message.uuid.text().map(IdKey::new));
            }
            Entry::Result(result) => self.turn_results.push(*result),
            Entry::Summary(title) if !title.is_compact_summary.is_true() => self.ai_title = Some(title.summary),
            Entry::CustomTitle(title) => self.custom_title = Some(title.title),
            Entry::AiTitle(title) => self.ai_title = Some(title.title),
            Entry::User(_)
            | Entry::Assistant(_)
            | Entry::System(_)
            | Entry::Attachment(_)
            | Entry::Progress(_)
            | Entry::Summary(_)
            | Entry::ToolUseSummary(_)
            | Entry::Error(_)
            | Entry::ConversationReset(_)
            | Entry::Unknown(_) => self.add_entry(place, flatten_system(entry), reader),
            _ => {}
        }
    }

    /// Adds an entry to this conversation without looking for a sidechain.
    fn add_entry(&mut self, place: Place, entry: Entry, reader: &N::Reader) {
        self.record_subagents(place, &entry, reader);
        self.add_unless_known(N::from_entry(place, entry), reader);
    }

    /// Adds a node, or replaces the one that it repeats.
    pub(crate) fn add_unless_known(&mut self, node: N, reader: &N::Reader) {
        self.paths.take();
        let uuid = node.facts().uuid;
        let known = uuid.and_then(|uuid| self.by_uuid.get(&uuid)).map(|&i| i as usize);
        match known.filter(|&i| self.is_same_entry(&self.nodes[i], &node, reader)) {
            // A replayed entry replaces the first one. Another entry with the same UUID is
            // kept beside it.
            Some(i) => self.nodes[i] = node,
            None => {
                self.by_uuid.extend(uuid.map(|uuid| (uuid, self.nodes.len() as u32)));
                self.nodes.push(node);
            }
        }
    }

    fn is_same_entry(&self, earlier: &N, later: &N, reader: &N::Reader) -> bool {
        let both = earlier.load(reader, self.file).zip(later.load(reader, self.file));
        both.is_some_and(|(earlier, later)| is_same_entry(&earlier, &later))
    }

    fn push_to_sidechain(&mut self, key: SidechainKey, place: Place, entry: Entry, reader: &N::Reader) {
        // Stream events are many and are never the parent of an entry.
        let is_linked = !matches!(entry, Entry::StreamEvent(_) | Entry::Tombstone(_));
        let uuid = entry.envelope().and_then(|e| e.uuid.text()).filter(|_| is_linked).map(IdKey::new);
        self.sidechain_mut(key, uuid).push_own(place, entry, reader);
    }

    /// The sidechain that an entry with this UUID belongs to; created if there is none yet.
    pub(crate) fn sidechain_mut(&mut self, key: SidechainKey, uuid: Option<IdKey>) -> &mut Self {
        self.sidechain_by_line.extend(uuid.map(|uuid| (uuid, key.clone())));
        let (depth, file) = (self.depth + 1, self.file);
        let sidechain = self.sidechains.entry(key).or_default();
        (sidechain.depth, sidechain.file) = (depth, file);
        sidechain
    }

    /// Records which subagent belongs to which tool call, and the messages of subagents that
    /// `progress` entries repeat.
    fn record_subagents(&mut self, place: Place, entry: &Entry, reader: &N::Reader) {
        match entry {
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
                    self.record_subagent_progress(place, call.clone(), data, reader);
                }
            }
            _ => {}
        }
    }

    fn record_subagent_progress(&mut self, place: Place, call: ToolUseId, data: &AgentProgress, reader: &N::Reader) {
        if let Some(agent) = data.agent_id.get() {
            self.agent_by_call.insert(call.clone(), agent.clone());
        }
        if self.depth < MAX_SUBAGENT_DEPTH
            && let Some(message) = data.message.get()
            && let Ok(entry) = Entry::read(message.text())
        {
            let place = Place { nesting: place.nesting + 1, ..place };
            self.push_to_sidechain(SidechainKey::ToolCall(call), place, entry, reader);
        }
    }

    /// The active path and the branches, built once after each change.
    pub(crate) fn paths(&self, reader: &N::Reader) -> &Paths {
        self.paths.get_or_init(|| {
            let positions: Vec<u32> =
                (0..self.nodes.len() as u32).filter(|&i| self.is_effective(&self.nodes[i as usize])).collect();
            let nodes = positions.iter().map(|&i| &self.nodes[i as usize]).collect();
            let nodes = NodeList::new(nodes, reader, self.file);
            let tree = Tree::new(&nodes);
            let Some(leaf) = tree.leaf() else { return Paths::default() };
            let path = tree.path(&nodes, leaf);
            let branches = tree.branches(&nodes, &path);
            let in_all_nodes = |list: Vec<u32>| list.into_iter().map(|i| positions[i as usize]).collect();
            Paths { path: in_all_nodes(path), branches: branches.into_iter().map(in_all_nodes).collect() }
        })
    }

    /// All nodes that were not withdrawn by a tombstone, in the order of the file.
    pub(crate) fn effective_nodes<'a>(&'a self, reader: &'a N::Reader) -> NodeList<'a, N> {
        NodeList::new(self.nodes.iter().filter(|node| self.is_effective(node)).collect(), reader, self.file)
    }

    pub(crate) fn is_effective(&self, node: &N) -> bool {
        self.tombstoned.is_empty() || node.facts().uuid.is_none_or(|uuid| !self.tombstoned.contains(&uuid))
    }

    /// Sidechains of old files by their first prompt; the first of those with the same prompt.
    /// Old files do not record which tool call started a sidechain.
    pub(crate) fn sidechains_by_prompt(&self, reader: &N::Reader) -> HashMap<String, &Self> {
        let mut by_prompt = HashMap::new();
        let of_old_files = self.sidechains.iter().filter(|(key, _)| matches!(key, SidechainKey::Root(_)));
        for (_, sidechain) in of_old_files {
            let first = sidechain.nodes.first().and_then(|first| first.load(reader, sidechain.file));
            if let Some(user) = first.as_ref().and_then(|first| first.user()) {
                by_prompt.entry(user.message.content.to_text()).or_insert(sidechain);
            }
        }
        by_prompt
    }
}

/// Moves the fields of a `system` entry that a stream has in `data` to the entry itself.
pub(crate) fn flatten_system(entry: Entry) -> Entry {
    match entry {
        Entry::System(system) => Entry::System(system.flatten_data().map_or(system, Box::new)),
        entry => entry,
    }
}

//! Which turn and which subagent an API message belongs to, line by line.

use std::collections::{BTreeMap, HashMap, VecDeque};

use quipu_message::View;
use quipu_message::tool::is_agent_tool;
use quipu_message::view::{AgentInputView, AgentResultView, BlockView, ContentView};
use serde::{Deserialize, Serialize};

use crate::hash::stable_hash;

/// What is known of a subagent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentAttribution {
    /// Its type, such as `Explore`; `None` when no line says.
    pub agent_type: Option<String>,
    /// Number of the turn that started it; 0 when unknown.
    pub turn: u32,
}

/// The type of an agent call that names none.
const DEFAULT_SUBAGENT_TYPE: &str = "general-purpose";
/// Places kept of the last lines, to go on from: a line's parent is nearly always
/// among them.
const MAX_RECENT_LINES: usize = 32;

/// Follows the parent links of a session, so that a line's turn is counted along its own
/// path: a prompt that replaces another after a rewind has the number of the replaced one.
///
/// The same links as [`Tree`](crate::Tree) makes of all lines together, but line by line and
/// from where it stopped: the index counts sessions that grow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Attribution {
    /// Where the last line stands, `progress` left aside.
    position: TurnPosition,
    /// Where the line before stands, while a line is read.
    #[serde(skip)]
    previous_position: TurnPosition,
    recent_positions: VecDeque<(u64, TurnPosition)>,
    /// The lines that begin a tree. Usually one; old compactions began another, and editors
    /// copy the conversation so far under new ids.
    roots: Vec<TreeRoot>,
    /// Whether any line named a parent. Lines of a stream do not: none of them is a root.
    has_parent_links: bool,
    /// Subagents by their id, and by the id of the tool call that started them.
    subagents: BTreeMap<String, SubagentAttribution>,
    /// The last agent call of the main conversation: old files put the lines of its
    /// subagent right after it, without an id.
    last_agent_call: Option<String>,
    #[serde(skip)]
    positions_by_line: HashMap<u64, TurnPosition>,
    /// The tree in which an API message was first met.
    #[serde(skip)]
    tree_by_message: HashMap<u64, u32>,
    #[serde(skip)]
    has_unknown_parent: bool,
}

/// Where a line stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct TurnPosition {
    /// The tree.
    root: u32,
    /// Turns since the tree began.
    turn: u32,
    /// Whether a local command came last: it is a turn only if the model answers it.
    has_pending_command: bool,
}

/// A line that begins a tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct TreeRoot {
    /// Turns before it.
    turns_before: u32,
    /// Its time and its words, as a number; 0 without a time.
    start_hash: u64,
    /// The first tree that it repeats: it takes that tree's place.
    repeated_tree: Option<u32>,
}

impl Attribution {
    /// Takes what was kept and goes on from there.
    pub(crate) fn restore(mut self) -> Self {
        self.positions_by_line = self.recent_positions.iter().copied().collect();
        self
    }

    /// Number of the turn of the last line of the main conversation, which is how many
    /// turns the active path has.
    pub(crate) fn current_turn(&self) -> u32 {
        self.turn_of(self.position)
    }

    fn turn_of(&self, place: TurnPosition) -> u32 {
        self.roots.get(place.root as usize).map_or(0, |root| root.turns_before) + place.turn
    }

    /// Whether a line hangs on one that is not known, so that turns may be off.
    pub(crate) fn has_unknown_parent(&self) -> bool {
        self.has_unknown_parent
    }

    /// Moves to the parent of a line of the main conversation. A line without a parent
    /// goes on from the line before it.
    pub(crate) fn move_to_parent(&mut self, view: &View<'_>) {
        self.previous_position = self.position;
        if view.uuid.is_none() {
            return;
        }
        let parent = view.parent_uuid.as_deref().or(view.logical_parent_uuid.as_deref());
        self.has_parent_links |= parent.is_some();
        match parent.map(|parent| self.positions_by_line.get(&stable_hash(parent.as_bytes()))) {
            Some(Some(place)) => self.position = *place,
            Some(None) => self.has_unknown_parent = true,
            None if matches!(view.kind.as_deref(), Some("user" | "assistant")) => self.start_tree(view),
            None => {}
        }
    }

    fn start_tree(&mut self, view: &View<'_>) {
        if !self.roots.is_empty() && !self.has_parent_links {
            return;
        }
        // What it repeats may lie before what was kept.
        self.has_unknown_parent |= !self.roots.is_empty();
        let content = view.message.as_ref().and_then(|message| message.content.as_ref());
        let words = match content {
            Some(ContentView::Blocks(blocks)) => blocks.first().and_then(|block| block.text.as_deref()),
            _ => None,
        };
        let began = view
            .timestamp
            .as_deref()
            .map_or(0, |time| stable_hash(format!("{time}\n{}", words.unwrap_or_default()).as_bytes()));
        let root = self.roots.len() as u32;
        self.roots.push(TreeRoot { turns_before: self.current_turn(), start_hash: began, repeated_tree: None });
        self.position = TurnPosition { root, turn: 0, has_pending_command: self.position.has_pending_command };
        if let Some(earlier) = self.roots.iter().position(|root| root.start_hash == began && began != 0) {
            self.mark_repeated_tree(root, earlier as u32);
        }
    }

    /// The line is of this API message. A tree that holds a message of an earlier one repeats it.
    pub(crate) fn record_message(&mut self, message: Option<&str>) {
        let Some(message) = message.filter(|id| !id.is_empty()) else { return };
        let root = self.position.root;
        let first = *self.tree_by_message.entry(stable_hash(message.as_bytes())).or_insert(root);
        self.mark_repeated_tree(root, first);
    }

    fn mark_repeated_tree(&mut self, root: u32, earlier: u32) {
        let Some(turn) = self.roots.get(earlier as usize).map(|root| root.turns_before) else { return };
        if let Some(root) = self
            .roots
            .get_mut(root as usize)
            .filter(|known| earlier < root && known.repeated_tree.is_none_or(|known| earlier < known))
        {
            *root = TreeRoot { turns_before: turn, repeated_tree: Some(earlier), ..*root };
        }
    }

    /// The line is a user prompt.
    pub(crate) fn record_prompt(&mut self, is_local_command: bool) {
        self.position.has_pending_command = is_local_command;
        self.position.turn += u32::from(!is_local_command);
    }

    /// The line is an answer of the model.
    pub(crate) fn record_response(&mut self) {
        self.position.turn += u32::from(std::mem::take(&mut self.position.has_pending_command));
    }

    /// Remembers where the line stands.
    pub(crate) fn record_position(&mut self, view: &View<'_>) {
        let Some(uuid) = view.uuid.as_deref() else { return };
        let line = stable_hash(uuid.as_bytes());
        self.positions_by_line.insert(line, self.position);
        self.recent_positions.push_back((line, self.position));
        if self.recent_positions.len() > MAX_RECENT_LINES {
            self.recent_positions.pop_front();
        }
        // Progress is written late and hangs on earlier lines; nothing goes on from it.
        if view.kind.as_deref() == Some("progress") {
            self.position = self.previous_position;
        }
    }

    /// All subagents, by their ids and those of their tool calls.
    pub(crate) fn subagents(&self) -> &BTreeMap<String, SubagentAttribution> {
        &self.subagents
    }

    /// The subagent a line of the main file belongs to: an id, or the tool call.
    pub(crate) fn subagent_of<'a>(&'a self, view: &'a View<'_>) -> Option<&'a str> {
        if view.is_sidechain == Some(true) {
            return view.agent_id.as_deref().or(self.last_agent_call.as_deref()).or(Some(""));
        }
        // A `progress` line names the call it reports on, and is the main conversation's.
        view.parent_tool_use_id.as_deref().filter(|_| view.kind.as_deref() != Some("progress"))
    }

    /// A tool call; remembered when it starts a subagent.
    pub(crate) fn record_tool_call(&mut self, block: &BlockView<'_>, caller: Option<&str>) {
        let (Some(id), Some(name)) = (block.id.as_deref(), block.name.as_deref()) else { return };
        if !is_agent_tool(name) {
            return;
        }
        let turn = match caller {
            None => self.current_turn(),
            Some(caller) => self.subagents.get(caller).map_or(0, |agent| agent.turn),
        };
        let input = block.input.and_then(|input| AgentInputView::read(input.get()).ok()).unwrap_or_default();
        let kind = input.subagent_type.map_or_else(|| DEFAULT_SUBAGENT_TYPE.to_owned(), |kind| kind.to_string());
        self.subagents.entry(id.to_owned()).or_insert(SubagentAttribution { agent_type: Some(kind), turn });
        if caller.is_none() {
            self.last_agent_call = Some(id.to_owned());
        }
    }

    /// A `user` line; when it answers an agent call, the subagent is that of the call.
    pub(crate) fn record_tool_result(&mut self, view: &View<'_>) {
        let content = view.message.as_ref().and_then(|message| message.content.as_ref());
        let call = content.into_iter().flat_map(ContentView::blocks).find_map(|block| block.tool_use_id.as_deref());
        let Some(call) = call.filter(|call| self.subagents.contains_key(*call)) else { return };
        let result = view.tool_use_result.and_then(|result| AgentResultView::read(result.get()).ok());
        if let Some(AgentResultView { agent_id: Some(agent), agent_type }) = result {
            self.record_subagent(&agent, Some(call), agent_type.as_deref());
        }
    }

    /// A subagent works for a tool call, or has a type.
    pub(crate) fn record_subagent(&mut self, agent: &str, call: Option<&str>, kind: Option<&str>) {
        let by_call = call.and_then(|call| self.subagents.get(call)).cloned().unwrap_or_default();
        let known = self.subagents.entry(agent.to_owned()).or_default();
        if known.turn == 0 {
            known.turn = by_call.turn;
        }
        if let Some(kind) = kind {
            known.agent_type = Some(kind.to_owned());
        } else if known.agent_type.is_none() {
            known.agent_type = by_call.agent_type;
        }
    }
}

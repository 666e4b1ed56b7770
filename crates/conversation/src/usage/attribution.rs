//! Assigns each API message to a turn and a subagent, line by line.

use std::collections::{BTreeMap, HashMap, VecDeque};

use quipu_message::view::{AgentInputView, AgentResultView, BlockView, ContentView};
use quipu_message::{ToolName, View};
use serde::{Deserialize, Serialize};

use crate::hash::stable_hash;

/// Type and turn of a subagent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentAttribution {
    /// Type such as `Explore`; `None` if it is not recorded.
    pub agent_type: Option<String>,
    /// Number of the turn that started it; 0 if unknown.
    pub turn: u32,
}

/// Type of a subagent whose tool call names none.
const DEFAULT_SUBAGENT_TYPE: &str = "general-purpose";
/// Positions of the latest lines that are stored, to continue from. The parent of a line is
/// nearly always among them.
const MAX_RECENT_LINES: usize = 32;

/// Follows the parent links of a session, so that the turn of a line is counted along its own
/// path: a prompt that replaces another after a rewind has the same number.
///
/// `Tree` builds the same links from all lines at once. This works line by line
/// and can be stored and continued, because the index counts sessions that grow. What it stores
/// is bounded; if a parent is older than that, `has_unknown_parent` asks for a full read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Attribution {
    /// Position of the last line that is not `progress`.
    position: TurnPosition,
    /// Position before the current line.
    #[serde(skip)]
    previous_position: TurnPosition,
    recent_positions: VecDeque<(u64, TurnPosition)>,
    /// The roots of trees. Usually one; old compactions started another, and editor
    /// extensions copy the conversation so far under new UUIDs.
    roots: Vec<TreeRoot>,
    /// Whether any line named a parent. Lines of a stream do not, and are not roots.
    has_parent_links: bool,
    /// Subagents by their id, and by the id of the tool call that started them.
    subagents: BTreeMap<String, SubagentAttribution>,
    /// Id of the last tool call of the main conversation that started a subagent. In old
    /// files the lines of the subagent follow it without an id.
    last_agent_call: Option<String>,
    #[serde(skip)]
    positions_by_line: HashMap<u64, TurnPosition>,
    /// First tree that holds an API message, by hash of the message id.
    #[serde(skip)]
    tree_by_message: HashMap<u64, u32>,
    #[serde(skip)]
    has_unknown_parent: bool,
}

/// Position of a line: its tree and turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct TurnPosition {
    /// Index of the tree in `roots`.
    root: u32,
    /// Number of turns since the root of the tree.
    turn: u32,
    /// Whether the last prompt is a local command, which is a turn only if the model responds.
    has_pending_command: bool,
}

/// The root of a tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct TreeRoot {
    /// Number of turns before the root.
    turns_before: u32,
    /// Hash of its time and text; 0 if it has no time.
    start_hash: u64,
    /// Index of the first tree that it repeats and replaces.
    repeated_tree: Option<u32>,
}

impl Attribution {
    /// Rebuilds the fields that are not stored.
    pub(crate) fn restore(mut self) -> Self {
        self.positions_by_line = self.recent_positions.iter().copied().collect();
        self
    }

    /// Turn of the last line of the main conversation, which is the number of turns on the
    /// active path.
    pub(crate) fn current_turn(&self) -> u32 {
        self.turn_of(self.position)
    }

    fn turn_of(&self, position: TurnPosition) -> u32 {
        self.roots.get(position.root as usize).map_or(0, |root| root.turns_before) + position.turn
    }

    /// Whether the parent of a line is not known, so that turns may be wrong.
    pub(crate) fn has_unknown_parent(&self) -> bool {
        self.has_unknown_parent
    }

    /// Moves to the parent of a line of the main conversation. A line without a parent
    /// continues from the line before it.
    pub(crate) fn move_to_parent(&mut self, view: &View<'_>) {
        self.previous_position = self.position;
        if view.uuid.is_none() {
            return;
        }
        let parent = view.parent_uuid.as_deref().or(view.logical_parent_uuid.as_deref());
        self.has_parent_links |= parent.is_some();
        match parent.map(|parent| self.positions_by_line.get(&stable_hash(parent.as_bytes()))) {
            Some(Some(position)) => self.position = *position,
            Some(None) => self.has_unknown_parent = true,
            None if matches!(view.kind.as_deref(), Some("user" | "assistant")) => self.start_tree(view),
            None => {}
        }
    }

    fn start_tree(&mut self, view: &View<'_>) {
        if !self.roots.is_empty() && !self.has_parent_links {
            return;
        }
        // The tree it repeats may be older than what is stored.
        self.has_unknown_parent |= !self.roots.is_empty();
        let content = view.message.as_ref().and_then(|message| message.content.as_ref());
        let text = match content {
            Some(ContentView::Blocks(blocks)) => blocks.first().and_then(|block| block.text.as_deref()),
            _ => None,
        };
        let start_hash = view
            .timestamp
            .as_deref()
            .map_or(0, |time| stable_hash(format!("{time}\n{}", text.unwrap_or_default()).as_bytes()));
        let root = self.roots.len() as u32;
        self.roots.push(TreeRoot { turns_before: self.current_turn(), start_hash, repeated_tree: None });
        self.position = TurnPosition { root, turn: 0, has_pending_command: self.position.has_pending_command };
        if let Some(earlier) = self.roots.iter().position(|root| root.start_hash == start_hash && start_hash != 0) {
            self.mark_repeated_tree(root, earlier as u32);
        }
    }

    /// Records the API message of the current line. A tree repeats an earlier one if it holds
    /// one of its messages.
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

    /// Records that the current line is a prompt of the user.
    pub(crate) fn record_prompt(&mut self, is_local_command: bool) {
        self.position.has_pending_command = is_local_command;
        self.position.turn += u32::from(!is_local_command);
    }

    /// Records that the current line is a response of the model.
    pub(crate) fn record_response(&mut self) {
        self.position.turn += u32::from(std::mem::take(&mut self.position.has_pending_command));
    }

    /// Stores the position of the current line.
    pub(crate) fn record_position(&mut self, view: &View<'_>) {
        let Some(uuid) = view.uuid.as_deref() else { return };
        let line = stable_hash(uuid.as_bytes());
        self.positions_by_line.insert(line, self.position);
        self.recent_positions.push_back((line, self.position));
        if self.recent_positions.len() > MAX_RECENT_LINES {
            self.recent_positions.pop_front();
        }
        // `progress` is written late with an earlier parent; no line continues from it.
        if view.kind.as_deref() == Some("progress") {
            self.position = self.previous_position;
        }
    }

    /// All subagents, by their id and by the id of their tool call.
    pub(crate) fn subagents(&self) -> &BTreeMap<String, SubagentAttribution> {
        &self.subagents
    }

    /// Subagent that a line of the session file belongs to, by id or tool call; `None` for the
    /// main conversation.
    pub(crate) fn subagent_of<'a>(&'a self, view: &'a View<'_>) -> Option<&'a str> {
        if view.is_sidechain == Some(true) {
            return view.agent_id.as_deref().or(self.last_agent_call.as_deref()).or(Some(""));
        }
        // A `progress` line names a tool call too, but belongs to the main conversation.
        view.parent_tool_use_id.as_deref().filter(|_| view.kind.as_deref() != Some("progress"))
    }

    /// Records a tool call if it starts a subagent.
    pub(crate) fn record_tool_call(&mut self, block: &BlockView<'_>, caller: Option<&str>) {
        let (Some(id), Some(name)) = (block.id.as_deref(), block.name.as_deref()) else { return };
        if !ToolName::from(name).is_agent() {
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

    /// Records the id of a subagent from the result of the tool call that started it.
    pub(crate) fn record_tool_result(&mut self, view: &View<'_>) {
        let content = view.message.as_ref().and_then(|message| message.content.as_ref());
        let call = content.into_iter().flat_map(ContentView::blocks).find_map(|block| block.tool_use_id.as_deref());
        let Some(call) = call.filter(|call| self.subagents.contains_key(*call)) else { return };
        let result = view.tool_use_result.and_then(|result| AgentResultView::read(result.get()).ok());
        if let Some(AgentResultView { agent_id: Some(agent), agent_type }) = result {
            self.record_subagent(&agent, Some(call), agent_type.as_deref());
        }
    }

    /// Records the tool call or the type of a subagent.
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

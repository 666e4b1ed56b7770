//! Which turn and which subagent an API message belongs to, line by line.

use std::collections::{BTreeMap, HashMap, VecDeque};

use quipu_message::View;
use quipu_message::tool::is_agent;
use quipu_message::view::{AgentInputView, AgentResultView, BlockView, ContentView};
use serde::{Deserialize, Serialize};

use crate::tally::number_of;

/// What is known of a subagent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Its type, such as `Explore`; `None` when no line says.
    pub kind: Option<String>,
    /// Number of the turn that started it; 0 when unknown.
    pub turn: u32,
}

/// The type of an agent call that names none.
const DEFAULT_AGENT: &str = "general-purpose";
/// Places kept of the last lines, to go on from: a line's parent is nearly always
/// among them.
const RECENT_LINES: usize = 32;

/// Follows the parent links of a session, so that a line's turn is counted along its own
/// path: a prompt that replaces another after a rewind has the number of the replaced one.
///
/// The same links as [`Tree`](crate::Tree) makes of all lines together, but line by line and
/// from where it stopped: the index counts sessions that grow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Attribution {
    /// Where the last line stands, `progress` left aside.
    place: Place,
    /// Where the line before stands, while a line is read.
    #[serde(skip)]
    before: Place,
    recent: VecDeque<(u64, Place)>,
    /// The lines that begin a tree. Usually one; old compactions began another, and editors
    /// copy the conversation so far under new ids.
    roots: Vec<Root>,
    /// Whether any line named a parent. Lines of a stream do not: none of them is a root.
    is_chained: bool,
    /// Subagents by their id, and by the id of the tool call that started them.
    agents: BTreeMap<String, Agent>,
    /// The last agent call of the main conversation: old files put the lines of its
    /// subagent right after it, without an id.
    last_call: Option<String>,
    #[serde(skip)]
    places: HashMap<u64, Place>,
    /// The tree in which an API message was first met.
    #[serde(skip)]
    trees: HashMap<u64, u32>,
    #[serde(skip)]
    is_lost: bool,
}

/// Where a line stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    /// The tree.
    root: u32,
    /// Turns since the tree began.
    turn: u32,
    /// Whether a local command came last: it is a turn only if the model answers it.
    is_pending: bool,
}

/// A line that begins a tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Root {
    /// Turns before it.
    turn: u32,
    /// Its time and its words, as a number; 0 without a time.
    began: u64,
    /// The first tree that it repeats: it takes that tree's place.
    repeats: Option<u32>,
}

impl Attribution {
    /// Takes what was kept and goes on from there.
    pub(crate) fn restored(mut self) -> Self {
        self.places = self.recent.iter().copied().collect();
        self
    }

    /// Number of the turn of the last line of the main conversation, which is how many
    /// turns the active path has.
    pub(crate) fn turn(&self) -> u32 {
        self.turn_of(self.place)
    }

    fn turn_of(&self, place: Place) -> u32 {
        self.roots.get(place.root as usize).map_or(0, |root| root.turn) + place.turn
    }

    /// Whether a line hangs on one that is not known, so that turns may be off.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Moves to the parent of a line of the main conversation. A line without a parent
    /// goes on from the line before it.
    pub(crate) fn enter(&mut self, view: &View<'_>) {
        self.before = self.place;
        if view.uuid.is_none() {
            return;
        }
        let parent = view.parent_uuid.as_deref().or(view.logical_parent_uuid.as_deref());
        self.is_chained |= parent.is_some();
        match parent.map(|parent| self.places.get(&number_of(parent.as_bytes()))) {
            Some(Some(place)) => self.place = *place,
            Some(None) => self.is_lost = true,
            None if matches!(view.kind.as_deref(), Some("user" | "assistant")) => self.begin_tree(view),
            None => {}
        }
    }

    fn begin_tree(&mut self, view: &View<'_>) {
        if !self.roots.is_empty() && !self.is_chained {
            return;
        }
        // What it repeats may lie before what was kept.
        self.is_lost |= !self.roots.is_empty();
        let content = view.message.as_ref().and_then(|message| message.content.as_ref());
        let words = match content {
            Some(ContentView::Blocks(blocks)) => blocks.first().and_then(|block| block.text.as_deref()),
            _ => None,
        };
        let began = view
            .timestamp
            .as_deref()
            .map_or(0, |time| number_of(format!("{time}\n{}", words.unwrap_or_default()).as_bytes()));
        let root = self.roots.len() as u32;
        self.roots.push(Root { turn: self.turn(), began, repeats: None });
        self.place = Place { root, turn: 0, is_pending: self.place.is_pending };
        if let Some(earlier) = self.roots.iter().position(|root| root.began == began && began != 0) {
            self.repeat(root, earlier as u32);
        }
    }

    /// The line is of this API message. A tree that holds a message of an earlier one repeats it.
    pub(crate) fn holds(&mut self, message: Option<&str>) {
        let Some(message) = message.filter(|id| !id.is_empty()) else { return };
        let root = self.place.root;
        let first = *self.trees.entry(number_of(message.as_bytes())).or_insert(root);
        self.repeat(root, first);
    }

    fn repeat(&mut self, root: u32, earlier: u32) {
        let Some(turn) = self.roots.get(earlier as usize).map(|root| root.turn) else { return };
        if let Some(root) = self
            .roots
            .get_mut(root as usize)
            .filter(|known| earlier < root && known.repeats.is_none_or(|known| earlier < known))
        {
            *root = Root { turn, repeats: Some(earlier), ..*root };
        }
    }

    /// The line is a user prompt.
    pub(crate) fn prompted(&mut self, is_local_command: bool) {
        self.place.is_pending = is_local_command;
        self.place.turn += u32::from(!is_local_command);
    }

    /// The line is an answer of the model.
    pub(crate) fn answered(&mut self) {
        self.place.turn += u32::from(std::mem::take(&mut self.place.is_pending));
    }

    /// Remembers where the line stands.
    pub(crate) fn leave(&mut self, view: &View<'_>) {
        let Some(uuid) = view.uuid.as_deref() else { return };
        let line = number_of(uuid.as_bytes());
        self.places.insert(line, self.place);
        self.recent.push_back((line, self.place));
        if self.recent.len() > RECENT_LINES {
            self.recent.pop_front();
        }
        // Progress is written late and hangs on earlier lines; nothing goes on from it.
        if view.kind.as_deref() == Some("progress") {
            self.place = self.before;
        }
    }

    /// All subagents, by their ids and those of their tool calls.
    pub(crate) fn agents(&self) -> &BTreeMap<String, Agent> {
        &self.agents
    }

    /// The subagent a line of the main file belongs to: an id, or the tool call.
    pub(crate) fn subagent_of<'a>(&'a self, view: &'a View<'_>) -> Option<&'a str> {
        if view.is_sidechain == Some(true) {
            return view.agent_id.as_deref().or(self.last_call.as_deref()).or(Some(""));
        }
        // A `progress` line names the call it reports on, and is the main conversation's.
        view.parent_tool_use_id.as_deref().filter(|_| view.kind.as_deref() != Some("progress"))
    }

    /// A tool call; remembered when it starts a subagent.
    pub(crate) fn called(&mut self, block: &BlockView<'_>, caller: Option<&str>) {
        let (Some(id), Some(name)) = (block.id.as_deref(), block.name.as_deref()) else { return };
        if !is_agent(name) {
            return;
        }
        let turn = match caller {
            None => self.turn(),
            Some(caller) => self.agents.get(caller).map_or(0, |agent| agent.turn),
        };
        let input = block.input.and_then(|input| AgentInputView::read(input.get()).ok()).unwrap_or_default();
        let kind = input.subagent_type.map_or_else(|| DEFAULT_AGENT.to_owned(), |kind| kind.to_string());
        self.agents.entry(id.to_owned()).or_insert(Agent { kind: Some(kind), turn });
        if caller.is_none() {
            self.last_call = Some(id.to_owned());
        }
    }

    /// A `user` line; when it answers an agent call, the subagent is that of the call.
    pub(crate) fn result(&mut self, view: &View<'_>) {
        let content = view.message.as_ref().and_then(|message| message.content.as_ref());
        let call = content.into_iter().flat_map(ContentView::blocks).find_map(|block| block.tool_use_id.as_deref());
        let Some(call) = call.filter(|call| self.agents.contains_key(*call)) else { return };
        let result = view.tool_use_result.and_then(|result| AgentResultView::read(result.get()).ok());
        if let Some(AgentResultView { agent_id: Some(agent), agent_type }) = result {
            self.learn(&agent, Some(call), agent_type.as_deref());
        }
    }

    /// A subagent works for a tool call, or has a type.
    pub(crate) fn learn(&mut self, agent: &str, call: Option<&str>, kind: Option<&str>) {
        let by_call = call.and_then(|call| self.agents.get(call)).cloned().unwrap_or_default();
        let known = self.agents.entry(agent.to_owned()).or_default();
        if known.turn == 0 {
            known.turn = by_call.turn;
        }
        if let Some(kind) = kind {
            known.kind = Some(kind.to_owned());
        } else if known.kind.is_none() {
            known.kind = by_call.kind;
        }
    }
}

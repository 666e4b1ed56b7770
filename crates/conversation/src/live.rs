//! Follows a running session: which items are new after each line, at a cost for each line
//! that does not depend on the length of the session.

use std::collections::{BTreeMap, HashMap};

use quipu_message::progress::{ProgressData, ProgressKind};
use quipu_message::tool::ToolInput;
use quipu_message::{AgentId, Entry, SessionId, ToolUseId};

use crate::id_key::IdKey;
use crate::node::Node;
use crate::problem::Problem;
use crate::screen::ScreenItem;
use crate::sidechain::{Routing, SidechainKey};

mod activity;
mod recent_entries;

#[cfg(test)]
mod tests;

pub use activity::{Activity, ActivityState};
use recent_entries::RecentEntries;

/// Takes the lines of a session as they arrive and returns the items that are new.
///
/// It holds only the last few dozen entries and the tool calls without a result. Its items are
/// those of [`Conversation::for_ui`](crate::Conversation::for_ui) in order of arrival: items that a rewind leaves behind have
/// been returned already, and items of subagents are returned by themselves, not inside their
/// tool call.
///
/// ```
/// use quipu_conversation::{LiveConversation, ToolStatus};
/// let mut live = LiveConversation::default();
/// live.push_line(1, r#"{"type":"assistant","uuid":"a","message":{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}]}}"#);
/// assert_eq!(live.changes()[0].item.tool.as_ref().unwrap().status, ToolStatus::Pending);
/// live.push_line(2, r#"{"type":"user","uuid":"b","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"done"}]}}"#);
/// let changes = live.changes();
/// assert!(changes[0].is_update && changes[0].item.tool.as_ref().unwrap().status == ToolStatus::Success);
/// assert!(live.changes().is_empty());
/// ```
#[derive(Debug, Default)]
pub struct LiveConversation {
    main: RecentEntries,
    /// Sidechain shown as the main conversation, if the file is that of a subagent.
    main_sidechain: Option<SidechainKey>,
    sidechains: BTreeMap<SidechainKey, (LiveSubagent, RecentEntries)>,
    sidechain_by_line: HashMap<IdKey, SidechainKey>,
    /// Descriptions of subagents by the tool call that started them.
    task_by_call: HashMap<ToolUseId, String>,
    session_id: Option<SessionId>,
    cwd: Option<String>,
    title: Option<String>,
}

/// A new item, or a tool call whose status has changed.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveItem {
    /// The item to show.
    pub item: ScreenItem,
    /// Subagent that the item belongs to; `None` for the main conversation.
    pub agent: Option<LiveSubagent>,
    /// Whether the item was returned before and replaces that one.
    pub is_update: bool,
}

/// The subagent an item belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiveSubagent {
    /// Id of the agent; `None` if no line names it.
    pub agent_id: Option<AgentId>,
    /// Id of the tool call that started it; `None` if no line names it.
    pub tool_use_id: Option<ToolUseId>,
    /// Short description of its task, or its type.
    pub task: Option<String>,
}

impl LiveConversation {
    /// Adds one line of the session file or of a stream. A line that is not an entry becomes
    /// an item of kind `problem`; a blank line is ignored.
    pub fn push_line(&mut self, line: u64, text: &str) {
        match Entry::read(text) {
            Ok(entry) => self.push(line, entry, text.len()),
            Err(_) if text.trim().is_empty() => {}
            Err(error) => self.main.push_problem(Problem::from_read_error(line, &error)),
        }
    }

    /// Adds one line of the file of a subagent. Ignored if it is not an entry, or if `agent`
    /// has no id.
    pub fn push_agent_line(&mut self, agent: &LiveSubagent, line: u64, text: &str) {
        let (Ok(entry), Some(id)) = (Entry::read(text), agent.agent_id.clone()) else { return };
        self.push_to_sidechain(SidechainKey::Agent(id), agent.clone(), Node { line, entry }, text.len());
    }

    /// Returns the items that are new since the last call, and tool calls whose status changed.
    pub fn changes(&mut self) -> Vec<LiveItem> {
        let mut all = Vec::new();
        for (item, is_update) in self.main.changes() {
            remember_task(&mut self.task_by_call, &item);
            all.push(LiveItem { item, agent: None, is_update });
        }
        for (agent, window) in self.sidechains.values_mut() {
            for (item, is_update) in window.changes() {
                remember_task(&mut self.task_by_call, &item);
                if agent.task.is_none() {
                    agent.task = agent.tool_use_id.as_ref().and_then(|call| self.task_by_call.get(call).cloned());
                }
                all.push(LiveItem { item, agent: Some(agent.clone()), is_update });
            }
        }
        all
    }

    /// Items of the message that is being streamed, which no complete line holds yet.
    pub fn partial_items(&self) -> Vec<ScreenItem> {
        self.main.partial_items()
    }

    /// Number of entries held in memory.
    pub fn retained_entries(&self) -> usize {
        self.main.node_count()
    }

    /// What the session is doing, as far as its lines show.
    pub fn activity(&self) -> Activity {
        self.main.activity()
    }

    /// Session id of the first entry that has one.
    pub fn session_id(&self) -> Option<&SessionId> {
        self.session_id.as_ref()
    }

    /// Working directory of the first entry that has one.
    pub fn cwd(&self) -> Option<&str> {
        self.cwd.as_deref()
    }

    /// The latest title; `None` if there is none.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// Adds one entry that was read already; `bytes` is the length of its line.
    pub fn push(&mut self, line: u64, entry: Entry, bytes: usize) {
        if let Some(envelope) = entry.envelope() {
            if self.session_id.is_none() {
                self.session_id = envelope.session_id.get().cloned();
            }
            if self.cwd.is_none() {
                self.cwd = envelope.cwd.text().map(str::to_owned);
            }
        }
        match &entry {
            Entry::CustomTitle(title) => self.title = Some(title.title.clone()),
            Entry::AiTitle(title) => self.title = Some(title.title.clone()),
            _ => {}
        }
        match Routing::from_entry(&entry).and_then(|routing| routing.sidechain(&self.sidechain_by_line)) {
            Some(side) if self.is_main_sidechain(&side) => self.main.add_node(Node { line, entry }, bytes),
            Some(side) => {
                if let (SidechainKey::Root(_), Some(uuid)) = (&side, entry.envelope().and_then(|e| e.uuid.text())) {
                    self.sidechain_by_line.insert(IdKey::new(uuid), side.clone());
                }
                let agent = subagent_from_entry(&entry);
                self.push_to_sidechain(side, agent, Node { line, entry }, bytes);
            }
            None => match subagent_progress(&entry) {
                Some((side, agent, entry)) => self.push_to_sidechain(side, agent, Node { line, entry }, bytes),
                None => self.main.push(line, entry, bytes),
            },
        }
    }

    /// Whether a sidechain is shown as the main conversation: a file that starts with the
    /// entries of a subagent is the file of that subagent.
    fn is_main_sidechain(&mut self, side: &SidechainKey) -> bool {
        if self.main.is_unused() && matches!(side, SidechainKey::Agent(_)) {
            self.main_sidechain = Some(side.clone());
        }
        self.main_sidechain.as_ref() == Some(side)
    }

    fn push_to_sidechain(&mut self, side: SidechainKey, agent: LiveSubagent, node: Node, bytes: usize) {
        let (known, window) = self.sidechains.entry(side).or_default();
        known.agent_id = known.agent_id.take().or(agent.agent_id);
        known.tool_use_id = known.tool_use_id.take().or(agent.tool_use_id);
        known.task = known.task.take().or(agent.task);
        window.add_node(node, bytes);
    }
}

fn subagent_from_entry(entry: &Entry) -> LiveSubagent {
    entry.envelope().map_or_else(LiveSubagent::default, |envelope| LiveSubagent {
        agent_id: envelope.agent_id.get().cloned(),
        tool_use_id: envelope.parent_tool_use_id.get().cloned(),
        task: envelope.task_description.text().map(str::to_owned),
    })
}

/// The entry of a subagent that a `progress` entry repeats.
fn subagent_progress(entry: &Entry) -> Option<(SidechainKey, LiveSubagent, Entry)> {
    let Entry::Progress(progress) = entry else { return None };
    let ProgressData::Tagged(ProgressKind::Agent(data)) = &progress.data else { return None };
    let (call, entry) = (progress.parent_tool_use_id.get()?, Entry::read(data.message.get()?.text()).ok()?);
    let agent_id = data.agent_id.get().cloned();
    // In the same sidechain as its own file: entries with the same UUID are one.
    let side = agent_id.clone().map_or_else(|| SidechainKey::ToolCall(call.clone()), SidechainKey::Agent);
    Some((side, LiveSubagent { agent_id, tool_use_id: Some(call.clone()), task: None }, entry))
}

/// Stores the description of a tool call that starts a subagent.
fn remember_task(tasks: &mut HashMap<ToolUseId, String>, item: &ScreenItem) {
    let Some(card) = &item.tool else { return };
    if tasks.contains_key(&card.id) || !card.name.is_agent() {
        return;
    }
    if let ToolInput::Agent(input) = ToolInput::from_name_and_json(&card.name, &card.input)
        && let Some(task) = input.description.text().or(input.subagent_type.text())
    {
        tasks.insert(card.id.clone(), task.to_owned());
    }
}

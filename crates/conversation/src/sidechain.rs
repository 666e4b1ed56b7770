//! Which entries belong to the conversation of a subagent.

use std::collections::HashMap;

use quipu_message::structure_view::StructureView;
use quipu_message::{AgentId, Entry, ToolUseId, Uuid};

use crate::id_key::IdKey;

/// Identifies a sidechain, the conversation of a subagent: by the tool call that started it,
/// by the id of the agent, or, in old files, by its first entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SidechainKey {
    ToolCall(ToolUseId),
    Agent(AgentId),
    Root(Uuid),
}

/// What decides on the sidechain of an entry.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Routing<'a> {
    /// UUID of the entry that is withdrawn, for a tombstone.
    withdrawn: Option<&'a str>,
    parent_tool_use_id: Option<&'a str>,
    is_sidechain: bool,
    agent_id: Option<&'a str>,
    parent_uuid: Option<&'a str>,
    uuid: Option<&'a str>,
}

impl<'a> Routing<'a> {
    /// `None` for entries that belong to no sidechain by their type.
    pub(crate) fn from_entry(entry: &'a Entry) -> Option<Self> {
        let envelope = entry.envelope()?;
        let withdrawn = match entry {
            Entry::Tombstone(tombstone) => tombstone.message.uuid.text(),
            _ => None,
        };
        Some(Self {
            withdrawn,
            parent_tool_use_id: envelope.parent_tool_use_id.text(),
            is_sidechain: envelope.is_sidechain.is_true(),
            agent_id: envelope.agent_id.text(),
            parent_uuid: envelope.parent_uuid.text(),
            uuid: envelope.uuid.text(),
        })
    }

    /// For a `user` or `assistant` line.
    pub(crate) fn from_view(view: &'a StructureView<'_>) -> Self {
        Self {
            withdrawn: None,
            parent_tool_use_id: view.parent_tool_use_id.as_deref(),
            is_sidechain: view.is_sidechain == Some(true),
            agent_id: view.agent_id.as_deref(),
            parent_uuid: view.parent_uuid.as_ref().and_then(|parent| parent.text()),
            uuid: view.uuid.as_deref(),
        }
    }

    /// The sidechain an entry belongs to; `None` for the main conversation. `known` holds the
    /// sidechains of earlier entries by UUID.
    pub(crate) fn sidechain(self, known: &HashMap<IdKey, SidechainKey>) -> Option<SidechainKey> {
        let known = |uuid: Option<&str>| known.get(&IdKey::new(uuid?)).cloned();
        if let Some(side) = known(self.withdrawn) {
            return Some(side);
        }
        if let Some(call) = self.parent_tool_use_id {
            return Some(SidechainKey::ToolCall(call.into()));
        }
        if !self.is_sidechain {
            return None;
        }
        if let Some(agent) = self.agent_id {
            return Some(SidechainKey::Agent(agent.into()));
        }
        known(self.parent_uuid).or_else(|| self.uuid.map(|uuid| SidechainKey::Root(uuid.into())))
    }
}

//! Finds the result of each tool call.

use std::collections::HashMap;

use quipu_message::synthetic::is_missing_result;
use quipu_message::{Block, Content, Json, ToolCallResult, ToolUseId};
use serde::Serialize;

use crate::Node;

/// Whether a tool call has a result, and which.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// There is no result yet.
    Pending,
    /// The result is not an error.
    Success,
    /// The result is an error, or was lost.
    Failed,
}

/// Tool results by the id of their tool call.
#[derive(Debug, Default)]
pub struct ToolResults<'a> {
    by_call: HashMap<&'a ToolUseId, PairedResult<'a>>,
}

/// A tool result with its structured output.
#[derive(Debug, Clone, Copy)]
pub struct PairedResult<'a> {
    /// Block that holds the result.
    pub block: &'a Block,
    /// Structured output of the tool (`toolUseResult`); `None` if there is none.
    pub output: Option<&'a Json>,
    /// Timestamp of the entry that holds the result, as written.
    pub timestamp: Option<&'a str>,
}

impl<'a> ToolResults<'a> {
    /// Collects the results in `user` and `assistant` entries, of tools that the agent runs and
    /// of those the server runs. If a call has several results, the last one counts.
    pub fn new(nodes: impl IntoIterator<Item = &'a Node>) -> Self {
        let nodes = nodes.into_iter();
        // Sized in advance, one result for two entries: growing would hash every id again.
        let mut by_call = HashMap::with_capacity(nodes.size_hint().0 / 2);
        for node in nodes {
            for block in node.blocks() {
                if let Some(call) = block.result_tool_use_id() {
                    by_call
                        .insert(call, PairedResult { block, output: node.tool_output(), timestamp: node.timestamp() });
                }
            }
        }
        Self { by_call }
    }

    /// Adds the results in blocks that are not part of an entry: those of an API request, or
    /// of a message that is being streamed.
    pub(crate) fn with_blocks(mut self, blocks: impl IntoIterator<Item = &'a Block>) -> Self {
        let found = |block: &'a Block| {
            Some((block.result_tool_use_id()?, PairedResult { block, output: None, timestamp: None }))
        };
        self.by_call.extend(blocks.into_iter().filter_map(found));
        self
    }

    /// The result of a tool call; `None` if there is none yet.
    pub fn get(&self, call: &ToolUseId) -> Option<&PairedResult<'a>> {
        self.by_call.get(call)
    }
}

impl Node {
    /// The tool's own output (`toolUseResult`); `None` if there is none, or if the entry
    /// holds several tool results, because the field does not say which one it belongs to.
    pub(crate) fn tool_output(&self) -> Option<&Json> {
        let results = self.blocks().iter().filter(|block| block.tool_result().is_some()).count();
        self.user()?.tool_use_result.get().filter(|_| results == 1)
    }
}

/// A result in the form that a tool card shows.
pub(crate) struct PairedOutcome {
    pub(crate) status: ToolStatus,
    /// Whether the result is a placeholder for one that was lost.
    pub(crate) is_missing: bool,
    pub(crate) result: Option<Content>,
    pub(crate) output: Option<Json>,
}

impl PairedOutcome {
    /// Reads a result; without one the call is pending.
    pub(crate) fn from_paired(paired: Option<&PairedResult<'_>>) -> Self {
        let Some((paired, outcome)) = paired.and_then(|paired| Some((paired, paired.block.tool_call_result()?))) else {
            return Self { status: ToolStatus::Pending, is_missing: false, result: None, output: None };
        };
        let ToolCallResult { is_error, content, raw } = outcome;
        let is_missing = content.as_ref().is_some_and(|content| is_missing_result(&content.to_text()));
        Self {
            status: if is_error || is_missing { ToolStatus::Failed } else { ToolStatus::Success },
            is_missing,
            result: content.filter(|_| !is_missing),
            output: paired.output.or(raw).cloned(),
        }
    }
}

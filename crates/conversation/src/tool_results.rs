//! Tool calls joined to their results, wherever the results are.

use std::collections::HashMap;

use quipu_message::synthetic::is_missing_result;
use quipu_message::{Block, Content, Json, ToolCallResult, ToolUseId};
use serde::Serialize;

use crate::Node;

/// How a tool call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// No result yet.
    Pending,
    /// A result that is no error.
    Success,
    /// A result that is an error.
    Failed,
}

/// The results of some entries, by the call they answer.
#[derive(Debug, Default)]
pub struct ToolResults<'a> {
    by_call: HashMap<&'a ToolUseId, PairedResult<'a>>,
}

/// A result and what came with it.
#[derive(Debug, Clone, Copy)]
pub struct PairedResult<'a> {
    /// The block that holds it.
    pub block: &'a Block,
    /// What the tool gave, in its own form.
    pub output: Option<&'a Json>,
}

impl<'a> ToolResults<'a> {
    /// Collects the results of all tools, the agent's and the server's, in `user` and
    /// `assistant` entries; of several for one call the last wins.
    pub fn new(nodes: impl IntoIterator<Item = &'a Node>) -> Self {
        let nodes = nodes.into_iter();
        // Room for a result in every other: growing would hash every id again.
        let mut by_call = HashMap::with_capacity(nodes.size_hint().0 / 2);
        for node in nodes {
            for block in node.blocks() {
                if let Some(call) = block.result_tool_use_id() {
                    by_call.insert(call, PairedResult { block, output: node.tool_output() });
                }
            }
        }
        Self { by_call }
    }

    /// Also the results in blocks of no entry: of a request, or of an answer that is being
    /// written.
    pub(crate) fn with_blocks(mut self, blocks: impl IntoIterator<Item = &'a Block>) -> Self {
        let found = |block: &'a Block| Some((block.result_tool_use_id()?, PairedResult { block, output: None }));
        self.by_call.extend(blocks.into_iter().filter_map(found));
        self
    }

    /// The result of a call.
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

/// What a tool card says of a result.
pub(crate) struct PairedOutcome {
    pub(crate) status: ToolStatus,
    /// Whether the result is only a placeholder for one that was lost.
    pub(crate) is_missing: bool,
    pub(crate) result: Option<Content>,
    pub(crate) output: Option<Json>,
}

impl PairedOutcome {
    /// Reads a result; none yet is a pending call.
    pub(crate) fn from_paired(answer: Option<&PairedResult<'_>>) -> Self {
        let Some((answer, outcome)) = answer.and_then(|answer| Some((answer, answer.block.tool_call_result()?))) else {
            return Self { status: ToolStatus::Pending, is_missing: false, result: None, output: None };
        };
        let ToolCallResult { is_error, content, raw } = outcome;
        let is_missing = content.as_ref().is_some_and(|content| is_missing_result(&content.to_text()));
        Self {
            status: if is_error || is_missing { ToolStatus::Failed } else { ToolStatus::Success },
            is_missing,
            result: content.filter(|_| !is_missing),
            output: answer.output.or(raw).cloned(),
        }
    }
}

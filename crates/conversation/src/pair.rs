//! Tool calls joined to their results, wherever the results are.

use std::collections::HashMap;

use quipu_message::{Block, Json, Maybe, ToolResult, ToolUseId};
use serde::Serialize;

use crate::Node;

/// How a tool call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// No result yet.
    Pending,
    /// A result that is no error.
    Success,
    /// A result that is an error.
    Failed,
}

/// The results of some entries, by the call they answer.
#[derive(Debug, Default)]
pub struct Results<'a> {
    by_call: HashMap<&'a ToolUseId, Answer<'a>>,
}

/// A result and what came with it.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// What the model is told.
    pub result: &'a ToolResult,
    /// What the tool gave, in its own form.
    pub output: Option<&'a Json>,
    /// The line it came in.
    pub node: &'a Node,
}

impl<'a> Results<'a> {
    /// Collects the results; of several for one call the last wins.
    pub fn new(nodes: impl IntoIterator<Item = &'a Node>) -> Self {
        let nodes = nodes.into_iter();
        // Room for a result in every other: growing would hash every id again.
        let mut by_call = HashMap::with_capacity(nodes.size_hint().0 / 2);
        for node in nodes {
            let Some(user) = node.user() else { continue };
            let results: Vec<_> = user.message.content.blocks().iter().filter_map(Block::tool_result).collect();
            // The raw output belongs to the line; with several results nobody
            // can say whose it is.
            let output = user.tool_use_result.get().filter(|_| results.len() == 1);
            for result in results {
                by_call.insert(&result.tool_use_id, Answer { result, output, node });
            }
        }
        Self { by_call }
    }

    /// The result of a call.
    pub fn get(&self, call: &ToolUseId) -> Option<&Answer<'a>> {
        self.by_call.get(call)
    }

    /// How a call stands.
    pub fn status(&self, call: &ToolUseId) -> Status {
        match self.get(call).map(|answer| &answer.result.is_error) {
            None => Status::Pending,
            Some(Maybe::Value(true)) => Status::Failed,
            Some(_) => Status::Success,
        }
    }
}

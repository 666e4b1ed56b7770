//! What if all calls of a conversation had the same tools.

use std::collections::HashMap;

use super::analysis::CacheAnalysis;
use super::positions::{Place, Position, Prompt};
use crate::call::{Call, RequestParts};
use crate::prompt_store::{PartKey, PromptStore, TextId};

/// All tools of each conversation, by its first call, in the order of their first appearance.
pub(super) struct StableTools(HashMap<usize, Vec<PartKey>>);

impl StableTools {
    /// Collects the tools of all conversations. Of a tool with several definitions the first
    /// one is kept.
    pub(super) fn of(analysis: &CacheAnalysis<'_>) -> Self {
        let mut tools: HashMap<usize, Vec<PartKey>> = HashMap::new();
        let prompts = &analysis.trace.prompts;
        for &index in &analysis.order {
            let Some(request) = &analysis.trace.calls[index].request else { continue };
            let known = tools.entry(analysis.conversation(index)).or_default();
            for tool in &request.tools {
                if known.iter().all(|other| !is_same_tool(prompts, other.text, tool.text)) {
                    known.push(PartKey { text: tool.text, breakpoint: None });
                }
            }
        }
        Self(tools)
    }

    /// The prompt of a call with the tools of its conversation. Tools that it did not have
    /// add their estimated tokens.
    pub(super) fn apply(
        &self,
        analysis: &CacheAnalysis<'_>,
        call: &Call,
        request: &RequestParts,
        recorded: Prompt,
    ) -> Prompt {
        let Some(tools) = self.0.get(&analysis.conversation(call.index)) else { return recorded };
        let is_same = |(tool, other): (&PartKey, &PartKey)| tool.text == other.text;
        if request.tools.is_empty()
            || tools.len() == request.tools.len() && tools.iter().zip(&request.tools).all(is_same)
        {
            return recorded;
        }
        let mut tools = tools.clone();
        if let Some(last) = tools.last_mut() {
            last.breakpoint = request.tools.iter().filter_map(|tool| tool.breakpoint).next_back();
        }
        let prompts = &analysis.trace.prompts;
        let mut prompt = Prompt::read(call, request, &tools, prompts);
        let sizes = sizes(&recorded.positions);
        let old_tools: HashMap<TextId, u64> =
            recorded.positions.iter().zip(&sizes).filter(is_tool).map(|(tool, size)| (tool.text, *size)).collect();
        let mut others = recorded.positions.iter().zip(&sizes).filter(|pair| !is_tool(pair)).map(|(_, size)| *size);
        let weight: u64 = recorded.positions.iter().map(|position| prompts.part(position.text).weight).sum();
        let estimate = |text: TextId| prompts.part(text).weight * recorded.total / weight.max(1);
        let mut sum = 0;
        for position in &mut prompt.positions {
            sum += match position.place {
                Place::Tool(_) => old_tools.get(&position.text).copied().unwrap_or_else(|| estimate(position.text)),
                _ => others.next().unwrap_or_default(),
            };
            position.tokens = sum;
        }
        let after_last = recorded.total.saturating_sub(recorded.positions.last().map_or(0, |last| last.tokens));
        prompt.total = sum + after_last;
        prompt
    }
}

fn is_tool((position, _): &(&Position, &u64)) -> bool {
    matches!(position.place, Place::Tool(_))
}

/// Tokens of each position alone.
fn sizes(positions: &[Position]) -> Vec<u64> {
    let mut before = 0;
    positions.iter().map(|position| position.tokens - std::mem::replace(&mut before, position.tokens)).collect()
}

fn is_same_tool(prompts: &PromptStore, tool: TextId, other: TextId) -> bool {
    let name = |text: TextId| prompts.part(text).tool_name.as_deref();
    tool == other || name(tool).is_some() && name(tool) == name(other)
}

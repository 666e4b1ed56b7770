//! The call whose cached prefix a call should read.

use std::collections::HashSet;

use quipu_message::synthetic::SUMMARY_PREFIX;

use crate::call::{Call, CallResponse};
use crate::prompt_store::{MessageKey, PromptMessage};
use crate::structure::{Branch, BranchKind, ForkReason, Structure};
use crate::trace::Trace;

/// Branch and predecessor of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallLink {
    /// Position of the branch in [`Structure::branches`].
    pub(super) branch: usize,
    /// Call with a recorded usage whose history this one continues.
    pub(super) predecessor: Option<usize>,
    /// Whether a summary replaced the history of the predecessor.
    pub(super) is_compaction: bool,
    /// Whether the branch is a side task.
    pub(super) is_side: bool,
}

/// Branch and predecessor of each call; `None` for calls in no branch.
pub(super) fn call_links(trace: &Trace, structure: &Structure) -> Vec<Option<CallLink>> {
    let mut links = vec![None; trace.calls.len()];
    for branch in &structure.branches {
        for (number, &call) in branch.calls.iter().enumerate() {
            // The first call of a compaction makes the summary, the second continues from it.
            // The summarising call may be missing, as in session files.
            let is_compaction = match branch.kind {
                BranchKind::Compaction => number == 1,
                BranchKind::Reset => number == 0 && begins_with_summary(trace, &trace.calls[call]),
                _ => false,
            };
            let predecessor = match number {
                _ if is_compaction => branch.forked_at,
                0 => first_predecessor(trace, structure, branch, &trace.calls[call]),
                _ => Some(branch.calls[number - 1]),
            };
            let is_side = branch.kind == BranchKind::Side;
            links[call] = Some(CallLink { branch: branch.index, predecessor, is_compaction, is_side });
        }
    }
    skip_failed(trace, &mut links);
    links
}

/// The call whose history the first call of a branch continues; `None` if it begins a
/// conversation of its own.
fn first_predecessor(trace: &Trace, structure: &Structure, branch: &Branch, call: &Call) -> Option<usize> {
    let fork = branch.forked_at?;
    match branch.kind {
        BranchKind::Subagent => None,
        BranchKind::Side => Some(fork).filter(|_| branch.reason == ForkReason::ForkedPrompt),
        // The history may start differently because its first message changed or its oldest
        // messages were removed.
        BranchKind::Reset => Some(fork).filter(|fork| shares_messages(trace, call, &trace.calls[*fork])),
        // A request with the response to a later call than the fork did not go back: a message
        // before that response was edited.
        BranchKind::Rewind => {
            let parent = branch.parent.map(|parent| structure.branches[parent].calls.as_slice()).unwrap_or_default();
            let is_answered = |earlier: &usize| contains_response(trace, call, &trace.calls[*earlier]);
            parent.iter().copied().rev().take_while(|earlier| *earlier != fork).find(is_answered).or(Some(fork))
        }
        _ => Some(fork),
    }
}

/// Whether the first message of a request contains the summary of a conversation.
fn begins_with_summary(trace: &Trace, call: &Call) -> bool {
    let first = call.request.as_ref().and_then(|request| request.messages.first());
    let mut blocks = first.into_iter().flat_map(|key| &trace.prompts.message(*key).blocks);
    blocks.any(|block| trace.prompts.plain_text(block.text).is_some_and(|text| text.starts_with(SUMMARY_PREFIX)))
}

/// Whether a request contains the response to an earlier call: after the history of that call,
/// after its last message if messages before it were removed, or anywhere by a tool call.
fn contains_response(trace: &Trace, call: &Call, earlier: &Call) -> bool {
    let (Some(request), Some(before)) = (&call.request, &earlier.request) else { return false };
    let message = |key: &MessageKey| trace.prompts.message(*key);
    let last = before.messages.last().map(|key| message(key).history_hash);
    let follows = |pair: &[MessageKey]| {
        Some(message(&pair[0]).history_hash) == last && is_response(trace, message(&pair[1]), earlier)
    };
    let is_tool_call = |message: &PromptMessage| {
        let mut ids = message.blocks.iter().filter_map(|block| trace.prompts.part(block.text).tool_use_id.as_deref());
        ids.any(|id| earlier.response.tool_calls.iter().any(|tool| tool.id == id))
    };
    request.messages.get(before.messages.len()).is_some_and(|key| is_response(trace, message(key), earlier))
        || request.messages.windows(2).any(follows)
        || request.messages.iter().any(|key| is_tool_call(message(key)))
}

/// Whether a message has a block of the response to a call.
fn is_response(trace: &Trace, message: &PromptMessage, call: &Call) -> bool {
    let CallResponse { blocks, tool_calls, .. } = &call.response;
    message.blocks.iter().any(|block| {
        let id = trace.prompts.part(block.text).tool_use_id.as_deref();
        blocks.iter().any(|response| response.text == block.text)
            || id.is_some_and(|id| tool_calls.iter().any(|tool| tool.id == id))
    })
}

/// Whether a request contains the response to an earlier call, or messages of its request
/// after the first one.
fn shares_messages(trace: &Trace, call: &Call, earlier: &Call) -> bool {
    let (Some(request), Some(before)) = (&call.request, &earlier.request) else { return false };
    let message = |key: &MessageKey| trace.prompts.message(*key);
    let old: HashSet<u64> = before.messages.iter().skip(1).map(|key| message(key).history_hash).collect();
    let mut messages = request.messages.iter().map(message);
    messages.any(|message| old.contains(&message.history_hash) || is_response(trace, message, earlier))
}

/// Replaces predecessors without a recorded usage, which failed, by their own predecessors.
fn skip_failed(trace: &Trace, links: &mut [Option<CallLink>]) {
    for index in 0..links.len() {
        let Some(mut link) = links[index] else { continue };
        while let Some(before) = link.predecessor.filter(|before| trace.calls[*before].response.tokens.is_none()) {
            let earlier = links[before];
            link.predecessor = earlier.and_then(|earlier| earlier.predecessor);
            link.is_compaction |= earlier.is_some_and(|earlier| earlier.is_compaction);
        }
        links[index] = Some(link);
    }
}

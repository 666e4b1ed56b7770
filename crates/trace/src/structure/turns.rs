//! Turns: a user prompt until the final answer.

use quipu_conversation::{Tokens, UserText, classify_user_text};
use quipu_message::{Role, StopReason, synthetic};

use super::{Branch, BranchKind, Structure};
use crate::call::{Call, RequestParts};
use crate::prompt_store::{MessageKey, PromptMessage};
use crate::trace::Trace;

/// The calls of one turn, those of its subagents and side tasks included.
#[derive(Debug, Clone, Default)]
pub struct TurnCalls {
    /// Text of the prompt; empty if the turn began before the trace.
    pub prompt: String,
    /// Positions of the calls in [`Trace::calls`], in order of time.
    pub calls: Vec<usize>,
    /// Names of the called tools, one for each tool call.
    pub tools: Vec<String>,
    /// Sum of the token counts of all calls.
    pub tokens: Tokens,
}

/// Divides the calls of each session into turns.
pub(super) fn add_turns(trace: &Trace, structure: &mut Structure) {
    let Structure { sessions, branches, .. } = structure;
    for session in sessions {
        let branches = session.branches.iter().map(|branch| &branches[*branch]);
        let mut calls: Vec<(usize, &Branch)> =
            branches.flat_map(|branch| branch.calls.iter().map(move |call| (*call, branch))).collect();
        calls.sort_by_key(|(call, _)| (trace.calls[*call].started_at, *call));
        let mut previous: Option<&Call> = None;
        for (index, branch) in calls {
            let call = &trace.calls[index];
            if is_conversation(branch, index) {
                if let Some(prompt) = new_prompt(trace, call, previous, &session.turns) {
                    session.turns.push(TurnCalls { prompt, ..TurnCalls::default() });
                }
                previous = Some(call);
            } else if session.turns.is_empty() {
                session.turns.push(TurnCalls::default());
            }
            let Some(turn) = session.turns.last_mut() else { unreachable!("the first call starts a turn") };
            turn.calls.push(index);
            turn.tools.extend(call.response.tool_calls.iter().map(|tool| tool.name.clone()));
            turn.tokens.add(call.response.tokens.unwrap_or_default());
        }
    }
}

/// Whether a call continues the user's conversation. The first call of a compaction does not:
/// it makes the summary.
fn is_conversation(branch: &Branch, call: usize) -> bool {
    branch.agent_id.is_none()
        && match branch.kind {
            BranchKind::Side | BranchKind::Subagent => false,
            BranchKind::Compaction => branch.calls.first() != Some(&call),
            _ => true,
        }
}

/// The prompt with which a call starts a turn; `None` if it continues the turn of `previous`.
///
/// A message with tool results continues a turn, unless the turn was interrupted. A message
/// without them continues it if the program wrote it because the model stopped too early.
fn new_prompt(trace: &Trace, call: &Call, previous: Option<&Call>, turns: &[TurnCalls]) -> Option<String> {
    let message = |call: &Call| Some(trace.prompts.message(*last_user_message(trace, call.request.as_ref()?)?));
    let texts = message(call).map(|message| plain_texts(trace, message)).unwrap_or_default();
    let typed: Vec<String> = texts.iter().filter_map(|text| typed_text(text)).collect();
    let prompt = typed.join("\n");
    let Some(previous) = previous else { return Some(prompt) };
    let (new, old) = (message(call)?, message(previous));
    if old.is_some_and(|old| old.history_hash == new.history_hash) {
        return None;
    }
    let has_results = new.blocks.iter().any(|block| trace.prompts.part(block.text).kind.ends_with("tool_result"));
    if has_results {
        let is_interrupted = texts.iter().any(|text| synthetic::is_synthetic(text));
        return (is_interrupted && !typed.is_empty()).then_some(prompt);
    }
    let stopped_early = matches!(
        previous.response.stop_reason,
        Some(StopReason::MaxTokens | StopReason::Refusal | StopReason::PauseTurn)
    );
    let is_repeated = turns.last().is_some_and(|turn| turn.prompt == prompt) && !is_final(previous);
    (!stopped_early && !is_repeated && !texts.iter().any(|text| synthetic::is_continuation_prompt(text)))
        .then_some(prompt)
}

/// Whether the response of a call is the end of a turn.
fn is_final(call: &Call) -> bool {
    matches!(call.response.stop_reason, Some(StopReason::EndTurn | StopReason::StopSequence))
}

fn last_user_message<'a>(trace: &Trace, request: &'a RequestParts) -> Option<&'a MessageKey> {
    request.messages.iter().rev().find(|key| trace.prompts.message(**key).role == Role::User)
}

fn plain_texts(trace: &Trace, message: &PromptMessage) -> Vec<String> {
    message.blocks.iter().filter_map(|block| trace.prompts.plain_text(block.text)).collect()
}

/// The part of a text that the user typed; `None` if the program wrote all of it.
fn typed_text(text: &str) -> Option<String> {
    match classify_user_text(text) {
        UserText::Prompt { text, .. } => Some(text.trim().to_owned()),
        _ => None,
    }
}

//! Spans of OpenTelemetry from recorded calls.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use quipu_message::Block;
use quipu_otlp::{AgentRun, ChatCall, MAIN_AGENT, Span, SpanId, SpanPlace, SpanTimes, ToolRun, TraceId};

use crate::call::{Call, CallEnd};
use crate::structure::{Branch, BranchKind, ForkReason, Structure};
use crate::trace::Trace;

/// Spans of a trace.
#[derive(Debug, Default)]
pub struct ExportedSpans {
    /// Spans in the order of turns; a parent comes before its children.
    pub spans: Vec<Span>,
    /// Calls without a time, which have no span.
    pub untimed_calls: usize,
}

/// The spans of all calls for messages: a trace for each turn. They contain no text of the
/// conversation. Exporting the same calls again gives the same ids.
///
/// Sources record when calls began and ended, but not when tools did: a tool call lasts from the
/// end of the call that asked for it to the start of the call with its result.
pub fn export_spans(trace: &Trace, structure: &Structure) -> ExportedSpans {
    let mut exporter = Exporter { trace, structure, turns: turns(trace, structure), output: ExportedSpans::default() };
    for session in &structure.sessions {
        for turn in &session.turns {
            exporter.add_agent(None, &turn.calls);
        }
        for branch in
            session.branches.iter().map(|index| &structure.branches[*index]).filter(|branch| is_subagent(branch))
        {
            exporter.add_agent(Some(branch.index), &branch.calls);
        }
    }
    let next_calls = next_calls(trace, structure);
    for call in trace.calls.iter().filter(|call| structure.branch_of[call.index].is_some()) {
        exporter.add_call(call, &next_calls[call.index]);
    }
    exporter.output
}

struct Exporter<'t> {
    trace: &'t Trace,
    structure: &'t Structure,
    /// For each call of a turn the trace of the turn.
    turns: HashMap<usize, TraceId>,
    output: ExportedSpans,
}

/// The turn of each call.
fn turns(trace: &Trace, structure: &Structure) -> HashMap<usize, TraceId> {
    let mut turns = HashMap::new();
    for session in &structure.sessions {
        for turn in &session.turns {
            let Some(first) = turn.calls.first().map(|call| &trace.calls[*call]) else { continue };
            let id = TraceId::from_parts(&[session.session_id.as_deref().unwrap_or_default(), key(first)]);
            turns.extend(turn.calls.iter().map(|call| (*call, id)));
        }
    }
    turns
}

/// For each call those that come after it: in its branch, or in one that forks from it.
fn next_calls(trace: &Trace, structure: &Structure) -> Vec<Vec<usize>> {
    let mut next = vec![Vec::new(); trace.calls.len()];
    for call in &trace.calls {
        if let Some(previous) = structure.previous_call(call) {
            next[previous].push(call.index);
        }
    }
    next
}

/// What names a call in every source.
fn key(call: &Call) -> &str {
    call.response.message_id.as_deref().or(call.response.request_id.as_deref()).unwrap_or(&call.id)
}

impl Exporter<'_> {
    /// Adds the span of a turn, or of a subagent if a branch is given.
    fn add_agent(&mut self, branch: Option<usize>, calls: &[usize]) {
        let Some(trace_id) = calls.first().and_then(|call| self.turns.get(call).copied()) else { return };
        let calls = calls.iter().map(|call| &self.trace.calls[*call]);
        // Calls of subagents that outlive the turn do not prolong it.
        let mut own = calls.filter(|call| self.agent_branch(call.index) == branch);
        let times: Vec<SpanTimes> = own.clone().filter_map(call_times).collect();
        let (Some(start), Some(end)) =
            (times.iter().map(|times| times.start).min(), times.iter().map(|times| times.end).max())
        else {
            return;
        };
        let first = own.clone().next();
        let identity = first.map(|call| &call.identity);
        let last_error = own.next_back().and_then(error_of);
        let run = AgentRun {
            session_id: identity.and_then(|identity| identity.session_id.as_deref()),
            agent_name: if branch.is_some() { first.map_or("", agent_name) } else { MAIN_AGENT },
            agent_id: branch.and_then(|branch| self.structure.branches[branch].agent_id.as_deref()),
            error: last_error.as_deref(),
        };
        let parent = branch.map(|branch| match &self.structure.branches[branch].reason {
            ForkReason::Subagent { tool_use_id: Some(id) } => trace_id.span_id(&["tool", id]),
            _ => agent_span_id(trace_id, None, self.structure),
        });
        let id = agent_span_id(trace_id, branch, self.structure);
        let span = run.span(SpanPlace { trace: trace_id, id, parent }, SpanTimes { start, end });
        self.output.spans.push(span);
    }

    /// Adds the span of a call and those of its tool calls.
    fn add_call(&mut self, call: &Call, next: &[usize]) {
        let Some(times) = call_times(call) else {
            self.output.untimed_calls += 1;
            return;
        };
        let agent = self.agent_branch(call.index);
        // A subagent belongs to the turn that started it.
        let first = agent.and_then(|branch| self.structure.branches[branch].calls.first().copied());
        let Some(trace_id) = self.turns.get(&first.unwrap_or(call.index)).copied() else { return };
        let parent = agent_span_id(trace_id, agent, self.structure);
        let (request, response) = (call.request.as_ref(), &call.response);
        let session_id = call.identity.session_id.as_deref();
        let error = error_of(call);
        let chat = ChatCall {
            session_id,
            request_model: request.map(|request| request.model.as_str()).filter(|model| !model.is_empty()),
            max_tokens: request.and_then(|request| request.max_tokens),
            is_stream: request.is_some_and(|request| request.is_stream),
            response_model: response.model.as_deref(),
            message_id: response.message_id.as_deref(),
            request_id: response.request_id.as_deref(),
            stop_reason: response.stop_reason.as_ref().map(|reason| reason.as_str()),
            time_to_first_chunk: call.first_event_ms.map(Duration::from_millis),
            tokens: response.tokens,
            error: error.as_deref(),
        };
        let id = trace_id.span_id(&["chat", &call.id]);
        self.output.spans.push(chat.span(SpanPlace { trace: trace_id, id, parent: Some(parent) }, times));
        for tool in &response.tool_calls {
            let Some((end, is_error)) = next.iter().find_map(|next| self.tool_result(&tool.id, call, *next)) else {
                continue;
            };
            let run = ToolRun {
                session_id,
                tool_name: &tool.name,
                tool_use_id: &tool.id,
                has_estimated_times: true,
                is_error,
            };
            let place = SpanPlace { trace: trace_id, id: trace_id.span_id(&["tool", &tool.id]), parent: Some(parent) };
            self.output.spans.push(run.span(place, SpanTimes { start: times.end, end: end.max(times.end) }));
        }
    }

    /// When a later call with the result of a tool call began, and whether the tool failed; `None`
    /// if it does not have the result.
    fn tool_result(&self, tool_use_id: &str, call: &Call, next: usize) -> Option<(u64, bool)> {
        let next = &self.trace.calls[next];
        let sent = call.request.as_ref().map_or(0, |request| request.messages.len());
        let new = next.request.as_ref()?.messages.iter().skip(sent);
        let prompts = &self.trace.prompts;
        let mut blocks = new.flat_map(|key| &prompts.message(*key).blocks).map(|block| prompts.part(block.text));
        let is_result = |id: Option<&str>, name: Option<&str>| id == Some(tool_use_id) && name.is_none();
        let result = blocks.find(|block| is_result(block.tool_use_id.as_deref(), block.tool_name.as_deref()))?;
        let is_error = match serde_json::from_str(&result.text) {
            Ok(Block::ToolResult(result)) => result.is_error.is_true(),
            _ => false,
        };
        Some((nanoseconds(next.started_at?)?, is_error))
    }

    /// The branch of the subagent that made a call; `None` for the main agent.
    fn agent_branch(&self, call: usize) -> Option<usize> {
        let mut branch = &self.structure.branches[self.structure.branch_of[call]?];
        // A retry or a compaction of a subagent is a branch of its own.
        while !is_subagent(branch) {
            let parent = branch.parent.filter(|parent| *parent < branch.index && branch.agent_id.is_some())?;
            branch = &self.structure.branches[parent];
        }
        Some(branch.index)
    }
}

fn is_subagent(branch: &Branch) -> bool {
    branch.kind == BranchKind::Subagent
}

fn agent_span_id(trace_id: TraceId, branch: Option<usize>, structure: &Structure) -> SpanId {
    trace_id.span_id(&["agent", branch.map_or(MAIN_AGENT, |branch| &structure.branches[branch].id)])
}

/// Type of the subagent that made a call, from what session files record.
fn agent_name(call: &Call) -> &str {
    let source = call.query_source.as_deref().and_then(|source| source.strip_prefix("agent:"));
    source.and_then(|source| source.rsplit(':').next()).unwrap_or("subagent")
}

fn error_of(call: &Call) -> Option<String> {
    let response = &call.response;
    let status = response.status.filter(|status| *status >= 400).map(|status| status.to_string());
    let end = match response.end {
        CallEnd::ClientAborted => Some("aborted"),
        CallEnd::UpstreamClosed => Some("connection_closed"),
        CallEnd::Failed => Some("no_response"),
        CallEnd::Completed | CallEnd::Unknown => None,
    };
    response.error.clone().or(status).or(end.map(str::to_owned))
}

fn call_times(call: &Call) -> Option<SpanTimes> {
    let duration = Duration::from_millis(call.duration_ms.unwrap_or_default());
    Some(SpanTimes::new(nanoseconds(call.started_at?)?, duration))
}

fn nanoseconds(time: Timestamp) -> Option<u64> {
    u64::try_from(time.as_nanosecond()).ok()
}

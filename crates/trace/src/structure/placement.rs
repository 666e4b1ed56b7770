//! Assigns each call to a branch.

use std::collections::HashMap;

use quipu_message::api::OutputConfig;
use quipu_message::tool::{ServerTool, ToolInput};
use quipu_message::{Block, Role};

use super::history::{HistoryNode, HistoryTree, Lane};
use super::{Branch, BranchKind, ForkReason, SessionCalls, Structure};
use crate::call::{Call, CallEnd, RequestParts};
use crate::trace::Trace;

/// Shortest text that proves a summary when it is found in a later request.
const MIN_SUMMARY_CHARS: usize = 16;

/// Assigns all calls, in order of time; a call without a time follows the call before it.
pub(super) fn place_calls(trace: &Trace) -> Structure {
    let mut placer = Placer::new(trace);
    let mut last_time = None;
    let mut calls: Vec<_> = trace.calls.iter().filter(|call| call.is_message_call()).collect::<Vec<_>>();
    let times: HashMap<usize, _> = calls
        .iter()
        .map(|call| {
            last_time = call.started_at.or(last_time);
            (call.index, last_time)
        })
        .collect();
    calls.sort_by_key(|call| times[&call.index]);
    for call in calls {
        placer.place(call);
    }
    placer.finish()
}

struct Placer<'a> {
    trace: &'a Trace,
    histories: HistoryTree,
    sessions: Vec<SessionCalls>,
    session_numbers: HashMap<Option<String>, usize>,
    /// Whether some call of the session, other than a subagent's, has tools of the client.
    sessions_with_tools: HashMap<Option<String>, bool>,
    lanes: HashMap<(usize, Option<String>), Lane>,
    lane_states: Vec<LaneState>,
    branches: Vec<Branch>,
    branch_of: Vec<Option<usize>>,
    /// Branches of failed attempts, by the branch and the call that they forked from.
    open_retries: HashMap<(usize, Option<usize>), usize>,
    /// Prompts of tool calls that start a subagent: the API call and the id of the tool call.
    subagent_prompts: HashMap<String, (usize, String)>,
}

/// What is known of the conversation of one session and agent.
struct LaneState {
    session: usize,
    agent_id: Option<String>,
    /// Branch that the conversation is in.
    current: Option<usize>,
    /// Last call that gave a copy of the conversation one more instruction.
    last_fork: Option<usize>,
    /// Last call that started a subagent.
    last_spawn: Option<usize>,
}

impl<'a> Placer<'a> {
    fn new(trace: &'a Trace) -> Self {
        let mut sessions_with_tools: HashMap<Option<String>, bool> = HashMap::new();
        for call in trace.calls.iter().filter(|call| call.is_message_call() && call.identity.agent_id.is_none()) {
            let has_tools = call.request.as_ref().is_some_and(|request| has_client_tools(trace, request));
            *sessions_with_tools.entry(call.identity.session_id.clone()).or_default() |= has_tools;
        }
        Self {
            trace,
            histories: HistoryTree::default(),
            sessions: Vec::new(),
            session_numbers: HashMap::new(),
            sessions_with_tools,
            lanes: HashMap::new(),
            lane_states: Vec::new(),
            branches: Vec::new(),
            branch_of: vec![None; trace.calls.len()],
            open_retries: HashMap::new(),
            subagent_prompts: HashMap::new(),
        }
    }

    fn place(&mut self, call: &Call) {
        let Some(request) = &call.request else { return };
        let lane = self.lane_of(call);
        let path = self.histories.path(request, &self.trace.prompts);
        let branch = self.choose_branch(call, request, lane, &path);
        self.branches[branch].calls.push(call.index);
        self.branch_of[call.index] = Some(branch);
        self.histories.add_call(&path, lane, call.index);
        self.note_subagent_prompts(call, lane);
    }

    /// The branch of a call. The rules, first match wins: a side call by its tools; the same
    /// history again; a copy of the conversation with one more instruction; the continuation
    /// of an earlier call; the last call with earlier messages edited; a new history.
    fn choose_branch(&mut self, call: &Call, request: &RequestParts, lane: Lane, path: &[HistoryNode]) -> usize {
        let continued = self.histories.longest_prefix(path, lane);
        if let Some(reason) = self.side_reason(call, request) {
            let is_open = |earlier: &usize| self.is_last_of(*earlier, BranchKind::Side);
            let earlier = continued.filter(|(_, len)| *len < path.len()).map(|(earlier, _)| earlier).filter(is_open);
            return match earlier.and_then(|earlier| self.branch_of[earlier]) {
                Some(branch) => branch,
                None => self.fork_current(lane, BranchKind::Side, reason),
            };
        }
        if let Some((same, len)) = continued
            && len == path.len()
        {
            return self.place_same_history(same, lane);
        }
        let Some(current) = self.lane_states[lane].current else { return self.first_branch(call, lane, path) };
        if is_forked_prompt(self.trace, request) {
            self.lane_states[lane].last_fork = Some(call.index);
            let is_summary = self.response_text(call.index).contains("<summary>");
            let (kind, reason) = if is_summary {
                (BranchKind::Compaction, ForkReason::Compacted)
            } else {
                (BranchKind::Side, ForkReason::ForkedPrompt)
            };
            return self.fork_current(lane, kind, reason);
        }
        if let Some((earlier, _)) = continued
            && let Some(branch) = self.branch_of[earlier].filter(|branch| self.is_conversation(*branch, earlier))
        {
            return if self.branches[branch].calls.last() == Some(&earlier) {
                self.lane_states[lane].current = Some(branch);
                branch
            } else if self.is_edit_of_last_call(current, request) {
                current
            } else {
                self.go_back(lane, branch, earlier)
            };
        }
        if self.is_edit_of_last_call(current, request) {
            return current;
        }
        self.place_new_history(request, lane, current)
    }

    /// The history was sent before: by an attempt that failed, or by a call that the
    /// conversation went back to.
    fn place_same_history(&mut self, same: usize, lane: Lane) -> usize {
        let Some(branch) = self.branch_of[same] else { unreachable!("a call in the tree has a branch") };
        if self.branches[branch].calls.last() != Some(&same) {
            return self.go_back(lane, branch, same);
        }
        // The earlier attempt leaves the branch, and the new one takes its place.
        self.branches[branch].calls.pop();
        let previous = self.branches[branch].calls.last().copied();
        let open = self.open_retries.get(&(branch, previous)).copied();
        let retry = open.unwrap_or_else(|| {
            let earlier = &self.trace.calls[same];
            let status = earlier.response.status.filter(|status| *status >= 400);
            let reason = if is_complete(earlier) { ForkReason::SentAgain } else { ForkReason::Failed(status) };
            self.new_branch(lane, BranchKind::Retry, Some(branch), previous, reason)
        });
        self.open_retries.insert((branch, previous), retry);
        self.branches[retry].calls.push(same);
        self.branch_of[same] = Some(retry);
        branch
    }

    /// Opens a branch that continues from `earlier`, which is not the last call of `branch`.
    fn go_back(&mut self, lane: Lane, branch: usize, earlier: usize) -> usize {
        let new = self.new_branch(lane, BranchKind::Rewind, Some(branch), Some(earlier), ForkReason::WentBack);
        self.lane_states[lane].current = Some(new);
        new
    }

    fn first_branch(&mut self, call: &Call, lane: Lane, path: &[HistoryNode]) -> usize {
        let branch = if call.identity.agent_id.is_some() {
            let spawn = call.request.as_ref().and_then(|request| self.find_spawn(request));
            self.new_subagent_branch(call, lane, spawn)
        } else {
            let elsewhere = self.histories.longest_continued(path);
            let elsewhere = elsewhere.filter(|other| self.trace.calls[*other].identity.agent_id.is_none());
            let parent = elsewhere.and_then(|other| self.branch_of[other]);
            let session = elsewhere.and_then(|other| self.trace.calls[other].identity.session_id.clone());
            let reason = session.map_or(ForkReason::FirstCall, ForkReason::ContinuesSession);
            self.new_branch(lane, BranchKind::Main, parent, elsewhere, reason)
        };
        self.lane_states[lane].current = Some(branch);
        branch
    }

    /// The history shares nothing with the conversation before it: a subagent of an older
    /// client, a conversation that continues from a summary, or a new conversation.
    fn place_new_history(&mut self, request: &RequestParts, lane: Lane, current: usize) -> usize {
        if let Some((spawn, tool_use_id)) = self.find_spawn(request) {
            let reason = ForkReason::Subagent { tool_use_id: Some(tool_use_id) };
            return self.new_branch(lane, BranchKind::Subagent, self.branch_of[spawn], Some(spawn), reason);
        }
        let last = self.branches[current].calls.last().copied();
        let fork = self.lane_states[lane].last_fork.take();
        let fork = fork.filter(|fork| last.is_none_or(|last| self.is_later(*fork, last)));
        let branch = if let Some(branch) = fork.and_then(|fork| self.branch_of[fork]) {
            self.change_kind(branch, BranchKind::Compaction, ForkReason::Compacted);
            branch
        } else if let Some(last) = last.filter(|last| self.repeats_response(request, *last)) {
            // The summarising call belongs to the branch that continues from the summary.
            self.branches[current].calls.pop();
            let forked_at = self.branches[current].calls.last().copied();
            let branch = self.new_branch(lane, BranchKind::Compaction, Some(current), forked_at, ForkReason::Compacted);
            self.branches[branch].calls.push(last);
            self.branch_of[last] = Some(branch);
            branch
        } else {
            self.new_branch(lane, BranchKind::Reset, Some(current), last, ForkReason::NewHistory)
        };
        self.lane_states[lane].current = Some(branch);
        branch
    }

    /// Why a call is no part of the conversation; `None` if it may be one.
    fn side_reason(&self, call: &Call, request: &RequestParts) -> Option<ForkReason> {
        if has_client_tools(self.trace, request) {
            return None;
        }
        if !request.tools.is_empty() {
            let is_search = |tool: &crate::PartKey| server_tool(self.trace, tool) == Some(ServerTool::WebSearch);
            return Some(if request.tools.iter().any(is_search) {
                ForkReason::WebSearch
            } else {
                ForkReason::ServerTools
            });
        }
        let session_has_tools = self.sessions_with_tools.get(&call.identity.session_id).copied().unwrap_or_default();
        if call.identity.agent_id.is_some() || !session_has_tools {
            return None;
        }
        let output = request.output_config.map(|text| self.trace.prompts.text(text));
        let output = output.and_then(|text| serde_json::from_str::<OutputConfig>(text).ok());
        Some(if output.is_some_and(|output| output.format.is_value()) {
            ForkReason::JsonOutput
        } else if request.max_tokens == Some(1) {
            ForkReason::Probe
        } else {
            ForkReason::NoTools
        })
    }

    /// Whether the request repeats the last call of the branch with earlier messages edited:
    /// its last message and at least half of all messages are at the same place.
    fn is_edit_of_last_call(&self, branch: usize, request: &RequestParts) -> bool {
        let last = self.branches[branch].calls.last().and_then(|last| self.trace.calls[*last].request.as_ref());
        let Some(last) = last else { return false };
        let steps = |request: &RequestParts| -> Vec<u64> {
            let messages = request.messages.iter().map(|key| self.trace.prompts.message(*key));
            messages.filter(|message| message.role != Role::System).map(|message| message.history_hash).collect()
        };
        let (old, new) = (steps(last), steps(request));
        let same = old.iter().zip(&new).filter(|(old, new)| old == new).count();
        let is_last_kept = old.last().is_some_and(|last| new.get(old.len() - 1) == Some(last));
        old.len() > 1 && is_last_kept && same * 2 >= old.len()
    }

    /// Whether the first message of the request contains the text of a call's response.
    fn repeats_response(&self, request: &RequestParts, call: usize) -> bool {
        let texts = self.response_text(call);
        let summary = texts.split_once("<summary>").map_or(texts.as_str(), |(_, rest)| rest);
        let summary = summary.split("</summary>").next().unwrap_or_default().trim();
        let Some(first) = request.messages.first() else { return false };
        let mut blocks = self
            .trace
            .prompts
            .message(*first)
            .blocks
            .iter()
            .filter_map(|block| self.trace.prompts.plain_text(block.text));
        summary.chars().count() >= MIN_SUMMARY_CHARS && blocks.any(|text| text.contains(summary))
    }

    fn response_text(&self, call: usize) -> String {
        let blocks = &self.trace.calls[call].response.blocks;
        blocks.iter().filter_map(|block| self.trace.prompts.plain_text(block.text)).collect()
    }

    /// The tool call that started a subagent, by the prompt in its first message.
    fn find_spawn(&self, request: &RequestParts) -> Option<(usize, String)> {
        let first = self.trace.prompts.message(*request.messages.first()?);
        let mut texts = first.blocks.iter().filter_map(|block| self.trace.prompts.plain_text(block.text));
        texts.find_map(|text| self.subagent_prompts.get(text.trim()).cloned())
    }

    fn note_subagent_prompts(&mut self, call: &Call, lane: Lane) {
        for block in &call.response.blocks {
            let Ok(Block::ToolUse(tool_use)) = serde_json::from_str(self.trace.prompts.text(block.text)) else {
                continue;
            };
            if let ToolInput::Agent(input) = ToolInput::from_tool_use(&tool_use) {
                self.lane_states[lane].last_spawn = Some(call.index);
                self.subagent_prompts.insert(input.prompt.trim().to_owned(), (call.index, tool_use.id.to_string()));
            }
        }
    }

    /// Whether a later call may continue `call`: it is neither a side call nor a summary.
    fn is_conversation(&self, branch: usize, call: usize) -> bool {
        let branch = &self.branches[branch];
        match branch.kind {
            BranchKind::Side => false,
            BranchKind::Compaction => branch.calls.first() != Some(&call),
            _ => true,
        }
    }

    fn is_last_of(&self, call: usize, kind: BranchKind) -> bool {
        let branch = self.branch_of[call].map(|branch| &self.branches[branch]);
        branch.is_some_and(|branch| branch.kind == kind && branch.calls.last() == Some(&call))
    }

    fn is_later(&self, call: usize, other: usize) -> bool {
        let time = |index: usize| (self.trace.calls[index].started_at, index);
        time(call) > time(other)
    }

    fn lane_of(&mut self, call: &Call) -> Lane {
        let id = &call.identity.session_id;
        let session = *self.session_numbers.entry(id.clone()).or_insert_with(|| {
            self.sessions.push(SessionCalls { session_id: id.clone(), ..SessionCalls::default() });
            self.sessions.len() - 1
        });
        *self.lanes.entry((session, call.identity.agent_id.clone())).or_insert_with(|| {
            let agent_id = call.identity.agent_id.clone();
            self.lane_states.push(LaneState { session, agent_id, current: None, last_fork: None, last_spawn: None });
            self.lane_states.len() - 1
        })
    }

    /// The branch of a subagent that a header names. Without a known prompt it forked from
    /// the last call of its parent that started a subagent.
    fn new_subagent_branch(&mut self, call: &Call, lane: Lane, spawn: Option<(usize, String)>) -> usize {
        let parent_lane = self.lanes.get(&(self.lane_states[lane].session, call.identity.parent_agent_id.clone()));
        let last_spawn = parent_lane.and_then(|parent| self.lane_states[*parent].last_spawn);
        let forked_at = spawn.as_ref().map(|(call, _)| *call).or(last_spawn);
        let parent = forked_at.and_then(|call| self.branch_of[call]);
        let reason = ForkReason::Subagent { tool_use_id: spawn.map(|(_, id)| id) };
        self.new_branch(lane, BranchKind::Subagent, parent, forked_at, reason)
    }

    /// A branch that forks from the last call of the lane's conversation.
    fn fork_current(&mut self, lane: Lane, kind: BranchKind, reason: ForkReason) -> usize {
        let parent = self.lane_states[lane].current;
        let forked_at = parent.and_then(|parent| self.branches[parent].calls.last().copied());
        self.new_branch(lane, kind, parent, forked_at, reason)
    }

    fn new_branch(
        &mut self,
        lane: Lane,
        kind: BranchKind,
        parent: Option<usize>,
        forked_at: Option<usize>,
        reason: ForkReason,
    ) -> usize {
        let index = self.branches.len();
        let LaneState { session, ref agent_id, .. } = self.lane_states[lane];
        let agent_id = agent_id.clone();
        self.sessions[session].branches.push(index);
        let calls = Vec::new();
        self.branches.push(Branch { index, id: String::new(), kind, parent, forked_at, reason, agent_id, calls });
        index
    }

    fn change_kind(&mut self, branch: usize, kind: BranchKind, reason: ForkReason) {
        let branch = &mut self.branches[branch];
        (branch.kind, branch.reason) = (kind, reason);
    }

    /// Names the branches by kind, in the order in which they were opened.
    fn finish(mut self) -> Structure {
        let mut counts: HashMap<BranchKind, usize> = HashMap::new();
        for branch in &mut self.branches {
            let count = counts.entry(branch.kind).or_default();
            *count += 1;
            branch.id = format!("{}-{count}", branch.kind.as_str());
        }
        Structure {
            sessions: self.sessions,
            branches: self.branches,
            branch_of: self.branch_of,
            ..Structure::default()
        }
    }
}

fn has_client_tools(trace: &Trace, request: &RequestParts) -> bool {
    request.tools.iter().any(|tool| server_tool(trace, tool).is_none())
}

fn server_tool(trace: &Trace, tool: &crate::PartKey) -> Option<ServerTool> {
    ServerTool::from_type(&trace.prompts.part(tool.text).kind)
}

/// Whether the request is a copy of the conversation with one more instruction: its last
/// breakpoint is before the last user message. The conversation itself always ends with a
/// breakpoint, because its next call reads what this one wrote.
fn is_forked_prompt(trace: &Trace, request: &RequestParts) -> bool {
    let messages = request.messages.iter().map(|key| trace.prompts.message(*key));
    let has_breakpoint =
        |message: &&crate::PromptMessage| message.blocks.iter().any(|block| block.breakpoint.is_some());
    let messages: Vec<_> = messages.collect();
    let Some(last_user) = messages.iter().rposition(|message| message.role == Role::User) else { return false };
    let last_breakpoint = messages.iter().rposition(has_breakpoint);
    request.automatic_breakpoint.is_none() && last_breakpoint.is_some_and(|position| position < last_user)
}

/// Whether a response arrived in full.
fn is_complete(call: &Call) -> bool {
    let response = &call.response;
    let is_success = response.status.is_none_or(|status| status < 400);
    is_success && response.error.is_none() && matches!(response.end, CallEnd::Completed | CallEnd::Unknown)
}

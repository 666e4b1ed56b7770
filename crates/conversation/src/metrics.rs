//! Metrics of one session: duration, turns, tokens, cost, tools.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use quipu_message::synthetic::SYNTHETIC_MODEL;
use quipu_message::text::Str;
use quipu_message::view::ContentView;
use quipu_message::{ToolName, View};
use serde::{Deserialize, Serialize};

use crate::headline::{FirstPrompt, is_local_command};
use crate::price::{Cost, Prices, Usd};
use crate::timestamp::{parse_timestamp, to_iso8601};
use crate::tokens::Tokens;
use crate::usage::{Attribution, SubagentAttribution, UsageSample, UsageTally};
use crate::user_text::prompt_from_texts;

/// Builds the [`Metrics`] of one session: push its lines, then call [`finish`](Self::finish).
///
/// Each API message counts once, by the line with the most output. Subagents count for the
/// session that started them.
#[derive(Debug, Default)]
pub struct MetricsBuilder {
    state: MetricsState,
    usage: UsageTally,
    errors: u64,
    tools: BTreeMap<String, u64>,
    seen_tool_calls: HashSet<String>,
    /// Id of the subagent whose file is being read.
    current_subagent: Option<String>,
    line_prompt: Option<LinePrompt>,
}

/// A prompt of the user, as one line holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinePrompt {
    /// What the user typed.
    pub text: String,
    /// Whether it is a command of the program, which starts a turn only when the model responds.
    pub is_local_command: bool,
}

/// The state of a [`MetricsBuilder`] apart from messages and tools. It is small, can be
/// stored, and [continued from](MetricsBuilder::from_state).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MetricsState {
    first_timestamp: Option<String>,
    last_timestamp: Option<String>,
    attribution: Attribution,
    facts: SessionFacts,
    first_prompt: FirstPrompt,
    generated_title: Option<String>,
    stream_tokens: Option<Tokens>,
    stream_cost: Option<f64>,
}

/// The subagent that a transcript file belongs to.
#[derive(Debug, Clone, Copy)]
pub struct SubagentRef<'a> {
    /// Id of the subagent.
    pub id: &'a str,
    /// Id of the tool call that started it; `None` if its `.meta.json` does not name it.
    pub tool_use_id: Option<&'a str>,
    /// Type such as `Explore`; `None` if its `.meta.json` does not name it.
    pub agent_type: Option<&'a str>,
}

/// Facts that the entries of a session state directly.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFacts {
    /// Session id of the first entry that has one.
    pub session_id: Option<String>,
    /// Working directory of the first entry that has one.
    pub cwd: Option<String>,
    /// Title given by the user, or else the generated one.
    pub title: Option<String>,
    /// Tag given by the user; `None` if it was removed.
    pub tag: Option<String>,
    /// First prompt of the user. A local command without a response, such as `/clear`, is
    /// used only if there is no other prompt.
    pub first_prompt: Option<String>,
    /// Git branch of the first entry that has one.
    pub git_branch: Option<String>,
    /// Version of the agent that wrote it last.
    pub version: Option<String>,
    /// Whether the conversation was compacted.
    pub compacted: bool,
    /// UUID of the first entry; a fork has the same one as its original.
    pub first_uuid: Option<String>,
    /// Id of the session it was forked from, if its entries have new UUIDs.
    pub forked_from: Option<String>,
    /// UUID of the last entry of the main conversation.
    pub last_uuid: Option<String>,
    /// UUID of the last entry of the session it continues, if an old-style compaction
    /// started this file.
    pub continues_leaf: Option<String>,
}

impl SessionFacts {
    fn push(&mut self, view: &View<'_>) {
        fn first(slot: &mut Option<String>, value: &Option<Str<'_>>) {
            if slot.is_none()
                && let Some(value) = value.as_deref().filter(|value| !value.is_empty())
            {
                *slot = Some(value.to_owned());
            }
        }
        first(&mut self.session_id, &view.session_id);
        first(&mut self.cwd, &view.cwd);
        first(&mut self.git_branch, &view.git_branch);
        if self.first_uuid.is_none() && view.uuid.is_some() {
            self.forked_from = view.forked_from.as_ref().and_then(|fork| Some(fork.session_id.as_deref()?.to_owned()));
        }
        first(&mut self.first_uuid, &view.uuid);
        if let Some(uuid) = view.uuid.as_deref().filter(|_| view.is_sidechain != Some(true)) {
            self.last_uuid = Some(uuid.to_owned());
        }
        if view.summary.is_some() && view.is_compact_summary == Some(true) {
            first(&mut self.continues_leaf, &view.leaf_uuid);
        }
        if let Some(version) = view.version.as_deref()
            && self.version.as_deref() != Some(version)
        {
            self.version = Some(version.to_owned());
        }
        if let Some(title) = &view.custom_title {
            self.title = Some(title.to_string());
        }
        if let Some(tag) = view.tag.as_deref().filter(|_| view.kind.as_deref() == Some("tag")) {
            self.tag = Some(tag.to_owned()).filter(|tag| !tag.is_empty());
        }
        self.compacted |= view.is_compact_summary == Some(true) || view.subtype.as_deref() == Some("compact_boundary");
    }
}

/// Totals of one session.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Metrics {
    /// Earliest timestamp, as ISO 8601.
    pub started_at: Option<String>,
    /// Latest timestamp, as ISO 8601.
    pub ended_at: Option<String>,
    /// Seconds from the earliest to the latest timestamp.
    pub duration_secs: f64,
    /// Number of turns on the active path.
    pub turns: u64,
    /// Number of API messages.
    pub messages: u64,
    /// Tokens of all messages.
    pub tokens: Tokens,
    /// Cost in US dollars: as recorded in old files, otherwise by the price table.
    pub cost_usd: f64,
    /// Number of messages whose cost is taken from the file.
    pub recorded_costs: u64,
    /// Models without a price; their tokens are counted, their cost is not known.
    pub unpriced_models: Vec<String>,
    /// Models that responded.
    pub models: Vec<String>,
    /// Number of web searches.
    pub web_searches: u64,
    /// Number of calls by tool name.
    pub tools: BTreeMap<String, u64>,
    /// Number of failed tool calls and failed API calls.
    pub errors: u64,
    /// Title, working directory and other facts.
    pub facts: SessionFacts,
}

impl MetricsBuilder {
    /// Continues a session from stored state. Tools and errors are counted from here on.
    pub fn from_state(state: MetricsState, usage: UsageTally) -> Self {
        let attribution = state.attribution.clone().restore();
        Self { state: MetricsState { attribution, ..state }, usage, ..Self::default() }
    }

    /// Declares which file the next lines come from: that of a subagent, or the session file
    /// (`None`).
    pub fn enter_file(&mut self, subagent: Option<SubagentRef<'_>>) {
        self.current_subagent = subagent.map(|subagent| {
            self.state.attribution.record_subagent(subagent.id, subagent.tool_use_id, subagent.agent_type);
            subagent.id.to_owned()
        });
    }

    /// Whether the parent of a line is not known, as after a rewind to before the
    /// [restored](Self::from_state) state. Turns are then correct only if the session is read
    /// again from the start.
    pub fn has_unknown_parent(&self) -> bool {
        self.state.attribution.has_unknown_parent()
    }

    /// Type and turn of each subagent, by its id and by the id of its tool call.
    pub fn subagents(&self) -> &BTreeMap<String, SubagentAttribution> {
        self.state.attribution.subagents()
    }

    /// Number of the turn that the last line belongs to, from 1; 0 before the first prompt.
    pub fn current_turn(&self) -> u32 {
        self.state.attribution.current_turn()
    }

    /// The prompt of the last line that was added; `None` if it has none.
    pub fn line_prompt(&self) -> Option<&LinePrompt> {
        self.line_prompt.as_ref()
    }

    /// The messages counted so far, in the order of their first lines.
    pub fn usage(&self) -> &UsageTally {
        &self.usage
    }

    /// The state to store.
    pub fn state(&self) -> &MetricsState {
        &self.state
    }

    /// The messages counted so far.
    pub fn usage_mut(&mut self) -> &mut UsageTally {
        &mut self.usage
    }

    /// Adds one line.
    pub fn push(&mut self, view: &View<'_>) {
        self.line_prompt = None;
        let state = &mut self.state;
        if let Some(time) = view.timestamp.as_deref().map(to_iso8601) {
            if state.first_timestamp.as_deref().is_none_or(|first| &*time < first) {
                state.first_timestamp = Some(time.to_string());
            }
            if state.last_timestamp.as_deref().is_none_or(|last| &*time > last) {
                state.last_timestamp = Some(time.into_owned());
            }
        }
        state.facts.push(view);
        if let Some(title) = view.ai_title.as_ref().or(view.summary.as_ref()) {
            state.generated_title = Some(title.to_string());
        }
        let is_main = self.current_subagent.is_none() && state.attribution.subagent_of(view).is_none();
        if is_main {
            state.attribution.move_to_parent(view);
        }
        match view.kind.as_deref() {
            Some("user") => self.push_user(view),
            Some("assistant") => self.push_assistant(view, false),
            Some("progress") => self.push_progress(view),
            Some("result") => {
                if let Some(usage) = &view.usage {
                    state.stream_tokens.get_or_insert_default().add(Tokens::from_usage(usage));
                }
                state.stream_cost = view.total_cost_usd.or(state.stream_cost);
            }
            _ => {}
        }
        if is_main {
            self.state.attribution.record_position(view);
        }
    }

    /// Adds a message of a subagent that a `progress` line repeats: older versions wrote no
    /// file for subagents.
    fn push_progress(&mut self, view: &View<'_>) {
        let Some(data) = &view.data else { return };
        let Some(entry) = data.repeated_entry() else { return };
        let call = view.parent_tool_use_id.as_deref();
        let Some(agent) = data.agent_id.as_deref().or(call) else { return };
        self.state.attribution.record_subagent(agent, call, None);
        let before = self.current_subagent.replace(agent.to_owned());
        match entry.kind.as_deref() {
            Some("user") => self.push_tool_results(&entry),
            Some("assistant") => self.push_assistant(&entry, true),
            _ => {}
        }
        self.current_subagent = before;
    }

    fn push_tool_results(&mut self, view: &View<'_>) {
        let Some(content) = view.message.as_ref().and_then(|message| message.content.as_ref()) else { return };
        for block in content.blocks().iter().filter(|block| block.tool_use_id.is_some()) {
            let failed = block.is_error == Some(true);
            self.errors += u64::from(failed);
            if let Some(call) = &block.tool_use_id {
                self.usage.record_search_result(call, failed);
            }
        }
    }

    fn push_user(&mut self, view: &View<'_>) {
        self.push_tool_results(view);
        self.state.attribution.record_tool_result(view);
        let Some(content) = view.message.as_ref().and_then(|message| message.content.as_ref()) else { return };
        let flags = [view.is_meta, view.is_compact_summary, view.is_sidechain, view.is_synthetic];
        let flags = flags.into_iter().chain([view.is_replay, view.is_virtual]);
        if flags.flatten().any(|is_set| is_set) || view.parent_tool_use_id.is_some() || self.current_subagent.is_some()
        {
            return;
        }
        let prompt = match content {
            ContentView::Text(text) => prompt_from_texts([&**text], false),
            ContentView::Blocks(blocks) => {
                let of_kind = |kind: &'static str| blocks.iter().filter(move |b| b.kind.as_deref() == Some(kind));
                let has_media = of_kind("image").chain(of_kind("document")).next().is_some();
                prompt_from_texts(of_kind("text").filter_map(|block| block.text.as_deref()), has_media)
            }
        };
        if let Some(prompt) = prompt {
            let (state, is_local_command) = (&mut self.state, is_local_command(&prompt));
            state.attribution.record_prompt(is_local_command);
            state.first_prompt.record_prompt(&prompt);
            self.line_prompt = Some(LinePrompt { text: prompt, is_local_command });
        }
    }

    fn push_assistant(&mut self, view: &View<'_>, is_progress: bool) {
        self.errors += u64::from(view.is_api_error == Some(true));
        let Some(message) = &view.message else { return };
        let attribution = &mut self.state.attribution;
        let agent = match &self.current_subagent {
            Some(agent) => view.agent_id.as_deref().or(Some(agent)),
            None => attribution.subagent_of(view),
        };
        let agent = agent.map(str::to_owned);
        if agent.is_none() {
            attribution.record_message(message.id.as_deref());
        }
        if agent.is_none() && message.model.as_deref() != Some(SYNTHETIC_MODEL) {
            attribution.record_response();
            self.state.first_prompt.record_response();
        }
        let attribution = &mut self.state.attribution;
        if let (Some(agent), Some(kind)) = (&agent, &view.attribution_agent) {
            attribution.record_subagent(agent, None, Some(kind));
        }
        let index = self.usage.add_sample(UsageSample { is_progress, ..UsageSample::from(view) });
        let turn = if agent.is_none() { attribution.current_turn() } else { 0 };
        self.usage.attribute(index, agent.as_deref(), turn);
        for block in message.content.iter().flat_map(ContentView::blocks) {
            let (Some("tool_use"), Some(id), Some(name)) = (block.kind.as_deref(), &block.id, &block.name) else {
                continue;
            };
            self.usage.record_tool_call(index, name);
            attribution.record_tool_call(block, agent.as_deref());
            if self.seen_tool_calls.insert(id.to_string()) {
                *self.tools.entry(name.to_string()).or_default() += 1;
                if ToolName::WebSearch == **name {
                    self.usage.record_search_call(id, index);
                }
            }
        }
    }

    /// Computes the metrics of the lines so far.
    pub fn finish(&self, prices: &Prices) -> Metrics {
        let MetricsState {
            first_timestamp: first,
            last_timestamp: last,
            attribution,
            facts,
            first_prompt,
            generated_title,
            stream_tokens,
            stream_cost,
        } = &self.state;
        let (first, last, facts) = (first.clone(), last.clone(), facts.clone());
        let mut metrics = Metrics {
            duration_secs: seconds_between(first.as_deref(), last.as_deref()),
            started_at: first,
            ended_at: last,
            turns: u64::from(attribution.current_turn()),
            tools: self.tools.clone(),
            errors: self.errors,
            facts: SessionFacts {
                title: facts.title.or_else(|| generated_title.clone()),
                first_prompt: first_prompt.text().map(str::to_owned),
                ..facts
            },
            ..Metrics::default()
        };
        let (mut cost, mut unpriced, mut models) = (Usd::ZERO, BTreeSet::new(), BTreeSet::new());
        for message in self.usage.messages() {
            metrics.messages += 1;
            metrics.tokens.add(message.tokens);
            metrics.web_searches += message.web_searches();
            metrics.recorded_costs += u64::from(message.recorded_cost_usd.is_some());
            let model = &message.serving.model;
            if !model.is_empty() && model != SYNTHETIC_MODEL && !models.contains(model) {
                models.insert(model.clone());
            }
            match message.cost(prices) {
                Cost::Priced { usd, .. } => cost += usd,
                Cost::Unpriced { model, .. } => {
                    unpriced.insert(model);
                }
            }
        }
        metrics.cost_usd = cost.as_f64();
        // Lines of a stream carry the usage at the start of a message; the sums in `result`
        // lines are complete.
        if let Some(tokens) = stream_tokens {
            metrics.tokens = *tokens;
            metrics.cost_usd = stream_cost.unwrap_or(metrics.cost_usd);
        }
        metrics.models = models.into_iter().collect();
        metrics.unpriced_models = unpriced.into_iter().collect();
        metrics
    }
}

fn seconds_between(first: Option<&str>, last: Option<&str>) -> f64 {
    match (first.and_then(parse_timestamp), last.and_then(parse_timestamp)) {
        (Some(first), Some(last)) => last.duration_since(first).as_secs_f64(),
        _ => 0.0,
    }
}

//! Session metrics from views: how long, how many, how much.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use quipu_message::View;
use quipu_message::synthetic::SYNTHETIC_MODEL;
use quipu_message::text::Str;
use quipu_message::tool::is_web_search_tool;
use quipu_message::view::ContentView;
use serde::{Deserialize, Serialize};

use crate::headline::{FirstPrompt, is_local_command};
use crate::price::{Cost, Prices, Usd};
use crate::timestamp::{parse_timestamp, to_iso8601};
use crate::tokens::Tokens;
use crate::usage::{Attribution, SubagentAttribution, UsageSample, UsageTally};
use crate::user_text::prompt_from_texts;

/// Gathers the metrics of one session: push its lines, then [`finish`](Self::finish).
///
/// Each API message counts once, by the line with the most output; the lines of
/// subagents belong to the session that set them to work.
#[derive(Debug, Default)]
pub struct MetricsBuilder {
    state: MetricsState,
    usage: UsageTally,
    errors: u64,
    tools: BTreeMap<String, u64>,
    seen_tool_calls: HashSet<String>,
    /// The subagent whose file is being read.
    current_subagent: Option<String>,
}

/// What is known of a session so far, messages and tools apart; small, to keep and
/// [go on from](MetricsBuilder::from_state).
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

/// The subagent of a file.
#[derive(Debug, Clone, Copy)]
pub struct SubagentRef<'a> {
    /// The subagent.
    pub id: &'a str,
    /// The tool call that started it, when the file beside it says so.
    pub tool_use_id: Option<&'a str>,
    /// Its type, when the file beside it says so.
    pub agent_type: Option<&'a str>,
}

/// What a session says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFacts {
    /// The session, as its first line says.
    pub session_id: Option<String>,
    /// The working directory it began in.
    pub cwd: Option<String>,
    /// The person's title, or the one made up.
    pub title: Option<String>,
    /// What the user asked first. Local commands without an answer, such as `/clear`, count
    /// only when nothing else was asked.
    pub first_prompt: Option<String>,
    /// The git branch it began on.
    pub git_branch: Option<String>,
    /// The last version that wrote it.
    pub version: Option<String>,
    /// Whether it was compacted.
    pub compacted: bool,
    /// Its first entry; a fork shares it with the session it was forked from.
    pub first_uuid: Option<String>,
    /// The session it says it was forked from, when its entries have ids of their own.
    pub forked_from: Option<String>,
    /// Its last entry.
    pub last_uuid: Option<String>,
    /// The last entry of the session it continues, when an old-style compaction
    /// began this file.
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
        self.compacted |= view.is_compact_summary == Some(true) || view.subtype.as_deref() == Some("compact_boundary");
    }
}

/// What a session amounts to.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Metrics {
    /// The earliest timestamp.
    pub started_at: Option<String>,
    /// The latest timestamp.
    pub ended_at: Option<String>,
    /// From the first line to the last, in seconds.
    pub duration_secs: f64,
    /// Requests of the person.
    pub turns: u64,
    /// API messages.
    pub messages: u64,
    /// Tokens, each API message once.
    pub tokens: Tokens,
    /// What it cost, by our prices or, where old files say it, as recorded.
    pub cost_usd: f64,
    /// How many messages were taken at the cost their file records.
    pub recorded_costs: u64,
    /// Models without a price: their tokens count, their money is not known.
    pub unpriced_models: Vec<String>,
    /// Models that answered.
    pub models: Vec<String>,
    /// Web searches.
    pub web_searches: u64,
    /// Calls by tool.
    pub tools: BTreeMap<String, u64>,
    /// Failed tool calls and failed calls of the API.
    pub errors: u64,
    /// What the session says of itself.
    pub facts: SessionFacts,
}

impl MetricsBuilder {
    /// Goes on with a session of which this much is known. Tools and errors are
    /// counted from here.
    pub fn from_state(story: MetricsState, tally: UsageTally) -> Self {
        let attribution = story.attribution.clone().restore();
        Self { state: MetricsState { attribution, ..story }, usage: tally, ..Self::default() }
    }

    /// The lines that follow are of a subagent's file, or of the session's own again.
    pub fn enter_file(&mut self, subagent: Option<SubagentRef<'_>>) {
        self.current_subagent = subagent.map(|subagent| {
            self.state.attribution.record_subagent(subagent.id, subagent.tool_use_id, subagent.agent_type);
            subagent.id.to_owned()
        });
    }

    /// Whether a line hung on one that is not known, as after a rewind to before what
    /// was [restored](Self::from_state): the turns are right only when all is read again.
    pub fn has_unknown_parent(&self) -> bool {
        self.state.attribution.has_unknown_parent()
    }

    /// What is known of the subagents, by their ids and those of their tool calls.
    pub fn subagents(&self) -> &BTreeMap<String, SubagentAttribution> {
        self.state.attribution.subagents()
    }

    /// What is known so far.
    pub fn state(&self) -> &MetricsState {
        &self.state
    }

    /// The messages so far.
    pub fn usage_mut(&mut self) -> &mut UsageTally {
        &mut self.usage
    }

    /// Takes one line.
    pub fn push(&mut self, view: &View<'_>) {
        let story = &mut self.state;
        if let Some(time) = view.timestamp.as_deref().map(to_iso8601) {
            if story.first_timestamp.as_deref().is_none_or(|first| &*time < first) {
                story.first_timestamp = Some(time.to_string());
            }
            if story.last_timestamp.as_deref().is_none_or(|last| &*time > last) {
                story.last_timestamp = Some(time.into_owned());
            }
        }
        story.facts.push(view);
        if let Some(title) = view.ai_title.as_ref().or(view.summary.as_ref()) {
            story.generated_title = Some(title.to_string());
        }
        let is_main = self.current_subagent.is_none() && story.attribution.subagent_of(view).is_none();
        if is_main {
            story.attribution.move_to_parent(view);
        }
        match view.kind.as_deref() {
            Some("user") => self.push_user(view),
            Some("assistant") => self.push_assistant(view, false),
            Some("progress") => self.push_progress(view),
            Some("result") => {
                if let Some(usage) = &view.usage {
                    story.stream_tokens.get_or_insert_default().add(Tokens::from_usage(usage));
                }
                story.stream_cost = view.total_cost_usd.or(story.stream_cost);
            }
            _ => {}
        }
        if is_main {
            self.state.attribution.record_position(view);
        }
    }

    /// What a subagent said, repeated in the file of its session: older versions kept no
    /// file of its own.
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
            if !failed && let Some(call) = &block.tool_use_id {
                self.usage.record_search_result(call);
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
        let asked = match content {
            ContentView::Text(text) => prompt_from_texts([&**text], false),
            ContentView::Blocks(blocks) => {
                let of_kind = |kind: &'static str| blocks.iter().filter(move |b| b.kind.as_deref() == Some(kind));
                let has_media = of_kind("image").chain(of_kind("document")).next().is_some();
                prompt_from_texts(of_kind("text").filter_map(|block| block.text.as_deref()), has_media)
            }
        };
        if let Some(prompt) = asked {
            let story = &mut self.state;
            story.attribution.record_prompt(is_local_command(&prompt));
            story.first_prompt.record_prompt(&prompt);
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
        let at = self.usage.add_sample(UsageSample { is_progress, ..UsageSample::from(view) });
        let turn = if agent.is_none() { attribution.current_turn() } else { 0 };
        self.usage.attribute(at, agent.as_deref(), turn);
        for block in message.content.iter().flat_map(ContentView::blocks) {
            let (Some("tool_use"), Some(id), Some(name)) = (block.kind.as_deref(), &block.id, &block.name) else {
                continue;
            };
            self.usage.record_tool_call(at, name);
            attribution.record_tool_call(block, agent.as_deref());
            if self.seen_tool_calls.insert(id.to_string()) {
                *self.tools.entry(name.to_string()).or_default() += 1;
                if is_web_search_tool(name) {
                    self.usage.record_search_call(id, at);
                }
            }
        }
    }

    /// Adds it all up.
    pub fn finish(&self, prices: &Prices) -> Metrics {
        let MetricsState {
            first_timestamp: first,
            last_timestamp: last,
            attribution,
            facts,
            first_prompt,
            generated_title: made_up_title,
            stream_tokens: live,
            stream_cost: live_cost,
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
                title: facts.title.or_else(|| made_up_title.clone()),
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
        // Live, the sums of the turns are right and the lines are not: they carry
        // the usage of the moment they began.
        if let Some(tokens) = live {
            metrics.tokens = *tokens;
            metrics.cost_usd = live_cost.unwrap_or(metrics.cost_usd);
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

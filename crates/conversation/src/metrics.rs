//! Session metrics from views: how long, how many, how much.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use quipu_message::View;
use quipu_message::synthetic::{MODEL, is_synthetic};
use quipu_message::text::Str;
use quipu_message::view::{ContentView, UsageView};
use serde::Serialize;

use crate::person::{Said, said};
use crate::price::{Cost, Counts, Prices, Usd};

/// Token counts of one message or a sum of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tokens {
    /// Uncached prompt tokens.
    pub input: u64,
    /// Tokens the model wrote.
    pub output: u64,
    /// Prompt tokens written to the five-minute cache, and those whose lifetime
    /// the file does not say.
    pub cache_write_5m: u64,
    /// Prompt tokens written to the one-hour cache.
    pub cache_write_1h: u64,
    /// Prompt tokens read from the cache.
    pub cache_read: u64,
}

impl Tokens {
    fn of(usage: &UsageView) -> Self {
        let rest = usage.cache_write.saturating_sub(usage.cache_write_5m + usage.cache_write_1h);
        Self {
            input: usage.input,
            output: usage.output,
            cache_write_5m: usage.cache_write_5m + rest,
            cache_write_1h: usage.cache_write_1h,
            cache_read: usage.cache_read,
        }
    }

    fn add(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
        self.cache_write_5m += other.cache_write_5m;
        self.cache_write_1h += other.cache_write_1h;
        self.cache_read += other.cache_read;
    }
}

/// Gathers the metrics of one session: push its lines, then [`finish`](Self::finish).
///
/// Each API message counts once, by the line with the most output; the lines of
/// subagents belong to the session that set them to work.
#[derive(Debug, Default)]
pub struct Session {
    first: Option<String>,
    last: Option<String>,
    turns: u64,
    unanswered: bool,
    messages: u64,
    errors: u64,
    tools: BTreeMap<String, u64>,
    calls: HashMap<String, String>,
    searches: u64,
    by_message: BTreeMap<String, Counted>,
    facts: Facts,
    live: Vec<UsageView>,
    live_cost: Option<f64>,
}

#[derive(Debug, Default)]
struct Counted {
    model: String,
    usage: UsageView,
    timestamp: Option<String>,
    recorded: Option<f64>,
}

/// What a session says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// The session, as its first line says.
    pub session_id: Option<String>,
    /// The working directory it began in.
    pub cwd: Option<String>,
    /// The person's title, or the one made up.
    pub title: Option<String>,
    /// What the person asked first.
    pub first_prompt: Option<String>,
    /// The git branch it began on.
    pub git_branch: Option<String>,
    /// The last version that wrote it.
    pub version: Option<String>,
    /// Whether it was compacted.
    pub compacted: bool,
    /// Its first entry; a fork shares it with the session it was forked from.
    pub first_uuid: Option<String>,
    /// Its last entry.
    pub last_uuid: Option<String>,
    /// The last entry of the session it continues, when an old-style compaction
    /// began this file.
    pub continues_leaf: Option<String>,
    #[serde(skip)]
    made_up_title: Option<String>,
}

impl Facts {
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
        if let Some(title) = view.ai_title.as_ref().or(view.summary.as_ref()) {
            self.made_up_title = Some(title.to_string());
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
    pub facts: Facts,
}

impl Session {
    /// Takes one line.
    pub fn push(&mut self, view: &View<'_>) {
        if let Some(time) = view.timestamp.as_deref() {
            if self.first.as_deref().is_none_or(|first| time < first) {
                self.first = Some(time.to_owned());
            }
            if self.last.as_deref().is_none_or(|last| time > last) {
                self.last = Some(time.to_owned());
            }
        }
        self.facts.push(view);
        match view.kind.as_deref() {
            Some("user") => self.user(view),
            Some("assistant") => self.assistant(view),
            Some("result") => {
                self.live.extend(view.usage.clone());
                self.live_cost = view.total_cost_usd.or(self.live_cost);
            }
            _ => {}
        }
    }

    fn user(&mut self, view: &View<'_>) {
        let Some(content) = view.message.as_ref().and_then(|message| message.content.as_ref()) else { return };
        for block in content.blocks().iter().filter(|block| block.tool_use_id.is_some()) {
            let failed = block.is_error == Some(true);
            self.errors += u64::from(failed);
            let call = block.tool_use_id.as_deref().unwrap_or_default();
            if !failed && self.calls.get(call).is_some_and(|tool| tool == "WebSearch") {
                self.searches += 1;
            }
        }
        let flags = [view.is_meta, view.is_compact_summary, view.is_sidechain, view.is_synthetic, view.is_replay];
        if flags.contains(&Some(true)) || view.parent_tool_use_id.is_some() {
            return;
        }
        let prompt = |text: &str| match said(text) {
            Said::Prompt { text, .. } if !is_synthetic(&text) => Some(text),
            _ => None,
        };
        let asked = match content {
            ContentView::Text(text) => prompt(text),
            ContentView::Blocks(blocks) => blocks.iter().find_map(|block| match block.kind.as_deref() {
                Some("text") => block.text.as_deref().and_then(prompt),
                Some("image" | "document") => Some(String::new()),
                _ => None,
            }),
        };
        if let Some(prompt) = asked {
            // A local command is a turn only if the model answers it.
            self.unanswered = prompt.starts_with('/') || prompt.starts_with("! ");
            self.turns += u64::from(!self.unanswered);
            let first = self.facts.first_prompt.get_or_insert_default();
            if first.is_empty() {
                *first = prompt;
            }
        }
    }

    fn assistant(&mut self, view: &View<'_>) {
        self.errors += u64::from(view.is_api_error == Some(true));
        let Some(message) = &view.message else { return };
        if std::mem::take(&mut self.unanswered) && message.model.as_deref() != Some(MODEL) {
            self.turns += 1;
        }
        for block in message.content.iter().flat_map(ContentView::blocks) {
            if let (Some("tool_use"), Some(id), Some(name)) = (block.kind.as_deref(), &block.id, &block.name)
                && self.calls.insert(id.to_string(), name.to_string()).is_none()
            {
                *self.tools.entry(name.to_string()).or_default() += 1;
            }
        }
        let named = |id: &Option<Str<'_>>| id.as_deref().filter(|id| !id.is_empty()).map(str::to_owned);
        // A line without any id is a message of its own.
        let own = || format!("line {}", self.by_message.len());
        let key = named(&message.id).or_else(|| named(&view.request_id)).unwrap_or_else(own);
        let usage = message.usage.clone().or_else(|| view.usage.clone()).unwrap_or_default();
        let time = view.timestamp.as_deref();
        let counted = self.by_message.entry(key).or_insert_with(|| {
            self.messages += 1;
            Counted::default()
        });
        if counted.timestamp.as_deref().is_none_or(|known| time.is_some_and(|time| time < known)) {
            counted.timestamp = time.map(str::to_owned).or(counted.timestamp.take());
        }
        counted.recorded = view.cost_usd.or(counted.recorded);
        if usage.output >= counted.usage.output {
            counted.usage = usage;
            counted.model = message.model.as_deref().unwrap_or_default().to_owned();
        }
    }

    /// Adds it all up.
    pub fn finish(self, prices: &Prices) -> Metrics {
        let mut metrics = Metrics {
            duration_secs: seconds(self.first.as_deref(), self.last.as_deref()),
            started_at: self.first,
            ended_at: self.last,
            turns: self.turns,
            messages: self.messages,
            tools: self.tools,
            errors: self.errors,
            facts: self.facts,
            ..Metrics::default()
        };
        let facts = &mut metrics.facts;
        facts.title = facts.title.take().or_else(|| facts.made_up_title.take());
        let (mut cost, mut unpriced, mut models) = (Usd::ZERO, BTreeSet::new(), BTreeSet::new());
        for counted in self.by_message.values() {
            metrics.tokens.add(Tokens::of(&counted.usage));
            metrics.web_searches += counted.usage.web_searches;
            if !counted.model.is_empty() && counted.model != MODEL {
                models.insert(counted.model.clone());
            }
            if let Some(recorded) = counted.recorded {
                metrics.recorded_costs += 1;
                cost += Usd::from_f64(recorded);
                continue;
            }
            match price(prices, counted) {
                Cost::Priced { usd, .. } => cost += usd,
                Cost::Unpriced { model, .. } => {
                    unpriced.insert(model);
                }
            }
        }
        // The counter on the answer is often zero although a search was made.
        let uncounted = self.searches.saturating_sub(metrics.web_searches);
        metrics.web_searches += uncounted;
        cost += prices.web_searches(uncounted);
        metrics.cost_usd = cost.as_f64();
        // Live, the sums of the turns are right and the lines are not: they carry
        // the usage of the moment they began.
        if !self.live.is_empty() {
            metrics.tokens = Tokens::default();
            self.live.iter().for_each(|usage| metrics.tokens.add(Tokens::of(usage)));
            metrics.cost_usd = self.live_cost.unwrap_or(metrics.cost_usd);
        }
        metrics.models = models.into_iter().collect();
        metrics.unpriced_models = unpriced.into_iter().collect();
        metrics
    }
}

fn price(prices: &Prices, counted: &Counted) -> Cost {
    let usage = &counted.usage;
    let counts = Counts {
        input: usage.input,
        output: usage.output,
        cache_write_5m: usage.cache_write_5m,
        cache_write_1h: usage.cache_write_1h,
        cache_write_total: usage.cache_write,
        cache_read: usage.cache_read,
        web_searches: usage.web_searches,
    };
    prices.cost(&counted.model, counted.timestamp.as_deref(), &counts, usage.speed.as_deref(), usage.geo.as_deref())
}

fn seconds(first: Option<&str>, last: Option<&str>) -> f64 {
    let time = |text: Option<&str>| text?.parse::<jiff::Timestamp>().ok();
    match (time(first), time(last)) {
        (Some(first), Some(last)) => last.duration_since(first).as_secs_f64(),
        _ => 0.0,
    }
}

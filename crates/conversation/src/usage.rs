//! What each API message used: one message counts once, however many lines carry it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use quipu_message::View;
use quipu_message::view::{UsageLineView, UsageView};

use crate::metrics::Tokens;
use crate::price::{Cost, Prices, UsageCounts, Usd};

/// Gathers the messages of one session, the files of its subagents included.
///
/// The key is the message's id, or the request's where that is missing. Of the lines
/// of one message the one with the most output is kept whole, the last on a tie.
/// What `progress` lines repeat counts only while no line of its own holds the message.
#[derive(Debug, Default)]
pub struct UsageTally {
    messages: Vec<MessageUsage>,
    by_key: HashMap<MessageKey, usize, BuildHasherDefault<IdentityHasher>>,
    /// Web searches: the call, and the message that made it until it is answered.
    searches: HashMap<String, Option<usize>>,
    /// How many of them are not answered.
    pending_searches: usize,
    serving_infos: Vec<Arc<ServingInfo>>,
    /// Names of tools and subagents, each kept once.
    names: HashSet<Arc<str>>,
    /// Messages added or changed.
    changed_messages: Vec<usize>,
}

/// What tells a message from the others: its id, or its request's, as a number. None
/// when it has neither.
pub type MessageKey = u64;

/// How a message was served: what its price depends on beside its tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ServingInfo {
    /// The model.
    pub model: String,
    /// The speed, when it is not the standard one.
    pub speed: Option<Box<str>>,
    /// Where the model ran.
    pub geo: Option<Box<str>>,
}

/// One API message and what it used.
#[derive(Debug, Clone, Default)]
pub struct MessageUsage {
    /// What tells it from the others.
    pub key: Option<MessageKey>,
    /// Whether any of its lines says what it used.
    pub has_usage: bool,
    /// Whether only `progress` lines hold it; its output is then what had been
    /// streamed when the line was written.
    pub is_progress: bool,
    /// How it was served.
    pub serving: Arc<ServingInfo>,
    /// Its tokens.
    pub tokens: Tokens,
    /// The time of its earliest line.
    pub earliest_time: Option<Timestamp>,
    /// What it cost, where the file says so.
    pub recorded_cost_usd: Option<f64>,
    /// Searches of the web by the counter on the answer.
    pub reported_searches: u64,
    /// Searches of the web that it asked for and that found something.
    pub answered_searches: u64,
    /// The times of its lines, in milliseconds since 1970.
    pub line_times_ms: Vec<i64>,
    /// The ids of its first and last line, as numbers; 0 when they have none.
    pub line_hashes: [u64; 2],
    /// Names of the tools it calls, each once, in the order of its calls.
    pub tools: Vec<Arc<str>>,
    /// Id of the subagent that made the API call, or of the tool call that started the
    /// subagent; `None` for the main conversation.
    pub agent: Option<Arc<str>>,
    /// Number of its turn, from 1; 0 before the first prompt, and for subagents.
    pub turn: u32,
}

/// What one line says of a message.
#[derive(Debug, Clone, Default)]
pub struct UsageSample<'a> {
    /// The message.
    pub message_id: Option<&'a str>,
    /// The request.
    pub request_id: Option<&'a str>,
    /// The model.
    pub model: Option<&'a str>,
    /// What was used, where the line says so.
    pub usage: Option<UsageView>,
    /// When.
    pub timestamp: Option<&'a str>,
    /// The line.
    pub uuid: Option<&'a str>,
    /// What it cost, where the file says so.
    pub recorded_cost_usd: Option<f64>,
    /// Whether a `progress` line repeats it.
    pub is_progress: bool,
}

fn non_empty<T: Deref<Target = str>>(text: &Option<T>) -> Option<&str> {
    // An empty id is no id.
    text.as_deref().filter(|text| !text.is_empty())
}

impl<'a> From<&'a View<'_>> for UsageSample<'a> {
    fn from(view: &'a View<'_>) -> Self {
        let message = view.message.as_ref();
        Self {
            message_id: message.and_then(|m| non_empty(&m.id)),
            request_id: non_empty(&view.request_id),
            model: message.and_then(|m| non_empty(&m.model)),
            usage: message.and_then(|m| m.usage.clone()).or_else(|| view.usage.clone()),
            timestamp: non_empty(&view.timestamp),
            uuid: non_empty(&view.uuid),
            recorded_cost_usd: view.cost_usd,
            is_progress: false,
        }
    }
}

impl<'a> From<&'a UsageLineView<'_>> for UsageSample<'a> {
    fn from(line: &'a UsageLineView<'_>) -> Self {
        let message = line.message.as_ref();
        Self {
            message_id: message.and_then(|m| non_empty(&m.id)),
            request_id: non_empty(&line.request_id),
            model: message.and_then(|m| non_empty(&m.model)),
            usage: message.and_then(|m| m.usage.clone()).or_else(|| line.usage.clone()),
            timestamp: non_empty(&line.timestamp),
            uuid: non_empty(&line.uuid),
            recorded_cost_usd: line.cost_usd,
            is_progress: false,
        }
    }
}

/// The moment a timestamp names; one without an offset is taken as UTC, one of digits
/// alone as milliseconds since 1970, or seconds when they are few.
pub fn parse_timestamp(timestamp: &str) -> Option<Timestamp> {
    if let Ok(number) = timestamp.parse::<i64>() {
        let is_seconds = number < 100_000_000_000;
        return if is_seconds { Timestamp::from_second(number) } else { Timestamp::from_millisecond(number) }.ok();
    }
    let civil = || timestamp.parse::<DateTime>().ok().and_then(|time| Offset::UTC.to_timestamp(time).ok());
    timestamp.parse().ok().or_else(civil)
}

/// A timestamp as ISO 8601 text: digits are turned into it, anything else stays as it is.
pub fn to_iso8601(timestamp: &str) -> Cow<'_, str> {
    match parse_timestamp(timestamp).filter(|_| timestamp.parse::<i64>().is_ok()) {
        Some(time) => format!("{time:.3}").into(),
        None => timestamp.into(),
    }
}

impl UsageTally {
    /// Goes on from messages gathered earlier, and the searches that were known then.
    pub fn from_messages(messages: Vec<MessageUsage>, searches: HashMap<String, Option<usize>>) -> Self {
        let by_key = messages.iter().enumerate().filter_map(|(at, message)| Some((message.key?, at))).collect();
        let searches = searches.into_iter().map(|(call, at)| (call, at.filter(|&at| at < messages.len())));
        let searches: HashMap<_, _> = searches.collect();
        let searching = searches.values().flatten().count();
        Self { messages, by_key, searches, pending_searches: searching, ..Self::default() }
    }

    /// Takes what a line says; returns the place of its message.
    pub fn add_sample(&mut self, spent: UsageSample<'_>) -> usize {
        let key = spent.message_id.or(spent.request_id).map(hash_text);
        let at = match key.and_then(|key| self.by_key.get(&key).copied()) {
            Some(at) => at,
            None => {
                let at = self.messages.len();
                self.messages.push(MessageUsage { key, ..MessageUsage::default() });
                self.by_key.extend(key.map(|key| (key, at)));
                at
            }
        };
        self.mark_changed(at);
        if spent.usage.is_none() && spent.recorded_cost_usd.is_none() {
            return at;
        }
        let message = &mut self.messages[at];
        match (message.has_usage, message.is_progress, spent.is_progress) {
            (true, false, true) => return at,
            (true, true, false) => message.clear_usage(),
            (told, ..) if !told => message.is_progress = spent.is_progress,
            _ => {}
        }
        let usage = spent.usage.unwrap_or_default();
        let fuller = usage.output >= self.messages[at].tokens.output;
        let served = fuller.then(|| self.intern_serving_info(spent.model.unwrap_or_default(), &usage));
        let message = &mut self.messages[at];
        message.has_usage = true;
        if let Some(time) = spent.timestamp.and_then(parse_timestamp) {
            message.earliest_time = Some(message.earliest_time.map_or(time, |known| known.min(time)));
            let time = time.as_millisecond();
            if !message.line_times_ms.contains(&time) {
                message.line_times_ms.push(time);
            }
        }
        if let Some(line) = spent.uuid.map(hash_text) {
            let [first, _] = message.line_hashes;
            message.line_hashes = [if first == 0 { line } else { first }, line];
        }
        message.recorded_cost_usd = spent.recorded_cost_usd.or(message.recorded_cost_usd);
        if let Some(served) = served {
            message.tokens = Tokens::from_usage(&usage);
            message.reported_searches = usage.web_searches;
            message.serving = served;
        }
        at
    }

    /// Notes who asked for a message, by the line that carries it. Of several turns the last
    /// counts: where a conversation is copied within its file, the copy is the one shown.
    pub fn attribute(&mut self, message: usize, agent: Option<&str>, turn: u32) {
        let agent = agent.map(|agent| self.intern_name(agent));
        let message = &mut self.messages[message];
        if message.agent.is_none() {
            message.agent = agent;
        }
        if turn != 0 {
            message.turn = turn;
        }
    }

    /// Notes that a message calls a tool.
    pub fn record_tool_call(&mut self, message: usize, tool: &str) {
        if !self.messages[message].tools.iter().any(|known| **known == *tool) {
            let tool = self.intern_name(tool);
            self.messages[message].tools.push(tool);
        }
    }

    /// A message asked for a search of the web.
    pub fn record_search_call(&mut self, call: &str, message: usize) {
        if !self.searches.contains_key(call) {
            self.searches.insert(call.to_owned(), Some(message));
            self.pending_searches += 1;
        }
    }

    /// A search was answered without an error.
    pub fn record_search_result(&mut self, call: &str) {
        if let Some(at) = self.searches.get_mut(call).and_then(Option::take) {
            self.pending_searches -= 1;
            self.messages[at].answered_searches += 1;
            self.mark_changed(at);
        }
    }

    /// Whether searches are under way.
    pub fn has_pending_searches(&self) -> bool {
        self.pending_searches > 0
    }

    /// The messages, in the order they first appeared.
    pub fn messages(&self) -> &[MessageUsage] {
        &self.messages
    }

    /// The places of the messages that were added or changed since the beginning or
    /// the [restoring](Self::from_messages), in order.
    pub fn changed_messages(&mut self) -> &[usize] {
        self.changed_messages.sort_unstable();
        self.changed_messages.dedup();
        &self.changed_messages
    }

    /// The searches known so far.
    pub fn searches(&self) -> &HashMap<String, Option<usize>> {
        &self.searches
    }

    fn mark_changed(&mut self, at: usize) {
        if self.changed_messages.last() != Some(&at) {
            self.changed_messages.push(at);
        }
    }

    fn intern_name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return Arc::clone(known);
        }
        let name: Arc<str> = name.into();
        self.names.insert(Arc::clone(&name));
        name
    }

    /// A session has few models: each is kept once.
    fn intern_serving_info(&mut self, model: &str, usage: &UsageView) -> Arc<ServingInfo> {
        let same = |served: &&Arc<ServingInfo>| {
            served.model == model && served.speed == usage.speed && served.geo == usage.inference_geo
        };
        if let Some(served) = self.serving_infos.iter().find(same) {
            return Arc::clone(served);
        }
        let served =
            ServingInfo { model: model.to_owned(), speed: usage.speed.clone(), geo: usage.inference_geo.clone() };
        let served = Arc::new(served);
        self.serving_infos.push(Arc::clone(&served));
        served
    }
}

impl MessageUsage {
    /// Drops what `progress` lines said of it.
    fn clear_usage(&mut self) {
        let key = self.key;
        let (tools, agent, turn) = (std::mem::take(&mut self.tools), self.agent.take(), self.turn);
        let searches_found = self.answered_searches;
        *self = Self { key, tools, agent, turn, answered_searches: searches_found, ..Self::default() };
    }

    /// One message out of its copies in several sessions, the credited one first: the
    /// counts of the copy with the most output, the earliest time, and the tool calls
    /// of the copy that has most. Copies in lines of their own go before those that
    /// only `progress` lines hold.
    pub fn merge_copies(copies: &[&Self]) -> Self {
        let Some((&first, rest)) = copies.split_first() else { return Self::default() };
        let mut merged = first.clone();
        let mut fullest = (!first.is_progress, first.tokens.output);
        for copy in rest {
            if (!copy.is_progress, copy.tokens.output) > fullest {
                fullest = (!copy.is_progress, copy.tokens.output);
                (merged.tokens, merged.serving) = (copy.tokens, Arc::clone(&copy.serving));
                (merged.reported_searches, merged.is_progress) = (copy.reported_searches, copy.is_progress);
                merged.recorded_cost_usd = copy.recorded_cost_usd.or(merged.recorded_cost_usd);
            }
            merged.earliest_time = merged.earliest_time.into_iter().chain(copy.earliest_time).min();
            merged.answered_searches = merged.answered_searches.max(copy.answered_searches);
            if copy.tools.len() > merged.tools.len() {
                merged.tools.clone_from(&copy.tools);
            }
        }
        merged
    }

    /// Its web searches: the counter on the answer is often zero although a search
    /// was made, so the results are counted too.
    pub fn web_searches(&self) -> u64 {
        self.reported_searches.max(self.answered_searches)
    }

    /// What it cost: as recorded where the file says so, by our prices otherwise.
    pub fn cost(&self, prices: &Prices) -> Cost {
        if let Some(recorded) = self.recorded_cost_usd {
            return Cost::Priced { usd: Usd::from_f64(recorded), breakdown: Default::default() };
        }
        let ServingInfo { model, speed, geo } = &*self.serving;
        prices.cost(model, self.earliest_time, &self.counts(), speed.as_deref(), geo.as_deref())
    }

    /// What the prompt cache saved against reading everything anew.
    pub fn cache_savings(&self, prices: &Prices) -> Option<Usd> {
        let ServingInfo { model, speed, geo } = &*self.serving;
        prices.cache_savings(model, self.earliest_time, &self.counts(), speed.as_deref(), geo.as_deref())
    }

    /// What tells the message from another of the same key in another session: a copy
    /// shares a time or an end of its lines. Forks keep both; some resumes write new
    /// ids with old times. Gateways and test servers give other messages the same key.
    pub fn copy_marks(&self) -> impl Iterator<Item = u64> {
        let times = self.line_times_ms.iter().map(|time| time.cast_unsigned());
        times.chain(self.line_hashes.into_iter().filter(|line| *line != 0))
    }

    fn counts(&self) -> UsageCounts {
        UsageCounts {
            input: self.tokens.input,
            output: self.tokens.output,
            cache_write_5m: self.tokens.cache_write_5m,
            cache_write_1h: self.tokens.cache_write_1h,
            cache_write_total: 0,
            cache_read: self.tokens.cache_read,
            web_searches: self.web_searches(),
        }
    }
}

/// Text as a number.
fn hash_text(text: &str) -> u64 {
    stable_hash(text.as_bytes())
}

/// Bytes as a number. The same in every run, build and version: indexes keep it, and so
/// does the usage of deleted sessions in the user's data folder.
pub fn stable_hash(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(bytes.len() as u64, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let mixed = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 32
    })
}

/// For keys that are hashes already.
#[derive(Debug, Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are numbers");
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

//! Collects the usage of one session, each API message once.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use quipu_message::View;
use quipu_message::view::{UsageLineView, UsageView};

use super::{MessageKey, MessageUsage, ServingInfo, stable_hash};
use crate::timestamp::parse_timestamp;
use crate::tokens::Tokens;

/// Collects the API messages of one session, including those of its subagents.
///
/// Lines with the same message id (or request id, if there is no message id) are one message.
/// The values of the line with the most output are kept, the last one if several have the
/// same. `progress` lines repeat messages of subagents; they count only if no other line
/// holds the message.
#[derive(Debug, Default)]
pub struct UsageTally {
    messages: Vec<MessageUsage>,
    by_key: HashMap<MessageKey, usize, BuildHasherDefault<IdentityHasher>>,
    /// Tool calls that search the web, each with the index of its message until the result
    /// arrives, then `None`.
    searches: HashMap<String, Option<usize>>,
    /// Number of searches without a result.
    pending_searches: usize,
    serving_infos: Vec<Arc<ServingInfo>>,
    /// Names of tools and subagents, each stored once.
    names: HashSet<Arc<str>>,
    /// Indices of messages that were added or changed.
    changed_messages: Vec<usize>,
}

/// What one line contributes to the usage of a message.
#[derive(Debug, Clone, Default)]
pub struct UsageSample<'a> {
    /// Id of the API message.
    pub message_id: Option<&'a str>,
    /// Id of the API request.
    pub request_id: Option<&'a str>,
    /// Name of the model.
    pub model: Option<&'a str>,
    /// The `usage` object; `None` if the line has none.
    pub usage: Option<UsageView>,
    /// Timestamp of the line, as written.
    pub timestamp: Option<&'a str>,
    /// UUID of the line.
    pub uuid: Option<&'a str>,
    /// Recorded cost in US dollars; `None` if the line has none.
    pub recorded_cost_usd: Option<f64>,
    /// Whether the message was repeated in a `progress` line.
    pub is_progress: bool,
}

/// Treats an empty string as a missing one.
fn non_empty<T: Deref<Target = str>>(text: &Option<T>) -> Option<&str> {
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

impl UsageTally {
    /// Continues from messages and [searches](Self::searches) that were saved earlier.
    pub fn from_messages(messages: Vec<MessageUsage>, searches: HashMap<String, Option<usize>>) -> Self {
        let by_key = messages.iter().enumerate().filter_map(|(index, message)| Some((message.key?, index))).collect();
        let is_valid = |index: &usize| *index < messages.len();
        let searches: HashMap<_, _> =
            searches.into_iter().map(|(call, index)| (call, index.filter(is_valid))).collect();
        let pending_searches = searches.values().flatten().count();
        Self { messages, by_key, searches, pending_searches, ..Self::default() }
    }

    /// Adds the usage of one line; returns the index of its message in
    /// [`messages`](Self::messages).
    pub fn add_sample(&mut self, sample: UsageSample<'_>) -> usize {
        let index = self.find_or_add(sample.message_id.or(sample.request_id).map(hash_text));
        self.mark_changed(index);
        if sample.usage.is_none() && sample.recorded_cost_usd.is_none() {
            return index;
        }
        let message = &mut self.messages[index];
        match (message.has_usage, message.is_progress, sample.is_progress) {
            (true, false, true) => return index,
            (true, true, false) => message.clear_usage(),
            (false, ..) => message.is_progress = sample.is_progress,
            _ => {}
        }
        let usage = sample.usage.unwrap_or_default();
        let has_most_output = usage.output >= self.messages[index].tokens.output;
        let serving = has_most_output.then(|| self.intern_serving_info(sample.model.unwrap_or_default(), &usage));
        let message = &mut self.messages[index];
        message.has_usage = true;
        if let Some(time) = sample.timestamp.and_then(parse_timestamp) {
            message.earliest_time = Some(message.earliest_time.map_or(time, |earliest| earliest.min(time)));
            let time = time.as_millisecond();
            if !message.line_times_ms.contains(&time) {
                message.line_times_ms.push(time);
            }
        }
        if let Some(line) = sample.uuid.map(hash_text) {
            let [first, _] = message.line_hashes;
            message.line_hashes = [if first == 0 { line } else { first }, line];
        }
        message.recorded_cost_usd = sample.recorded_cost_usd.or(message.recorded_cost_usd);
        if let Some(serving) = serving {
            message.tokens = Tokens::from_usage(&usage);
            message.reported_searches = usage.web_searches;
            message.serving = serving;
        }
        index
    }

    fn find_or_add(&mut self, key: Option<MessageKey>) -> usize {
        if let Some(index) = key.and_then(|key| self.by_key.get(&key)) {
            return *index;
        }
        let index = self.messages.len();
        self.messages.push(MessageUsage { key, ..MessageUsage::default() });
        self.by_key.extend(key.map(|key| (key, index)));
        index
    }

    /// Records which subagent and turn a message belongs to, by one of its lines.
    ///
    /// The first subagent and the last turn count: if a conversation is copied within its
    /// file, the copy is the one that is shown.
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

    /// Records that a message calls a tool.
    pub fn record_tool_call(&mut self, message: usize, tool: &str) {
        if !self.messages[message].tools.iter().any(|name| **name == *tool) {
            let tool = self.intern_name(tool);
            self.messages[message].tools.push(tool);
        }
    }

    /// Records that a message calls a web search.
    pub fn record_search_call(&mut self, call: &str, message: usize) {
        if !self.searches.contains_key(call) {
            self.searches.insert(call.to_owned(), Some(message));
            self.pending_searches += 1;
        }
    }

    /// Records a tool result; ignored unless it is the first one of a web search. A failed search
    /// is not counted.
    pub fn record_search_result(&mut self, call: &str, is_error: bool) {
        if let Some(index) = self.searches.get_mut(call).and_then(Option::take) {
            self.pending_searches -= 1;
            self.messages[index].answered_searches += u64::from(!is_error);
            self.mark_changed(index);
        }
    }

    /// Ids of the tool calls that search the web and have no result yet.
    pub fn pending_searches(&self) -> impl Iterator<Item = &str> {
        let calls = self.searches.iter().filter(|_| self.pending_searches > 0);
        calls.filter(|(_, message)| message.is_some()).map(|(call, _)| call.as_str())
    }

    /// The messages, in the order they first appeared.
    pub fn messages(&self) -> &[MessageUsage] {
        &self.messages
    }

    /// Indices of the messages that were added or changed since the tally was created or
    /// [restored](Self::from_messages), in ascending order.
    pub fn changed_messages(&mut self) -> &[usize] {
        self.changed_messages.sort_unstable();
        self.changed_messages.dedup();
        &self.changed_messages
    }

    /// Ids of the tool calls that search the web, each with the index of its message while
    /// it has no result.
    pub fn searches(&self) -> &HashMap<String, Option<usize>> {
        &self.searches
    }

    fn mark_changed(&mut self, index: usize) {
        if self.changed_messages.last() != Some(&index) {
            self.changed_messages.push(index);
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

    fn intern_serving_info(&mut self, model: &str, usage: &UsageView) -> Arc<ServingInfo> {
        let is_same = |info: &&Arc<ServingInfo>| {
            info.model == model && info.speed == usage.speed && info.geo == usage.inference_geo
        };
        if let Some(info) = self.serving_infos.iter().find(is_same) {
            return Arc::clone(info);
        }
        let info =
            ServingInfo { model: model.to_owned(), speed: usage.speed.clone(), geo: usage.inference_geo.clone() };
        let info = Arc::new(info);
        self.serving_infos.push(Arc::clone(&info));
        info
    }
}

/// Hashes an id.
fn hash_text(text: &str) -> u64 {
    stable_hash(text.as_bytes())
}

/// Hasher for keys that are hashes already.
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

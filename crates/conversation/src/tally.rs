//! What each API message used: one message counts once, however many lines carry it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use quipu_message::view::{UsageLine, UsageView};
use quipu_message::{View, text::Str};

use crate::metrics::Tokens;
use crate::price::{Cost, Counts, Prices, Usd};

/// Gathers the messages of one session, the files of its subagents included.
///
/// The key is the message's id, or the request's where that is missing. Of the lines
/// of one message the one with the most output is kept whole, the last on a tie.
#[derive(Debug, Default)]
pub struct Tally {
    messages: Vec<MessageUse>,
    by_key: HashMap<String, usize>,
    /// Web searches under way: the call, and the message that made it.
    searches: HashMap<String, usize>,
    models: HashMap<String, Arc<str>>,
}

/// One API message and what it used.
#[derive(Debug, Clone, Default)]
pub struct MessageUse {
    /// Its id, or its request's; empty when it has neither.
    pub key: String,
    /// The model.
    pub model: Arc<str>,
    /// What it used.
    pub usage: UsageView,
    /// Its earliest line.
    pub timestamp: Option<String>,
    /// What it cost, where the file says so.
    pub recorded: Option<f64>,
    /// Searches of the web that it asked for and that found something.
    searches: u64,
    /// Times and ids of its lines, hashed: a copy in another session shares one.
    marks: Vec<u64>,
}

/// What one line says of a message.
#[derive(Debug, Clone, Default)]
pub struct Spent<'a> {
    /// The message.
    pub message_id: Option<&'a str>,
    /// The request.
    pub request_id: Option<&'a str>,
    /// The model.
    pub model: Option<&'a str>,
    /// What was used.
    pub usage: UsageView,
    /// When.
    pub timestamp: Option<&'a str>,
    /// The line.
    pub uuid: Option<&'a str>,
    /// What it cost, where the file says so.
    pub recorded: Option<f64>,
}

fn text<'a>(text: &'a Option<Str<'_>>) -> Option<&'a str> {
    // An empty id is no id.
    text.as_deref().filter(|text| !text.is_empty())
}

impl<'a> From<&'a View<'_>> for Spent<'a> {
    fn from(view: &'a View<'_>) -> Self {
        let message = view.message.as_ref();
        Self {
            message_id: message.and_then(|m| text(&m.id)),
            request_id: text(&view.request_id),
            model: message.and_then(|m| text(&m.model)),
            usage: message.and_then(|m| m.usage.clone()).or_else(|| view.usage.clone()).unwrap_or_default(),
            timestamp: text(&view.timestamp),
            uuid: text(&view.uuid),
            recorded: view.cost_usd,
        }
    }
}

impl<'a> From<&'a UsageLine<'_>> for Spent<'a> {
    fn from(line: &'a UsageLine<'_>) -> Self {
        let message = line.message.as_ref();
        Self {
            message_id: message.and_then(|m| text(&m.id)),
            request_id: text(&line.request_id),
            model: message.and_then(|m| text(&m.model)),
            usage: message.and_then(|m| m.usage.clone()).or_else(|| line.usage.clone()).unwrap_or_default(),
            timestamp: text(&line.timestamp),
            uuid: text(&line.uuid),
            recorded: line.cost_usd,
        }
    }
}

impl Tally {
    /// Takes what a line says; returns the place of its message.
    pub fn spend(&mut self, spent: Spent<'_>) -> usize {
        let key = spent.message_id.or(spent.request_id);
        let known = key.and_then(|key| self.by_key.get(key).copied());
        let at = known.unwrap_or_else(|| {
            let at = self.messages.len();
            self.messages.push(MessageUse { key: key.unwrap_or_default().to_owned(), ..MessageUse::default() });
            if let Some(key) = key {
                self.by_key.insert(key.to_owned(), at);
            }
            at
        });
        let model = spent.model.map(|model| self.model(model));
        let message = &mut self.messages[at];
        message.marks.extend([spent.timestamp, spent.uuid].into_iter().flatten().map(hash));
        if let Some(time) = spent.timestamp
            && message.timestamp.as_deref().is_none_or(|known| time < known)
        {
            message.timestamp = Some(time.to_owned());
        }
        message.recorded = spent.recorded.or(message.recorded);
        if spent.usage.output >= message.usage.output {
            message.usage = spent.usage;
            message.model = model.unwrap_or_default();
        }
        at
    }

    /// A message asked for a search of the web.
    pub fn search_asked(&mut self, call: &str, message: usize) {
        self.searches.insert(call.to_owned(), message);
    }

    /// A search was answered without an error.
    pub fn search_answered(&mut self, call: &str) {
        if let Some(at) = self.searches.remove(call) {
            self.messages[at].searches += 1;
        }
    }

    /// Whether searches are under way.
    pub fn is_searching(&self) -> bool {
        !self.searches.is_empty()
    }

    /// The messages, in the order they first appeared.
    pub fn into_messages(self) -> Vec<MessageUse> {
        self.messages
    }

    fn model(&mut self, name: &str) -> Arc<str> {
        match self.models.get(name) {
            Some(model) => Arc::clone(model),
            None => {
                let model: Arc<str> = name.into();
                self.models.insert(name.to_owned(), Arc::clone(&model));
                model
            }
        }
    }
}

impl MessageUse {
    /// Its tokens.
    pub fn tokens(&self) -> Tokens {
        Tokens::of(&self.usage)
    }

    /// Its web searches: the counter on the answer is often zero although a search
    /// was made, so the results are counted too.
    pub fn web_searches(&self) -> u64 {
        self.usage.web_searches.max(self.searches)
    }

    /// What it cost: as recorded where the file says so, by our prices otherwise.
    pub fn cost(&self, prices: &Prices) -> Cost {
        if let Some(recorded) = self.recorded {
            return Cost::Priced { usd: Usd::from_f64(recorded), breakdown: Default::default() };
        }
        let (speed, geo) = (self.usage.speed.as_deref(), self.usage.geo.as_deref());
        prices.cost(&self.model, self.timestamp.as_deref(), &self.counts(), speed, geo)
    }

    /// What the prompt cache saved against reading everything anew.
    pub fn cache_savings(&self, prices: &Prices) -> Option<f64> {
        let (speed, geo) = (self.usage.speed.as_deref(), self.usage.geo.as_deref());
        prices.cache_savings(&self.model, self.timestamp.as_deref(), &self.counts(), speed, geo)
    }

    /// What tells the message from others across sessions: its key together with the
    /// time or the id of each of its lines. A copy shares one of them; another message
    /// under the same key, as gateways and test servers make them, shares none. Empty
    /// when the message has no key.
    pub fn fingerprints(&self) -> impl Iterator<Item = u64> {
        let key = (!self.key.is_empty()).then(|| hash(&self.key));
        key.into_iter().flat_map(|key| self.marks.iter().map(move |mark| key.rotate_left(1) ^ mark))
    }

    fn counts(&self) -> Counts {
        Counts {
            input: self.usage.input,
            output: self.usage.output,
            cache_write_5m: self.usage.cache_write_5m,
            cache_write_1h: self.usage.cache_write_1h,
            cache_write_total: self.usage.cache_write,
            cache_read: self.usage.cache_read,
            web_searches: self.web_searches(),
        }
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

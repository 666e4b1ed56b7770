//! One span, before it is encoded.

use std::time::Duration;

use sha2::{Digest, Sha256};

/// Id of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(pub [u8; 16]);

/// Id of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub [u8; 8]);

impl TraceId {
    /// The id of what these parts name. The same parts give the same id, so that a trace that
    /// is exported twice is one trace.
    pub fn from_parts(parts: &[&str]) -> Self {
        Self(hash(&[], parts))
    }

    /// The id of a span of this trace, by what names it in the trace.
    pub fn span_id(&self, parts: &[&str]) -> SpanId {
        SpanId(hash(&self.0, parts))
    }
}

fn hash<const N: usize>(prefix: &[u8], parts: &[&str]) -> [u8; N] {
    let mut hasher = Sha256::new_with_prefix(prefix);
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let digest = hasher.finalize();
    std::array::from_fn(|i| digest[i])
}

/// Where a span is: its trace, its id and the span above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanPlace {
    /// Trace that the span belongs to.
    pub trace: TraceId,
    /// Id of the span.
    pub id: SpanId,
    /// Span above it; `None` for the first span of a trace.
    pub parent: Option<SpanId>,
}

/// When a span began and ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpanTimes {
    /// Nanoseconds since 1970.
    pub start: u64,
    /// Nanoseconds since 1970.
    pub end: u64,
}

impl SpanTimes {
    /// The time from `start`, in nanoseconds since 1970, until `duration` after it.
    pub fn new(start: u64, duration: Duration) -> Self {
        Self { start, end: start.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)) }
    }
}

/// One step of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Trace, id and parent.
    pub place: SpanPlace,
    /// When it began and ended.
    pub times: SpanTimes,
    /// Name, for example `chat claude-sonnet-5`.
    pub name: String,
    /// Whether it is a call to another machine.
    pub kind: SpanKind,
    /// Names and values.
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// Kind of the failure, for example `overloaded_error`; `None` if the step succeeded.
    pub error: Option<String>,
}

/// Whether a span is a call to another machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// A step inside the agent.
    Internal,
    /// A call to another machine.
    Client,
}

/// Value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum AttributeValue {
    /// A text.
    Text(String),
    /// Several texts.
    Texts(Vec<String>),
    /// A whole number.
    Integer(i64),
    /// A number, for example of seconds.
    Float(f64),
    /// A truth value.
    Boolean(bool),
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u64> for AttributeValue {
    fn from(number: u64) -> Self {
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

//! A tagged object this build has no model for.

use serde_json::value::RawValue;

use crate::macros::wire;
use crate::{Envelope, Json};

/// A tagged object this build has no model for, kept whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Unknown {
    tag: Box<str>,
    json: Json,
    envelope: Option<Box<Envelope>>,
}

impl Unknown {
    pub(crate) fn new(tag: Option<&str>, raw: &RawValue) -> Self {
        let chained = || serde_json::from_str::<EnvelopeOnly>(raw.get()).ok().map(|line| Box::new(line.envelope));
        let envelope = raw.get().contains("\"uuid\"").then(chained).flatten();
        Self { tag: tag.unwrap_or_default().into(), json: raw.into(), envelope }
    }

    /// The fields that most lines share, when the object has an id: a line of an unknown
    /// type still has its place in the conversation.
    pub fn envelope(&self) -> Option<&Envelope> {
        self.envelope.as_deref()
    }

    /// The tag; empty when the object has none.
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// The whole object.
    pub fn json(&self) -> &Json {
        &self.json
    }
}

wire! {
    /// Any line, read for its place alone.
    #[allow(unreachable_pub, reason = "the macro declares public types")]
    pub struct EnvelopeOnly with envelope: Envelope {}
}

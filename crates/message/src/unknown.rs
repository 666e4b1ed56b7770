//! A tagged object this build has no model for.

use serde_json::value::RawValue;

use crate::Json;

/// A tagged object this build has no model for, kept whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Unknown {
    tag: Box<str>,
    json: Json,
}

impl Unknown {
    pub(crate) fn new(tag: Option<&str>, raw: &RawValue) -> Self {
        Self { tag: tag.unwrap_or_default().into(), json: raw.into() }
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

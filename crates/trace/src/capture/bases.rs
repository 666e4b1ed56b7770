//! Earlier requests that later ones are described by.
//!
//! Writer and reader of a capture file hold the same requests at the same time: each request
//! record says which ones are dropped. So a reader needs no more memory than the writer did.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::delta::{self, Step};

/// How many bytes of earlier requests are kept; the latest request is always kept.
const MAX_BASE_BYTES: usize = 16 << 20;

/// How many of the latest requests are compared from their ends.
const MAX_SUFFIX_CANDIDATES: usize = 8;

/// First line of a request record.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct RequestSteps {
    /// Number of the call that the request is described by; `None` if all its bytes are new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base: Option<u64>,
    /// How the head is made.
    head: Vec<Step>,
    /// How the body is made.
    body: Vec<Step>,
    /// Checksum of the whole body.
    body_crc32: u32,
    /// Whether the body was not recorded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) body_omitted: bool,
    /// Calls that no later request is described by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    drop: Vec<u64>,
}

/// One earlier request.
#[derive(Debug, Clone)]
struct Base {
    call: u64,
    head: Bytes,
    body: Bytes,
}

/// Earlier requests, the latest last.
#[derive(Debug, Default)]
pub(super) struct Bases {
    kept: Vec<Base>,
    /// Calls that were dropped without a record that says so.
    unannounced_drops: Vec<u64>,
}

impl Bases {
    /// Describes a request by the most similar earlier one and keeps it for later ones. The
    /// parts with new bytes are appended to `literals`.
    pub(super) fn encode<'n>(
        &mut self,
        call: u64,
        head: &'n Bytes,
        body: &'n Bytes,
        literals: &mut Vec<&'n [u8]>,
    ) -> RequestSteps {
        let similar = self.most_similar(body);
        let empty = Base { call: 0, head: Bytes::new(), body: Bytes::new() };
        let base = similar.map_or(&empty, |index| &self.kept[index]);
        let mut steps = RequestSteps {
            base: similar.map(|_| base.call),
            head: delta::encode(&base.head, head, literals),
            body: delta::encode(&base.body, body, literals),
            body_crc32: crc32fast::hash(body),
            body_omitted: false,
            drop: std::mem::take(&mut self.unannounced_drops),
        };
        // A request that continues its base takes its place.
        let continued = similar.filter(|_| delta::common_prefix(&base.body, body) >= base.body.len() / 2);
        if let Some(index) = continued {
            steps.drop.push(self.kept.remove(index).call);
        }
        self.kept.push(Base { call, head: head.clone(), body: body.clone() });
        let mut bytes: usize = self.kept.iter().map(Base::len).sum();
        while bytes > MAX_BASE_BYTES && self.kept.len() > 1 {
            let oldest = self.kept.remove(0);
            bytes -= oldest.len();
            steps.drop.push(oldest.call);
        }
        steps
    }

    /// Rebuilds head and body of a request, and drops what the record says. `None` if the base
    /// is missing or the bytes do not fit.
    pub(super) fn decode(&mut self, call: u64, steps: &RequestSteps, mut literals: &[u8]) -> Option<(Bytes, Bytes)> {
        let empty = Base { call: 0, head: Bytes::new(), body: Bytes::new() };
        let base = match steps.base {
            Some(number) => self.kept.iter().find(|base| base.call == number),
            None => Some(&empty),
        };
        let rebuilt = base.and_then(|base| {
            let head = delta::decode(&base.head, &steps.head, &mut literals)?;
            let body = delta::decode(&base.body, &steps.body, &mut literals)?;
            (crc32fast::hash(&body) == steps.body_crc32).then(|| (Bytes::from(head), Bytes::from(body)))
        });
        self.kept.retain(|base| !steps.drop.contains(&base.call));
        let (head, body) = rebuilt?;
        if !steps.drop.contains(&call) {
            self.kept.push(Base { call, head: head.clone(), body: body.clone() });
        }
        Some((head, body))
    }

    /// Forgets everything, because what was encoded last did not reach the file.
    pub(super) fn clear(&mut self) {
        self.unannounced_drops.extend(self.kept.drain(..).map(|base| base.call));
    }

    fn most_similar(&self, body: &[u8]) -> Option<usize> {
        let scores = self.kept.iter().enumerate().rev().enumerate().map(|(age, (index, base))| {
            let prefix = delta::common_prefix(&base.body, body);
            let can_share_end = age < MAX_SUFFIX_CANDIDATES;
            let suffix = if can_share_end { delta::common_suffix(&base.body[prefix..], &body[prefix..]) } else { 0 };
            (prefix + suffix, index)
        });
        // Of equal ones the latest; requests without a body share their heads.
        scores.reduce(|best, other| if other.0 > best.0 { other } else { best }).map(|(_, index)| index)
    }
}

impl Base {
    fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }
}

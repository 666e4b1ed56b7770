//! What the links that rules name have led to.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

/// A folder, and a pattern that is relative to it.
pub(crate) type Anchor = (PathBuf, String);

/// The source and the pattern of a rule.
type RuleKey = (&'static str, String);

/// For each deny or ask rule, by its source and pattern, the folders and patterns that it has meant since
/// the session started. What a link led to stays protected after the link was removed or changed.
#[derive(Debug, Clone, Default)]
pub(crate) struct LinkTargets(Arc<Mutex<BTreeMap<RuleKey, Vec<Anchor>>>>);

impl LinkTargets {
    /// Adds what a rule means now, and returns all that it has meant.
    pub(crate) fn remember(&self, (source, pattern): (&'static str, &str), now: Vec<Anchor>) -> Vec<Anchor> {
        let mut targets = self.0.lock();
        let all = targets.entry((source, pattern.to_owned())).or_default();
        for anchor in now {
            if !all.contains(&anchor) {
                all.push(anchor);
            }
        }
        all.clone()
    }
}

//! What the tests of writing share.

use std::path::Path;

use quipu_message::system::CompactBoundary;
use quipu_message::user_assistant::{Assistant, User};
use quipu_message::values::CompactTrigger;
use quipu_message::{Entry, StampSource, Uuid, factory};
use quipu_transcript::{Check, Durability, Entries, EnvelopeDefaults};

/// Ids and times that only grow.
pub(crate) struct SequentialStamps(pub(crate) u64);

impl StampSource for SequentialStamps {
    fn new_uuid(&mut self) -> Uuid {
        self.0 += 1;
        format!("{:08x}-0000-4000-8000-{:012x}", std::process::id(), self.0).into()
    }
    fn now(&mut self) -> String {
        format!("2026-11-15T10:{:02}:{:02}.{:03}Z", self.0 / 60_000 % 60, self.0 / 1000 % 60, self.0 % 1000)
    }
}

pub(crate) fn envelope_defaults() -> EnvelopeDefaults {
    EnvelopeDefaults {
        session_id: "5e551011-0000-4000-8000-000000000000".into(),
        cwd: "/home/dev/app".into(),
        version: "2.1.325".into(),
        git_branch: "main".into(),
        entrypoint: "cli".into(),
        agent_id: None,
    }
}

/// Tests that do not look at durability need not wait for the disk.
pub(crate) fn fast_durability() -> Durability {
    Durability { sync: false, ..Durability::default() }
}

/// Queued answers are written only with what follows them.
pub(crate) fn slow_durability() -> Durability {
    let long = std::time::Duration::from_secs(3600);
    Durability { sync: false, max_delay: long, max_open_delay: long }
}

pub(crate) fn user(text: &str, stamp: &mut SequentialStamps) -> User {
    factory::user(text, stamp)
}

pub(crate) fn assistant(text: &str, stamp: &mut SequentialStamps) -> Assistant {
    factory::synthetic_assistant(text, stamp)
}

pub(crate) fn to_entry(user: User) -> Entry {
    Entry::User(Box::new(user))
}

/// The boundary of a compaction with this summary.
pub(crate) fn compact_boundary(summary: &User, kept: &[Uuid], stamp: &mut SequentialStamps) -> CompactBoundary {
    factory::compact_boundary(CompactTrigger::Auto, 9, kept, summary.envelope.uuid.get().unwrap(), stamp)
}

/// Id and parent of every entry, in the order of the file.
pub(crate) fn read_chain(path: &Path) -> Vec<(Uuid, Option<Uuid>)> {
    Entries::open(path)
        .unwrap()
        .filter_map(|read| {
            let located = read.ok()?;
            let envelope = located.entry.envelope()?;
            Some((envelope.uuid.get()?.clone(), envelope.parent_uuid.get().cloned()))
        })
        .collect()
}

/// Whether a check of a file finds a problem of a kind.
pub(crate) fn has_problem(path: &Path, code: &str) -> bool {
    let report = Check::default().run(Entries::open(path).unwrap(), "x");
    report.problems.iter().any(|problem| problem.kind.code() == code)
}

//! What the tests of writing share.

use std::path::Path;

use quipu_message::system::CompactBoundary;
use quipu_message::turn::{Assistant, User};
use quipu_message::{Entry, Stamp, Uuid, factory};
use quipu_transcript::{Check, Durability, Entries, Facts};

/// Ids and times that only grow.
pub(crate) struct Counter(pub(crate) u64);

impl Stamp for Counter {
    fn uuid(&mut self) -> Uuid {
        self.0 += 1;
        format!("{:08x}-0000-4000-8000-{:012x}", std::process::id(), self.0).into()
    }
    fn now(&mut self) -> String {
        format!("2026-11-15T10:{:02}:{:02}.{:03}Z", self.0 / 60_000 % 60, self.0 / 1000 % 60, self.0 % 1000)
    }
}

pub(crate) fn facts() -> Facts {
    Facts {
        session_id: "5e551011-0000-4000-8000-000000000000".into(),
        cwd: "/home/dev/app".into(),
        version: "2.1.325".into(),
        git_branch: "main".into(),
        entrypoint: "cli".into(),
        agent_id: None,
    }
}

/// Tests that do not look at durability need not wait for the disk.
pub(crate) fn fast() -> Durability {
    Durability { sync: false, ..Durability::default() }
}

pub(crate) fn person(text: &str, stamp: &mut Counter) -> User {
    factory::user(text, stamp)
}

pub(crate) fn answer(text: &str, stamp: &mut Counter) -> Assistant {
    factory::assistant(text, stamp)
}

pub(crate) fn entry(user: User) -> Entry {
    Entry::User(Box::new(user))
}

/// The boundary of a compaction with this summary.
pub(crate) fn compact_boundary(summary: &User, kept: &[Uuid], stamp: &mut Counter) -> CompactBoundary {
    factory::compact_boundary("auto", 9, kept, summary.envelope.uuid.get().unwrap(), stamp)
}

/// Id and parent of every entry, in the order of the file.
pub(crate) fn chain(path: &Path) -> Vec<(Uuid, Option<Uuid>)> {
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
    report.problems.iter().any(|problem| problem.code == code)
}

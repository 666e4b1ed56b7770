//! The processes that a process has started, however far they have gone.

use std::collections::BTreeMap;
use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// Some processes, each with the moment it began, so that a number that was given
/// away again is not mistaken for it.
#[derive(Debug, Default)]
pub(super) struct Tree(BTreeMap<u32, u64>);

/// One row of the table of processes.
struct Row {
    parent: u32,
    began: u64,
}

impl Tree {
    /// Adds what `root` has started, and what that has started.
    pub(super) fn add_descendants(&mut self, root: u32) {
        let table = table();
        let mut found = vec![root];
        let mut at = 0;
        while let Some(&parent) = found.get(at) {
            found.extend(table.iter().filter(|(_, row)| row.parent == parent).map(|(pid, _)| *pid));
            at += 1;
        }
        self.0.extend(found.iter().skip(1).filter_map(|pid| Some((*pid, table.get(pid)?.began))));
    }

    /// Ends those that still run, and what they have started since.
    pub(super) fn kill(&mut self) {
        for pid in self.0.keys().copied().collect::<Vec<_>>() {
            self.add_descendants(pid);
        }
        for (pid, began) in std::mem::take(&mut self.0) {
            let same = row(pid).is_some_and(|row| row.began == began);
            if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw).filter(|_| same) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

fn table() -> BTreeMap<u32, Row> {
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, row(pid)?))).collect()
}

/// What the system says of a process. Its name may hold anything, so the fields are
/// counted from the bracket that ends it.
fn row(pid: u32) -> Option<Row> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Row { parent: fields.get(1)?.parse().ok()?, began: fields.get(19)?.parse().ok()? })
}

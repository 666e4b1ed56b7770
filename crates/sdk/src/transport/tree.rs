//! The processes that a process has started, however far they have gone.

use std::collections::BTreeMap;
use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Some processes, each with the moment it began, so that a number that was given
/// away again is not mistaken for it.
#[derive(Debug, Default)]
pub(super) struct Tree(BTreeMap<u32, u64>);

/// One row of the table of processes.
struct Row {
    parent: u32,
    group: u32,
    began: u64,
}

impl Tree {
    /// Adds what `root` has started, and what that has started. The number must be its
    /// own: it runs, or was not yet waited for.
    pub(super) fn add_descendants(&mut self, root: u32) {
        let table = table();
        self.add(&table, |row| row.parent == root);
    }

    /// Adds what is left of the group of `leader`, which has ended and was waited for. The
    /// system gives its number to nobody as long as the group has members.
    pub(super) fn add_group(&mut self, leader: u32) {
        let table = table();
        if !table.contains_key(&leader) {
            self.add(&table, |row| row.group == leader);
        }
    }

    /// Adds those that are wanted, and whatever they or those known before have started.
    /// Says whether there were any.
    fn add(&mut self, table: &BTreeMap<u32, Row>, wanted: impl Fn(&Row) -> bool) -> bool {
        let before = self.0.len();
        loop {
            let known = self.0.len();
            for (pid, row) in table {
                let known_parent = self.0.get(&row.parent).is_some_and(|began| {
                    // A number that is another's by now has not started this one.
                    table.get(&row.parent).is_some_and(|parent| parent.began == *began)
                });
                if known_parent || wanted(row) {
                    self.0.insert(*pid, row.began);
                }
            }
            if self.0.len() == known {
                return known > before;
            }
        }
    }

    /// Ends those that still run, and what they have started since. They are stopped
    /// first, so that none starts another while it is looked for.
    pub(super) fn kill(&mut self) {
        loop {
            self.signal(Signal::STOP);
            if !self.add(&table(), |_| false) {
                break;
            }
        }
        self.signal(Signal::KILL);
        self.0.clear();
    }

    fn signal(&self, signal: Signal) {
        for (pid, began) in &self.0 {
            let Some(number) = i32::try_from(*pid).ok().and_then(Pid::from_raw) else { continue };
            // What is opened stays the same process, whoever gets its number next.
            let Ok(process) = pidfd_open(number, PidfdFlags::empty()) else { continue };
            if row(*pid).is_some_and(|row| row.began == *began) {
                let _ = pidfd_send_signal(&process, signal);
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
    Some(Row {
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        began: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests;

//! The processes that a process has started, however far they have gone.

use std::collections::BTreeMap;
use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Some processes, each with the moment it began, so that a number that was given
/// away again is not mistaken for it.
#[derive(Debug, Default)]
pub(super) struct ProcessTree(BTreeMap<u32, u64>);

/// One row of the table of processes.
struct ProcessStat {
    parent: u32,
    group: u32,
    start_time: u64,
}

impl ProcessTree {
    /// Adds what `root` has started, and what that has started. The number must be its
    /// own: it runs, or was not yet waited for.
    pub(super) fn add_descendants(&mut self, root: u32) {
        let table = process_table();
        self.add_matching(&table, |row| row.parent == root);
    }

    /// Adds what is left of the group of `leader`, which has ended and was waited for. The
    /// system does not reuse its number as long as the group has members.
    pub(super) fn add_group(&mut self, leader: u32) {
        let table = process_table();
        if !table.contains_key(&leader) {
            self.add_matching(&table, |row| row.group == leader);
        }
    }

    /// Adds those that are wanted, and whatever they or those known before have started.
    /// Says whether there were any.
    fn add_matching(&mut self, table: &BTreeMap<u32, ProcessStat>, wanted: impl Fn(&ProcessStat) -> bool) -> bool {
        let before = self.0.len();
        loop {
            let known = self.0.len();
            for (pid, row) in table {
                let known_parent = self.0.get(&row.parent).is_some_and(|began| {
                    // A number that is another's by now has not started this one.
                    table.get(&row.parent).is_some_and(|parent| parent.start_time == *began)
                });
                if known_parent || wanted(row) {
                    self.0.insert(*pid, row.start_time);
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
            if !self.add_matching(&process_table(), |_| false) {
                break;
            }
        }
        self.signal(Signal::KILL);
        self.0.clear();
    }

    fn signal(&self, signal: Signal) {
        for (pid, began) in &self.0 {
            let Some(number) = i32::try_from(*pid).ok().and_then(Pid::from_raw) else { continue };
            // What is opened stays the same process, even if its number is reused.
            let Ok(process) = pidfd_open(number, PidfdFlags::empty()) else { continue };
            if read_stat(*pid).is_some_and(|row| row.start_time == *began) {
                let _ = pidfd_send_signal(&process, signal);
            }
        }
    }
}

fn process_table() -> BTreeMap<u32, ProcessStat> {
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, read_stat(pid)?))).collect()
}

/// What the system says of a process. Its name may hold anything, so the fields are
/// counted from the bracket that ends it.
fn read_stat(pid: u32) -> Option<ProcessStat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some(ProcessStat {
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        start_time: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests;

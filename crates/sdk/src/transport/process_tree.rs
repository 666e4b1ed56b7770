//! The descendants of a process, also those in other process groups.

use std::collections::BTreeMap;
use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Processes by pid, each with its start time, so that a reused pid is not mistaken for it.
#[derive(Debug, Default)]
pub(super) struct ProcessTree(BTreeMap<u32, u64>);

/// One row of the process table.
struct ProcessStat {
    parent: u32,
    group: u32,
    start_time: u64,
}

impl ProcessTree {
    /// Adds all descendants of `root`, which must be running or not yet waited for.
    pub(super) fn add_descendants(&mut self, root: u32) {
        let table = process_table();
        self.add_matching(&table, |row| row.parent == root);
    }

    /// Adds the rest of the process group of `leader`, which has ended and was waited for. The system does
    /// not reuse its pid while the group has members.
    pub(super) fn add_group(&mut self, leader: u32) {
        let table = process_table();
        if !table.contains_key(&leader) {
            self.add_matching(&table, |row| row.group == leader);
        }
    }

    /// Adds the processes that match, and all descendants of known processes. Returns whether there were any.
    fn add_matching(&mut self, table: &BTreeMap<u32, ProcessStat>, wanted: impl Fn(&ProcessStat) -> bool) -> bool {
        let before = self.0.len();
        loop {
            let known = self.0.len();
            for (pid, row) in table {
                let known_parent = self.0.get(&row.parent).is_some_and(|began| {
                    // A process with a reused pid is not the parent.
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

    /// Kills the processes that still run and their descendants. They are stopped first, so that none starts
    /// another during the search.
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
            // A pidfd refers to the same process even if the pid is reused.
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

/// Reads the status of a process. Its name may contain any character, so the fields are counted from the
/// closing bracket after it.
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

use std::process::{Child, Command};

use super::*;

fn sleeps() -> Child {
    Command::new("sh").args(["-c", "sleep 1000 & wait"]).spawn().unwrap()
}

/// The child of a shell, once it exists.
fn child_of(parent: u32) -> u32 {
    loop {
        if let Some((pid, _)) = process_table().iter().find(|(_, row)| row.parent == parent) {
            return *pid;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_number_that_is_anothers_by_now_is_left_alone_with_its_children() {
    let mut stranger = sleeps();
    let child = child_of(stranger.id());
    // Recorded with another start time, as of an earlier process with the same pid.
    let mut tree = ProcessTree(BTreeMap::from([(stranger.id(), 1)]));
    tree.kill();
    assert!(stranger.try_wait().unwrap().is_none(), "the stranger was killed");
    assert!(read_stat(child).is_some(), "its child was killed");
    let mut own = ProcessTree::default();
    own.add_descendants(stranger.id());
    assert!(own.0.contains_key(&child));
    own.kill();
    // The shell ends after its child.
    stranger.wait().unwrap();
}

#[test]
fn parents_in_a_circle_are_no_trap() {
    // The table changes while it is read, so it may contain impossible rows.
    let row = |parent| ProcessStat { parent, group: 0, start_time: 5 };
    let table = BTreeMap::from([(10, row(1)), (20, row(30)), (30, row(20)), (40, row(30))]);
    let mut tree = ProcessTree(BTreeMap::from([(30, 5)]));
    assert!(tree.add_matching(&table, |row| row.parent == 1));
    assert_eq!(tree.0.into_keys().collect::<Vec<_>>(), [10, 20, 30, 40]);
}

//! Folding what a run printed and folding the file it wrote must give the same
//! visible conversation.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use quipu_conversation::{ItemKind, ScreenItem};

use crate::fold;

/// What is compared of an item.
fn visible(items: &[ScreenItem]) -> Vec<String> {
    items
        .iter()
        .filter_map(|item| match item.kind {
            ItemKind::Assistant | ItemKind::Thinking => {
                Some(format!("{:?} {}", item.kind, item.text.as_deref().unwrap_or_default()))
            }
            ItemKind::Tool => {
                let tool = item.tool.as_ref()?;
                let result = tool.result.as_ref().map(|r| serde_json::to_string(r).unwrap()).unwrap_or_default();
                Some(format!("Tool {} {} {:?} {result}", tool.name, tool.input.text(), tool.status))
            }
            _ => None,
        })
        .collect()
}

fn transcripts(folder: &Path) -> Vec<PathBuf> {
    quipu_testkit::files_under(folder, |path| {
        path.parent() == Some(folder) && path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("transcript"))
    })
}

/// Recordings whose two sources differ, and why.
const DIFFERENT: [(&str, &str); 3] = [
    ("21_json_output", "printed as one JSON array, not as lines"),
    ("33_session_id", "holds runs of which one wrote no file of its own"),
    ("58_sdk_session_store_mirror", "the second session lives in the host's store, not in a file"),
];

#[test]
fn stdout_and_file_of_one_run_show_the_same_conversation() {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let mut same = 0;
    let mut differ = BTreeMap::new();
    for stdout in quipu_testkit::files_under(&shared.join("recordings"), |p| p.ends_with("stdout.jsonl")) {
        let folder = stdout.parent().unwrap();
        let files = transcripts(folder);
        if files.is_empty() {
            continue;
        }
        let live = visible(&fold(&[&stdout]).for_ui());
        // A fork copies its history: what an earlier file shows is not new.
        let mut seen = HashSet::new();
        let mut disk: Vec<ScreenItem> = files.iter().flat_map(|path| fold(&[path]).for_ui()).collect();
        disk.retain(|item| item.uuid.as_ref().is_none_or(|uuid| seen.insert(uuid.clone())));
        let disk = visible(&disk);
        if live == disk {
            same += 1;
        } else {
            differ.insert(folder.file_name().unwrap().to_string_lossy().into_owned(), (live, disk));
        }
    }
    let names: Vec<&str> = differ.keys().map(String::as_str).collect();
    assert_eq!(names, DIFFERENT.map(|(name, _)| name), "{differ:#?}");
    assert_eq!(same, 78);
}

#[test]
fn our_own_run_shows_the_same_from_both_sources_down_to_the_ids() {
    let story = quipu_testkit::fixture("stream/same-as-file");
    let look = |name: &str| -> Vec<_> {
        let items = fold(&[&story.join(name)]).for_ui();
        items
            .into_iter()
            .filter(|item| matches!(item.kind, ItemKind::Assistant | ItemKind::Thinking | ItemKind::Tool))
            .map(|item| (item.uuid.clone(), visible(&[item])))
            .collect()
    };
    assert_eq!(look("stdout.jsonl"), look("transcript.jsonl"));
    assert!(look("stdout.jsonl").len() > 3);
}

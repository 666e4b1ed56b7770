//! Following a session line by line gives what reading it at once gives.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use quipu_conversation::{ItemKind, LiveConversation, ScreenItem};

use crate::fold;

/// The text of an item that is compared. The position of problems and branches depends on the whole conversation.
fn words(item: &ScreenItem) -> Option<String> {
    match (&item.kind, &item.tool) {
        (_, Some(tool)) => Some(format!("{} {:?} {:?}", tool.id, tool.status, tool.result)),
        (
            ItemKind::User
            | ItemKind::Assistant
            | ItemKind::Thinking
            | ItemKind::Image
            | ItemKind::Summary
            | ItemKind::Problem,
            None,
        ) => Some(format!("{:?} {}", item.kind, item.text.as_deref().unwrap_or_default())),
        _ => None,
    }
}

/// All words of some items and of the subagents in them.
fn all_words(items: &[ScreenItem], words_of: &mut BTreeMap<String, usize>) {
    for item in items {
        words(item).into_iter().for_each(|words| *words_of.entry(words).or_default() += 1);
        if let Some(agent) = item.tool.as_ref().and_then(|tool| tool.subagent.as_ref()) {
            all_words(&agent.items, words_of);
        }
    }
}

fn follow(path: &Path) -> BTreeMap<String, usize> {
    let mut live = LiveConversation::default();
    let mut given = BTreeMap::new();
    for (n, line) in (1..).zip(fs::read_to_string(path).unwrap_or_default().lines()) {
        live.push_line(n, line);
        for change in live.changes() {
            words(&change.item).into_iter().for_each(|words| *given.entry(words).or_default() += 1);
        }
    }
    given
}

#[test]
fn following_line_by_line_misses_nothing_that_reading_at_once_shows() {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let mut files = quipu_testkit::recorded_files(&shared);
    files.extend(quipu_testkit::corpus_files(&shared, &["session"]));
    files.extend(quipu_testkit::files_under(&quipu_testkit::fixture("demo"), |path| {
        path.extension().is_some_and(|ext| ext == "jsonl")
    }));
    assert!(files.len() > 100, "{} files", files.len());
    let mut missing: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut twice: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in files {
        let mut expected = BTreeMap::new();
        all_words(&fold(&[&path]).for_ui(), &mut expected);
        let given = follow(&path);
        // Only tool calls come again, and what a rewind left stays shown.
        if fold(&[&path]).branches().is_empty() {
            let more = given.iter().filter(|(words, count)| expected.get(*words).is_some_and(|known| known < *count));
            let more = more.map(|(words, _)| words.chars().take(200).collect::<String>());
            let more: BTreeSet<String> = more.filter(|words| !words.starts_with("toolu_")).collect();
            if !more.is_empty() {
                twice.insert(path.display().to_string(), more);
            }
        }
        for (words, count) in expected {
            if given.get(&words).is_none_or(|given| *given < count) {
                let cut = words.chars().take(200).collect();
                missing.entry(path.display().to_string()).or_default().insert(cut);
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(twice.is_empty(), "{twice:#?}");
}

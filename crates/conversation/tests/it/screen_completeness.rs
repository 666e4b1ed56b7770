//! Nothing that the user or the model wrote is missing from the screen, in any real file.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::Path;

use quipu_conversation::{Conversation, ItemKind, ScreenItem, UiOptions};
use quipu_message::{Content, Entry, Message};

/// How many texts each line must show: by line, for lines of `user` and `assistant`.
fn written(lines: &[(u64, Entry)]) -> BTreeMap<u64, usize> {
    let mut texts = BTreeMap::new();
    let mut by_uuid: HashMap<String, (u64, String)> = HashMap::new();
    let mut withdrawn: HashSet<String> = HashSet::new();
    for (line, entry) in lines {
        let (message, is_summary): (&Message, bool) = match entry {
            Entry::User(user) => (&user.message, user.is_compact_summary.is_true()),
            Entry::Assistant(answer) => (&answer.message, false),
            Entry::Tombstone(tombstone) => {
                withdrawn.extend(tombstone.message.uuid.text().map(str::to_owned));
                continue;
            }
            _ => continue,
        };
        let blocks = match &message.content {
            Content::Text(text) => vec![text.as_str()],
            content => content.blocks().iter().filter_map(|block| block.text()).collect(),
        };
        let count = blocks.iter().filter(|text| !text.trim().is_empty()).count();
        let count = if is_summary { count.min(1) } else { count };
        if let Some(uuid) = entry.envelope().and_then(|e| e.uuid.text()) {
            // The same line again is in the first one's place.
            let content = serde_json::to_string(&message.content.clone().into_blocks()).unwrap();
            if let Some((earlier, same)) = by_uuid.insert(uuid.to_owned(), (*line, content.clone()))
                && same == content
            {
                texts.remove(&earlier);
            }
        }
        if count > 0 {
            texts.insert(*line, count);
        }
    }
    for (line, _) in withdrawn.iter().filter_map(|uuid| by_uuid.get(uuid)) {
        texts.remove(line);
    }
    texts
}

/// How many texts of each line are shown, subagents included.
fn count_texts(items: &[ScreenItem], is_said: &dyn Fn(u64) -> bool, out: &mut BTreeMap<u64, usize>) {
    for item in items {
        let is_text = matches!(item.kind, ItemKind::User | ItemKind::Assistant | ItemKind::System | ItemKind::Summary);
        if is_text && is_said(item.line) {
            *out.entry(item.line).or_default() += 1;
        }
        if let Some(subagent) = item.tool.as_ref().and_then(|tool| tool.subagent.as_ref()) {
            count_texts(&subagent.items, is_said, out);
        }
    }
}

fn look(path: &Path) -> (usize, usize, usize) {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<(u64, Entry)> =
        (1..).zip(text.lines()).filter_map(|(n, line)| Some((n, Entry::read(line).ok()?))).collect();
    let mut conversation = Conversation::default();
    lines.iter().for_each(|(line, entry)| conversation.push(*line, entry.clone()));
    let full = conversation.for_ui_with(UiOptions {
        include_hidden: true,
        include_branches: true,
        leave_out_subagents: false,
    });

    let expected = written(&lines);
    let mut found = BTreeMap::new();
    count_texts(&full, &|line| expected.contains_key(&line), &mut found);
    assert_eq!(found, expected, "{}", path.display());

    // What the ordinary view leaves out, it announces.
    let usual = conversation.for_ui();
    let is_marker = |item: &&ScreenItem| item.kind == ItemKind::Branch;
    let left = full.iter().filter(|item| !is_marker(item) && item.branch.is_some() && !item.hidden).count();
    let announced: usize = usual.iter().filter(is_marker).filter_map(|item| item.items).sum();
    let hidden = full.iter().filter(|item| item.hidden).count();
    let shown = usual.iter().filter(|item| !is_marker(item)).count();
    assert_eq!(announced, left, "{}", path.display());
    assert_eq!(conversation.for_ui_and_left_out(UiOptions::default()).1, hidden, "{}", path.display());
    assert_eq!(shown + announced + hidden, full.iter().filter(|item| !is_marker(item)).count(), "{}", path.display());
    for (number, _) in (1..).zip(conversation.branches()) {
        let branch = conversation.branch_for_ui(number, UiOptions::default()).unwrap();
        let announced = usual.iter().find(|item| is_marker(item) && item.branch == Some(number)).unwrap();
        assert_eq!(announced.items, Some(branch.len()), "{}", path.display());
    }
    (expected.values().sum(), left, hidden)
}

#[test]
fn each_text_of_every_real_file_is_one_item_or_announced() {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let mut files =
        quipu_testkit::files_under(&shared.join("corpus/data"), |p| p.extension().is_some_and(|e| e == "jsonl"));
    files.extend(quipu_testkit::files_under(&shared.join("recordings"), |p| {
        let name = p.file_name().unwrap().to_string_lossy();
        name.ends_with(".jsonl") && !name.starts_with("api") && !name.starts_with("stdin")
    }));
    let (mut texts, mut left, mut hidden) = (0, 0, 0);
    for path in &files {
        let (t, l, h) = look(path);
        (texts, left, hidden) = (texts + t, left + l, hidden + h);
    }
    assert!(texts > 1800 && left > 100 && hidden > 100, "{texts} {left} {hidden}");
}

#[test]
fn each_text_of_our_own_files_is_one_item_or_announced() {
    for path in quipu_testkit::files_under(&quipu_testkit::fixture(""), |p| p.extension().is_some_and(|e| e == "jsonl"))
    {
        look(&path);
    }
}

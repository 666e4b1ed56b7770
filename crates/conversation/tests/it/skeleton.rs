//! A window of a skeleton has the items that reading the whole conversation gives.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use quipu_conversation::{Conversation, EntryReader, Problem, ScreenItem, Skeleton, SkeletonView, UiOptions};
use quipu_testkit as kit;

/// The text of one file.
struct Text(String);

impl EntryReader for Text {
    fn read(&self, _: u32, offset: u64, length: u32) -> Option<String> {
        self.0.get(offset as usize..)?.get(..length as usize).map(str::to_owned)
    }
}

fn skeleton_of(text: &Text) -> Skeleton {
    let mut skeleton = Skeleton::default();
    let mut offset = 0;
    for (n, line) in (1..).zip(text.0.split_inclusive('\n')) {
        let content = line.strip_suffix('\n').unwrap_or(line);
        let content = content.strip_suffix('\r').unwrap_or(content);
        if let Err(error) = skeleton.push_line(n, offset, content, text) {
            skeleton.push_problem(Problem::from_read_error(n, &error));
        }
        offset += line.len() as u64;
    }
    skeleton
}

fn conversation_of(text: &Text) -> Conversation {
    let mut conversation = Conversation::default();
    (1..).zip(text.0.lines()).for_each(|(n, line)| conversation.push_line(n, line));
    conversation
}

const ALL: UiOptions = UiOptions { include_hidden: true, include_branches: true, leave_out_subagents: false };

fn check(path: &Path) {
    let text = Text(fs::read_to_string(path).unwrap());
    let (conversation, skeleton) = (conversation_of(&text), skeleton_of(&text));
    let view = skeleton.view(&text);
    let name = path.display();
    assert_eq!(view.headline(), conversation.headline(), "{name}");
    assert_eq!(view.session_id(), conversation.session_id(), "{name}");
    assert_eq!(view.lines(0..view.len()), lines(&conversation), "{name}");
    check_turns(&conversation, view, path);
    let is_large = text.0.len() > 1 << 20;
    for options in [UiOptions::default(), ALL].into_iter().take(if is_large { 1 } else { 2 }) {
        let whole = conversation.for_ui_with(options);
        assert_eq!(view.items(0..view.len(), options), whole, "{name}");
        for count in [1, 5, 20] {
            let expected = &whole[whole.len().saturating_sub(count)..];
            assert_eq!(view.tail(count, options, |_| ()), expected, "the last {count} of {name}");
        }
        let turns: Vec<Range<usize>> = view.turns().into_iter().map(|turn| turn.positions).collect();
        if !turns.is_empty() {
            check_parts(view, options, turns, &whole, path);
        }
        if !is_large {
            let parts = (0..view.len().max(1)).step_by(3).map(|start| start..view.len().min(start + 3));
            check_parts(view, options, parts, &whole, path);
        }
    }
    check_lines(&conversation, view, path);
}

fn lines(conversation: &Conversation) -> Vec<u64> {
    conversation.path().iter().map(|node| node.line).collect()
}

/// The windows of successive parts are the whole.
fn check_parts(
    view: SkeletonView<'_>,
    options: UiOptions,
    parts: impl IntoIterator<Item = Range<usize>>,
    whole: &[ScreenItem],
    path: &Path,
) {
    let items: Vec<ScreenItem> = parts.into_iter().flat_map(|part| view.items(part, options)).collect();
    assert_eq!(items, whole, "{}", path.display());
}

fn check_turns(conversation: &Conversation, view: SkeletonView<'_>, path: &Path) {
    let expected: Vec<(String, Vec<u64>)> = conversation
        .turns()
        .into_iter()
        .map(|turn| (turn.prompt, turn.nodes.iter().map(|node| node.line).collect()))
        .collect();
    let turns: Vec<(String, Vec<u64>)> =
        view.turns().iter().map(|turn| (view.prompt(turn), view.lines(turn.positions.clone()))).collect();
    assert_eq!(turns, expected, "{}", path.display());
}

/// The items around a line, for every line of a short file and some of a long one.
fn check_lines(conversation: &Conversation, view: SkeletonView<'_>, path: &Path) {
    let items = conversation.for_ui();
    let last = view.lines(0..view.len()).into_iter().max().unwrap_or_default() + 2;
    for line in (1..=last).step_by(1 + last as usize / 15) {
        for around in [0, 3] {
            let shown = conversation.items_at_line(&items, line);
            let first = shown.start.saturating_sub(around);
            let expected = &items[first..items.len().min(shown.end + around)];
            let (found, range) = view.around(line, around, UiOptions::default());
            assert_eq!(found, expected, "line {line} of {}", path.display());
            assert_eq!(range, shown.start - first..shown.end - first, "line {line} of {}", path.display());
        }
    }
}

#[test]
fn windows_of_every_recording_and_published_session_have_the_items_of_the_whole() {
    let Some(shared) = kit::shared_dir() else { return };
    let mut files = kit::recorded_files(&shared);
    files.extend(kit::corpus_files(&shared, &["session"]));
    assert!(files.len() > 100, "{} files", files.len());
    files.iter().filter(|path| fs::read_to_string(path).is_ok()).for_each(|path| check(path));
}

#[test]
fn windows_of_our_own_files_have_the_items_of_the_whole() {
    let files: Vec<PathBuf> =
        kit::files_under(&kit::fixture(""), |path| path.extension().is_some_and(|ext| ext == "jsonl"));
    assert!(files.len() > 10, "{} files", files.len());
    files.iter().filter(|path| fs::read_to_string(path).is_ok()).for_each(|path| check(path));
}

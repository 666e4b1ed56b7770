//! Every fixture and every published session can be shown.

use std::fs;
use std::path::Path;

use quipu_conversation::{Conversation, ScreenItem};
use quipu_render::{Html, Markdown, Terminal, ThinkingDisplay};
use quipu_testkit::{files_under, fixture, shared_dir};

fn items(path: &Path) -> Vec<ScreenItem> {
    let bytes = fs::read(path).unwrap();
    let mut conversation = Conversation::default();
    for (i, line) in String::from_utf8_lossy(&bytes).lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        conversation.push_line(i as u64 + 1, line);
    }
    conversation.for_ui()
}

fn check(path: &Path) {
    let items = items(path);
    let plain = Terminal { show_full: true, thinking: ThinkingDisplay::Full, ..Terminal::default() }.render(&items);
    assert!(!plain.chars().any(|c| c != '\n' && c.is_control()), "{}", path.display());
    let page = Html::default().render(&items);
    assert!(!page.contains("<script"), "{}", path.display());
    assert!(page.ends_with("</main>\n</body>\n</html>\n"));
    assert!(Markdown::default().render(&items).starts_with("# Conversation\n"));
}

fn is_session(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "jsonl")
}

#[test]
fn every_fixture_can_be_shown() {
    let fixtures = files_under(&fixture(""), is_session);
    assert!(!fixtures.is_empty());
    fixtures.iter().for_each(|path| check(path));
}

#[test]
fn published_sessions_can_be_shown() {
    let Some(shared) = shared_dir() else { return };
    // One in seven keeps a debug run short; every folder has its turn.
    let sessions = files_under(&shared.join("corpus/data"), is_session);
    sessions.iter().step_by(7).for_each(|path| check(path));
}

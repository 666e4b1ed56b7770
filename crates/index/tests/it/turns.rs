//! A session has as many turns, and the same name, however it is read.

use std::path::{Path, PathBuf};

use quipu_conversation::price::Prices;
use quipu_conversation::{Session, headline};
use quipu_message::View;
use quipu_message::line::mend;
use quipu_testkit as kit;
use quipu_transcript::{Lines, Piece, find, load};

/// Turns and name of a session, counted line by line as the index does.
fn counted(path: &Path) -> (u64, Option<String>) {
    let mut session = Session::default();
    let mut lines = Lines::new(std::fs::File::open(path).unwrap());
    while let Some(piece) = lines.next().unwrap() {
        let Piece::Line { bytes, .. } = piece else { continue };
        let text = String::from_utf8_lossy(bytes);
        if let Ok(view) = View::read(&mend(&text)) {
            session.push(&view);
        }
    }
    let metrics = session.finish(&Prices::bundled());
    let title = headline(metrics.facts.title.as_deref(), metrics.facts.first_prompt.as_deref());
    (metrics.turns, title.map(str::to_owned))
}

/// Compares both ways of reading some sessions.
#[track_caller]
fn check(files: &[PathBuf]) {
    let different = files.iter().filter_map(|path| {
        let talk = load(path).unwrap();
        let whole = (talk.turns().len() as u64, talk.headline());
        let counted = counted(path);
        let is_same = whole.0 == counted.0 && (counted.0 == 0 || whole.1 == counted.1);
        (!is_same).then(|| format!("{}: {whole:?} {counted:?}", path.display()))
    });
    let different: Vec<String> = different.collect();
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn every_reader_counts_the_same_turns_and_takes_the_same_title() {
    let (sessions, _) = find::sessions(&[kit::fixture("demo")]);
    assert_eq!(sessions.len(), 6);
    check(&sessions.into_iter().map(|session| session.path).collect::<Vec<_>>());
    let Some(shared) = kit::shared() else { return };
    let is_transcript =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("transcript"));
    let recorded: Vec<PathBuf> = kit::recorded_lines(&shared).into_iter().filter(is_transcript).collect();
    assert!(recorded.len() > 50);
    check(&recorded);
}

#[test]
fn titles_skip_local_commands_and_introductions_of_plans() {
    let dir = tempfile::tempdir().unwrap();
    let user = |text: &str| format!(r#"{{"type":"user","message":{{"role":"user","content":{text:?}}}}}"#);
    let answer = r#"{"type":"assistant","message":{"id":"m","role":"assistant","model":"claude-opus-5-5","content":[{"type":"text","text":"yes"}]}}"#;
    let check = |lines: &[&str], expect: Option<&str>| {
        let path = dir.path().join("s.jsonl");
        std::fs::write(&path, lines.join("\n")).unwrap();
        assert_eq!(counted(&path).1.as_deref(), expect, "{lines:?}");
    };
    let clear = user("<command-name>/clear</command-name>");
    let review = user("<command-name>/review</command-name><command-args>12</command-args>");
    let plan = user("Implement the following plan:\n\n# Plan: faster tides\n\nMore.");
    check(&[&clear, &user("do you remember?")], Some("do you remember?"));
    check(&[&clear, &review, answer, &user("thanks")], Some("/review 12"));
    check(&[&clear], Some("/clear"));
    check(&[&clear, &plan, answer], Some("Plan: faster tides"));
    check(&[], None);
}

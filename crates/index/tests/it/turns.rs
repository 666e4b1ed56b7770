//! A session has as many turns, and the same name, however it is read.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use quipu_conversation::price::Prices;
use quipu_conversation::usage::stable_hash;
use quipu_conversation::{MetricsBuilder, Node, headline};
use quipu_message::View;
use quipu_message::line::replace_lone_surrogates;
use quipu_message::synthetic::SYNTHETIC_MODEL;
use quipu_transcript::{LineReader, RawLine, SessionOverview, find, load_session};

/// Turns and name of a session, and the turn of each API message, counted line by line as the
/// index does.
fn counted(path: &Path) -> (u64, Option<String>, HashMap<u64, u32>) {
    let mut session = MetricsBuilder::default();
    let mut lines = LineReader::new(std::fs::File::open(path).unwrap());
    while let Some(piece) = lines.next().unwrap() {
        let RawLine::Line { bytes, .. } = piece else { continue };
        let text = String::from_utf8_lossy(bytes);
        if let Ok(view) = View::read(&replace_lone_surrogates(&text)) {
            session.push(&view);
        }
    }
    let metrics = session.finish(&Prices::bundled());
    let title = headline(metrics.facts.title.as_deref(), metrics.facts.first_prompt.as_deref());
    let messages = session.usage_mut().messages().iter().filter(|message| message.agent.is_none());
    let turns = messages.filter_map(|message| Some((message.key?, message.turn))).collect();
    (metrics.turns, title.map(str::to_owned), turns)
}

/// Compares the ways of reading some sessions.
#[track_caller]
fn check(files: &[PathBuf]) {
    let (mut messages, mut elsewhere) = (0, Vec::new());
    let different = files.iter().filter_map(|path| {
        let conversation = load_session(path).unwrap();
        let (turns, title) = (conversation.turns().len() as u64, conversation.headline());
        let (counted, named, by_message) = counted(path);
        // What the program says in the model's name used nothing.
        let is_model =
            |node: &&&Node| node.assistant().is_some_and(|a| a.message.model.text() != Some(SYNTHETIC_MODEL));
        for (n, turn) in (1..).zip(conversation.turns()) {
            for id in turn.nodes.iter().filter(is_model).filter_map(|node| node.message_id()) {
                let Some(counted) = by_message.get(&stable_hash(id.as_bytes())) else { continue };
                messages += 1;
                if *counted != n {
                    elsewhere.push(format!("{}: {id} is of turn {n}, counted for {counted}", path.display()));
                }
            }
        }
        let outlined = SessionOverview::read_all_lines(path).unwrap().headline().map(str::to_owned);
        let is_same = turns == counted && (turns == 0 || title == named && title == outlined);
        (!is_same).then(|| format!("{}: {turns} {counted}, {title:?} {named:?} {outlined:?}", path.display()))
    });
    let different: Vec<String> = different.collect();
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert!(messages > 20 && elsewhere.is_empty(), "{messages}\n{}", elsewhere.join("\n"));
}

#[test]
fn every_reader_counts_the_same_turns_and_takes_the_same_title() {
    let (sessions, _) = find::list_sessions(&[quipu_testkit::fixture("demo")]);
    assert_eq!(sessions.len(), 6);
    check(&sessions.into_iter().map(|session| session.path).collect::<Vec<_>>());
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let is_transcript =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("transcript"));
    let recorded: Vec<PathBuf> = quipu_testkit::recorded_files(&shared).into_iter().filter(is_transcript).collect();
    assert!(recorded.len() > 50);
    check(&recorded);
    let is_session =
        |path: &PathBuf| !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("agent-"));
    let published: Vec<PathBuf> =
        quipu_testkit::corpus_files(&shared, &["session"]).into_iter().filter(is_session).collect();
    assert!(published.len() > 40);
    check(&published);
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

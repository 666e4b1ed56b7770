//! Recording: what is written, in which order, hung on what.

use std::time::Duration;

use quipu_message::bookkeeping::CustomTitle;
use quipu_message::user_assistant::Assistant;
use quipu_message::{Entry, Json, Maybe, factory};
use quipu_transcript::{AppendError, Durability, Fork, Recorder, TranscriptState, load_session};
use tempfile::tempdir;

use crate::support::{
    SequentialStamps, assistant, compact_boundary, envelope_defaults, fast_durability, read_chain, slow_durability,
    to_entry, user,
};

#[test]
fn only_what_is_new_is_written_and_the_last_id_comes_back() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut stamp = SequentialStamps(0);
    let mut recorder = Recorder::create(&path, envelope_defaults(), fast_durability()).unwrap();
    let (one, two) = (to_entry(user("one", &mut stamp)), to_entry(user("two", &mut stamp)));
    let first = recorder.record(std::slice::from_ref(&one)).unwrap();
    let last = recorder.record(&[one.clone(), two]).unwrap();
    recorder.close().unwrap();
    let chain = read_chain(&path);
    assert_eq!(chain.len(), 2);
    assert_eq!((chain[0].1.clone(), chain[1].1.clone()), (None, first));
    assert_eq!(last.as_ref(), Some(&chain[1].0));
}

#[test]
fn recorded_entries_move_the_start_only_as_a_prefix() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut stamp = SequentialStamps(0);
    let mut recorder = Recorder::create(&path, envelope_defaults(), fast_durability()).unwrap();
    let old: Vec<Entry> = (0..3).map(|n| to_entry(user(&n.to_string(), &mut stamp))).collect();
    recorder.record(&old).unwrap();
    let uuid = |e: &Entry| e.envelope().unwrap().uuid.get().cloned();
    // Only the first one is before the new one, so it is its parent.
    let new = to_entry(user("new", &mut stamp));
    recorder.record(&[old[0].clone(), new.clone(), old[1].clone(), old[2].clone()]).unwrap();
    recorder.close().unwrap();
    assert_eq!(read_chain(&path).last().unwrap(), &(uuid(&new).unwrap(), uuid(&old[0])));
}

#[test]
fn a_flood_of_answers_is_written_as_it_comes() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut stamp = SequentialStamps(0);
    let durability = slow_durability();
    let mut recorder = Recorder::create(&path, envelope_defaults(), durability).unwrap();
    for n in 0..300 {
        recorder.queue_assistant(assistant(&n.to_string(), &mut stamp)).unwrap();
    }
    while read_chain(&path).len() < 256 {
        std::thread::yield_now();
    }
    recorder.close().unwrap();
    let chain = read_chain(&path);
    assert_eq!(chain.len(), 300);
    assert!(chain.windows(2).all(|pair| pair[1].1.as_ref() == Some(&pair[0].0)), "one chain");
}

#[test]
fn a_queued_answer_is_written_as_it_is_at_the_end_of_its_wait() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut stamp = SequentialStamps(0);
    let durability = slow_durability();
    let mut recorder = Recorder::create(&path, envelope_defaults(), durability).unwrap();
    recorder.record(&[to_entry(user("go", &mut stamp))]).unwrap();
    let queued = recorder.queue_assistant(assistant("partial", &mut stamp)).unwrap();
    assert!(queued.update(|line| line.message.stop_reason = Maybe::Value("end_turn".into())));
    assert_eq!(read_chain(&path).len(), 1, "still waiting");
    recorder.record(&[to_entry(user("next", &mut stamp))]).unwrap();
    assert!(!queued.update(|_| ()), "written");
    recorder.close().unwrap();
    let chain = read_chain(&path);
    assert_eq!(chain[2].1.as_ref(), Some(&chain[1].0), "the prompt hangs on the answer before it");
    assert!(std::fs::read_to_string(&path).unwrap().contains(r#""stop_reason":"end_turn""#));
}

#[test]
fn a_queued_answer_is_written_without_being_asked_for() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut stamp = SequentialStamps(0);
    let durability =
        Durability { sync: false, max_delay: Duration::from_secs(3600), max_open_delay: Duration::from_millis(1) };
    let mut recorder = Recorder::create(&path, envelope_defaults(), durability).unwrap();
    recorder.queue_assistant(assistant("soon", &mut stamp)).unwrap();
    while read_chain(&path).is_empty() {
        std::thread::yield_now();
    }
    recorder.close().unwrap();
}

#[test]
fn queued_bookkeeping_is_written_before_the_next_entry_or_soon() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut stamp = SequentialStamps(0);
    let titled = |title: &str| Entry::CustomTitle(Box::new(CustomTitle { title: title.into(), ..Default::default() }));
    let lines = || std::fs::read_to_string(&path).unwrap().lines().count();
    let mut recorder = Recorder::create(&path, envelope_defaults(), slow_durability()).unwrap();
    recorder.record(&[to_entry(user("go", &mut stamp))]).unwrap();
    recorder.queue_bookkeeping(&[titled("a")]).unwrap();
    assert_eq!(lines(), 1, "still waiting");
    recorder.queue_assistant(assistant("answer", &mut stamp)).unwrap();
    recorder.queue_bookkeeping(&[titled("b")]).unwrap();
    recorder.record(&[to_entry(user("next", &mut stamp))]).unwrap();
    recorder.close().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let at = |word: &str| text.find(&format!("\"{word}\"")).unwrap();
    assert!(at("go") < at("a") && at("a") < at("b") && at("b") < at("answer") && at("answer") < at("next"), "{text}");

    let mut recorder = Recorder::resume(&path, envelope_defaults(), fast_durability()).unwrap();
    recorder.queue_bookkeeping(&[titled("soon")]).unwrap();
    while lines() < 6 {
        std::thread::yield_now();
    }
    recorder.close().unwrap();
}

#[test]
fn results_of_parallel_calls_have_their_own_calls_as_parents() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut stamp = SequentialStamps(0);
    let mut recorder = Recorder::create(&path, envelope_defaults(), fast_durability()).unwrap();
    recorder.record(&[to_entry(user("go", &mut stamp))]).unwrap();
    let calls: Vec<_> = (0..2).map(|_| assistant("call", &mut stamp)).collect();
    let ids: Vec<_> = calls.iter().map(|c| c.envelope.uuid.get().unwrap().clone()).collect();
    for call in calls {
        recorder.queue_assistant(call).unwrap();
    }
    for id in ids.iter().rev() {
        let result = factory::tool_result("t".into(), "done", false, Json::default(), id.clone(), &mut stamp);
        recorder.record(&[to_entry(result)]).unwrap();
    }
    recorder.close().unwrap();
    let chain = read_chain(&path);
    assert_eq!((chain[3].1.as_ref(), chain[4].1.as_ref()), (Some(&ids[1]), Some(&ids[0])));
}

#[test]
fn a_session_is_resumed_rewound_forked_and_compacted() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut stamp = SequentialStamps(0);
    let mut recorder = Recorder::create(&path, envelope_defaults(), fast_durability()).unwrap();
    let first = recorder.record(&[to_entry(user("one", &mut stamp))]).unwrap().unwrap();
    recorder.queue_assistant(assistant("first", &mut stamp)).unwrap();
    recorder.close().unwrap();

    let mut recorder = Recorder::resume(&path, envelope_defaults(), fast_durability()).unwrap();
    recorder.record(&[to_entry(user("two", &mut stamp))]).unwrap();
    recorder.rewind_to(&first).unwrap();
    recorder.queue_assistant(assistant("second try", &mut stamp)).unwrap();
    let kept = recorder.record(&[to_entry(user("three", &mut stamp))]).unwrap().unwrap();
    let texts = |path: &std::path::Path| -> Vec<String> {
        load_session(path).unwrap().for_api().iter().map(|m| m.content.to_text()).collect()
    };
    assert_eq!(texts(&path), ["one", "second try", "three"]);

    let fork = dir.path().join("fork.jsonl");
    let session = "f0f0f0f0-0000-4000-8000-000000000000".into();
    let run =
        |to: &std::path::Path, at| Fork { from: &path, to, session_id: &session, prompt_id: "p", last_uuid: at }.run();
    assert_eq!(run(&fork, None).unwrap(), 5);
    assert_eq!(texts(&fork), ["one", "second try", "three"]);
    assert!(!std::fs::read_to_string(&fork).unwrap().contains(envelope_defaults().session_id.as_str()));
    assert_eq!(run(&fork, None).unwrap_err().code(), "append.cannot_create");
    let at = dir.path().join("at.jsonl");
    assert_eq!(run(&at, Some(&first)).unwrap(), 1);
    assert_eq!(texts(&at), ["one"]);

    let summary = user("In short.", &mut stamp);
    let boundary = compact_boundary(&summary, &[kept], &mut stamp);
    recorder.compact(boundary, summary).unwrap();
    recorder.record(&[to_entry(user("four", &mut stamp))]).unwrap();
    recorder.close().unwrap();
    assert_eq!(texts(&path), ["In short.\nthree\nfour"]);
    let resumed = TranscriptState::read(&path).unwrap();
    assert_eq!(resumed.session_id, Some(envelope_defaults().session_id));
    assert_eq!(resumed.uuids.len(), 8);
}

#[test]
fn a_clock_that_goes_backwards_changes_nothing() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut recorder = Recorder::create(&path, envelope_defaults(), fast_durability()).unwrap();
    let mut stamp = SequentialStamps(50_000);
    recorder.record(&[to_entry(user("late", &mut stamp))]).unwrap();
    let mut stamp = SequentialStamps(10);
    recorder.record(&[to_entry(user("early", &mut stamp))]).unwrap();
    recorder.close().unwrap();
    let shown: Vec<_> = load_session(&path).unwrap().for_ui().into_iter().filter_map(|i| i.text).collect();
    assert_eq!(shown, ["late", "early"]);
}

#[test]
fn an_answer_that_is_withdrawn_in_time_is_not_written() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut stamp = SequentialStamps(0);
    let durability = slow_durability();
    let mut recorder = Recorder::create(&path, envelope_defaults(), durability).unwrap();
    let prompt_id = recorder.record(&[to_entry(user("go", &mut stamp))]).unwrap().unwrap();
    let early = recorder.queue_assistant(assistant("written early", &mut stamp)).unwrap();
    recorder.flush().unwrap();
    let late = recorder.queue_assistant(assistant("still waiting", &mut stamp)).unwrap();
    assert!(!early.withdraw() && late.withdraw());
    recorder.rewind_to(&prompt_id).unwrap();
    let again = recorder.queue_assistant(assistant("the second try", &mut stamp)).unwrap();
    assert!(again.update(|_| ()));
    recorder.close().unwrap();
    let chain = read_chain(&path);
    assert_eq!(chain.len(), 3);
    assert_eq!((&chain[1].1, &chain[2].1), (&Some(prompt_id.clone()), &Some(prompt_id)), "two tries after one prompt");
}

#[test]
fn each_block_is_written_once() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut stamp = SequentialStamps(0);
    let mut recorder = Recorder::create(&path, envelope_defaults(), slow_durability()).unwrap();
    recorder.record(&[to_entry(user("go", &mut stamp))]).unwrap();
    let early = recorder.queue_assistant(assistant("written early", &mut stamp)).unwrap();
    recorder.flush().unwrap();
    let last = recorder.queue_assistant(assistant("in time", &mut stamp)).unwrap();
    let stopped = |line: &mut Assistant| line.message.stop_reason = Maybe::Value("max_tokens".into());
    recorder.finish_assistant(&[&early, &last], stopped);
    recorder.close().unwrap();
    assert_eq!(read_chain(&path).len(), 3);
    let conversation = load_session(&path).unwrap();
    let answers: Vec<_> = conversation.path().into_iter().filter_map(|node| node.assistant()).collect();
    let reasons: Vec<_> = answers.iter().map(|answer| answer.message.stop_reason.text()).collect();
    assert_eq!(reasons, [Some("stop_sequence"), Some("max_tokens")]);
}

#[test]
fn only_the_last_block_waits_for_the_end_of_the_answer() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut stamp = SequentialStamps(0);
    let durability = Durability { max_delay: Duration::from_millis(1), ..slow_durability() };
    let mut recorder = Recorder::create(&path, envelope_defaults(), durability).unwrap();
    let blocks: Vec<_> =
        (0..3).map(|n| recorder.queue_assistant(assistant(&n.to_string(), &mut stamp)).unwrap()).collect();
    while read_chain(&path).len() < 2 {
        std::thread::yield_now();
    }
    assert!(blocks[2].update(|_| ()), "still waiting");
    recorder.finish_assistant(&blocks.iter().collect::<Vec<_>>(), |_| ());
    while read_chain(&path).len() < 3 {
        std::thread::yield_now();
    }
    recorder.close().unwrap();
}

#[test]
fn recording_returns_while_another_program_holds_the_lock() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut stamp = SequentialStamps(0);
    let mut recorder = Recorder::create(&path, envelope_defaults(), fast_durability()).unwrap();
    let other = std::fs::File::open(&path).unwrap();
    let (outcomes, heard) = std::sync::mpsc::channel();
    let record = |recorder: &mut Recorder, stamp: &mut SequentialStamps| {
        let outcomes = outcomes.clone();
        let done =
            Box::new(move |written: Result<(), AppendError>| outcomes.send(written.map_err(|e| e.code())).unwrap());
        recorder.record_then(&[to_entry(user("words", stamp))], done).unwrap();
    };
    other.lock().unwrap();
    record(&mut recorder, &mut stamp);
    assert!(heard.try_recv().is_err() && read_chain(&path).is_empty());
    other.unlock().unwrap();
    assert_eq!(heard.recv().unwrap(), Ok(()));
    other.lock().unwrap();
    record(&mut recorder, &mut stamp);
    drop(recorder);
    assert_eq!(heard.recv().unwrap(), Err("append.locked"));
    assert_eq!(read_chain(&path).len(), 1);
}

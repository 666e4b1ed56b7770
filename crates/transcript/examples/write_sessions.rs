//! Writes four small sessions for other programs to read: one written, one resumed,
//! one forked, one compacted. `write_sessions CONFIG_DIR WORKING_DIR`
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "an example prints its results")]

use std::error::Error;
use std::path::{Path, PathBuf};

use quipu_message::bookkeeping::CustomTitle;
use quipu_message::user_assistant::Assistant;
use quipu_message::values::{CompactTrigger, StopReason};
use quipu_message::{Block, Entry, Json, Maybe, StampSource, Uuid, factory};
use quipu_transcript::{Durability, EnvelopeDefaults, Fork, Recorder, find};
use serde_json::json;

/// Ids and times in a row; a program would take random ids and the clock.
struct SequentialStamps(u64);

impl StampSource for SequentialStamps {
    fn new_uuid(&mut self) -> Uuid {
        self.0 += 1;
        format!("0a0b0c0d-1111-4222-8333-{:012x}", self.0).into()
    }
    fn now(&mut self) -> String {
        format!("2026-11-15T10:{:02}:{:02}.000Z", self.0 / 60 % 60, self.0 % 60)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(config), Some(cwd)) = (args.next(), args.next()) else {
        return Err("usage: write_sessions CONFIG_DIR WORKING_DIR".into());
    };
    let folder = Path::new(&config).join("projects").join(find::project_folder_name(&cwd));
    let mut stamp = SequentialStamps(0);
    let file = |name: &str| -> (PathBuf, EnvelopeDefaults) {
        let facts = EnvelopeDefaults {
            session_id: name.into(),
            cwd: cwd.clone(),
            version: "2.1.325".into(),
            git_branch: "HEAD".into(),
            entrypoint: "sdk-cli".into(),
            agent_id: None,
        };
        (folder.join(format!("{name}.jsonl")), facts)
    };

    let (written, facts) = file("11111111-aaaa-4aaa-8aaa-aaaaaaaaaaaa");
    let mut recorder = Recorder::create(&written, facts.clone(), Durability::default())?;
    record_turn(&mut recorder, &mut stamp, "How long is the pier?", "I will measure it.")?;
    recorder.close()?;

    let mut recorder = Recorder::resume(&written, facts.clone(), Durability::default())?;
    record_turn(&mut recorder, &mut stamp, "And the jetty?", "Let me look.")?;
    recorder.record_bookkeeping(&[Entry::CustomTitle(Box::new(CustomTitle {
        title: "Pier and jetty".into(),
        session_id: Maybe::Value(facts.session_id),
        ..CustomTitle::default()
    }))])?;
    recorder.close()?;

    let (forked, facts) = file("22222222-bbbb-4bbb-8bbb-bbbbbbbbbbbb");
    Fork { from: &written, to: &forked, session_id: &facts.session_id, prompt_id: "p-fork", last_uuid: None }.run()?;
    let mut recorder = Recorder::resume(&forked, facts, Durability::default())?;
    record_turn(&mut recorder, &mut stamp, "What about the old quay?", "It is gone.")?;
    recorder.close()?;

    let (compacted, facts) = file("33333333-cccc-4ccc-8ccc-cccccccccccc");
    let mut recorder = Recorder::create(&compacted, facts, Durability::default())?;
    record_turn(&mut recorder, &mut stamp, "Count the boats.", "Counting.")?;
    record_turn(&mut recorder, &mut stamp, "Count the gulls.", "Too many.")?;
    let kept: Vec<_> = recorder.leaf_uuid().cloned().into_iter().collect();
    let summary = factory::user("The boats were counted: twelve. The gulls were too many.", &mut stamp);
    let anchor = summary.envelope.uuid.get().cloned().unwrap_or_default();
    let boundary = factory::compact_boundary(CompactTrigger::Manual, 1200, &kept, &anchor, &mut stamp);
    recorder.compact(boundary, summary)?;
    record_turn(&mut recorder, &mut stamp, "And the seals?", "Three.")?;
    recorder.close()?;

    println!("{}", json!({"written": written, "forked": forked, "compacted": compacted}));
    Ok(())
}

/// A prompt, an answer with a tool call, its result, and the final words.
fn record_turn(
    recorder: &mut Recorder,
    stamp: &mut SequentialStamps,
    prompt: &str,
    answer: &str,
) -> Result<(), Box<dyn Error>> {
    recorder.record(&[Entry::User(Box::new(factory::user(prompt, stamp)))])?;
    let call = format!("toolu_{:08}", stamp.0);
    let id = format!("msg_{:08}", stamp.0);
    let block = json!({"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "echo 12"}}).to_string();
    let asking = assistant_message(&id, vec![Block::new_text(answer)], stamp);
    let calling = assistant_message(&id, vec![serde_json::from_str(&block)?], stamp);
    let source = calling.envelope.uuid.get().cloned().ok_or("no uuid")?;
    recorder.queue_assistant(asking)?;
    recorder.queue_assistant(calling)?;
    let output = Json::from_serialize(&json!({"stdout": "12", "stderr": "", "interrupted": false, "isImage": false}));
    let result = factory::tool_result(call.as_str().into(), "12", false, output, source, stamp);
    recorder.record(&[Entry::User(Box::new(result))])?;
    let last = assistant_message(&format!("msg_{:08}", stamp.0), vec![Block::new_text("Twelve.")], stamp);
    recorder.queue_assistant(last)?;
    Ok(())
}

fn assistant_message(id: &str, blocks: Vec<Block>, stamp: &mut SequentialStamps) -> Assistant {
    let mut line = factory::synthetic_assistant(blocks, stamp);
    line.message.id = Maybe::Value(id.into());
    line.message.model = Maybe::Value("claude-opus-5-5".to_owned());
    line.message.stop_reason = StopReason::EndTurn.into();
    line.message.stop_sequence = Maybe::Null;
    line.is_api_error_message = Maybe::Absent;
    line.request_id = Maybe::Value(format!("req_{id}").into());
    line
}

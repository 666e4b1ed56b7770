//! Sessions, branches and turns of the recordings, compared with their transcripts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use jiff::Timestamp;
use quipu_conversation::Conversation;
use quipu_message::Head;
use quipu_trace::{Branch, BranchKind, RawCall, RawResponse, Structure, Trace, TraceBuilder};
use serde_json::json;

fn read_recording(path: &Path) -> Trace {
    Trace::open(&[path]).unwrap()
}

/// One line a branch: its name, its calls as numbers from 1, and its fork.
fn describe(structure: &Structure) -> Vec<String> {
    let number = |call: &usize| call + 1;
    let line = |branch: &Branch| {
        let calls: Vec<usize> = branch.calls.iter().map(number).collect();
        match (branch.parent, branch.forked_at) {
            (Some(parent), fork) => {
                let fork = fork.map_or("the start".to_owned(), |call| number(&call).to_string());
                format!(
                    "{} {calls:?} from {} after {fork}: {}",
                    branch.id, structure.branches[parent].id, branch.reason
                )
            }
            (None, _) => format!("{} {calls:?}: {}", branch.id, branch.reason),
        }
    };
    let branches = structure.sessions.iter().flat_map(|session| &session.branches);
    branches.map(|branch| line(&structure.branches[*branch])).collect()
}

fn is_named(path: &Path, prefix: &str) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with(prefix) && name.ends_with(".jsonl")
}

/// Turns of the transcripts in a recording's folder, by session id.
fn transcript_turns(folder: &Path) -> BTreeMap<String, usize> {
    let files = quipu_testkit::files_under(folder, |path| is_named(path, "transcript"));
    let turns = files.iter().map(|path| {
        let text = fs::read_to_string(path).unwrap();
        let mut conversation = Conversation::default();
        for (line, text) in text.lines().enumerate() {
            conversation.push_line(line as u64 + 1, text);
        }
        let id = text.lines().find_map(|line| Some(Head::read(line).ok()?.session_id?.to_string()));
        (id.unwrap_or_default(), conversation.turns().len())
    });
    turns.collect()
}

/// Sessions whose turns cannot be compared: number of turns in the trace, and why.
const OTHER_TURNS: [(&str, usize, &str); 3] = [
    ("10_resume_continue_fork", 1, "the fork repeats three turns that its parent sent"),
    ("33_session_id", 1, "the second session is not written to a file"),
    ("58_sdk_session_store_mirror", 2, "the second turn is in the session store only"),
];

#[test]
fn turns_and_subagents_agree_with_the_transcripts() {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let recordings = quipu_testkit::files_under(&shared.join("recordings"), |path| path.ends_with("api.jsonl"));
    assert!(recordings.len() > 80);
    for file in recordings {
        let folder = file.parent().unwrap();
        let name = folder.file_name().unwrap().to_string_lossy();
        let trace = read_recording(&file);
        assert_eq!(trace.problems, [], "{name}");
        let structure = Structure::new(&trace);
        let transcripts = transcript_turns(folder);
        for session in &structure.sessions {
            let turns = transcripts.get(session.session_id.as_deref().unwrap_or_default()).copied();
            let other = OTHER_TURNS.iter().find(|(other, count, _)| *other == name && *count == session.turns.len());
            assert!(turns == Some(session.turns.len()) || other.is_some(), "{name}: {:#?}", session.turns);
        }
        let subagents = structure.branches.iter().filter(|branch| branch.kind == BranchKind::Subagent);
        let files = quipu_testkit::files_under(folder, |path| is_named(path, "agent-"));
        let unique: BTreeSet<_> = files.iter().filter_map(|path| path.file_name()).collect();
        assert_eq!(subagents.count(), unique.len(), "{name}");
        // Each message call is in exactly one branch and one turn.
        let calls: Vec<usize> =
            trace.calls.iter().filter(|call| call.is_message_call()).map(|call| call.index).collect();
        let mut in_branches: Vec<usize> = structure.branches.iter().flat_map(|branch| branch.calls.clone()).collect();
        let turns = structure.sessions.iter().flat_map(|session| &session.turns);
        let mut in_turns: Vec<usize> = turns.flat_map(|turn| turn.calls.clone()).collect();
        in_branches.sort_unstable();
        in_turns.sort_unstable();
        assert_eq!((&in_branches, &in_turns), (&calls, &calls), "{name}");
    }
}

#[test]
fn branches_of_recordings_are_named_with_their_reasons() {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let suggestion = "instruction on a copy of the conversation, such as a prompt suggestion";
    let check = |name: &str, expected: &[&str]| {
        let trace = read_recording(&shared.join("recordings").join(name).join("api.jsonl"));
        assert_eq!(describe(&Structure::new(&trace)), expected, "{name}");
    };
    check(
        "09_subagent_background",
        &[
            "main-1 [1, 3, 5]: first call of the session",
            "subagent-1 [2, 4] from main-1 after 1: subagent of tool call toolu_fake0001",
        ],
    );
    check(
        "10_resume_continue_fork",
        &[
            "main-1 [1, 2, 3]: first call of the session",
            "main-2 [4] from main-1 after 3: continues session d05e3a74-03b0-42f7-8c38-76b6050f7425",
        ],
    );
    check(
        "12_retry_429_529",
        &[
            "main-1 [3]: first call of the session",
            "retry-1 [1, 2] from main-1 after the start: failed with status 429 and sent again",
        ],
    );
    check(
        "15_cut_stream",
        &[
            "main-1 [2]: first call of the session",
            "retry-1 [1] from main-1 after the start: response broke off and the request was sent again",
        ],
    );
    check(
        "22_compact_manual",
        &[
            "main-1 [1, 2]: first call of the session",
            "compaction-1 [3, 4] from main-1 after 2: history replaced by a summary",
            "compaction-2 [5] from compaction-1 after 4: history replaced by a summary",
        ],
    );
    check(
        "37_old_cli_2.1.197",
        &[
            "main-1 [2, 5]: first call of the session",
            "subagent-1 [3, 4] from main-1 after 2: subagent of tool call toolu_fake0002",
            "compaction-1 [7, 9] from main-1 after 5: history replaced by a summary",
        ],
    );
    check(
        "60_prompt_suggestion_title",
        &[
            "main-1 [2, 3, 5]: first call of the session",
            &format!("side-1 [4] from main-1 after 3: {suggestion}"),
            &format!("side-2 [6] from main-1 after 5: {suggestion}"),
            "side-3 [7] from main-1 after 5: structured output, such as a title",
        ],
    );
    check(
        "68_websearch",
        &[
            "main-1 [1, 3, 5]: first call of the session",
            "side-1 [2] from main-1 after 1: web search",
            "side-2 [4] from main-1 after 3: web search",
        ],
    );
}

/// A call of a conversation: user and assistant messages in turn, and the text of its response.
fn push_call(builder: &mut TraceBuilder, second: i64, messages: &[&str], response: &str) {
    let messages: Vec<serde_json::Value> = messages
        .iter()
        .enumerate()
        .map(|(i, text)| json!({"role": if i % 2 == 0 { "user" } else { "assistant" }, "content": text}))
        .collect();
    let body = json!({"model": "m", "tools": [{"name": "Bash", "input_schema": {}}], "messages": messages});
    let block = match response.strip_prefix("Task: ") {
        Some(prompt) => json!({"type": "tool_use", "id": "toolu_1", "name": "Task", "input": {"prompt": prompt}}),
        None => json!({"type": "text", "text": response}),
    };
    let response =
        json!({"id": "msg", "type": "message", "role": "assistant", "content": [block], "stop_reason": "end_turn"});
    builder.push(&RawCall {
        started_at: Timestamp::from_second(1_700_000_000 + second).ok(),
        url: "/v1/messages".into(),
        request_body: body.to_string().into(),
        status: Some(200),
        response: RawResponse::Json(response.to_string().into()),
        ..RawCall::default()
    });
}

fn check(calls: &[(&[&str], &str)], expected: &[&str]) {
    let mut builder = TraceBuilder::default();
    for (second, (messages, response)) in calls.iter().enumerate() {
        push_call(&mut builder, second as i64, messages, response);
    }
    assert_eq!(describe(&Structure::new(&builder.finish())), expected);
}

#[test]
fn a_history_that_goes_back_is_a_rewind() {
    check(
        &[
            (&["a"], "1"),
            (&["a", "1", "b"], "2"),
            (&["a", "1", "b", "2", "c"], "3"),
            (&["a", "1", "d"], "4"),
            (&["a", "1", "d", "4", "e"], "5"),
        ],
        &[
            "main-1 [1, 2, 3]: first call of the session",
            "rewind-1 [4, 5] from main-1 after 1: history went back to an earlier message",
        ],
    );
}

#[test]
fn an_edited_message_stays_in_the_branch() {
    check(
        &[
            (&["a"], "1"),
            (&["a", "1", "b"], "2"),
            (&["a", "1", "b", "2", "c"], "3"),
            (&["edited", "1", "b", "2", "c", "3", "d"], "4"),
        ],
        &["main-1 [1, 2, 3, 4]: first call of the session"],
    );
}

#[test]
fn a_history_without_the_old_one_is_a_reset() {
    check(
        &[(&["a"], "1"), (&["a", "1", "b"], "2"), (&["x"], "3"), (&["x", "3", "y"], "4")],
        &["main-1 [1, 2]: first call of the session", "reset-1 [3, 4] from main-1 after 2: history starts over"],
    );
}

#[test]
fn a_history_that_begins_with_the_last_response_is_a_compaction() {
    let summary = "<summary>\nThe user wants a red button.\n</summary>";
    check(
        &[
            (&["a"], "1"),
            (&["a", "1", "b"], "2"),
            (&["a", "1", "b", "2", "summarise"], summary),
            (&["Continued. The user wants a red button.\nGo on."], "3"),
        ],
        &[
            "main-1 [1, 2]: first call of the session",
            "compaction-1 [3, 4] from main-1 after 2: history replaced by a summary",
        ],
    );
}

#[test]
fn a_subagent_without_a_header_is_found_by_its_prompt() {
    check(
        &[(&["a"], "Task: count the files"), (&["count the files"], "7"), (&["a", "1", "b"], "2")],
        &[
            "main-1 [1, 3]: first call of the session",
            "subagent-1 [2] from main-1 after 1: subagent of tool call toolu_1",
        ],
    );
}

#[test]
fn the_same_request_again_takes_the_place_of_the_first() {
    check(
        &[(&["a"], "1"), (&["a"], "2"), (&["a", "2", "b"], "3")],
        &[
            "main-1 [2, 3]: first call of the session",
            "retry-1 [1] from main-1 after the start: sent again though the response was complete",
        ],
    );
}

//! Session files of Claude Code and of `quipu-agent`.
//!
//! Newer files log every request ([`RequestLog`]): it is rebuilt from the file alone, and each
//! message is proved by its hash. Other files show only the responses: their calls are marked
//! as reconstructed, with the messages that `for_api` gives.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

use quipu_conversation::{PastCall, PastRequests, RebuiltRequests, RequestLog, parse_timestamp};
use quipu_transcript::{Entries, Problem, SessionSkeleton, find, load_reader};

use super::{CaptureFormat, ImportError};
use crate::builder::TraceBuilder;
use crate::call::{CallIdentity, RequestParts};
use crate::raw_call::RawCall;

mod logged;
mod responses;

use logged::LoggedCalls;
use responses::{Response, Responses};

/// Longest request that the API accepts. Files with more messages between two compactions are not
/// what was sent, and the requests of all their calls together would grow with the square of it.
const MAX_REQUEST_BYTES: u64 = 32 << 20;

/// Imports a session file and the files of its subagents.
pub(super) fn import_file(path: &Path, builder: &mut TraceBuilder) -> Result<(), ImportError> {
    let own = find::subagent_file(path);
    let is_subagent = own.is_some();
    let mut files = vec![(path.to_owned(), own)];
    if !is_subagent {
        let listed = [find::list_subagents(path), find::list_legacy_subagents(path)].concat();
        files.extend(listed.into_iter().map(|file| (file.path.clone(), Some(file))));
    }
    for (path, subagent) in files {
        builder.start_source(&path, CaptureFormat::Session);
        let identity = CallIdentity {
            agent_id: subagent.as_ref().map(|file| file.agent_id.to_string()),
            parent_agent_id: subagent.and_then(|file| file.parent_agent_id).map(|id| id.to_string()),
            ..CallIdentity::default()
        };
        let read_past = |visit: &mut dyn FnMut(PastRequests)| {
            let session = SessionSkeleton::open_file(&path).map_err(io::Error::other)?;
            session.view().visit_past_requests(visit);
            Ok(session.view().problems().to_vec())
        };
        import(|| File::open(&path), read_past, &identity, builder)
            .map_err(|source| ImportError::Read { path: path.clone(), source })?;
    }
    Ok(())
}

/// Imports a session from a source that can be read only once; it is held in memory.
pub(super) fn import_reader(mut input: impl Read, builder: &mut TraceBuilder) -> io::Result<()> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    let read_past = |visit: &mut dyn FnMut(PastRequests)| {
        let conversation = load_reader(Cursor::new(&bytes));
        conversation.past_requests().into_iter().for_each(visit);
        Ok(conversation.problems().to_vec())
    };
    import(|| Ok(Cursor::new(&bytes)), read_past, &CallIdentity::default(), builder)
}

/// Imports one file, in up to three passes, each of which holds only what it is for: the
/// responses, the log of requests if there is one, and the conversation if responses are left
/// whose request is not logged. `read_past` makes the last pass and returns its problems.
fn import<R: Read>(
    open: impl Fn() -> io::Result<R>,
    read_past: impl FnOnce(&mut dyn FnMut(PastRequests)) -> io::Result<Vec<Problem>>,
    identity: &CallIdentity,
    builder: &mut TraceBuilder,
) -> io::Result<()> {
    let responses = Responses::read(open()?)?;
    let mut calls = Vec::new();
    if responses.has_request_log {
        let mut log = RequestLog::with_messages();
        for read in Entries::new(open()?, "").without_text() {
            match read {
                Ok(located) => log.push(located.line, &located.entry),
                Err(problem) => push_problem(problem, builder),
            }
        }
        logged_calls(&log.rebuild(), &responses, builder, &mut calls);
    }
    // A response to a request that is logged elsewhere is a copy from the session that this
    // one continues. Files without any log, such as copies made by other programs, have lost it.
    let is_own = |response: &&Response| response.request_ref.is_none() || !responses.has_request_log;
    let own: HashMap<&str, &Response> =
        responses.messages().filter(is_own).map(|response| (response.message_id.as_str(), response)).collect();
    if !own.is_empty() || !responses.has_request_log {
        let problems = read_past(&mut |part| past_calls(part, &own, builder, &mut calls))?;
        if !responses.has_request_log {
            problems.into_iter().for_each(|problem| push_problem(problem, builder));
        }
    }
    calls.sort_by_key(|call| call.raw.line);
    for mut call in calls {
        if let Some(response) = call.response {
            response.fill(&mut call.raw);
        }
        fill_identity(&mut call.raw.identity, identity);
        builder.set_call_parts(builder.call_count(), &call.raw, call.request, None);
    }
    Ok(())
}

/// Records a line that cannot be read.
fn push_problem(problem: Problem, builder: &mut TraceBuilder) {
    if !problem.kind.is_harmless() {
        builder.push_problem(problem.line, problem.message);
    }
}

/// A call of a session.
struct SessionCall<'r> {
    /// What is known of it without its response.
    raw: RawCall<'static>,
    request: Option<RequestParts>,
    response: Option<&'r Response>,
}

fn fill_identity(identity: &mut CallIdentity, of_file: &CallIdentity) {
    identity.agent_id = identity.agent_id.take().or_else(|| of_file.agent_id.clone());
    identity.parent_agent_id = identity.parent_agent_id.take().or_else(|| of_file.parent_agent_id.clone());
}

/// The calls of the request log, each with its response if there is one.
fn logged_calls<'r>(
    rebuilt: &RebuiltRequests,
    responses: &'r Responses,
    builder: &mut TraceBuilder,
    calls: &mut Vec<SessionCall<'r>>,
) {
    for (line, hash) in &rebuilt.mismatched {
        builder.push_problem(*line, format!("the content does not have the hash {hash}"));
    }
    let mut logged = LoggedCalls::new(rebuilt);
    for request in &rebuilt.requests {
        let parts = logged.request_parts(request, builder);
        let entry = &request.entry;
        let raw = RawCall {
            started_at: entry.timestamp.text().and_then(parse_timestamp),
            url: "/v1/messages".into(),
            headers: vec![("anthropic-beta".into(), entry.betas().join(",").into())],
            identity: CallIdentity {
                session_id: entry.session_id.get().map(ToString::to_string),
                agent_id: entry.agent_id.get().map(ToString::to_string),
                ..CallIdentity::default()
            },
            query_source: entry.query_source.text().map(str::to_owned),
            source_id: entry.id.clone().into(),
            line: request.line,
            ..RawCall::default()
        };
        calls.push(SessionCall { raw, request: Some(parts), response: responses.of_request(&entry.id) });
    }
}

/// The calls of one part of a conversation whose request is not logged.
fn past_calls<'r>(
    part: PastRequests,
    responses: &HashMap<&str, &'r Response>,
    builder: &mut TraceBuilder,
    calls: &mut Vec<SessionCall<'r>>,
) {
    let wanted = part.calls.iter().filter_map(|call| Some((call, *responses.get(call.message_id.as_str())?)));
    let wanted: Vec<(&PastCall, &Response)> = wanted.collect();
    let Some(most) = wanted.iter().map(|(call, _)| call.sent).max() else { return };
    // The messages, and the bytes of those before each.
    let (mut keys, mut bytes_before, mut problem) = (Vec::new(), vec![0], None);
    for message in part.messages.into_iter().take(most) {
        let key = builder.prompts().add_new_message(&message).map_err(|error| error.to_string());
        let sized = key.map(|key| (key, bytes_before[keys.len()] + builder.prompts().message(key).bytes));
        match sized {
            Ok((key, bytes)) if bytes <= MAX_REQUEST_BYTES => {
                keys.push(key);
                bytes_before.push(bytes);
                continue;
            }
            Ok(_) => problem = Some(format!("more than the {} MB that the API accepts", MAX_REQUEST_BYTES >> 20)),
            Err(error) => problem = Some(error),
        }
        break;
    }
    let has_request = |call: &PastCall| call.sent <= keys.len();
    if let (Some(problem), Some((_, response))) = (&problem, wanted.iter().find(|(call, _)| !has_request(call))) {
        builder.push_problem(response.line, format!("messages before this response and later ones: {problem}"));
    }
    for (call, response) in wanted {
        let raw = RawCall {
            started_at: call.previous_time.as_deref().and_then(parse_timestamp),
            url: "/v1/messages".into(),
            is_reconstructed: true,
            line: response.line,
            ..RawCall::default()
        };
        let request = has_request(call).then(|| RequestParts {
            model: response.requested_model(),
            messages: keys[..call.sent].to_vec(),
            body_bytes: bytes_before[call.sent],
            ..RequestParts::default()
        });
        calls.push(SessionCall { raw, request, response: Some(response) });
    }
}

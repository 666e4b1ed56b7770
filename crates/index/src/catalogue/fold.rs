//! Reads the new lines of one session into its stored state.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use jiff::Timestamp;
use quipu_conversation::usage::UsageTally;
use quipu_conversation::{MetricsBuilder, MetricsState, SubagentRef, parse_timestamp};
use quipu_message::line::readable_text;
use quipu_message::{ToolUseId, View};
use quipu_transcript::find::{self, SessionFiles, TranscriptFile};
use quipu_transcript::{FileError, LineEnding, LineReader, RawLine};

use quipu_conversation::usage::stable_hash;

/// How far a file was read, and a hash of the bytes before that offset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ReadPosition {
    pub(crate) offset: u64,
    pub(crate) tail_hash: u64,
}

/// The stored state of a session, to continue from.
#[derive(Debug, Default)]
pub(crate) struct FoldState {
    pub(super) metrics: MetricsState,
    pub(super) usage: UsageTally,
    pub(super) started_at: Option<Timestamp>,
    /// Read position of each file, in the order of the files.
    pub(super) positions: Vec<ReadPosition>,
}

/// A session after reading what is new.
#[derive(Debug)]
pub(crate) struct FoldedSession {
    pub(crate) metrics: MetricsBuilder,
    pub(crate) started_at: Option<Timestamp>,
    /// New read position of each file; `None` if the file could not be read.
    pub(crate) positions: Vec<Option<ReadPosition>>,
    /// Whether all files were read from the start.
    pub(crate) is_full_read: bool,
    pub(crate) errors: Vec<FileError>,
}

/// Reads the new lines of a session.
///
/// Continues from `state` if every file still starts with the bytes that were read. Otherwise,
/// and if a new line has a parent older than the stored state (turns are counted along the path
/// of each line), reads all files from the start.
pub(crate) fn fold_session(session_files: &SessionFiles, state: Option<FoldState>) -> FoldedSession {
    let can_continue = |state: &FoldState| {
        state.positions.len() == session_files.files.len()
            && session_files
                .files
                .iter()
                .zip(&state.positions)
                .all(|(file, position)| is_unchanged_up_to(file, *position))
    };
    let state = state.filter(can_continue);
    let is_full_read = state.is_none();
    let folded = fold_from(session_files, state);
    if !is_full_read && folded.metrics.has_unknown_parent() {
        return fold_from(session_files, None);
    }
    folded
}

fn fold_from(session_files: &SessionFiles, state: Option<FoldState>) -> FoldedSession {
    let is_full_read = state.is_none();
    let FoldState { metrics, usage, mut started_at, mut positions } = state.unwrap_or_default();
    positions.resize(session_files.files.len(), ReadPosition::default());
    let mut session = MetricsBuilder::from_state(metrics, usage);
    let mut errors = Vec::new();
    let read = session_files.files.iter().zip(positions).map(|(file, position)| {
        enter_file(file, &mut session);
        let read = read_new_lines(file, position, &mut session, &mut started_at);
        read.map_err(|error| errors.push(error)).ok()
    });
    let positions = read.collect();
    FoldedSession { metrics: session, started_at, positions, is_full_read, errors }
}

/// Passes the subagent of the next file to the builder.
fn enter_file(file: &TranscriptFile, session: &mut MetricsBuilder) {
    let subagent = file.is_subagent.then(|| find::subagent_file(&file.path)).flatten();
    session.enter_file(subagent.as_ref().map(|subagent| SubagentRef {
        id: subagent.agent_id.as_str(),
        tool_use_id: subagent.tool_use_id.as_ref().map(ToolUseId::as_str),
        agent_type: subagent.agent_type.as_deref(),
    }));
}

/// Whether the bytes before the read position are unchanged, by the hash of the last ones.
fn is_unchanged_up_to(file: &TranscriptFile, position: ReadPosition) -> bool {
    file.bytes >= position.offset
        && File::open(&file.path)
            .and_then(|mut f| hash_tail(&mut f, position.offset))
            .is_ok_and(|t| t == position.tail_hash)
}

/// Hashes the last 64 bytes before an offset.
pub(crate) fn hash_tail(file: &mut File, offset: u64) -> io::Result<u64> {
    let from = offset.saturating_sub(64);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = [0; 64];
    let len = (offset - from) as usize;
    file.read_exact(&mut bytes[..len])?;
    Ok(stable_hash(&bytes) ^ offset)
}

fn read_new_lines(
    file: &TranscriptFile,
    position: ReadPosition,
    session: &mut MetricsBuilder,
    started_at: &mut Option<Timestamp>,
) -> Result<ReadPosition, FileError> {
    let path = &file.path;
    let open = |source| FileError::Open { path: path.clone(), source };
    let mut input = File::open(path).map_err(open)?;
    input.seek(SeekFrom::Start(position.offset)).map_err(open)?;
    let mut lines = LineReader::new(&input);
    let mut end = position.offset;
    loop {
        let failed = |source| FileError::Read { path: path.clone(), offset: end, source };
        let Some(line) = lines.next().map_err(failed)? else { break };
        let whole = end + line.byte_len();
        let RawLine::Line { bytes, ending, .. } = line else {
            end = whole;
            continue;
        };
        let text = readable_text(bytes);
        let view = View::read(&text).ok();
        // A partial line is read again later; a complete one may never get a line end.
        if ending == LineEnding::None && view.is_none() {
            break;
        }
        end = whole;
        if let Some(view) = view {
            if started_at.is_none() {
                *started_at = view.timestamp.as_deref().and_then(parse_timestamp);
            }
            session.push(&view);
        }
    }
    Ok(ReadPosition { offset: end, tail_hash: hash_tail(&mut input, end).map_err(open)? })
}

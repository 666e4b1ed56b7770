//! One session's files, read from where they were read to before.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use jiff::Timestamp;
use quipu_conversation::usage::UsageTally;
use quipu_conversation::{MetricsBuilder, MetricsState, SubagentRef, parse_timestamp};
use quipu_message::line::replace_lone_surrogates;
use quipu_message::{ToolUseId, View};
use quipu_transcript::find::{self, SessionFiles, TranscriptFile};
use quipu_transcript::{FileError, LineEnding, LineReader, RawLine};

use quipu_conversation::usage::stable_hash;

/// How far a file was read, and what stood before that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ReadPosition {
    pub(crate) offset: u64,
    pub(crate) tail_hash: u64,
}

/// Where counting a session goes on.
#[derive(Debug, Default)]
pub(crate) struct FoldState {
    pub(super) metrics: MetricsState,
    pub(super) usage: UsageTally,
    pub(super) started_at: Option<Timestamp>,
    /// How far each file was read, in the order of the files.
    pub(super) positions: Vec<ReadPosition>,
}

/// A session after reading what is new.
#[derive(Debug)]
pub(crate) struct FoldedSession {
    pub(crate) metrics: MetricsBuilder,
    pub(crate) started_at: Option<Timestamp>,
    /// How far each file was read; `None` if it could not be.
    pub(crate) positions: Vec<Option<ReadPosition>>,
    /// Whether it was read from the start, whatever was known of it.
    pub(crate) is_full_read: bool,
    pub(crate) errors: Vec<FileError>,
}

/// Reads what is new in a session's files; all of them when one of them is not what
/// it was.
pub(crate) fn fold_session(history: &SessionFiles, state: Option<FoldState>) -> FoldedSession {
    let goes_on = |state: &FoldState| {
        state.positions.len() == history.files.len()
            && history.files.iter().zip(&state.positions).all(|(file, mark)| is_unchanged_up_to(file, *mark))
    };
    let state = state.filter(goes_on);
    let is_whole = state.is_none();
    let folded = fold_from(history, state);
    // Turns are counted along the path of each line; what is needed of it may lie
    // further back than what was kept.
    if !is_whole && folded.metrics.has_unknown_parent() {
        return fold_from(history, None);
    }
    folded
}

fn fold_from(history: &SessionFiles, state: Option<FoldState>) -> FoldedSession {
    let is_whole = state.is_none();
    let FoldState { metrics: story, usage: tally, started_at: mut begins, positions: mut marks } =
        state.unwrap_or_default();
    marks.resize(history.files.len(), ReadPosition::default());
    let mut session = MetricsBuilder::from_state(story, tally);
    let mut errors = Vec::new();
    let read = history.files.iter().zip(marks).map(|(file, mark)| {
        enter_file(file, &mut session);
        let read = read_new_lines(file, mark, &mut session, &mut begins);
        read.map_err(|error| errors.push(error)).ok()
    });
    let marks = read.collect();
    FoldedSession { metrics: session, started_at: begins, positions: marks, is_full_read: is_whole, errors }
}

/// Has a session know whose file comes next.
fn enter_file(file: &TranscriptFile, session: &mut MetricsBuilder) {
    let subagent = file.is_subagent.then(|| find::subagent_file(&file.path)).flatten();
    session.enter_file(subagent.as_ref().map(|subagent| SubagentRef {
        id: subagent.agent_id.as_str(),
        tool_use_id: subagent.tool_use_id.as_ref().map(ToolUseId::as_str),
        agent_type: subagent.agent_type.as_deref(),
    }));
}

/// Whether the file still holds what was read of it.
fn is_unchanged_up_to(file: &TranscriptFile, mark: ReadPosition) -> bool {
    file.bytes >= mark.offset
        && File::open(&file.path).and_then(|mut f| hash_tail(&mut f, mark.offset)).is_ok_and(|t| t == mark.tail_hash)
}

/// The last bytes before an offset, as a number.
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
    mark: ReadPosition,
    session: &mut MetricsBuilder,
    begins: &mut Option<Timestamp>,
) -> Result<ReadPosition, FileError> {
    let path = &file.path;
    let open = |source| FileError::Open { path: path.clone(), source };
    let mut input = File::open(path).map_err(open)?;
    input.seek(SeekFrom::Start(mark.offset)).map_err(open)?;
    let mut lines = LineReader::new(&input);
    let mut end = mark.offset;
    loop {
        let failed = |source| FileError::Read { path: path.clone(), offset: end, source };
        let Some(piece) = lines.next().map_err(failed)? else { break };
        let whole = end + piece.byte_len();
        let RawLine::Line { bytes, ending, .. } = piece else {
            end = whole;
            continue;
        };
        // What is not UTF-8 is shown as such; the rest of the line counts.
        let text = String::from_utf8_lossy(bytes);
        let text = replace_lone_surrogates(&text);
        let view = View::read(&text).ok();
        // Half a line waits for its end; a whole one may lack its line end for ever.
        if ending == LineEnding::None && view.is_none() {
            break;
        }
        end = whole;
        if let Some(view) = view {
            if begins.is_none() {
                *begins = view.timestamp.as_deref().and_then(parse_timestamp);
            }
            session.push(&view);
        }
    }
    Ok(ReadPosition { offset: end, tail_hash: hash_tail(&mut input, end).map_err(open)? })
}

//! One session's files, read from where they were read to before.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use jiff::Timestamp;
use quipu_conversation::{Session, Story, SubagentOf, Tally, moment};
use quipu_message::line::mend;
use quipu_message::{ToolUseId, View};
use quipu_transcript::find::{self, FoundFile, History};
use quipu_transcript::{Ending, FileError, Lines, Piece};

use crate::hashed::hash;

/// How far a file was read, and what stood before that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) offset: u64,
    pub(crate) tail: u64,
}

/// Where counting a session goes on.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(super) story: Story,
    pub(super) tally: Tally,
    pub(super) begins: Option<Timestamp>,
    /// How far each file was read, in the order of the files.
    pub(super) marks: Vec<Mark>,
}

/// A session after reading what is new.
#[derive(Debug)]
pub(crate) struct Folded {
    pub(crate) session: Session,
    pub(crate) begins: Option<Timestamp>,
    /// How far each file was read; `None` if it could not be.
    pub(crate) marks: Vec<Option<Mark>>,
    /// Whether it was read from the start, whatever was known of it.
    pub(crate) is_whole: bool,
    pub(crate) errors: Vec<FileError>,
}

/// Reads what is new in a session's files; all of them when one of them is not what
/// it was.
pub(crate) fn fold(history: &History, state: Option<State>) -> Folded {
    let goes_on = |state: &State| {
        state.marks.len() == history.files.len()
            && history.files.iter().zip(&state.marks).all(|(file, mark)| still_there(file, *mark))
    };
    let state = state.filter(goes_on);
    let is_whole = state.is_none();
    let folded = go_on(history, state);
    // Turns are counted along the path of each line; what is needed of it may lie
    // further back than what was kept.
    if !is_whole && folded.session.is_lost() {
        return go_on(history, None);
    }
    folded
}

fn go_on(history: &History, state: Option<State>) -> Folded {
    let is_whole = state.is_none();
    let State { story, tally, mut begins, mut marks } = state.unwrap_or_default();
    marks.resize(history.files.len(), Mark::default());
    let mut session = Session::restored(story, tally);
    let mut errors = Vec::new();
    let read = history.files.iter().zip(marks).map(|(file, mark)| {
        enter(file, &mut session);
        let read = read(file, mark, &mut session, &mut begins);
        read.map_err(|error| errors.push(error)).ok()
    });
    let marks = read.collect();
    Folded { session, begins, marks, is_whole, errors }
}

/// Has a session know whose file comes next.
fn enter(file: &FoundFile, session: &mut Session) {
    let subagent = file.is_subagent.then(|| find::subagent(&file.path)).flatten();
    session.enter_file(subagent.as_ref().map(|subagent| SubagentOf {
        id: subagent.agent_id.as_str(),
        call: subagent.tool_use_id.as_ref().map(ToolUseId::as_str),
        kind: subagent.agent_type.as_deref(),
    }));
}

/// Whether the file still holds what was read of it.
fn still_there(file: &FoundFile, mark: Mark) -> bool {
    file.bytes >= mark.offset
        && File::open(&file.path).and_then(|mut f| tail(&mut f, mark.offset)).is_ok_and(|t| t == mark.tail)
}

/// The last bytes before an offset, as a number.
pub(crate) fn tail(file: &mut File, offset: u64) -> io::Result<u64> {
    let from = offset.saturating_sub(64);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = [0; 64];
    let len = (offset - from) as usize;
    file.read_exact(&mut bytes[..len])?;
    Ok(hash(&bytes) ^ offset)
}

fn read(
    file: &FoundFile,
    mark: Mark,
    session: &mut Session,
    begins: &mut Option<Timestamp>,
) -> Result<Mark, FileError> {
    let path = &file.path;
    let open = |source| FileError::Open { path: path.clone(), source };
    let mut input = File::open(path).map_err(open)?;
    input.seek(SeekFrom::Start(mark.offset)).map_err(open)?;
    let mut lines = Lines::new(&input);
    let mut end = mark.offset;
    loop {
        let failed = |source| FileError::Read { path: path.clone(), offset: end, source };
        let Some(piece) = lines.next().map_err(failed)? else { break };
        let whole = end + piece.size();
        let Piece::Line { bytes, ending, .. } = piece else {
            end = whole;
            continue;
        };
        // What is not UTF-8 is shown as such; the rest of the line counts.
        let text = String::from_utf8_lossy(bytes);
        let text = mend(&text);
        let view = View::read(&text).ok();
        // Half a line waits for its end; a whole one may lack its line end for ever.
        if ending == Ending::None && view.is_none() {
            break;
        }
        end = whole;
        if let Some(view) = view {
            if begins.is_none() {
                *begins = view.timestamp.as_deref().and_then(moment);
            }
            session.push(&view);
        }
    }
    Ok(Mark { offset: end, tail: tail(&mut input, end).map_err(open)? })
}

//! The metrics of one session, straight from its files.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use quipu_conversation::Session;
use quipu_message::View;
use quipu_message::line::mend;

use crate::find;
use crate::lines::{Lines, Piece};
use crate::problem::FileError;

/// Measures a session file together with the files of its subagents.
///
/// Lines that cannot be parsed are left out, and so is what follows an I/O error in a
/// subagent's file. Reads every line once, as a view.
pub fn measure(path: &Path) -> Result<Session, FileError> {
    let mut session = Session::default();
    push_file(path, &mut session)?;
    for subagent in find::subagents(path).into_iter().chain(find::subagents_beside(path)) {
        // Its own conversation is incomplete then, and says so.
        let _ = push_file(&subagent.path, &mut session);
    }
    Ok(session)
}

/// Measures any source, such as standard input.
pub fn measure_reader(input: impl Read) -> io::Result<Session> {
    let mut session = Session::default();
    push_lines(input, &mut session).map(|()| session)
}

fn push_file(path: &Path, session: &mut Session) -> Result<(), FileError> {
    let file = File::open(path).map_err(|source| FileError::Open { path: path.to_owned(), source })?;
    push_lines(file, session).map_err(|source| FileError::Read { path: path.to_owned(), offset: 0, source })
}

fn push_lines(input: impl Read, session: &mut Session) -> io::Result<()> {
    let mut lines = Lines::new(input);
    while let Some(piece) = lines.next()? {
        if let Piece::Line { bytes, .. } = piece {
            let text = String::from_utf8_lossy(bytes);
            if let Ok(view) = View::read(&mend(&text)) {
                session.push(&view);
            }
        }
    }
    Ok(())
}

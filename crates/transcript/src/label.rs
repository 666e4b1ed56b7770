//! Sets the title or the tag of a session by appending a line to its file.

use std::collections::VecDeque;
use std::path::Path;

use quipu_message::bookkeeping::{CustomTitle, Tag};
use quipu_message::{Entry, Line, SessionId, text};

use crate::append::{AppendError, Journal};

/// Why the title or tag of a session was not set.
#[derive(Debug, thiserror::Error)]
pub enum LabelError {
    /// The title or tag is blank.
    #[error("the {field} is blank")]
    Blank {
        /// `title` or `tag`.
        field: &'static str,
    },
    /// The line cannot be appended.
    #[error(transparent)]
    Append(#[from] AppendError),
}

impl LabelError {
    /// Stable code for scripts, such as `session.no_title`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Blank { field: "title" } => "session.no_title",
            Self::Blank { .. } => "session.no_tag",
            Self::Append(error) => error.code(),
        }
    }
}

/// Sets the title of a session. Returns the title without surrounding white space once it is on
/// stable storage.
pub fn set_title(session: &Path, title: &str) -> Result<String, LabelError> {
    let title = trim_non_blank(title).ok_or(LabelError::Blank { field: "title" })?;
    let entry = CustomTitle {
        title: title.clone(),
        session_id: session_id_from_path(session).into(),
        ..CustomTitle::default()
    };
    append_entry(session, Entry::CustomTitle(Box::new(entry)))?;
    Ok(title)
}

/// Sets the tag of a session, or removes it with `None`. Returns the tag without invisible
/// characters and surrounding white space once it is on stable storage.
pub fn set_tag(session: &Path, tag: Option<&str>) -> Result<Option<String>, LabelError> {
    let visible = |tag: &str| trim_non_blank(&tag.chars().filter(|c| !is_invisible(*c)).collect::<String>());
    let tag = tag.map(|tag| visible(tag).ok_or(LabelError::Blank { field: "tag" })).transpose()?;
    let text = tag.clone().unwrap_or_default();
    let entry = Tag { tag: text, session_id: session_id_from_path(session).into(), ..Tag::default() };
    append_entry(session, Entry::Tag(Box::new(entry)))?;
    Ok(tag)
}

fn append_entry(session: &Path, entry: Entry) -> Result<(), AppendError> {
    let line = Line::from_serialize(&entry).map_err(AppendError::Serialize)?;
    Journal::open(session)?.append(&mut VecDeque::from([line]), true)
}

/// Session id from the name of the file.
fn session_id_from_path(session: &Path) -> SessionId {
    SessionId::from(&*session.file_stem().unwrap_or_default().to_string_lossy())
}

/// The text without surrounding white space; `None` if nothing is left.
fn trim_non_blank(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Control, format and private characters.
fn is_invisible(c: char) -> bool {
    let is_private = matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..);
    c.is_control() || text::is_invisible(c) || text::is_joiner(c) || is_private
}

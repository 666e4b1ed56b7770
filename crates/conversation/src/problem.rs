//! Faults found in a transcript, with their position and a stable code.

use quipu_message::ReadError;
use serde::{Serialize, Serializer};

/// A fault in one line or one file. Reading continues after it.
///
/// Serialises as one element of `problems` in `quipu check --json`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Kind of fault; in JSON its [code](ProblemKind::code).
    #[serde(rename = "code")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub kind: ProblemKind,
    /// Path of the file, or `-` for standard input; empty if the line came from a stream.
    pub path: String,
    /// Line number, counted from 1; 0 if the problem concerns the whole file.
    pub line: u64,
    /// Offset of the start of the line, in bytes; 0 if the line came from a stream.
    pub offset: u64,
    /// Description for the user, without path and line number.
    pub message: String,
}

impl Problem {
    /// The problem of a line of a stream that is not an entry.
    pub fn from_read_error(line: u64, error: &ReadError) -> Self {
        Self { kind: error.into(), path: String::new(), line, offset: 0, message: describe_read_error(error) }
    }
}

/// Describes why a line is not an entry, including what the JSON parser reported.
pub fn describe_read_error(error: &ReadError) -> String {
    match error {
        ReadError::NotJson(source) => format!("not JSON: {source}"),
        ReadError::Foreign => "a JSON value without a string `type`; another program's?".to_owned(),
        ReadError::Malformed(source) => format!("malformed {source}"),
    }
}

/// What kind of fault a [`Problem`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The line is not one JSON value.
    NotJson,
    /// The line is JSON without a string `type`, probably written by another program.
    Foreign,
    /// The line has a known type, but its body does not fit the type.
    Malformed,
    /// The last line has no line end and is not complete JSON.
    Torn,
    /// The line exceeds the size limit of the reader.
    TooLong,
    /// The line consists of NUL bytes, which some file systems leave after a crash.
    Nul,
    /// The line is not UTF-8.
    NotUtf8,
    /// The line is empty or white space.
    Blank,
    /// A repair removed the line because it is not JSON or not UTF-8.
    Unreadable,
    /// The line does not serialise back to what was read.
    RoundTrip,
    /// The line nests too deep, or holds too large a number, to compare it.
    NotCompared,
    /// The file starts with a byte-order mark.
    Bom,
    /// The file has lines that end in CR LF.
    Crlf,
    /// The last line is complete but has no line end.
    NoFinalNewline,
    /// The file does not exist.
    FileNotFound,
    /// The user may not read the file.
    NoPermission,
    /// The file cannot be opened for another reason.
    CannotOpen,
    /// Reading the file failed part of the way.
    CannotRead,
    /// This build has no type for the entry; it is kept as it is.
    UnknownEntry,
    /// This build has no type for a content block of the entry; it is kept as it is.
    UnknownBlock,
    /// This build has no type for the attachment; it is kept as it is.
    UnknownAttachment,
    /// A recorded API request names a message that the file does not contain.
    UnprovenRequest,
    /// A message is stored under a hash that is not its own.
    WrongHash,
    /// The parent of the entry is not in the file.
    NoParent,
    /// Entries name each other as parents in a circle.
    ParentCircle,
    /// The UUID of the entry belongs to an earlier entry with other content.
    ReusedId,
    /// The tool result answers a tool call that is not in the file.
    NoToolCall,
    /// The id of the tool call belongs to an earlier, different tool call.
    DuplicateToolCall,
    /// The timestamp cannot be parsed.
    BadTimestamp,
    /// The entry has no timestamp.
    NoTimestamp,
}

impl ProblemKind {
    /// A stable name for scripts, such as `line.not_json`.
    pub fn code(self) -> &'static str {
        match self {
            Self::NotJson => "line.not_json",
            Self::Foreign => "line.foreign",
            Self::Malformed => "entry.malformed",
            Self::Torn => "line.torn",
            Self::TooLong => "line.too_long",
            Self::Nul => "line.nul",
            Self::NotUtf8 => "line.not_utf8",
            Self::Blank => "line.blank",
            Self::Unreadable => "line.unreadable",
            Self::RoundTrip => "line.roundtrip",
            Self::NotCompared => "line.not_compared",
            Self::Bom => "file.bom",
            Self::Crlf => "file.crlf",
            Self::NoFinalNewline => "file.no_final_newline",
            Self::FileNotFound => "file.not_found",
            Self::NoPermission => "file.no_permission",
            Self::CannotOpen => "file.cannot_open",
            Self::CannotRead => "file.cannot_read",
            Self::UnknownEntry => "entry.unknown",
            Self::UnknownBlock => "block.unknown",
            Self::UnknownAttachment => "attachment.unknown",
            Self::UnprovenRequest => "request.unproven",
            Self::WrongHash => "request.wrong_hash",
            Self::NoParent => "tree.no_parent",
            Self::ParentCircle => "tree.circle",
            Self::ReusedId => "id.reused",
            Self::NoToolCall => "tool.no_call",
            Self::DuplicateToolCall => "tool.duplicate_call",
            Self::BadTimestamp => "time.unreadable",
            Self::NoTimestamp => "time.missing",
        }
    }

    /// The kind with this [`code`](Self::code); `None` if there is none.
    pub(crate) fn from_code(code: &str) -> Option<Self> {
        Self::OF_LINES.into_iter().find(|kind| kind.code() == code)
    }

    /// The kinds that reading a file gives.
    const OF_LINES: [Self; 8] = [
        Self::NotJson,
        Self::Foreign,
        Self::Malformed,
        Self::Torn,
        Self::TooLong,
        Self::Nul,
        Self::NotUtf8,
        Self::CannotRead,
    ];

    /// Whether the problem takes the place of an entry: the line was read and is not one.
    pub fn is_line(self) -> bool {
        self.is_malformed() || matches!(self, Self::Foreign | Self::Blank)
    }

    /// Whether the line was meant to be an entry and cannot be read as one.
    pub fn is_malformed(self) -> bool {
        matches!(self, Self::NotJson | Self::NotUtf8 | Self::Nul | Self::Torn | Self::TooLong | Self::Malformed)
    }

    /// Whether nothing is lost by ignoring it: blank lines, a byte-order mark, line ends.
    pub fn is_harmless(self) -> bool {
        matches!(self, Self::Blank | Self::Bom | Self::Crlf | Self::NoFinalNewline)
    }
}

impl From<&ReadError> for ProblemKind {
    fn from(error: &ReadError) -> Self {
        match error {
            ReadError::NotJson(_) => Self::NotJson,
            ReadError::Foreign => Self::Foreign,
            ReadError::Malformed(_) => Self::Malformed,
        }
    }
}

impl Serialize for ProblemKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}

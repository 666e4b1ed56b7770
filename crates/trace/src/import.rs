//! Reads capture files of other tools and session files into a trace.
//!
//! The format is recognised by content. A file is read a line, document or entry at a time;
//! what cannot be read becomes a problem of the trace, and the rest is still read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::builder::TraceBuilder;
use crate::call::Call;
use crate::capture::CaptureFolder;
use crate::raw_call::RawCall;
use crate::request_body::request_body;
use crate::trace::Trace;

mod cc_viewer;
mod claude_tap;
mod claude_tap_database;
mod claude_trace;
mod detect;
mod fields;
mod har;
mod json_lines;
mod mitmproxy;
mod raw_bodies;
mod recording;
mod session;
mod tnetstring;

/// Format of a file of API calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CaptureFormat {
    /// `api.jsonl` of a recorded run: a call a line.
    Recording,
    /// JSON lines of claude-trace.
    ClaudeTrace,
    /// JSON lines of claude-tap.
    ClaudeTap,
    /// SQLite database of claude-tap.
    ClaudeTapDatabase,
    /// JSON documents of cc-viewer, separated by `---`.
    CcViewer,
    /// HTTP archive, as browsers export it.
    Har,
    /// Flow file of mitmproxy.
    Mitmproxy,
    /// Folder that `OTEL_LOG_RAW_API_BODIES` names: a file per body.
    RawBodies,
    /// Session file of Claude Code.
    Session,
    /// Capture of `quipu capture`.
    Capture,
}

impl CaptureFormat {
    /// Name of the format in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Recording => "recording",
            Self::ClaudeTrace => "claude-trace",
            Self::ClaudeTap | Self::ClaudeTapDatabase => "claude-tap",
            Self::CcViewer => "cc-viewer",
            Self::Har => "HAR",
            Self::Mitmproxy => "mitmproxy",
            Self::RawBodies => "raw bodies",
            Self::Session => "session",
            Self::Capture => "capture",
        }
    }
}

/// A file that could not be imported at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The file cannot be opened or read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Reason.
        #[source]
        source: io::Error,
    },
    /// The content is of no known format.
    #[error("{} is no capture file or session file of a known format", path.display())]
    UnknownFormat {
        /// Path of the file.
        path: PathBuf,
    },
    /// The database cannot be opened or read.
    #[error("cannot read the database {}", path.display())]
    Database {
        /// Path of the file.
        path: PathBuf,
        /// Reason.
        #[source]
        source: rusqlite::Error,
    },
}

impl ImportError {
    /// Stable code of the error for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } => "trace.cannot_read",
            Self::UnknownFormat { .. } => "trace.unknown_format",
            Self::Database { .. } => "trace.database",
        }
    }
}

/// Which calls of a session [`Trace::open_session`] opens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallSource {
    /// Those of the captures, which have every byte that was sent, if they have all calls of the
    /// session file; or else those of the file.
    #[default]
    Complete,
    /// Those of the captures, if there are any.
    Captures,
    /// Those that the session file records.
    SessionFile,
}

impl Trace {
    /// Imports files and folders, in order. The subagent files of a session file are
    /// imported with it.
    ///
    /// Fails if one of them cannot be read or its format is unknown.
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Result<Self, ImportError> {
        let mut builder = TraceBuilder::default();
        for path in paths {
            builder.import(path.as_ref())?;
        }
        Ok(builder.finish())
    }

    /// Opens the calls of a session file, from its captures or from what the file records. A
    /// capture may have calls of other sessions, too; they are left out.
    pub fn open_session(
        session: &Path,
        captures: Option<&CaptureFolder>,
        source: CallSource,
    ) -> Result<Self, ImportError> {
        let id = session.file_stem().unwrap_or_default().to_string_lossy();
        let captures = captures.map(|folder| folder.captures_of_session(&id)).unwrap_or_default();
        if captures.is_empty() || source == CallSource::SessionFile {
            return Self::open(&[session]);
        }
        let captured = Self::open(&captures)?.keep_session(&id);
        if source == CallSource::Captures {
            return Ok(captured);
        }
        let recorded = Self::open(&[session])?;
        Ok(if captured.has_responses_of(&recorded) { captured } else { recorded })
    }

    /// Whether each response of another trace is in this one.
    fn has_responses_of(&self, other: &Self) -> bool {
        let message_ids = |trace: &Self| -> BTreeSet<String> {
            trace.calls.iter().filter_map(|call| call.response.message_id.clone()).collect()
        };
        message_ids(other).is_subset(&message_ids(self))
    }

    /// Removes the calls of other sessions. Changes nothing if no call names this session.
    pub fn keep_session(mut self, session_id: &str) -> Self {
        let is_own = |call: &Call| call.identity.session_id.as_deref() == Some(session_id);
        if self.calls.iter().any(is_own) {
            self.calls.retain(is_own);
            for (index, call) in self.calls.iter_mut().enumerate() {
                call.index = index;
            }
        }
        self
    }

    /// Imports files and folders like [`Trace::open`], and keeps every call as it was read, in the
    /// order of [`Trace::calls`]. A request whose body is not in the source is put together from
    /// its parts. The bodies of all calls are held in memory.
    pub fn open_with_raw_calls<P: AsRef<Path>>(paths: &[P]) -> Result<(Self, Vec<RawCall<'static>>), ImportError> {
        let mut builder = TraceBuilder::default();
        builder.raw_calls = Some(BTreeMap::new());
        for path in paths {
            builder.import(path.as_ref())?;
        }
        let mut raw_calls: Vec<_> = builder.raw_calls.take().unwrap_or_default().into_values().collect();
        let trace = builder.finish();
        for (raw, call) in raw_calls.iter_mut().zip(&trace.calls).filter(|(raw, _)| raw.request_body.is_empty()) {
            if let Some(Ok(body)) = call.request.as_ref().map(|request| request_body(request, &trace.prompts)) {
                raw.request_body = body.into();
            }
        }
        Ok((trace, raw_calls))
    }
}

impl TraceBuilder {
    /// Imports a file or folder; see [`Trace::open`].
    pub fn import(&mut self, path: &Path) -> Result<(), ImportError> {
        let read_error = |source| ImportError::Read { path: path.to_owned(), source };
        if path.is_dir() {
            return raw_bodies::import(path, self);
        }
        let mut file = File::open(path).map_err(read_error)?;
        let (head, format) = detect::read_head(&mut file).map_err(read_error)?;
        match format {
            None => Err(ImportError::UnknownFormat { path: path.to_owned() }),
            Some(CaptureFormat::Session) => session::import_file(path, self),
            Some(CaptureFormat::ClaudeTapDatabase) => {
                self.start_source(path, CaptureFormat::ClaudeTapDatabase);
                claude_tap_database::import(path, self)
            }
            Some(format) => {
                self.start_source(path, format);
                self.import_format(format, head.chain(file)).map_err(read_error)
            }
        }
    }

    /// Imports a source that is not a file, such as standard input. `name` is the name that
    /// problems give it.
    ///
    /// Fails on I/O errors, on unknown formats and on databases, which cannot be read this way.
    pub fn import_reader(&mut self, name: &Path, mut input: impl Read) -> Result<(), ImportError> {
        let read_error = |source| ImportError::Read { path: name.to_owned(), source };
        let (head, format) = detect::read_head(&mut input).map_err(read_error)?;
        match format {
            None | Some(CaptureFormat::ClaudeTapDatabase) => Err(ImportError::UnknownFormat { path: name.to_owned() }),
            Some(format) => {
                self.start_source(name, format);
                self.import_format(format, head.chain(input)).map_err(read_error)
            }
        }
    }

    fn import_format(&mut self, format: CaptureFormat, input: impl Read) -> io::Result<()> {
        match format {
            CaptureFormat::Recording => json_lines::import(input, self, recording::import_line),
            CaptureFormat::ClaudeTrace => json_lines::import(input, self, claude_trace::import_line),
            CaptureFormat::ClaudeTap => json_lines::import(input, self, claude_tap::import_line),
            CaptureFormat::CcViewer => cc_viewer::import(input, self),
            CaptureFormat::Har => har::import(input, self),
            CaptureFormat::Mitmproxy => mitmproxy::import(input, self),
            CaptureFormat::Session => session::import_reader(input, self),
            CaptureFormat::Capture => self.push_capture(input),
            CaptureFormat::ClaudeTapDatabase | CaptureFormat::RawBodies => {
                unreachable!("databases and folders are not read as streams")
            }
        }
    }
}

//! Counts the usage of one session without a database. Lines that cannot contribute are not
//! parsed.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use memchr::memmem::{self, Finder};
use quipu_conversation::parse_timestamp;
use quipu_conversation::usage::{MessageUsage, UsageSample, UsageTally};
use quipu_message::line::readable_text;
use quipu_message::view::{COST_MARKERS, ContentView, ProgressView, UsageLineView};
use quipu_message::{Head, ToolName, View};
use quipu_transcript::find::SessionFiles;
use quipu_transcript::{FileError, LineReader, RawLine};

use crate::catalogue::fold_session;
use crate::ledger::SessionUsage;
use crate::usage::GroupBy;

/// Counts the usage of a session and its subagents; also returns the files that could not be
/// read. Unless the grouping needs single messages, only lines with usage are parsed.
pub fn scan_session(session_files: &SessionFiles, group_by: GroupBy) -> (SessionUsage, Vec<FileError>) {
    let session = |begins, messages: &[MessageUsage]| {
        SessionUsage::new(session_files.id.clone(), Arc::clone(&session_files.project), begins, messages)
    };
    if group_by.needs_messages() {
        let mut folded = fold_session(session_files, None);
        let agents = folded.metrics.subagents().clone();
        let used = session(folded.started_at, folded.metrics.usage_mut().messages()).with_subagents(agents);
        return (used, folded.errors);
    }
    let mut scan = UsageScanner::new();
    let mut errors = Vec::new();
    for file in &session_files.files {
        errors.extend(scan.scan_file(&file.path).err());
    }
    (session(scan.started_at, scan.usage.messages()), errors)
}

/// Whether a line contains a word near one of its ends. Only old files have a cost without
/// usage; it is a field of the line itself, so it is before or after the message.
fn is_near_line_end(bytes: &[u8], word: &Finder<'_>) -> bool {
    const MAX_DISTANCE_BYTES: usize = 512;
    match bytes.len() {
        0..=MAX_DISTANCE_BYTES => word.find(bytes).is_some(),
        len => {
            word.find(&bytes[..MAX_DISTANCE_BYTES]).is_some() || word.find(&bytes[len - MAX_DISTANCE_BYTES..]).is_some()
        }
    }
}

struct UsageScanner {
    usage: UsageTally,
    started_at: Option<jiff::Timestamp>,
    usage_finders: [Finder<'static>; 2],
    search_finder: Finder<'static>,
}

impl UsageScanner {
    fn new() -> Self {
        Self {
            usage: UsageTally::default(),
            started_at: None,
            usage_finders: COST_MARKERS.map(Finder::new),
            search_finder: Finder::new(ToolName::WebSearch.as_str()),
        }
    }

    fn scan_file(&mut self, path: &Path) -> Result<(), FileError> {
        let open = |source| FileError::Open { path: path.to_owned(), source };
        let mut lines = LineReader::new(File::open(path).map_err(open)?);
        loop {
            let offset = lines.offset();
            let read = |source| FileError::Read { path: path.to_owned(), offset, source };
            let Some(piece) = lines.next().map_err(read)? else { return Ok(()) };
            if let RawLine::Line { bytes, .. } = piece {
                self.scan_line(bytes);
            }
        }
    }

    fn scan_line(&mut self, bytes: &[u8]) {
        let [usage, cost] = &self.usage_finders;
        let has_usage = usage.find(bytes).is_some() || is_near_line_end(bytes, cost);
        // Only responses call a search, and responses have usage.
        let calls_search = has_usage && self.search_finder.find(bytes).is_some();
        let may_answer = self.usage.pending_searches().any(|call| memmem::find(bytes, call.as_bytes()).is_some());
        if self.started_at.is_none() {
            self.started_at = Head::read(&readable_text(bytes))
                .ok()
                .and_then(|head| head.timestamp.as_deref().and_then(parse_timestamp));
        }
        if calls_search || may_answer {
            if let Ok(view) = View::read(&readable_text(bytes)) {
                self.scan_searches(&view);
            }
        } else if has_usage && let Ok(line) = UsageLineView::read(bytes) {
            if line.is_assistant() {
                self.usage.add_sample(UsageSample::from(&line));
            } else if let Some(line) = line.repeated_assistant_line() {
                self.usage.add_sample(UsageSample { is_progress: true, ..UsageSample::from(&line) });
            }
        }
    }

    /// Counts a line that calls a web search or may hold the result of one.
    fn scan_searches(&mut self, view: &View<'_>) {
        if let Some(entry) = view.data.as_ref().and_then(ProgressView::repeated_entry) {
            return self.record_searches(&entry, true);
        }
        self.record_searches(view, false);
    }

    fn record_searches(&mut self, view: &View<'_>, is_progress: bool) {
        let sample = || UsageSample { is_progress, ..UsageSample::from(view) };
        let index = view.is_assistant().then(|| self.usage.add_sample(sample()));
        let content = view.message.as_ref().and_then(|message| message.content.as_ref());
        for block in content.into_iter().flat_map(ContentView::blocks) {
            match (&block.id, &block.name, &block.tool_use_id) {
                (Some(id), Some(name), _) if ToolName::WebSearch == **name => {
                    if let Some(index) = index {
                        self.usage.record_search_call(id, index);
                    }
                }
                (_, _, Some(call)) => self.usage.record_search_result(call, block.is_error == Some(true)),
                _ => {}
            }
        }
    }
}

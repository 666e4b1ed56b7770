//! One session's files: what its messages used. Lines that cannot matter are not
//! parsed.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use memchr::memmem::Finder;
use quipu_conversation::{MessageUse, Spent, Tally, moment};
use quipu_message::line::mend;
use quipu_message::tool::{WEB_SEARCH, is_web_search};
use quipu_message::view::{COSTLY, ContentView, ProgressView, RESULT, UsageLine};
use quipu_message::{Head, View};
use quipu_transcript::find::History;
use quipu_transcript::{FileError, Lines, Piece};

use crate::catalogue::fold;
use crate::ledger::SessionUse;
use crate::usage::By;

/// Counts a session's file and those of its subagents. Unless the grouping depends on
/// what the messages did, lines that cannot cost anything are not parsed.
pub fn scan(history: &History, by: By) -> (SessionUse, Vec<FileError>) {
    let session = |begins, messages: &[MessageUse]| {
        SessionUse::new(history.id.clone(), Arc::clone(&history.project), begins, messages)
    };
    if by.needs_messages() {
        let mut folded = fold(history, None);
        let agents = folded.session.agents().clone();
        let used = session(folded.begins, folded.session.tally().messages()).with_agents(agents);
        return (used, folded.errors);
    }
    let mut scan = Scan::new();
    let mut errors = Vec::new();
    for file in &history.files {
        errors.extend(scan.file(&file.path).err());
    }
    (session(scan.begins, scan.tally.messages()), errors)
}

/// Whether a word stands near an end of a line. A cost without usage, as only old files
/// have it, is a field of the line itself: what is said lies between it and one end.
fn at_an_end(bytes: &[u8], word: &Finder<'_>) -> bool {
    const NEAR: usize = 1024;
    match bytes.len() {
        0..=NEAR => word.find(bytes).is_some(),
        len => word.find(&bytes[..NEAR]).is_some() || word.find(&bytes[len - NEAR..]).is_some(),
    }
}

struct Scan {
    tally: Tally,
    begins: Option<jiff::Timestamp>,
    costly: [Finder<'static>; 2],
    search: Finder<'static>,
    result: Finder<'static>,
}

impl Scan {
    fn new() -> Self {
        Self {
            tally: Tally::default(),
            begins: None,
            costly: COSTLY.map(Finder::new),
            search: Finder::new(WEB_SEARCH),
            result: Finder::new(RESULT),
        }
    }

    fn file(&mut self, path: &Path) -> Result<(), FileError> {
        let open = |source| FileError::Open { path: path.to_owned(), source };
        let mut lines = Lines::new(File::open(path).map_err(open)?);
        loop {
            let offset = lines.offset();
            let read = |source| FileError::Read { path: path.to_owned(), offset, source };
            let Some(piece) = lines.next().map_err(read)? else { return Ok(()) };
            if let Piece::Line { bytes, .. } = piece {
                self.line(bytes);
            }
        }
    }

    fn line(&mut self, bytes: &[u8]) {
        let [usage, cost] = &self.costly;
        let costs = usage.find(bytes).is_some() || at_an_end(bytes, cost);
        // Only an answer asks, and an answer costs.
        let asks = costs && self.search.find(bytes).is_some();
        let answers = self.tally.is_searching() && self.result.find(bytes).is_some();
        if self.begins.is_none() {
            let text = String::from_utf8_lossy(bytes);
            let head = mend(&text);
            self.begins = Head::read(&head).ok().and_then(|head| head.timestamp.as_deref().and_then(moment));
        }
        if asks || answers {
            let text = String::from_utf8_lossy(bytes);
            if let Ok(view) = View::read(&mend(&text)) {
                self.searching(&view);
            }
        } else if costs && let Ok(line) = UsageLine::read(bytes) {
            if line.is_answer() {
                self.tally.spend(Spent::from(&line));
            } else if let Some(line) = line.repeated() {
                self.tally.spend(Spent { is_progress: true, ..Spent::from(&line) });
            }
        }
    }

    /// A line that asks for a search of the web, or may answer one.
    fn searching(&mut self, view: &View<'_>) {
        if let Some(entry) = view.data.as_ref().and_then(ProgressView::entry) {
            return self.search_in(&entry, true);
        }
        self.search_in(view, false);
    }

    fn search_in(&mut self, view: &View<'_>, is_progress: bool) {
        let spent = || Spent { is_progress, ..Spent::from(view) };
        let at = view.is_answer().then(|| self.tally.spend(spent()));
        let content = view.message.as_ref().and_then(|message| message.content.as_ref());
        for block in content.into_iter().flat_map(ContentView::blocks) {
            match (&block.id, &block.name, &block.tool_use_id) {
                (Some(id), Some(name), _) if is_web_search(name) => {
                    if let Some(at) = at {
                        self.tally.search_asked(id, at);
                    }
                }
                (_, _, Some(call)) if block.is_error != Some(true) => self.tally.search_answered(call),
                _ => {}
            }
        }
    }
}

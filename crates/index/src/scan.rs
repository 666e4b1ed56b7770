//! One session's files: what its messages used. Lines that cannot matter are not
//! parsed.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use memchr::memmem::Finder;
use quipu_conversation::{Spent, Tally, moment};
use quipu_message::line::mend;
use quipu_message::tool::{WEB_SEARCH, is_web_search};
use quipu_message::view::{COSTLY, ContentView, RESULT, UsageLine};
use quipu_message::{Head, View};
use quipu_transcript::find::History;
use quipu_transcript::{FileError, Lines, Piece};

use crate::ledger::SessionUse;

/// Scans a session's file and those of its subagents.
pub fn scan(history: &History) -> (SessionUse, Vec<FileError>) {
    let mut scan = Scan::new();
    let mut errors = Vec::new();
    for file in &history.files {
        errors.extend(scan.file(&file.path).err());
    }
    let used = SessionUse::new(history.id.clone(), Arc::clone(&history.project), scan.begins, scan.tally.messages());
    (used, errors)
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
        let asks = self.search.find(bytes).is_some();
        let answers = self.tally.is_searching() && self.result.find(bytes).is_some();
        let costs = self.costly.iter().any(|word| word.find(bytes).is_some());
        if !(costs || asks || answers || self.begins.is_none()) {
            return;
        }
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        let text = mend(text);
        if self.begins.is_none() {
            self.begins = Head::read(&text).ok().and_then(|head| head.timestamp.as_deref().and_then(moment));
        }
        if asks || answers {
            if let Ok(view) = View::read(&text) {
                self.searching(&view, costs);
            }
        } else if costs
            && let Ok(line) = UsageLine::read(&text)
            && line.is_answer()
        {
            self.tally.spend(Spent::from(&line));
        }
    }

    /// A line that asks for a search of the web, or may answer one.
    fn searching(&mut self, view: &View<'_>, costs: bool) {
        let at = (costs && view.is_answer()).then(|| self.tally.spend(Spent::from(view)));
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

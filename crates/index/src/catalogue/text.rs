//! The words of every line, brought up to date for the search.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use quipu_conversation::moment;
use quipu_message::View;
use quipu_message::line::mend;
use quipu_transcript::{FileError, Lines, Piece};
use rusqlite::{Connection, TransactionBehavior, params};

use super::rows::path_of;
use super::{Catalogue, Progress};
use crate::said::{Calls, Reader};
use crate::words::{Words, words};

/// So many bytes of words are kept at a time.
const PORTION: usize = 16 << 20;

/// A file with words that are not yet indexed.
struct Job {
    file: i64,
    path: PathBuf,
    from: u64,
    to: u64,
    line: u64,
    calls: Calls,
    /// Whether what was indexed of it is no longer what it says.
    is_stale: bool,
}

/// Some lines of a file, as words.
#[derive(Default)]
struct Portion {
    file: i64,
    is_stale: bool,
    docs: Vec<Doc>,
    /// How many bytes of the file these lines are, and where they end.
    bytes: u64,
    to: u64,
    line: u64,
    calls: Calls,
}

struct Doc {
    line: u64,
    offset: u64,
    block: usize,
    kind: i64,
    tool: Option<String>,
    time: Option<i64>,
    words: Words,
}

/// Indexes what is new.
pub(super) fn update(catalogue: &mut Catalogue, progress: Progress<'_>) -> rusqlite::Result<Vec<FileError>> {
    if jobs(&catalogue.store.db)?.is_empty() {
        return Ok(Vec::new());
    }
    let _lock = catalogue.store.lock("textlock")?;
    let jobs = jobs(&catalogue.store.db)?;
    let all: u64 = jobs.iter().map(|job| job.to.saturating_sub(job.from)).sum();
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::sync_channel::<Result<Portion, FileError>>(4);
    let work = |send: mpsc::SyncSender<_>| {
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let read = read(job, |portion| send.send(Ok(portion)).is_ok());
            if let Err(error) = read
                && send.send(Err(error)).is_err()
            {
                return;
            }
        }
    };
    let mut errors = Vec::new();
    std::thread::scope(|scope| {
        // Reading is quick; writing is what takes long, and one does that.
        let send = send;
        scope.spawn(|| work(send));
        // Dropped at an error, so that the reader does not wait for ever.
        let receive = receive;
        let mut done = 0;
        let db = &mut catalogue.store.db;
        while let Ok(first) = receive.recv() {
            let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let (mut bytes, mut more) = (0, Some(first));
            while let Some(portion) = more {
                match portion {
                    Ok(portion) => {
                        bytes += portion.docs.iter().map(|doc| doc.words.len()).sum::<usize>();
                        done += portion.bytes;
                        put(&change, portion)?;
                        progress(done as usize / 1_000_000, (all / 1_000_000) as usize + 1);
                    }
                    Err(error) => errors.push(error),
                }
                more = if bytes < PORTION { receive.recv().ok() } else { None };
            }
            change.commit()?;
        }
        Ok::<(), rusqlite::Error>(())
    })?;
    Ok(errors)
}

fn jobs(db: &Connection) -> rusqlite::Result<Vec<Job>> {
    let mut select = db.prepare_cached(
        "SELECT id, path, indexed, counted, lines, calls FROM file WHERE NOT gone AND indexed <> counted ORDER BY modified",
    )?;
    let jobs = select.query_map([], |row| {
        let indexed: i64 = row.get(2)?;
        let is_stale = indexed < 0;
        Ok(Job {
            file: row.get(0)?,
            path: path_of(row.get_ref(1)?),
            from: indexed.max(0).cast_unsigned(),
            to: row.get::<_, i64>(3)?.cast_unsigned(),
            line: if is_stale { 0 } else { row.get::<_, i64>(4)?.cast_unsigned() },
            calls: if is_stale {
                Calls::new()
            } else {
                serde_json::from_str(&row.get::<_, String>(5)?).unwrap_or_default()
            },
            is_stale,
        })
    })?;
    jobs.collect()
}

/// Reads the words of a file, a portion at a time.
fn read(job: &Job, mut hand: impl FnMut(Portion) -> bool) -> Result<(), FileError> {
    let open = |source| FileError::Open { path: job.path.clone(), source };
    let mut input = File::open(&job.path).map_err(open)?;
    input.seek(SeekFrom::Start(job.from)).map_err(open)?;
    let mut lines = Lines::new(input.take(job.to.saturating_sub(job.from)));
    let mut reader = Reader::new(&job.path, job.calls.clone());
    let start = |is_stale| Portion { file: job.file, is_stale, ..Portion::default() };
    let mut portion = start(job.is_stale);
    let (mut bytes, mut line, mut since) = (0, job.line, job.from);
    loop {
        let offset = job.from + lines.offset();
        let failed = |source| FileError::Read { path: job.path.clone(), offset, source };
        let piece = lines.next().map_err(failed)?;
        let is_end = piece.is_none();
        line += u64::from(!is_end);
        if let Some(Piece::Line { bytes: text, .. }) = piece {
            let text = String::from_utf8_lossy(text);
            let text = mend(&text);
            if let Ok(view) = View::read(&text) {
                let time = view.timestamp.as_deref().and_then(moment).map(|time| time.as_millisecond());
                for (block, said) in reader.said(&view, &text).into_iter().enumerate() {
                    let words = words(&said.text);
                    bytes += words.len();
                    let (kind, tool) = (said.kind as i64, said.tool);
                    portion.docs.push(Doc { line, offset, block, kind, tool, time, words });
                }
            }
        }
        if is_end || bytes >= PORTION {
            let to = if is_end { job.to } else { job.from + lines.offset() };
            let full = std::mem::replace(&mut portion, start(false));
            let calls = reader.calls.clone();
            if !hand(Portion { bytes: to - since, to, line, calls, ..full }) || is_end {
                return Ok(());
            }
            (bytes, since) = (0, to);
        }
    }
}

fn put(db: &Connection, portion: Portion) -> rusqlite::Result<()> {
    let Portion { file, is_stale, docs, to, line, calls, .. } = portion;
    if is_stale {
        let old = "SELECT id FROM said WHERE file = ?";
        db.prepare_cached(&format!("DELETE FROM text WHERE rowid IN ({old})"))?.execute([file])?;
        db.prepare_cached("DELETE FROM said WHERE file = ?")?.execute([file])?;
    }
    // Numbered here: a statement that returns a row makes the index sort in what it
    // has gathered, each time.
    let last: Option<i64> = db.prepare_cached("SELECT max(id) FROM said")?.query_row([], |row| row.get(0))?;
    let mut place = db.prepare_cached(
        "INSERT INTO said (id, file, line, offset, block, kind, tool, time) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    let mut index = db.prepare_cached("INSERT INTO text (rowid, words, wholes) VALUES (?, ?, ?)")?;
    for (id, doc) in (last.unwrap_or_default() + 1..).zip(docs) {
        let Doc { line, offset, block, kind, tool, time, words } = doc;
        let [line, offset, block] = [line, offset, block as u64].map(u64::cast_signed);
        place.execute(params![id, file, line, offset, block, kind, tool, time])?;
        index.execute(params![id, words.parts, words.wholes])?;
    }
    let calls = serde_json::to_string(&calls).unwrap_or_default();
    db.prepare_cached("UPDATE file SET indexed = ?, lines = ?, calls = ? WHERE id = ?")?.execute(params![
        to.cast_signed(),
        line.cast_signed(),
        calls,
        file
    ])?;
    Ok(())
}

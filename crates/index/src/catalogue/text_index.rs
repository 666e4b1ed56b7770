//! The words of every line, brought up to date for the search.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use quipu_conversation::parse_timestamp;
use quipu_message::View;
use quipu_message::line::readable_text;
use quipu_transcript::{FileError, LineReader, RawLine};
use rusqlite::{Connection, TransactionBehavior, params};

use super::{Catalogue, ProgressCallback};
use crate::line_text::{TextExtractor, ToolNameByCall};
use crate::store::path_from_sql;
use crate::tokenizer::index_words;

/// Bytes of words written in one transaction.
const MAX_BATCH_BYTES: usize = 16 << 20;

/// A file with lines that are not indexed yet.
struct IndexingJob {
    file: i64,
    path: PathBuf,
    start_offset: u64,
    end_offset: u64,
    lines_before: u64,
    tool_names: ToolNameByCall,
    /// Whether the file was rewritten, so that its indexed text must be deleted.
    is_stale: bool,
}

/// The words of some lines of a file.
#[derive(Default)]
struct TextBatch {
    file: i64,
    is_stale: bool,
    documents: Vec<TextDocument>,
    /// Size of these lines in bytes; `end_offset` is where they end.
    bytes: u64,
    end_offset: u64,
    last_line: u64,
    tool_names: ToolNameByCall,
}

struct TextDocument {
    line: u64,
    offset: u64,
    text_index: usize,
    kind: i64,
    tool: Option<String>,
    time: Option<i64>,
    words: String,
}

/// Indexes new lines: one thread reads, this one writes.
pub(super) fn update_text_index(
    catalogue: &mut Catalogue,
    progress: ProgressCallback<'_>,
) -> rusqlite::Result<Vec<FileError>> {
    if pending_jobs(&catalogue.store.db)?.is_empty() {
        return Ok(Vec::new());
    }
    let _lock = catalogue.store.lock("textlock")?;
    let jobs = pending_jobs(&catalogue.store.db)?;
    let all: u64 = jobs.iter().map(|job| job.end_offset.saturating_sub(job.start_offset)).sum();
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::sync_channel::<Result<TextBatch, FileError>>(4);
    let work = |send: mpsc::SyncSender<_>| {
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let read = read_batches(job, |batch| send.send(Ok(batch)).is_ok());
            if let Err(error) = read
                && send.send(Err(error)).is_err()
            {
                return;
            }
        }
    };
    let mut errors = Vec::new();
    std::thread::scope(|scope| {
        // One reader is enough, because writing takes longer.
        let send = send;
        scope.spawn(|| work(send));
        // Dropped on an error, so that the reader does not block on the channel.
        let receive = receive;
        let mut done = 0;
        let db = &mut catalogue.store.db;
        while let Ok(first) = receive.recv() {
            let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let (mut bytes, mut more) = (0, Some(first));
            while let Some(batch) = more {
                match batch {
                    Ok(batch) => {
                        bytes += batch.documents.iter().map(|doc| doc.words.len()).sum::<usize>();
                        done += batch.bytes;
                        write_batch(&transaction, batch)?;
                        progress(done as usize / 1_000_000, (all / 1_000_000) as usize + 1);
                    }
                    Err(error) => errors.push(error),
                }
                more = if bytes < MAX_BATCH_BYTES { receive.recv().ok() } else { None };
            }
            transaction.commit()?;
        }
        Ok::<(), rusqlite::Error>(())
    })?;
    Ok(errors)
}

fn pending_jobs(db: &Connection) -> rusqlite::Result<Vec<IndexingJob>> {
    let mut select = db.prepare_cached(
        "SELECT id, path, indexed, counted, lines, calls FROM file WHERE NOT gone AND indexed <> counted ORDER BY modified",
    )?;
    let jobs = select.query_map([], |row| {
        let indexed: i64 = row.get(2)?;
        let is_stale = indexed < 0;
        Ok(IndexingJob {
            file: row.get(0)?,
            path: path_from_sql(row.get_ref(1)?),
            start_offset: indexed.max(0).cast_unsigned(),
            end_offset: row.get::<_, i64>(3)?.cast_unsigned(),
            lines_before: if is_stale { 0 } else { row.get::<_, i64>(4)?.cast_unsigned() },
            tool_names: if is_stale {
                ToolNameByCall::new()
            } else {
                serde_json::from_str(&row.get::<_, String>(5)?).unwrap_or_default()
            },
            is_stale,
        })
    })?;
    jobs.collect()
}

/// Reads the words of a file in batches; stops if `visit` returns false.
fn read_batches(job: &IndexingJob, mut visit: impl FnMut(TextBatch) -> bool) -> Result<(), FileError> {
    let open = |source| FileError::Open { path: job.path.clone(), source };
    let mut input = File::open(&job.path).map_err(open)?;
    input.seek(SeekFrom::Start(job.start_offset)).map_err(open)?;
    let mut lines = LineReader::new(input.take(job.end_offset.saturating_sub(job.start_offset)));
    let mut reader = TextExtractor::new(&job.path, job.tool_names.clone());
    let start = |is_stale| TextBatch { file: job.file, is_stale, ..TextBatch::default() };
    let mut batch = start(job.is_stale);
    let (mut bytes, mut line, mut since) = (0, job.lines_before, job.start_offset);
    loop {
        let offset = job.start_offset + lines.offset();
        let failed = |source| FileError::Read { path: job.path.clone(), offset, source };
        let piece = lines.next().map_err(failed)?;
        let is_end = piece.is_none();
        line += u64::from(!is_end);
        if let Some(RawLine::Line { bytes: text, .. }) = piece {
            let text = readable_text(text);
            if let Ok(view) = View::read(&text) {
                let time = view.timestamp.as_deref().and_then(parse_timestamp).map(|time| time.as_millisecond());
                for (block, text) in reader.line_texts(&view, &text).into_iter().enumerate() {
                    let words = index_words(&text.text);
                    bytes += words.len();
                    let (kind, tool) = (text.kind as i64, text.tool);
                    batch.documents.push(TextDocument { line, offset, text_index: block, kind, tool, time, words });
                }
            }
        }
        if is_end || bytes >= MAX_BATCH_BYTES {
            let to = if is_end { job.end_offset } else { job.start_offset + lines.offset() };
            let full = std::mem::replace(&mut batch, start(false));
            let calls = reader.tool_names.clone();
            if !visit(TextBatch { bytes: to - since, end_offset: to, last_line: line, tool_names: calls, ..full })
                || is_end
            {
                return Ok(());
            }
            (bytes, since) = (0, to);
        }
    }
}

fn write_batch(db: &Connection, batch: TextBatch) -> rusqlite::Result<()> {
    let TextBatch { file, is_stale, documents: docs, end_offset: to, last_line: line, tool_names: calls, .. } = batch;
    if is_stale {
        let old = "SELECT id FROM said WHERE file = ?";
        db.prepare_cached(&format!("DELETE FROM text WHERE rowid IN ({old})"))?.execute([file])?;
        db.prepare_cached("DELETE FROM said WHERE file = ?")?.execute([file])?;
    }
    // Ids are assigned here, because a statement that returns a row makes FTS5 flush its
    // buffer each time.
    let last: Option<i64> = db.prepare_cached("SELECT max(id) FROM said")?.query_row([], |row| row.get(0))?;
    let mut insert = db.prepare_cached(
        "INSERT INTO said (id, file, line, offset, block, kind, tool, time) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    let mut index = db.prepare_cached("INSERT INTO text (rowid, words) VALUES (?, ?)")?;
    for (id, doc) in (last.unwrap_or_default() + 1..).zip(docs) {
        let TextDocument { line, offset, text_index: block, kind, tool, time, words } = doc;
        let [line, offset, block] = [line, offset, block as u64].map(u64::cast_signed);
        insert.execute(params![id, file, line, offset, block, kind, tool, time])?;
        index.execute(params![id, words])?;
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

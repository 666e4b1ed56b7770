//! Brings the database up to date with the files.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use quipu_conversation::price::Prices;
use quipu_conversation::usage::{UsageTally, stable_hash};
use quipu_conversation::{Metrics, MetricsBuilder};
use quipu_message::SessionId;
use quipu_transcript::FileError;
use quipu_transcript::find::{self, ListingHints, SessionFiles, TranscriptFile};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::fold::{FoldState, FoldedSession, ReadPosition, fold_session};
use super::{Catalogue, ProgressCallback, crediting, message_rows, vanished};
use crate::hashing::IntegerHasher;
use crate::listed_session::ListedSession;
use crate::store::{path_from_sql, path_to_sql};
use crate::usage_archive::{UsageArchive, VanishedSession};

/// A transaction is committed after this time, or when no result arrives for
/// `RECEIVE_TIMEOUT`.
const COMMIT_INTERVAL: Duration = Duration::from_millis(400);
const RECEIVE_TIMEOUT: Duration = Duration::from_millis(2);

pub(super) fn refresh(catalogue: &mut Catalogue, progress: ProgressCallback<'_>) -> rusqlite::Result<Vec<FileError>> {
    let (projects, mut errors) = find::list_project_folders(&catalogue.config_dirs);
    let indexed = IndexedFiles::load(&catalogue.store.db)?;
    let (all_session_files, unread) = find::list_session_files(&projects, &indexed);
    errors.extend(unread);
    let target = RefreshTarget {
        session_files: &all_session_files,
        price_fingerprint: catalogue.prices.fingerprint(),
        archive_bytes: catalogue.archive.as_ref().map_or(0, UsageArchive::len),
        unlisted_files: unlisted_files(&catalogue.store.db, &errors)?,
    };
    if indexed.pending_changes(&target).is_none() {
        return Ok(errors);
    }
    // Another command may be refreshing; afterwards there is less to do.
    let _lock = catalogue.store.lock("lock")?;
    let indexed = IndexedFiles::load(&catalogue.store.db)?;
    if let Some(changes) = indexed.pending_changes(&target) {
        errors.extend(apply_changes(catalogue, &indexed, changes, progress)?);
    }
    Ok(errors)
}

/// Brings one session up to date. Does nothing if another command is refreshing.
pub(super) fn refresh_session(catalogue: &mut Catalogue, session_files: &SessionFiles) -> rusqlite::Result<()> {
    let Ok(_lock) = catalogue.store.try_lock("lock") else { return Ok(()) };
    let indexed = IndexedFiles::load_session(&catalogue.store.db, session_files)?;
    if indexed.has_all(session_files) {
        return Ok(());
    }
    let changes = PendingChanges {
        sessions: vec![session_files],
        gone_files: Vec::new(),
        must_reprice: false,
        archive_offset: None,
    };
    apply_changes(catalogue, &indexed, changes, &|_, _| ())?;
    Ok(())
}

/// Whether all lines of a session are in the index.
pub(super) fn is_indexed(db: &Connection, session_files: &SessionFiles) -> rusqlite::Result<bool> {
    Ok(IndexedFiles::load_session(db, session_files)?.has_all(session_files))
}

/// The state of the file system that the database is compared with.
struct RefreshTarget<'a> {
    session_files: &'a [SessionFiles],
    price_fingerprint: u64,
    /// Size of the archive in bytes.
    archive_bytes: u64,
    /// Files in folders that cannot be listed; they are not deleted.
    unlisted_files: HashSet<i64>,
}

fn unlisted_files(db: &Connection, unlisted: &[FileError]) -> rusqlite::Result<HashSet<i64>> {
    let mut hidden = HashSet::new();
    if unlisted.is_empty() {
        return Ok(hidden);
    }
    let mut select = db.prepare_cached("SELECT id, path FROM file WHERE NOT gone")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let path = path_from_sql(row.get_ref(1)?);
        let holds = |error: &FileError| match error {
            FileError::Open { path: folder, .. } | FileError::Read { path: folder, .. } => path.starts_with(folder),
        };
        if unlisted.iter().any(holds) {
            hidden.insert(row.get(0)?);
        }
    }
    Ok(hidden)
}

/// What the database knows of a file.
struct KnownFile {
    session_row_id: i64,
    inode: i64,
    bytes: i64,
    modified_ns: i64,
    is_gone: bool,
}

impl KnownFile {
    fn is_unchanged(&self, found: &TranscriptFile) -> bool {
        !self.is_gone
            && self.inode == found.inode.cast_signed()
            && self.bytes == found.bytes.cast_signed()
            && self.modified_ns == found.modified
    }
}

struct IndexedFiles {
    files: HashMap<i64, KnownFile, BuildHasherDefault<IntegerHasher>>,
    /// The sessions of subagents whose files lie beside the sessions.
    session_by_file: HashMap<i64, SessionId>,
    /// When folders of subagents last changed, and the names in them.
    subagent_folders: HashMap<i64, (i64, String), BuildHasherDefault<IntegerHasher>>,
    price_fingerprint: Option<i64>,
    /// How much of the kept usage of vanished files is in the database.
    archive_bytes: Option<i64>,
    /// Whether a command was killed before all was added up.
    is_unfinished: bool,
}

struct PendingChanges<'a> {
    sessions: Vec<&'a SessionFiles>,
    /// Files that are gone.
    gone_files: Vec<i64>,
    /// Whether all money is to be counted again.
    must_reprice: bool,
    /// Where to begin reading the kept usage of vanished files.
    archive_offset: Option<u64>,
}

fn read_known_file(row: &rusqlite::Row<'_>) -> rusqlite::Result<(i64, KnownFile)> {
    let file = KnownFile {
        session_row_id: row.get(1)?,
        inode: row.get(2)?,
        bytes: row.get(3)?,
        modified_ns: row.get(4)?,
        is_gone: row.get(5)?,
    };
    Ok((row.get(0)?, file))
}

impl IndexedFiles {
    /// Whether the files of a session are as they were when they were indexed.
    fn has_all(&self, session_files: &SessionFiles) -> bool {
        let is_same = |file: &TranscriptFile| {
            self.files.get(&path_hash(&file.path)).is_some_and(|known| known.is_unchanged(file))
        };
        session_files.files.iter().all(is_same)
    }

    fn load(db: &Connection) -> rusqlite::Result<Self> {
        let mut select = db.prepare_cached("SELECT id, session, inode, bytes, modified, gone FROM file")?;
        let files = select.query_map([], read_known_file)?;
        let mut select =
            db.prepare_cached("SELECT file.id, name FROM file JOIN session ON session.id = session WHERE is_beside")?;
        let owners = select.query_map([], |row| Ok((row.get(0)?, SessionId::from(row.get_ref(1)?.as_str()?))))?;
        let mut select = db.prepare_cached("SELECT id, modified, names FROM folder")?;
        let folders = select.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
        let mut select = db.prepare_cached("SELECT value FROM meta WHERE name = ?")?;
        let mut meta = |name| select.query_row([name], |row| row.get(0)).optional();
        let (prices, kept) = (meta("prices")?, meta("kept")?);
        let unfinished = "SELECT EXISTS (SELECT * FROM touched) OR EXISTS (SELECT * FROM changed)";
        let is_unfinished = db.prepare_cached(unfinished)?.query_row([], |row| row.get(0))?;
        Ok(Self {
            files: files.collect::<rusqlite::Result<_>>()?,
            session_by_file: owners.collect::<rusqlite::Result<_>>()?,
            subagent_folders: folders.collect::<rusqlite::Result<_>>()?,
            price_fingerprint: prices,
            archive_bytes: kept,
            is_unfinished,
        })
    }

    /// What is known of the files of one session.
    fn load_session(db: &Connection, session_files: &SessionFiles) -> rusqlite::Result<Self> {
        let mut select =
            db.prepare_cached("SELECT id, session, inode, bytes, modified, gone FROM file WHERE id = ?")?;
        let mut files = HashMap::default();
        for file in &session_files.files {
            files.extend(select.query_row([path_hash(&file.path)], read_known_file).optional()?);
        }
        let (owners, folders) = (HashMap::new(), HashMap::default());
        Ok(Self {
            files,
            session_by_file: owners,
            subagent_folders: folders,
            price_fingerprint: None,
            archive_bytes: None,
            is_unfinished: false,
        })
    }

    fn pending_changes<'a>(&self, target: &RefreshTarget<'a>) -> Option<PendingChanges<'a>> {
        let all_session_files = target.session_files;
        let mut seen = 0;
        let mut is_same = |file: &TranscriptFile| {
            let known = self.files.get(&path_hash(&file.path));
            seen += usize::from(known.is_some_and(|known| !known.is_gone));
            known.is_some_and(|known| known.is_unchanged(file))
        };
        // Every file is looked at, also after the first that changed.
        let changed: Vec<bool> = all_session_files
            .iter()
            .map(|session_files| session_files.files.iter().filter(|file| !is_same(file)).count() > 0)
            .collect();
        let there = self.files.iter().filter(|(_, file)| !file.is_gone);
        let mut unseen: HashSet<i64> = HashSet::new();
        if seen < there.clone().count() {
            unseen.extend(there.map(|(id, _)| id));
            for file in all_session_files.iter().flat_map(|session_files| &session_files.files) {
                unseen.remove(&path_hash(&file.path));
            }
            unseen.retain(|id| !target.unlisted_files.contains(id));
        }
        // A session that lost a file is read again.
        let lost: HashSet<i64> = unseen.iter().filter_map(|id| Some(self.files.get(id)?.session_row_id)).collect();
        let lost = |session_files: &SessionFiles| {
            !lost.is_empty() && self.session_row_id(session_files).is_some_and(|n| lost.contains(&n))
        };
        let sessions =
            all_session_files.iter().zip(changed).filter(|(session_files, changed)| *changed || lost(session_files));
        let sessions: Vec<&SessionFiles> = sessions.map(|(session_files, _)| session_files).collect();
        let gone: Vec<i64> = unseen.into_iter().collect();
        let reprice = self.price_fingerprint != Some(target.price_fingerprint.cast_signed());
        let kept = self.archive_bytes.unwrap_or_default().cast_unsigned();
        // A file that became shorter is another one.
        let kept_from = (kept != target.archive_bytes).then_some(if kept < target.archive_bytes { kept } else { 0 });
        let nothing = sessions.is_empty() && gone.is_empty() && !reprice && kept_from.is_none() && !self.is_unfinished;
        (!nothing).then_some(PendingChanges {
            sessions,
            gone_files: gone,
            must_reprice: reprice,
            archive_offset: kept_from,
        })
    }
}

impl ListingHints for IndexedFiles {
    fn session_of_subagent(&self, path: &Path) -> Option<SessionId> {
        self.session_by_file.get(&path_hash(path)).cloned()
    }

    fn subagent_names(&self, folder: &Path, modified: i64) -> Option<&str> {
        let (at, names) = self.subagent_folders.get(&path_hash(folder))?;
        (*at == modified).then_some(names)
    }
}

/// Hashes a path to its row id.
fn path_hash(path: &Path) -> i64 {
    stable_hash(path.as_os_str().as_encoded_bytes()).cast_signed()
}

fn apply_changes(
    catalogue: &mut Catalogue,
    indexed: &IndexedFiles,
    changes: PendingChanges<'_>,
    progress: ProgressCallback<'_>,
) -> rusqlite::Result<Vec<FileError>> {
    let prices = catalogue.prices.clone();
    let kept = archive_vanished(catalogue, &changes)?;
    let db = Mutex::new(&mut catalogue.store.db);
    let mut errors = Vec::new();
    {
        let mut db = lock(&db);
        let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for file in &changes.gone_files {
            mark_file_gone(&transaction, *file)?;
        }
        for session in kept.sessions {
            vanished::import_session(&transaction, session)?;
        }
        if let Some(read) = kept.read_to {
            let value = read.cast_signed();
            transaction.execute("INSERT OR REPLACE INTO meta (name, value) VALUES ('kept', ?)", [value])?;
        }
        if changes.must_reprice {
            transaction.execute("INSERT OR IGNORE INTO changed (session) SELECT id FROM session WHERE NOT gone", [])?;
            let value = prices.fingerprint().cast_signed();
            transaction.execute("INSERT OR REPLACE INTO meta (name, value) VALUES ('prices', ?)", [value])?;
            reprice_sessions(&transaction, &prices)?;
        }
        transaction.commit()?;
    }
    // Sessions are resumed from rows of earlier passes, so names written in this pass are not
    // needed.
    let interned = message_rows::InternedTexts::load(&lock(&db))?;
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::sync_channel::<(&SessionFiles, rusqlite::Result<(FoldedSession, Metrics)>)>(32);
    let work = |send: mpsc::SyncSender<_>| {
        while let Some(session_files) = changes.sessions.get(next.fetch_add(1, Ordering::Relaxed)) {
            let state = match indexed.resumable_session(session_files, &changes.gone_files) {
                Some(session) => load_fold_state(&lock(&db), &interned, session, session_files),
                None => Ok(None),
            };
            let folded = state.map(|state| {
                let folded = fold_session(session_files, state);
                let metrics = folded.metrics.finish(&prices);
                (folded, metrics)
            });
            if send.send((*session_files, folded)).is_err() {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        let workers = std::thread::available_parallelism().map_or(1, usize::from).min(changes.sessions.len());
        for _ in 0..workers {
            let send = send.clone();
            scope.spawn(|| work(send));
        }
        drop(send);
        // Dropped on an error, so that no worker blocks on the channel.
        let receive = receive;
        let mut done = 0;
        while let Ok(first) = receive.recv() {
            let mut db = lock(&db);
            let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let started = Instant::now();
            let mut more = Some(first);
            while let Some((session_files, folded)) = more {
                let (mut folded, metrics) = folded?;
                errors.append(&mut folded.errors);
                write_session(&transaction, session_files, folded, metrics)?;
                done += 1;
                progress(done, changes.sessions.len());
                // Commit soon: a worker may wait for the connection.
                more =
                    if started.elapsed() < COMMIT_INTERVAL { receive.recv_timeout(RECEIVE_TIMEOUT).ok() } else { None };
            }
            transaction.commit()?;
        }
        let mut db = lock(&db);
        let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        crediting::credit_changed(&transaction, &prices)?;
        transaction.commit()
    })?;
    Ok(errors)
}

/// Usage of deleted files that is not in the database yet.
struct ArchivedUsage {
    sessions: Vec<VanishedSession>,
    /// Offset up to which the archive was read; `None` if it was not read.
    read_to: Option<u64>,
}

/// Archives the usage of deleted files and reads what others archived. This happens before the
/// files are removed from the database, so that a killed command loses nothing.
fn archive_vanished(catalogue: &mut Catalogue, changes: &PendingChanges<'_>) -> rusqlite::Result<ArchivedUsage> {
    let lost = vanished::sessions_to_archive(&catalogue.store.db, &changes.gone_files, &catalogue.config_dirs)?;
    let Some(usage) = &catalogue.archive else { return Ok(ArchivedUsage { sessions: lost, read_to: None }) };
    if lost.is_empty() && changes.archive_offset.is_none() {
        return Ok(ArchivedUsage { sessions: Vec::new(), read_to: None });
    }
    // What others append from here on is read by the next refresh.
    let len = usage.len();
    let appended = if lost.is_empty() { Ok(()) } else { usage.append(&lost) };
    let read = match changes.archive_offset {
        Some(from) => usage.read(from, &catalogue.config_dirs).map(|sessions| (sessions, Some(len))),
        None => Ok((Vec::new(), None)),
    };
    let (mut sessions, read_to) = match appended.and(read) {
        Ok(read) => read,
        Err(error) => {
            catalogue.archive_error = Some((usage.path().to_owned(), error));
            (Vec::new(), None)
        }
    };
    sessions.extend(lost);
    Ok(ArchivedUsage { sessions, read_to })
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl IndexedFiles {
    /// Row id of the session; `None` if it is new.
    fn session_row_id(&self, session_files: &SessionFiles) -> Option<i64> {
        session_files.files.iter().find_map(|file| Some(self.files.get(&path_hash(&file.path))?.session_row_id))
    }

    /// Row id of the session if it can be continued: each of its files is unchanged, longer
    /// or new. `None` if it must be read from the start.
    fn resumable_session(&self, session_files: &SessionFiles, gone: &[i64]) -> Option<i64> {
        let number = self.session_row_id(session_files)?;
        let goes_on = |file: &TranscriptFile| match self.files.get(&path_hash(&file.path)) {
            None => true,
            Some(known) if known.session_row_id != number || known.is_gone => false,
            // A file of the same size that was modified may have other content.
            Some(known) => {
                let is_longer = known.bytes < file.bytes.cast_signed() && known.bytes >= 0;
                known.is_unchanged(file) || is_longer && known.inode == file.inode.cast_signed()
            }
        };
        let lost = gone.iter().any(|id| self.files.get(id).is_some_and(|file| file.session_row_id == number));
        (!lost && session_files.files.iter().all(goes_on)).then_some(number)
    }
}

/// Loads the stored state of a session; `None` if it is missing or damaged.
fn load_fold_state(
    db: &Connection,
    interned: &message_rows::InternedTexts,
    session: i64,
    session_files: &SessionFiles,
) -> rusqlite::Result<Option<FoldState>> {
    let known = db
        .prepare_cached("SELECT story, searches, begins FROM session JOIN story ON session = id WHERE id = ?")?
        .query_row([session], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, Option<i64>>(2)?))
        })
        .optional()?;
    let Some((story, searches, begins)) = known else { return Ok(None) };
    let (Ok(story), Ok(searches)) = (serde_json::from_str(&story), serde_json::from_str(&searches)) else {
        return Ok(None);
    };
    let kept = message_rows::session_messages(db, interned, session)?;
    let messages = kept.into_iter().map(|row| row.usage).collect();
    let mut marks = Vec::new();
    let mut select = db.prepare_cached("SELECT counted, tail FROM file WHERE id = ? AND session = ?")?;
    for file in &session_files.files {
        let mark = select.query_row(params![path_hash(&file.path), session], |row| {
            let [offset, tail] = [row.get::<_, i64>(0)?, row.get(1)?].map(i64::cast_unsigned);
            Ok(ReadPosition { offset, tail_hash: tail })
        });
        marks.push(mark.optional()?.unwrap_or_default());
    }
    let begins = begins.and_then(|begins| Timestamp::from_millisecond(begins).ok());
    Ok(Some(FoldState {
        metrics: story,
        usage: UsageTally::from_messages(messages, searches),
        started_at: begins,
        positions: marks,
    }))
}

/// Writes a session after reading its new lines.
///
/// Only changed messages are written. If the session was read from the start, its old rows are
/// deleted first and their keys queued for crediting, because other sessions may hold copies.
/// A file that could not be read gets a size of -1, so that the next refresh reads it again.
fn write_session(
    db: &Connection,
    session_files: &SessionFiles,
    folded: FoldedSession,
    metrics: Metrics,
) -> rusqlite::Result<()> {
    let FoldedSession { metrics: mut session, started_at: begins, positions: marks, is_full_read: is_whole, .. } =
        folded;
    let whose = session_location(session_files);
    let json = |value: serde_json::Result<String>| value.unwrap_or_else(|_| "{}".to_owned());
    let number: i64 = db
        .prepare_cached(
            "INSERT INTO session (place, name, project, begins) VALUES (?, ?, ?, ?)
             ON CONFLICT (place) DO UPDATE SET (begins, gone) = (excluded.begins, 0) RETURNING id",
        )?
        .query_row(
            params![whose, session_files.id.as_str(), &*session_files.project, begins.map(Timestamp::as_millisecond)],
            |row| row.get(0),
        )?;
    db.prepare_cached("INSERT OR REPLACE INTO story (session, story, searches, listed) VALUES (?, ?, ?, ?)")?.execute(
        params![
            number,
            json(serde_json::to_string(session.state())),
            json(serde_json::to_string(session.usage_mut().searches())),
            ListedSession::new(session_files, metrics).to_stored(),
        ],
    )?;
    if is_whole {
        queue_recredit(db, number)?;
        delete_messages(db, number)?;
    }
    let mut insert_subagent =
        db.prepare_cached("INSERT OR REPLACE INTO agent (session, id, kind, turn) VALUES (?, ?, ?, ?)")?;
    for (id, agent) in session.subagents() {
        insert_subagent.execute(params![number, id, agent.agent_type, agent.turn])?;
    }
    let usage = session.usage_mut();
    for index in usage.changed_messages().to_vec() {
        message_rows::write_message(db, number, index, &usage.messages()[index])?;
    }
    db.prepare_cached("INSERT OR IGNORE INTO changed (session) VALUES (?)")?.execute([number])?;
    let mut upsert = db.prepare_cached(
        "INSERT INTO file (id, path, session, is_beside, inode, bytes, modified, counted, tail)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (id) DO UPDATE SET (session, inode, bytes, modified, counted, tail, gone, indexed)
         = (excluded.session, excluded.inode, excluded.bytes, excluded.modified, excluded.counted, excluded.tail, 0,
            CASE WHEN ? AND indexed <> 0 THEN -1 ELSE indexed END)",
    )?;
    for (file, mark) in session_files.files.iter().zip(marks) {
        // -1: read again by the next refresh.
        let bytes = mark.map_or(-1, |_| file.bytes.cast_signed());
        let ReadPosition { offset, tail_hash: tail } = mark.unwrap_or_default();
        let [inode, offset, tail] = [file.inode, offset, tail].map(u64::cast_signed);
        upsert.execute(params![
            path_hash(&file.path),
            path_to_sql(&file.path),
            number,
            file.is_subagent && file.path.parent() == Some(&*session_files.folder),
            inode,
            bytes,
            file.modified,
            offset,
            tail,
            // A file that was read from the start may have other content.
            is_whole,
        ])?;
    }
    if let Some(modified) = session_files.subagents_modified {
        let folder = session_files.subagents_folder();
        let inside = session_files.files.iter().filter(|file| file.path.parent() == Some(&folder));
        let names: Vec<_> = inside.filter_map(|file| file.path.file_name()?.to_str()).collect();
        db.prepare_cached("INSERT OR REPLACE INTO folder (id, modified, names) VALUES (?, ?, ?)")?.execute(params![
            path_hash(&folder),
            modified,
            names.join("/")
        ])?;
    }
    Ok(())
}

/// Identifies a session: the same id may occur in several folders.
pub(super) fn session_location(session_files: &SessionFiles) -> String {
    format!("{}\0{}", session_files.folder.to_string_lossy(), session_files.id)
}

/// Queues the keys of a session for crediting.
fn queue_recredit(db: &Connection, session: i64) -> rusqlite::Result<()> {
    db.prepare_cached(
        "INSERT OR IGNORE INTO touched (key) SELECT key FROM message WHERE session = ? AND key IS NOT NULL",
    )?
    .execute([session])?;
    Ok(())
}

/// Marks a file as deleted, and its session if that was its last file.
fn mark_file_gone(db: &Connection, file: i64) -> rusqlite::Result<()> {
    let session: i64 = db
        .prepare_cached("UPDATE file SET gone = 1 WHERE id = ? RETURNING session")?
        .query_row([file], |row| row.get(0))?;
    let left = "SELECT EXISTS (SELECT * FROM file WHERE session = ? AND NOT gone)";
    let is_left: bool = db.prepare_cached(left)?.query_row([session], |row| row.get(0))?;
    if !is_left {
        db.prepare_cached("UPDATE session SET gone = 1 WHERE id = ?")?.execute([session])?;
    }
    queue_recredit(db, session)?;
    if !is_left {
        // Its usage is in the archive.
        delete_messages(db, session)?;
    }
    db.prepare_cached("INSERT OR IGNORE INTO changed (session) VALUES (?)")?.execute([session])?;
    Ok(())
}

/// Deletes the messages of a session.
fn delete_messages(db: &Connection, session: i64) -> rusqlite::Result<()> {
    for table in ["message", "credited", "agent"] {
        db.prepare_cached(&format!("DELETE FROM {table} WHERE session = ?"))?.execute([session])?;
    }
    Ok(())
}

/// Computes the cost of every session with new prices.
fn reprice_sessions(db: &Connection, prices: &Prices) -> rusqlite::Result<()> {
    let texts = message_rows::InternedTexts::load(db)?;
    let mut select = db.prepare("SELECT session, story, listed FROM story")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        let Ok(story) = serde_json::from_str(row.get_ref(1)?.as_str()?) else { continue };
        let messages = message_rows::session_messages(db, &texts, id)?.into_iter().map(|row| row.usage).collect();
        let metrics =
            MetricsBuilder::from_state(story, UsageTally::from_messages(messages, HashMap::new())).finish(prices);
        if let Some(listed) = ListedSession::from_stored(row.get_ref(2)?.as_str()?, Some(metrics)) {
            let update = params![listed.to_stored(), id];
            db.prepare_cached("UPDATE story SET listed = ? WHERE session = ?")?.execute(update)?;
        }
    }
    Ok(())
}

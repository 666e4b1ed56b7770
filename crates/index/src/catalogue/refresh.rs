//! What changed since the last time, read and written.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use quipu_conversation::price::Prices;
use quipu_conversation::{Metrics, Session, Tally};
use quipu_message::SessionId;
use quipu_transcript::FileError;
use quipu_transcript::find::{self, FoundFile, Hints, History};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::fold::{Folded, Mark, State, fold};
use super::list::Listed;
use super::{Catalogue, Progress, credit, rows, vanish};
use crate::hashed::{Hashed, hash};
use crate::kept::{KeptSession, KeptUsage};

/// Work is kept at least this often, and whenever nothing comes for a while.
const KEEP: Duration = Duration::from_millis(400);
const PAUSE: Duration = Duration::from_millis(2);

pub(super) fn refresh(catalogue: &mut Catalogue, progress: Progress<'_>) -> rusqlite::Result<Vec<FileError>> {
    let (projects, mut errors) = find::projects(&catalogue.dirs);
    let known = Known::read(&catalogue.store.db)?;
    let (histories, unread) = find::histories(&projects, &known);
    errors.extend(unread);
    let target = Target {
        histories: &histories,
        prices: catalogue.prices.fingerprint(),
        kept: catalogue.kept.as_ref().map_or(0, KeptUsage::len),
        hidden: hidden(&catalogue.store.db, &errors)?,
    };
    if known.changes(&target).is_none() {
        return Ok(errors);
    }
    // Someone else may be at it: afterwards there is less to do.
    let _lock = catalogue.store.lock("lock")?;
    let known = Known::read(&catalogue.store.db)?;
    if let Some(changes) = known.changes(&target) {
        errors.extend(write(catalogue, &known, changes, progress)?);
    }
    Ok(errors)
}

/// Brings one session up to date and nothing else, unless another command is at it.
pub(super) fn refresh_session(catalogue: &mut Catalogue, history: &History) -> rusqlite::Result<()> {
    let Ok(_lock) = catalogue.store.try_lock("lock") else { return Ok(()) };
    let known = Known::of(&catalogue.store.db, history)?;
    let is_same = |file: &FoundFile| known.files.get(&place(&file.path)).is_some_and(|known| known.is_same(file));
    if history.files.iter().all(is_same) {
        return Ok(());
    }
    let changes = Changes { sessions: vec![history], gone: Vec::new(), reprice: false, kept_from: None };
    write(catalogue, &known, changes, &|_, _| ())?;
    Ok(())
}

/// What the catalogue is to be like.
struct Target<'a> {
    histories: &'a [History],
    prices: u64,
    /// How much usage of vanished files is kept.
    kept: u64,
    /// Files in folders that cannot be listed: they have not vanished.
    hidden: HashSet<i64>,
}

fn hidden(db: &Connection, unlisted: &[FileError]) -> rusqlite::Result<HashSet<i64>> {
    let mut hidden = HashSet::new();
    if unlisted.is_empty() {
        return Ok(hidden);
    }
    let mut select = db.prepare_cached("SELECT id, path FROM file WHERE NOT gone")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let path = rows::path_of(row.get_ref(1)?);
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
    session: i64,
    inode: i64,
    bytes: i64,
    modified: i64,
    is_gone: bool,
}

impl KnownFile {
    fn is_same(&self, found: &FoundFile) -> bool {
        !self.is_gone
            && self.inode == found.inode.cast_signed()
            && self.bytes == found.bytes.cast_signed()
            && self.modified == found.modified
    }
}

struct Known {
    files: HashMap<i64, KnownFile, BuildHasherDefault<Hashed>>,
    /// The sessions of subagents whose files lie beside the sessions.
    owners: HashMap<i64, SessionId>,
    /// When folders of subagents last changed, and the names in them.
    folders: HashMap<i64, (i64, String), BuildHasherDefault<Hashed>>,
    prices: Option<i64>,
    /// How much of the kept usage of vanished files is in the database.
    kept: Option<i64>,
    /// Whether a command was killed before all was added up.
    is_unfinished: bool,
}

struct Changes<'a> {
    sessions: Vec<&'a History>,
    /// Files that are gone.
    gone: Vec<i64>,
    /// Whether all money is to be counted anew.
    reprice: bool,
    /// Where to begin reading the kept usage of vanished files.
    kept_from: Option<u64>,
}

fn known_file(row: &rusqlite::Row<'_>) -> rusqlite::Result<(i64, KnownFile)> {
    let file = KnownFile {
        session: row.get(1)?,
        inode: row.get(2)?,
        bytes: row.get(3)?,
        modified: row.get(4)?,
        is_gone: row.get(5)?,
    };
    Ok((row.get(0)?, file))
}

impl Known {
    fn read(db: &Connection) -> rusqlite::Result<Self> {
        let mut select = db.prepare_cached("SELECT id, session, inode, bytes, modified, gone FROM file")?;
        let files = select.query_map([], known_file)?;
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
            owners: owners.collect::<rusqlite::Result<_>>()?,
            folders: folders.collect::<rusqlite::Result<_>>()?,
            prices,
            kept,
            is_unfinished,
        })
    }

    /// What is known of the files of one session.
    fn of(db: &Connection, history: &History) -> rusqlite::Result<Self> {
        let mut select =
            db.prepare_cached("SELECT id, session, inode, bytes, modified, gone FROM file WHERE id = ?")?;
        let mut files = HashMap::default();
        for file in &history.files {
            files.extend(select.query_row([place(&file.path)], known_file).optional()?);
        }
        let (owners, folders) = (HashMap::new(), HashMap::default());
        Ok(Self { files, owners, folders, prices: None, kept: None, is_unfinished: false })
    }

    fn changes<'a>(&self, target: &Target<'a>) -> Option<Changes<'a>> {
        let histories = target.histories;
        let mut seen = 0;
        let mut is_same = |file: &FoundFile| {
            let known = self.files.get(&place(&file.path));
            seen += usize::from(known.is_some_and(|known| !known.is_gone));
            known.is_some_and(|known| known.is_same(file))
        };
        // Every file is looked at, also after the first that changed.
        let changed: Vec<bool> =
            histories.iter().map(|history| history.files.iter().filter(|file| !is_same(file)).count() > 0).collect();
        let there = self.files.iter().filter(|(_, file)| !file.is_gone);
        let mut unseen: HashSet<i64> = HashSet::new();
        if seen < there.clone().count() {
            unseen.extend(there.map(|(id, _)| id));
            for file in histories.iter().flat_map(|history| &history.files) {
                unseen.remove(&place(&file.path));
            }
            unseen.retain(|id| !target.hidden.contains(id));
        }
        // A session that lost a file is read anew.
        let lost: HashSet<i64> = unseen.iter().filter_map(|id| Some(self.files.get(id)?.session)).collect();
        let lost = |history: &History| !lost.is_empty() && self.number(history).is_some_and(|n| lost.contains(&n));
        let sessions = histories.iter().zip(changed).filter(|(history, changed)| *changed || lost(history));
        let sessions: Vec<&History> = sessions.map(|(history, _)| history).collect();
        let gone: Vec<i64> = unseen.into_iter().collect();
        let reprice = self.prices != Some(target.prices.cast_signed());
        let kept = self.kept.unwrap_or_default().cast_unsigned();
        // A file that became shorter is another one.
        let kept_from = (kept != target.kept).then_some(if kept < target.kept { kept } else { 0 });
        let nothing = sessions.is_empty() && gone.is_empty() && !reprice && kept_from.is_none() && !self.is_unfinished;
        (!nothing).then_some(Changes { sessions, gone, reprice, kept_from })
    }
}

impl Hints for Known {
    fn owner(&self, path: &Path) -> Option<SessionId> {
        self.owners.get(&place(path)).cloned()
    }

    fn subagents(&self, folder: &Path, modified: i64) -> Option<&str> {
        let (at, names) = self.folders.get(&place(folder))?;
        (*at == modified).then_some(names)
    }
}

/// A path as a number.
fn place(path: &Path) -> i64 {
    hash(path.as_os_str().as_encoded_bytes()).cast_signed()
}

fn write(
    catalogue: &mut Catalogue,
    known: &Known,
    changes: Changes<'_>,
    progress: Progress<'_>,
) -> rusqlite::Result<Vec<FileError>> {
    let prices = catalogue.prices.clone();
    let kept = keep(catalogue, &changes)?;
    let db = Mutex::new(&mut catalogue.store.db);
    let mut errors = Vec::new();
    {
        let mut db = held(&db);
        let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for file in &changes.gone {
            lose(&change, *file)?;
        }
        for session in kept.sessions {
            vanish::import(&change, session)?;
        }
        if let Some(read) = kept.read_to {
            let value = read.cast_signed();
            change.execute("INSERT OR REPLACE INTO meta (name, value) VALUES ('kept', ?)", [value])?;
        }
        if changes.reprice {
            change.execute("INSERT OR IGNORE INTO changed (session) SELECT id FROM session WHERE NOT gone", [])?;
            let value = prices.fingerprint().cast_signed();
            change.execute("INSERT OR REPLACE INTO meta (name, value) VALUES ('prices', ?)", [value])?;
            relist(&change, &prices)?;
        }
        change.commit()?;
    }
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::sync_channel::<(&History, rusqlite::Result<(Folded, Metrics)>)>(32);
    let work = |send: mpsc::SyncSender<_>| {
        while let Some(history) = changes.sessions.get(next.fetch_add(1, Ordering::Relaxed)) {
            let state = match known.session(history, &changes.gone) {
                Some(session) => state(&held(&db), session, history),
                None => Ok(None),
            };
            let folded = state.map(|state| {
                let folded = fold(history, state);
                let metrics = folded.session.finish(&prices);
                (folded, metrics)
            });
            if send.send((*history, folded)).is_err() {
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
        // Dropped at an error, so that no worker waits for ever.
        let receive = receive;
        let mut done = 0;
        while let Ok(first) = receive.recv() {
            let mut db = held(&db);
            let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let begun = Instant::now();
            let mut more = Some(first);
            while let Some((history, folded)) = more {
                let (mut folded, metrics) = folded?;
                errors.append(&mut folded.errors);
                put(&change, history, folded, metrics)?;
                done += 1;
                progress(done, changes.sessions.len());
                // A worker may wait for the database: let it have its turn.
                more = if begun.elapsed() < KEEP { receive.recv_timeout(PAUSE).ok() } else { None };
            }
            change.commit()?;
        }
        let mut db = held(&db);
        let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        credit::credit(&change, &prices)?;
        change.commit()
    })?;
    Ok(errors)
}

/// What is kept of vanished files and not yet in the database.
struct Kept {
    sessions: Vec<KeptSession>,
    /// How far the kept usage was read.
    read_to: Option<u64>,
}

/// Keeps what was counted of the files that are gone, and reads what is kept. Done before
/// the files are forgotten, so that a command killed in between loses nothing.
fn keep(catalogue: &mut Catalogue, changes: &Changes<'_>) -> rusqlite::Result<Kept> {
    let lost = vanish::lost(&catalogue.store.db, &changes.gone, &catalogue.dirs)?;
    let Some(usage) = &catalogue.kept else { return Ok(Kept { sessions: lost, read_to: None }) };
    if lost.is_empty() && changes.kept_from.is_none() {
        return Ok(Kept { sessions: Vec::new(), read_to: None });
    }
    // What others appended meanwhile is read the next time.
    let len = usage.len();
    let appended = if lost.is_empty() { Ok(()) } else { usage.append(&lost) };
    let read = match changes.kept_from {
        Some(from) => usage.read(from, &catalogue.dirs).map(|sessions| (sessions, Some(len))),
        None => Ok((Vec::new(), None)),
    };
    let (mut sessions, read_to) = match appended.and(read) {
        Ok(read) => read,
        Err(error) => {
            catalogue.kept_error = Some((usage.path().to_owned(), error));
            (Vec::new(), None)
        }
    };
    sessions.extend(lost);
    Ok(Kept { sessions, read_to })
}

fn held<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Known {
    /// The session's number.
    fn number(&self, history: &History) -> Option<i64> {
        history.files.iter().find_map(|file| Some(self.files.get(&place(&file.path))?.session))
    }

    /// The session's number, when nothing speaks against going on with it: its files
    /// are the same, longer or new.
    fn session(&self, history: &History, gone: &[i64]) -> Option<i64> {
        let number = self.number(history)?;
        let goes_on = |file: &FoundFile| match self.files.get(&place(&file.path)) {
            None => true,
            Some(known) if known.session != number || known.is_gone => false,
            // As large as before but written later: what was read may be other words now.
            Some(known) => {
                let is_longer = known.bytes < file.bytes.cast_signed() && known.bytes >= 0;
                known.is_same(file) || is_longer && known.inode == file.inode.cast_signed()
            }
        };
        let lost = gone.iter().any(|id| self.files.get(id).is_some_and(|file| file.session == number));
        (!lost && history.files.iter().all(goes_on)).then_some(number)
    }
}

/// Where counting a session goes on.
fn state(db: &Connection, session: i64, history: &History) -> rusqlite::Result<Option<State>> {
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
    let kept = rows::messages(db, &rows::Texts::read(db)?, session)?;
    let messages = kept.into_iter().map(|kept| kept.message).collect();
    let mut marks = Vec::new();
    let mut select = db.prepare_cached("SELECT counted, tail FROM file WHERE id = ? AND session = ?")?;
    for file in &history.files {
        let mark = select.query_row(params![place(&file.path), session], |row| {
            let [offset, tail] = [row.get::<_, i64>(0)?, row.get(1)?].map(i64::cast_unsigned);
            Ok(Mark { offset, tail })
        });
        marks.push(mark.optional()?.unwrap_or_default());
    }
    let begins = begins.and_then(|begins| Timestamp::from_millisecond(begins).ok());
    Ok(Some(State { story, tally: Tally::restored(messages, searches), begins, marks }))
}

/// Writes a session as it is now.
fn put(db: &Connection, history: &History, folded: Folded, metrics: Metrics) -> rusqlite::Result<()> {
    let Folded { mut session, begins, marks, is_whole, .. } = folded;
    let whose = place_of(history);
    let json = |value: serde_json::Result<String>| value.unwrap_or_else(|_| "{}".to_owned());
    let number: i64 = db
        .prepare_cached(
            "INSERT INTO session (place, name, project, begins) VALUES (?, ?, ?, ?)
             ON CONFLICT (place) DO UPDATE SET (begins, gone) = (excluded.begins, 0) RETURNING id",
        )?
        .query_row(
            params![whose, history.id.as_str(), &*history.project, begins.map(Timestamp::as_millisecond)],
            |row| row.get(0),
        )?;
    db.prepare_cached("INSERT OR REPLACE INTO story (session, story, searches, listed) VALUES (?, ?, ?, ?)")?.execute(
        params![
            number,
            json(serde_json::to_string(session.story())),
            json(serde_json::to_string(session.tally().searches())),
            Listed::new(history, metrics).kept(),
        ],
    )?;
    if is_whole {
        touch(db, number)?;
        forget(db, number)?;
    }
    let mut learn = db.prepare_cached("INSERT OR REPLACE INTO agent (session, id, kind, turn) VALUES (?, ?, ?, ?)")?;
    for (id, agent) in session.agents() {
        learn.execute(params![number, id, agent.kind, agent.turn])?;
    }
    let tally = session.tally();
    for at in tally.changed().to_vec() {
        rows::put_message(db, number, at, &tally.messages()[at])?;
    }
    db.prepare_cached("INSERT OR IGNORE INTO changed (session) VALUES (?)")?.execute([number])?;
    let mut upsert = db.prepare_cached(
        "INSERT INTO file (id, path, session, is_beside, inode, bytes, modified, counted, tail)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (id) DO UPDATE SET (session, inode, bytes, modified, counted, tail, gone, indexed)
         = (excluded.session, excluded.inode, excluded.bytes, excluded.modified, excluded.counted, excluded.tail, 0,
            CASE WHEN ? AND indexed <> 0 THEN -1 ELSE indexed END)",
    )?;
    for (file, mark) in history.files.iter().zip(marks) {
        // What could not be read is tried again the next time.
        let bytes = mark.map_or(-1, |_| file.bytes.cast_signed());
        let Mark { offset, tail } = mark.unwrap_or_default();
        let [inode, offset, tail] = [file.inode, offset, tail].map(u64::cast_signed);
        upsert.execute(params![
            place(&file.path),
            rows::path_value(&file.path),
            number,
            file.is_subagent && file.path.parent() == Some(&*history.folder),
            inode,
            bytes,
            file.modified,
            offset,
            tail,
            // What was read from the start may say something else now.
            is_whole,
        ])?;
    }
    if let Some(modified) = history.subagents_listed {
        let folder = history.subagents_folder();
        let inside = history.files.iter().filter(|file| file.path.parent() == Some(&folder));
        let names: Vec<_> = inside.filter_map(|file| file.path.file_name()?.to_str()).collect();
        db.prepare_cached("INSERT OR REPLACE INTO folder (id, modified, names) VALUES (?, ?, ?)")?.execute(params![
            place(&folder),
            modified,
            names.join("/")
        ])?;
    }
    Ok(())
}

/// What tells a session from one of the same id in another folder.
pub(super) fn place_of(history: &History) -> String {
    format!("{}\0{}", history.folder.to_string_lossy(), history.id)
}

/// Has the keys of a session credited anew.
fn touch(db: &Connection, session: i64) -> rusqlite::Result<()> {
    db.prepare_cached(
        "INSERT OR IGNORE INTO touched (key) SELECT key FROM message WHERE session = ? AND key IS NOT NULL",
    )?
    .execute([session])?;
    Ok(())
}

/// Marks a file that is gone, and its session when that was the last.
fn lose(db: &Connection, file: i64) -> rusqlite::Result<()> {
    let session: i64 = db
        .prepare_cached("UPDATE file SET gone = 1 WHERE id = ? RETURNING session")?
        .query_row([file], |row| row.get(0))?;
    let left = "SELECT EXISTS (SELECT * FROM file WHERE session = ? AND NOT gone)";
    let is_left: bool = db.prepare_cached(left)?.query_row([session], |row| row.get(0))?;
    if !is_left {
        db.prepare_cached("UPDATE session SET gone = 1 WHERE id = ?")?.execute([session])?;
    }
    touch(db, session)?;
    if !is_left {
        // What was counted of it is kept beside.
        forget(db, session)?;
    }
    db.prepare_cached("INSERT OR IGNORE INTO changed (session) VALUES (?)")?.execute([session])?;
    Ok(())
}

/// Deletes the messages of a session.
fn forget(db: &Connection, session: i64) -> rusqlite::Result<()> {
    for table in ["message", "credited", "agent"] {
        db.prepare_cached(&format!("DELETE FROM {table} WHERE session = ?"))?.execute([session])?;
    }
    Ok(())
}

/// Counts the money of every session anew.
fn relist(db: &Connection, prices: &Prices) -> rusqlite::Result<()> {
    let texts = rows::Texts::read(db)?;
    let mut select = db.prepare("SELECT session, story, listed FROM story")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        let Ok(story) = serde_json::from_str(row.get_ref(1)?.as_str()?) else { continue };
        let messages = rows::messages(db, &texts, id)?.into_iter().map(|kept| kept.message).collect();
        let metrics = Session::restored(story, Tally::restored(messages, HashMap::new())).finish(prices);
        if let Some(listed) = Listed::from_kept(row.get_ref(2)?.as_str()?, Some(metrics)) {
            let update = params![listed.kept(), id];
            db.prepare_cached("UPDATE story SET listed = ? WHERE session = ?")?.execute(update)?;
        }
    }
    Ok(())
}

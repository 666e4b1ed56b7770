//! Opens the database file, rebuilds it if its schema is old and replaces it if it is damaged.
//! The file can be deleted at any time; it never holds the only copy of anything.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OpenFlags};

/// Increased whenever the tables, or the meaning of their values, change.
const SCHEMA_VERSION: i64 = 12;

/// Why the index cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The folder, or a file in it, cannot be created.
    #[error("cannot create {}", path.display())]
    Create {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// SQLite reported an error.
    #[error("cannot use the index {}", path.display())]
    Database {
        /// Path of the database.
        path: PathBuf,
        /// Error of SQLite.
        #[source]
        source: rusqlite::Error,
    },
}

impl IndexError {
    /// A stable name for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Create { .. } => "index.cannot_create",
            Self::Database { .. } => "index.database",
        }
    }

    /// Whether the file is not a database, or is damaged. Includes rows with values that were
    /// never written.
    pub fn is_corrupt(&self) -> bool {
        use rusqlite::Error;
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        let Self::Database { source, .. } = self else { return false };
        let is_wrong_row = matches!(
            source,
            Error::FromSqlConversionFailure(..)
                | Error::IntegralValueOutOfRange(..)
                | Error::InvalidColumnType(..)
                | Error::Utf8Error(..)
                | Error::QueryReturnedNoRows
        );
        is_wrong_row || matches!(source.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
    }

    /// Whether the index cannot be stored: the disk is full, read-only or failing, or the
    /// folder cannot be created.
    pub fn is_storage_error(&self) -> bool {
        use rusqlite::ErrorCode::{CannotOpen, DiskFull, PermissionDenied, ReadOnly, SystemIoFailure};
        match self {
            Self::Create { .. } => true,
            Self::Database { source, .. } => matches!(
                source.sqlite_error_code(),
                Some(CannotOpen | DiskFull | PermissionDenied | ReadOnly | SystemIoFailure)
            ),
        }
    }
}

/// The open database and its path.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) db: Connection,
    pub(crate) path: PathBuf,
    /// Path of a damaged database that this one replaced.
    pub(crate) broken_database: Option<PathBuf>,
}

impl Store {
    /// Creates a database in memory.
    pub(crate) fn in_memory() -> Result<Self, IndexError> {
        let path = PathBuf::from(IN_MEMORY);
        let fail = |source| IndexError::Database { path: path.clone(), source };
        let mut db = Connection::open_in_memory().map_err(fail)?;
        ensure_schema(&mut db).map_err(fail)?;
        Ok(Self { db, path, broken_database: None })
    }

    /// Opens or creates the database; replaces a damaged one.
    pub(crate) fn open(path: &Path) -> Result<Self, IndexError> {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(|source| IndexError::Create { path: folder.to_owned(), source })?;
        // Readable by its owner only, like session files.
        open_private(path).map_err(|source| IndexError::Create { path: path.to_owned(), source })?;
        delete_unused_indexes(path);
        match Self::try_open(path) {
            Err(error) if error.is_corrupt() => Self::recreate(path),
            opened => opened,
        }
    }

    /// Renames a damaged database to `.broken` and creates an empty one.
    pub(crate) fn recreate(path: &Path) -> Result<Self, IndexError> {
        if path == Path::new(IN_MEMORY) {
            return Self::in_memory();
        }
        let aside = path.with_extension("broken");
        fs::rename(path, &aside).map_err(|source| IndexError::Create { path: aside.clone(), source })?;
        for beside in ["sqlite-wal", "sqlite-shm"] {
            let _ = fs::remove_file(path.with_extension(beside));
        }
        open_private(path).map_err(|source| IndexError::Create { path: path.to_owned(), source })?;
        Ok(Self { broken_database: Some(aside), ..Self::try_open(path)? })
    }

    fn try_open(path: &Path) -> Result<Self, IndexError> {
        let fail = |source| IndexError::Database { path: path.to_owned(), source };
        // Under a lock: if two commands switch a new database to WAL, one fails at once whatever
        // the timeout, because each would wait for the other to stop reading.
        let opening = path.with_extension("opening");
        let lock = open_private(&opening).and_then(|file| file.lock().map(|()| file));
        let _lock = lock.map_err(|source| IndexError::Create { path: opening, source })?;
        let open = || {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let mut db = Connection::open_with_flags(path, flags)?;
            db.busy_timeout(Duration::from_secs(60))?;
            // No syncs: after a power failure the database is rebuilt.
            db.execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY;
                 PRAGMA cache_size = -16000; PRAGMA mmap_size = 0;",
            )?;
            ensure_schema(&mut db)?;
            Ok(db)
        };
        let db = open().map_err(fail)?;
        Ok(Self { db, path: path.to_owned(), broken_database: None })
    }

    pub(crate) fn database_error(&self, source: rusqlite::Error) -> IndexError {
        IndexError::Database { path: self.path.clone(), source }
    }

    /// Waits until no other command holds the lock. Dropping the file releases it; `None` for
    /// a database in memory.
    pub(crate) fn lock(&self, what: &str) -> rusqlite::Result<Option<File>> {
        self.lock_file(what, |file| file.lock().map(|()| true))
    }

    /// Like [`lock`](Self::lock) without waiting; fails if another command holds the lock.
    pub(crate) fn try_lock(&self, what: &str) -> rusqlite::Result<Option<File>> {
        self.lock_file(what, |file| Ok(file.try_lock().is_ok()))
    }

    fn lock_file(&self, what: &str, lock: impl Fn(&File) -> io::Result<bool>) -> rusqlite::Result<Option<File>> {
        if self.path == Path::new(IN_MEMORY) {
            return Ok(None);
        }
        let path = self.path.with_extension(what);
        match open_private(&path).and_then(|file| Ok(lock(&file)?.then_some(file))) {
            Ok(Some(file)) => Ok(Some(file)),
            _ => Err(rusqlite::Error::InvalidPath(path)),
        }
    }
}

/// Path of a database in memory.
const IN_MEMORY: &str = ":memory:";
/// Databases that no command opened for this long are deleted.
const UNUSED_INDEX_MAX_AGE: Duration = Duration::from_secs(30 * 24 * 3600);
/// How often the modification time of a used database is updated.
const MARK_USED_INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// Updates the modification time of a database and deletes unused ones beside it. Nothing is
/// lost: their content is in the session files or in the archive.
#[expect(clippy::disallowed_methods, reason = "the time of use of a cache file")]
fn delete_unused_indexes(path: &Path) {
    let age = |path: &Path| {
        let modified = fs::metadata(path).and_then(|meta| meta.modified());
        modified.ok().and_then(|modified| modified.elapsed().ok()).unwrap_or_default()
    };
    if age(path) > MARK_USED_INTERVAL
        && let Ok(file) = File::options().write(true).open(path)
    {
        let _ = file.set_modified(SystemTime::now());
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let is_unused = |other: &PathBuf| {
        let is_index = other.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("index-"));
        // Files beside a database are deleted with it; a damaged one by its own age.
        let database = other.with_extension("sqlite");
        let is_broken = other.extension().is_some_and(|ext| ext == "broken");
        let dated = if database.exists() && !is_broken { &database } else { other };
        is_index && *dated != path && age(dated) > UNUSED_INDEX_MAX_AGE
    };
    let others = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    for other in others.filter(is_unused).collect::<Vec<_>>() {
        let _ = fs::remove_file(other);
    }
}

pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Creates the tables; drops those of another schema version first.
fn ensure_schema(db: &mut Connection) -> rusqlite::Result<()> {
    let version = |db: &Connection| db.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
    if version(db)? == SCHEMA_VERSION {
        return Ok(());
    }
    // Another command may have done it meanwhile.
    let transaction = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    if version(&transaction)? != SCHEMA_VERSION {
        let tables: Vec<String> = transaction
            .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'text\\_%' ESCAPE '\\'")?
            .query_map([], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        for table in tables {
            transaction.execute_batch(&format!("DROP TABLE IF EXISTS \"{table}\""))?;
        }
        transaction.execute_batch(&SCHEMA_SQL.replace("{message}", MESSAGE_COLUMN_DEFS))?;
        transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    }
    transaction.commit()
}

/// Config folders with links resolved, sorted, without duplicates.
pub(crate) fn canonical_dirs(dirs: &[PathBuf]) -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> = dirs.iter().map(|dir| dir.canonicalize().unwrap_or_else(|_| dir.clone())).collect();
    dirs.sort();
    dirs.dedup();
    dirs
}

/// Stores a path as text, or as a blob if it is not Unicode.
pub(crate) fn path_to_sql(path: &Path) -> Value {
    match path.to_str() {
        Some(text) => Value::Text(text.to_owned()),
        None => Value::Blob(path.as_os_str().as_encoded_bytes().to_vec()),
    }
}

/// Reads a path stored by [`path_to_sql`].
pub(crate) fn path_from_sql(value: ValueRef<'_>) -> PathBuf {
    match value {
        #[cfg(unix)]
        ValueRef::Blob(bytes) => PathBuf::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes)),
        #[cfg(not(unix))]
        ValueRef::Blob(bytes) => PathBuf::from(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Text(bytes) => PathBuf::from(String::from_utf8_lossy(bytes).into_owned()),
        _ => PathBuf::new(),
    }
}

/// Columns of a message; `tools` and `agent` are row ids in `label`.
const MESSAGE_COLUMN_DEFS: &str = "
    session INTEGER NOT NULL, n INTEGER NOT NULL,
    key INTEGER, served INTEGER NOT NULL, is_told INTEGER NOT NULL, is_progress INTEGER NOT NULL, time INTEGER,
    input INTEGER NOT NULL, output INTEGER NOT NULL,
    cache_write_5m INTEGER NOT NULL, cache_write_1h INTEGER NOT NULL, cache_read INTEGER NOT NULL,
    searches_told INTEGER NOT NULL, searches_found INTEGER NOT NULL, recorded REAL,
    times BLOB NOT NULL, first_line INTEGER NOT NULL, last_line INTEGER NOT NULL,
    tools INTEGER, agent INTEGER, turn INTEGER NOT NULL";

const SCHEMA_SQL: &str = "
-- What the rest was made with.
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID;
CREATE TABLE session (
    id INTEGER PRIMARY KEY,
    place TEXT NOT NULL UNIQUE,   -- the project's folder and the session's id
    name TEXT NOT NULL,
    project TEXT NOT NULL,
    begins INTEGER,               -- the first time its file says, in milliseconds
    gone INTEGER NOT NULL DEFAULT 0,
    vanished INTEGER NOT NULL DEFAULT 0  -- only what was counted of deleted files
);
CREATE TABLE story (
    session INTEGER PRIMARY KEY,
    story TEXT NOT NULL,          -- where counting goes on
    searches TEXT NOT NULL,
    listed TEXT NOT NULL          -- what `ls` shows
);
CREATE TABLE file (
    id INTEGER PRIMARY KEY,       -- the path, hashed
    session INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    counted INTEGER NOT NULL,     -- so many bytes are counted
    tail INTEGER NOT NULL,        -- the bytes before that, hashed
    gone INTEGER NOT NULL DEFAULT 0,
    indexed INTEGER NOT NULL DEFAULT 0,  -- so many bytes can be searched
    lines INTEGER NOT NULL DEFAULT 0,    -- so many lines are that
    path NOT NULL,                -- text; bytes where it is not Unicode
    is_beside INTEGER NOT NULL,   -- a subagent's, beside the sessions
    calls TEXT NOT NULL DEFAULT '{}'     -- tools called there and not answered
);
-- The names of the subagents' files in a folder, as long as that does not change.
CREATE TABLE folder (id INTEGER PRIMARY KEY, modified INTEGER NOT NULL, names TEXT NOT NULL);
CREATE INDEX file_session ON file (session);
CREATE INDEX file_beside ON file (path, session) WHERE is_beside;
CREATE TABLE served (id INTEGER PRIMARY KEY, model TEXT NOT NULL, speed TEXT NOT NULL, geo TEXT NOT NULL, UNIQUE (model, speed, geo));
-- Names of tools, joined by line ends, and ids of subagents.
CREATE TABLE label (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
-- The subagents of a session, by their ids and those of their tool calls.
CREATE TABLE agent (session INTEGER NOT NULL, id TEXT NOT NULL, kind TEXT, turn INTEGER NOT NULL, PRIMARY KEY (session, id)) WITHOUT ROWID;
-- Every API message, once for each session that holds it.
CREATE TABLE message ({message}, credit INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (session, n)) WITHOUT ROWID;
CREATE INDEX message_key ON message (key) WHERE key IS NOT NULL;
-- What a message counts with when a copy of it in another session says more.
CREATE TABLE credited ({message}, PRIMARY KEY (session, n)) WITHOUT ROWID;
-- Keys and sessions that changed and are not yet credited and added up.
CREATE TABLE touched (key INTEGER PRIMARY KEY);
CREATE TABLE changed (session INTEGER PRIMARY KEY);
-- What each session is credited with, by quarter of an hour, packed.
CREATE TABLE used (session INTEGER PRIMARY KEY, last INTEGER, sums BLOB NOT NULL);
CREATE INDEX used_last ON used (last);
-- Every block that says something, and its words.
CREATE TABLE said (
    id INTEGER PRIMARY KEY, file INTEGER NOT NULL, line INTEGER NOT NULL, offset INTEGER NOT NULL,
    block INTEGER NOT NULL, -- which text of the line, from 0
    kind INTEGER NOT NULL, tool TEXT, time INTEGER
);
CREATE VIRTUAL TABLE text USING fts5(words, content='', contentless_delete=1, tokenize=ascii);
-- Words are gathered in larger portions before they are sorted in.
INSERT INTO text (text, rank) VALUES ('hashsize', 33554432);
";

//! Files and symbols of the folders in which users type.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quipu_files::{FileList, SymbolList};

/// Folders whose files are kept.
const MAX_FOLDERS: usize = 4;
/// A list that is older is read again, while requests use the old one.
const MAX_AGE: Duration = Duration::from_secs(10);

/// The files of the folders that were asked for last.
#[derive(Debug, Default)]
pub(crate) struct FolderFiles {
    /// The folder that was read last is the last one.
    folders: Mutex<Vec<Arc<FolderList>>>,
}

/// The files of a folder at a moment, and its symbols as soon as they are known.
#[derive(Debug)]
pub(crate) struct FolderList {
    folder: PathBuf,
    pub(crate) files: FileList,
    symbols: OnceLock<SymbolList>,
    scanned_at: Instant,
    is_being_replaced: AtomicBool,
}

impl FolderList {
    fn scan(folder: &Path) -> Arc<Self> {
        Arc::new(Self {
            folder: folder.to_owned(),
            files: FileList::scan(folder),
            symbols: OnceLock::new(),
            scanned_at: Instant::now(),
            is_being_replaced: AtomicBool::new(false),
        })
    }

    /// The symbols; `None` while they are being looked for.
    pub(crate) fn symbols(&self) -> Option<&SymbolList> {
        self.symbols.get()
    }

    fn scan_symbols(&self) {
        self.symbols.get_or_init(|| SymbolList::scan(&self.folder, &self.files));
    }

    /// Whether the list is old and this is the first call that notices it.
    fn needs_scan(&self) -> bool {
        self.scanned_at.elapsed() > MAX_AGE && !self.is_being_replaced.swap(true, Ordering::Relaxed)
    }
}

impl FolderFiles {
    /// The files of a folder. The names are read if the folder is new; symbols, and what changed
    /// since, are read on another thread.
    pub(crate) fn list(self: &Arc<Self>, folder: &Path) -> Arc<FolderList> {
        let known = self.folders.lock().iter().find(|list| list.folder == folder).cloned();
        match known {
            Some(list) => {
                if list.needs_scan() {
                    let (files, folder) = (Arc::clone(self), folder.to_owned());
                    tokio::task::spawn_blocking(move || {
                        let list = FolderList::scan(&folder);
                        list.scan_symbols();
                        files.keep(list);
                    });
                }
                list
            }
            None => {
                let list = FolderList::scan(folder);
                self.keep(Arc::clone(&list));
                let scanned = Arc::clone(&list);
                tokio::task::spawn_blocking(move || scanned.scan_symbols());
                list
            }
        }
    }

    fn keep(&self, list: Arc<FolderList>) {
        let mut folders = self.folders.lock();
        folders.retain(|other| other.folder != list.folder);
        folders.push(list);
        if folders.len() > MAX_FOLDERS {
            folders.remove(0);
        }
    }
}

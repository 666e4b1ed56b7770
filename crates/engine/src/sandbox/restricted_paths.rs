//! Finds the existing files that commands must not read or change because of rules or guarded
//! names, by one bounded walk of the file system.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use notify::event::{EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::guarded_paths::{CONFIG_FOLDERS, GuardedHome, has_guarded_name, is_repository_part};
use crate::path::resolve;
use crate::safe_file;

/// Maximum number of files and folders that a walk visits.
const MAX_WALKED_PATHS: usize = 200_000;
/// Maximum number of paths that are hidden or made read-only for one command.
const MAX_RESTRICTED_PATHS: usize = 1000;

/// Matches the paths of deny rules.
#[derive(Clone)]
pub struct PathMatcher {
    /// Folders (or files) that contain all matching paths: where a walk must look.
    pub roots: Vec<PathBuf>,
    /// Whether a path without links matches, or is inside a folder that does.
    pub matches: Arc<dyn Fn(&Path) -> bool + Send + Sync>,
}

impl Default for PathMatcher {
    fn default() -> Self {
        Self { roots: Vec::new(), matches: Arc::new(|_| false) }
    }
}

impl fmt::Debug for PathMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PathMatcher").field("roots", &self.roots).finish_non_exhaustive()
    }
}

/// Restrictions from permission rules.
#[derive(Debug, Clone, Default)]
pub struct SandboxRestrictions {
    /// Paths that must not be read.
    pub unreadable: PathMatcher,
    /// Paths that must not be changed.
    pub unwritable: PathMatcher,
    /// Whether an allow rule opens the whole network.
    pub allows_network: bool,
}

/// Existing paths that the sandbox must protect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RestrictedPaths {
    /// Paths that must not be read.
    pub(super) covered: Vec<PathBuf>,
    /// Paths that must not be changed: guarded ones and those of rules.
    pub(super) read_only: Vec<PathBuf>,
    /// Links that lead to these paths.
    pub(super) links: Vec<PathBuf>,
    /// Guarded paths and those that rules refuse to change, before resolving links.
    pub(super) guarded: Vec<GuardedPath>,
    /// Whether a limit was reached, so that paths may be missing.
    pub(super) is_incomplete: bool,
}

/// A guarded path with the identity of the file, because another file may take its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GuardedPath {
    pub(super) path: PathBuf,
    file: FileId,
    /// The file that a link points to; `None` if it does not exist or is outside the session's
    /// folders, where commands cannot replace it.
    target: Option<FileId>,
    /// Whether another file may have taken its name because programs outside the sandbox replaced it:
    /// a file that a rule refuses to change, or a part of a repository, which git replaces.
    is_replaceable: bool,
}

impl GuardedPath {
    /// Whether the path existed before.
    pub(super) fn existed(&self, before: &[Self]) -> bool {
        before.iter().any(|old| old == self || old.is_replaceable && old.path == self.path)
    }

    fn new(path: &Path, data: &fs::Metadata, folders: &[PathBuf]) -> Self {
        let real = resolve(path).filter(|real| data.is_symlink() && folders.iter().any(|f| real.starts_with(f)));
        let target = real.and_then(|real| real.symlink_metadata().ok());
        Self {
            path: path.to_owned(),
            file: FileId::new(data),
            target: target.as_ref().map(FileId::new),
            is_replaceable: false,
        }
    }
}

/// Device and inode of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId(u64, u64);

impl FileId {
    fn new(data: &fs::Metadata) -> Self {
        Self(data.dev(), data.ino())
    }
}

/// Last result, valid until files or rules change.
#[derive(Debug, Default)]
pub(super) struct RestrictedPathCache {
    last: Option<(CacheKey, RestrictedPaths, FolderWatch)>,
}

/// Arguments of the cached search.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CacheKey {
    /// Increases with every change of the rules.
    rules_version: u64,
    folders: Vec<PathBuf>,
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
}

impl RestrictedPathCache {
    /// Finds the paths to protect among those that can be read (`readable`) and written. Guarded
    /// paths are searched in the session's folders, and only if something may be written.
    pub(super) fn find_restricted(
        &mut self,
        (version, refused): (u64, &SandboxRestrictions),
        home: GuardedHome<'_>,
        readable: &[PathBuf],
        writable: &[PathBuf],
    ) -> RestrictedPaths {
        let folders = home.folders;
        let wanted = CacheKey {
            rules_version: version,
            folders: folders.to_vec(),
            readable: readable.to_vec(),
            writable: writable.to_vec(),
        };
        if let Some((known, found, watch)) = &self.last
            && *known == wanted
            && !watch.has_changed()
        {
            return found.clone();
        }
        self.last = None;
        let roots = walk_roots(refused, folders, readable, writable);
        if roots.is_empty() {
            return RestrictedPaths::default();
        }
        // Watch before searching, so that no change in between is missed.
        let watch = FolderWatch::start(
            &roots.iter().filter(|root| folders.iter().any(|f| root.starts_with(f))).collect::<Vec<_>>(),
        );
        let found = find_restricted(
            &roots,
            refused,
            home,
            writable,
            WalkLimits { max_walked: MAX_WALKED_PATHS, max_found: MAX_RESTRICTED_PATHS, unlocks_folders: false },
        );
        self.last = Some((wanted, found.clone(), watch));
        found
    }
}

/// Returns where the walk must start: the roots of the rules inside readable and writable paths, and
/// the session's folders if something is writable, because guarded names are then searched.
fn walk_roots(
    refused: &SandboxRestrictions,
    folders: &[PathBuf],
    readable: &[PathBuf],
    writable: &[PathBuf],
) -> Vec<PathBuf> {
    let within = |root: &PathBuf, set: &[PathBuf]| -> Vec<PathBuf> {
        let real = resolve(root).unwrap_or_else(|| root.clone());
        let meets = |open: &PathBuf| {
            let narrower = if real.starts_with(open) { Some(&real) } else { None };
            narrower.or_else(|| open.starts_with(&real).then_some(open)).cloned()
        };
        set.iter().filter_map(meets).collect()
    };
    let reads = refused.unreadable.roots.iter().flat_map(|root| within(root, readable));
    let writes = refused.unwritable.roots.iter().flat_map(|root| within(root, writable));
    let guarded = folders.iter().filter(|_| !writable.is_empty()).cloned();
    let mut roots: Vec<PathBuf> = reads.chain(writes).chain(guarded).collect();
    roots.sort();
    // A root below another one is visited with it.
    roots.dedup_by(|below, above| below.starts_with(&*above));
    roots
}

/// Limits of a walk.
struct WalkLimits {
    max_walked: usize,
    max_found: usize,
    /// Whether to give the owner access to folders that cannot be listed.
    unlocks_folders: bool,
}

fn find_restricted(
    roots: &[PathBuf],
    refused: &SandboxRestrictions,
    home: GuardedHome<'_>,
    writable: &[PathBuf],
    limits: WalkLimits,
) -> RestrictedPaths {
    let (folders, guarded) = (home.folders, !writable.is_empty());
    let mut found = RestrictedPaths::default();
    // Each path with whether a parent folder is already read-only.
    let mut open: Vec<(PathBuf, bool)> = roots.iter().map(|root| (root.clone(), false)).collect();
    let mut walked = 0;
    while let Some((path, mut held)) = open.pop() {
        walked += 1;
        if walked > limits.max_walked || found.covered.len() + found.read_only.len() > limits.max_found {
            found.is_incomplete = true;
            return found;
        }
        let Ok(data) = path.symlink_metadata() else { continue };
        // Inside it may be written, whatever protects its parent folders.
        held &= !writable.contains(&path);
        let is_inside = || folders.iter().any(|folder| path.starts_with(folder));
        let has_name = || has_guarded_name_below(&path, folders) || home.hidden_name(&path).is_some();
        // A link in a guarded folder may point to a file outside it.
        let named = guarded && (!held || data.is_symlink()) && has_name();
        let is_part = guarded && !held && is_inside() && is_repository_part(&path);
        let is_refused = guarded && !held && (refused.unwritable.matches)(&path);
        let is_guarded = named || is_part || is_refused;
        if is_guarded {
            // The command itself can replace a link, which cannot be made read-only.
            let is_replaceable = !named && !data.is_symlink();
            found.guarded.push(GuardedPath { is_replaceable, ..GuardedPath::new(&path, &data, folders) });
        }
        if (refused.unreadable.matches)(&path) {
            found.covered.extend(resolve(&path).filter(|real| real.exists()));
            found.links.extend(data.is_symlink().then_some(path));
            continue;
        }
        if is_guarded {
            held = true;
            // A guarded link may lead to a folder of the session, which stays writable.
            let is_protected = |real: &PathBuf| real.exists() && (is_refused || !folders.contains(real));
            found.read_only.extend(resolve(&path).filter(is_protected));
            found.links.extend(data.is_symlink().then(|| path.clone()));
        }
        if data.is_dir() {
            if limits.unlocks_folders && data.mode() & 0o500 != 0o500 {
                let _ = safe_file::allow_owner(&path);
            }
            let inside = fs::read_dir(&path).into_iter().flatten().flatten();
            open.extend(inside.map(|entry| (entry.path(), held)));
        }
    }
    found.covered.sort();
    found.read_only.sort();
    found
}

/// Whether the path has a guarded name below the session folder that contains it.
fn has_guarded_name_below(path: &Path, folders: &[PathBuf]) -> bool {
    let below = folders.iter().filter_map(|folder| path.strip_prefix(folder).ok());
    // The innermost session folder counts.
    let below = below.min_by_key(|below| below.components().count());
    // A link named `.config` contains folders that the walk does not visit.
    let brought = CONFIG_FOLDERS.into_iter().find(|name| path.is_symlink() && path.join(name).exists());
    let name = |below: &Path| Path::new("/").join(below).join(brought.unwrap_or_default());
    below.is_some_and(|below| !below.as_os_str().is_empty() && has_guarded_name(&name(below)))
}

/// Returns all guarded paths in the session's folders and those in `writable` that `refused` names,
/// except those below another one; with `inside` only these paths and what is in them. Without a limit,
/// because a command could otherwise hide one behind many files; and in folders that cannot be listed,
/// which are made accessible to their owner.
pub(super) fn find_guarded_paths(
    refused: &SandboxRestrictions,
    home: GuardedHome<'_>,
    writable: &[PathBuf],
    inside: Option<Vec<PathBuf>>,
) -> Vec<GuardedPath> {
    let roots = inside.unwrap_or_else(|| walk_roots(refused, home.folders, &[], writable));
    let limits = WalkLimits { max_walked: usize::MAX, max_found: usize::MAX, unlocks_folders: true };
    find_restricted(&roots, refused, home, writable, limits).guarded
}

/// Detects whether files were created, removed or renamed in some folders.
#[derive(Debug, Default)]
struct FolderWatch {
    changed: Arc<AtomicBool>,
    /// `None` if the system could not watch; then everything may have changed.
    watcher: Option<RecommendedWatcher>,
}

impl FolderWatch {
    fn start(roots: &[&PathBuf]) -> Self {
        let changed = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&changed);
        let on_event = move |event: notify::Result<notify::Event>| {
            // An error may hide a change.
            let matters = event.map_or(true, |event| match event.kind {
                EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)) => true,
                _ => event.need_rescan(),
            });
            flag.fetch_or(matters, Ordering::Relaxed);
        };
        let watcher = notify::recommended_watcher(on_event).ok().and_then(|mut watcher| {
            roots.iter().try_for_each(|root| watcher.watch(root, RecursiveMode::Recursive)).ok()?;
            Some(watcher)
        });
        Self { changed, watcher }
    }

    fn has_changed(&self) -> bool {
        self.watcher.is_none() || self.changed.load(Ordering::Relaxed)
    }
}

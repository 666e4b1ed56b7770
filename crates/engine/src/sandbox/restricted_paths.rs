//! What of the session's folders commands may not see or change: rules and guarded
//! names, looked up in the file system by one bounded walk.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use notify::event::{EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::guarded_paths::{CONFIG_FOLDERS, has_guarded_name, is_in_repository};
use crate::path::resolve;

/// How many files and folders a walk looks at.
const MAX_WALKED_PATHS: usize = 200_000;
/// How many paths are covered or made read-only for one command.
const MAX_RESTRICTED_PATHS: usize = 1000;

/// Paths that rules name.
#[derive(Clone)]
pub struct PathMatcher {
    /// Files, or folders below which they are: where a walk must look.
    pub roots: Vec<PathBuf>,
    /// Whether a path, which holds no links, is one of them or inside one.
    pub matches: Arc<dyn Fn(&Path) -> bool + Send + Sync>,
}

impl Default for PathMatcher {
    fn default() -> Self {
        Self { roots: Vec::new(), matches: Arc::new(|_| false) }
    }
}

impl fmt::Debug for PathMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matcher").field("roots", &self.roots).finish_non_exhaustive()
    }
}

/// What rules say that concerns commands.
#[derive(Debug, Clone, Default)]
pub struct SandboxRestrictions {
    /// What may not be read.
    pub unreadable: PathMatcher,
    /// What may not be changed.
    pub unwritable: PathMatcher,
    /// Whether a rule allows every address of the network.
    pub allows_network: bool,
}

/// Existing paths that a sandbox must hold back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RestrictedPaths {
    /// Those that may not be read.
    pub(super) covered: Vec<PathBuf>,
    /// Those that may not be changed: guarded ones and those that rules name.
    pub(super) read_only: Vec<PathBuf>,
    /// The guarded ones, as they are named.
    pub(super) guarded: Vec<GuardedPath>,
    /// Whether there are too many files to be sure.
    pub(super) is_incomplete: bool,
}

/// A guarded path, and which file it is: another one may take its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GuardedPath {
    pub(super) path: PathBuf,
    device: u64,
    inode: u64,
}

/// What was found last, until something changes.
#[derive(Debug, Default)]
pub(super) struct RestrictedPathCache {
    last: Option<(CacheKey, RestrictedPaths, FolderWatch)>,
}

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CacheKey {
    /// Counts changes of the rules.
    rules_version: u64,
    folders: Vec<PathBuf>,
    readable: Vec<PathBuf>,
    guarded: bool,
}

impl RestrictedPathCache {
    /// What must be held back of what can be read (`readable`) and written (`folders`).
    /// Guarded paths are only looked for when something may be written.
    pub(super) fn find_restricted(
        &mut self,
        (version, refused): (u64, &SandboxRestrictions),
        folders: &[PathBuf],
        readable: &[PathBuf],
        guarded: bool,
    ) -> RestrictedPaths {
        let wanted =
            CacheKey { rules_version: version, folders: folders.to_vec(), readable: readable.to_vec(), guarded };
        if let Some((known, found, watch)) = &self.last
            && *known == wanted
            && !watch.has_changed()
        {
            return found.clone();
        }
        self.last = None;
        let roots = walk_roots(refused, folders, readable, guarded);
        if roots.is_empty() {
            return RestrictedPaths::default();
        }
        // It watches before it looks, so that nothing is missed in between.
        let watch = FolderWatch::start(
            &roots.iter().filter(|root| folders.iter().any(|f| root.starts_with(f))).collect::<Vec<_>>(),
        );
        let found = find_restricted(
            &roots,
            refused,
            folders,
            guarded,
            WalkLimits { max_walked: MAX_WALKED_PATHS, max_found: MAX_RESTRICTED_PATHS },
        );
        self.last = Some((wanted, found.clone(), watch));
        found
    }
}

/// Where the walk must look: where rules lead within what can be read, and in all
/// folders for guarded names.
fn walk_roots(refused: &SandboxRestrictions, folders: &[PathBuf], readable: &[PathBuf], guarded: bool) -> Vec<PathBuf> {
    let within = |root: &PathBuf, set: &[PathBuf]| -> Vec<PathBuf> {
        let real = resolve(root).unwrap_or_else(|| root.clone());
        let meets = |open: &PathBuf| {
            let narrower = if real.starts_with(open) { Some(&real) } else { None };
            narrower.or_else(|| open.starts_with(&real).then_some(open)).cloned()
        };
        set.iter().filter_map(meets).collect()
    };
    let reads = refused.unreadable.roots.iter().flat_map(|root| within(root, readable));
    let writes = refused.unwritable.roots.iter().filter(|_| guarded).flat_map(|root| within(root, folders));
    let mut roots: Vec<PathBuf> = reads.chain(writes).chain(folders.iter().filter(|_| guarded).cloned()).collect();
    roots.sort();
    // What lies below another is walked with it.
    roots.dedup_by(|below, above| below.starts_with(&*above));
    roots
}

/// How far a walk goes.
struct WalkLimits {
    max_walked: usize,
    max_found: usize,
}

fn find_restricted(
    roots: &[PathBuf],
    refused: &SandboxRestrictions,
    folders: &[PathBuf],
    guarded: bool,
    limits: WalkLimits,
) -> RestrictedPaths {
    let mut found = RestrictedPaths::default();
    // With each path, whether a folder above it is read-only already.
    let mut open: Vec<(PathBuf, bool)> = roots.iter().map(|root| (root.clone(), false)).collect();
    let mut walked = 0;
    while let Some((path, mut held)) = open.pop() {
        walked += 1;
        if walked > limits.max_walked || found.covered.len() + found.read_only.len() > limits.max_found {
            found.is_incomplete = true;
            return found;
        }
        let Ok(data) = path.symlink_metadata() else { continue };
        if (refused.unreadable.matches)(&path) {
            found.covered.extend(resolve(&path).filter(|real| real.exists()));
            continue;
        }
        let is_part = |names: &[&str]| names.iter().any(|name| path.ends_with(name)) && is_in_repository(&path);
        // Without `HEAD` a folder is no repository to git.
        let named = guarded && !held && (has_guarded_name_below(&path, folders) || is_part(&["HEAD"]));
        if named {
            found.guarded.push(GuardedPath { path: path.clone(), device: data.dev(), inode: data.ino() });
        }
        let runs = || is_part(&["config", "hooks", "commondir"]) || (refused.unwritable.matches)(&path);
        if named || (guarded && !held && runs()) {
            held = true;
            found.read_only.extend(resolve(&path).filter(|real| real.exists() && !folders.contains(real)));
        }
        if data.is_dir() {
            let inside = fs::read_dir(&path).into_iter().flatten().flatten();
            open.extend(inside.map(|entry| (entry.path(), held)));
        }
    }
    found.covered.sort();
    found.read_only.sort();
    found
}

/// Whether the path has a guarded name below the folder that it is in.
fn has_guarded_name_below(path: &Path, folders: &[PathBuf]) -> bool {
    let below = folders.iter().filter_map(|folder| path.strip_prefix(folder).ok());
    // The nearest folder is the one that counts.
    let below = below.min_by_key(|below| below.components().count());
    // A link named `.config` brings folders with it that the walk does not come to.
    let brought = CONFIG_FOLDERS.into_iter().find(|name| path.is_symlink() && path.join(name).exists());
    let name = |below: &Path| Path::new("/").join(below).join(brought.unwrap_or_default());
    below.is_some_and(|below| !below.as_os_str().is_empty() && has_guarded_name(&name(below)))
}

/// All guarded paths in some folders, however many files there are: a command could hide
/// some behind a limit. None that lie below another one.
pub(super) fn find_guarded_paths(folders: &[PathBuf]) -> Vec<GuardedPath> {
    find_restricted(
        folders,
        &SandboxRestrictions::default(),
        folders,
        true,
        WalkLimits { max_walked: usize::MAX, max_found: usize::MAX },
    )
    .guarded
}

/// Says whether files came or went in some folders.
#[derive(Debug, Default)]
struct FolderWatch {
    changed: Arc<AtomicBool>,
    /// None when the system could not watch: then everything may have changed.
    watcher: Option<RecommendedWatcher>,
}

impl FolderWatch {
    fn start(roots: &[&PathBuf]) -> Self {
        let changed = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&changed);
        let hears = move |event: notify::Result<notify::Event>| {
            // An error may have been a change.
            let matters = event.map_or(true, |event| match event.kind {
                EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)) => true,
                _ => event.need_rescan(),
            });
            flag.fetch_or(matters, Ordering::Relaxed);
        };
        let watcher = notify::recommended_watcher(hears).ok().and_then(|mut watcher| {
            roots.iter().try_for_each(|root| watcher.watch(root, RecursiveMode::Recursive)).ok()?;
            Some(watcher)
        });
        Self { changed, watcher }
    }

    fn has_changed(&self) -> bool {
        self.watcher.is_none() || self.changed.load(Ordering::Relaxed)
    }
}

//! Finds the existing files that commands must not read or change because of rules or guarded
//! names, by one bounded walk of the file system.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, SystemTime};

use notify::event::{EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::clock::random_id;
use crate::guarded_paths::{CONFIG_FOLDERS, GuardedHome, has_guarded_name, is_repository_part, settings_paths};
use crate::path::{TargetPath, may_exist, resolve};
use crate::safe_file;

/// Maximum number of files and folders that a walk visits.
const MAX_WALKED_PATHS: usize = 200_000;
/// Maximum number of paths that are hidden or made read-only for one command.
const MAX_RESTRICTED_PATHS: usize = 1000;
/// How long to wait for the system to report a change before everything may have changed.
const MAX_EVENT_DELAY: Duration = Duration::from_millis(100);

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

/// Finds the restrictions from permission rules for one command, because links that rules name may
/// lead elsewhere than before.
#[derive(Clone)]
pub struct RestrictionSource(Arc<dyn Fn() -> SandboxRestrictions + Send + Sync>);

impl RestrictionSource {
    /// Takes the function that finds them.
    pub fn new(find: impl Fn() -> SandboxRestrictions + Send + Sync + 'static) -> Self {
        Self(Arc::new(find))
    }

    /// Returns the restrictions as they are now.
    pub(super) fn find(&self) -> SandboxRestrictions {
        self.0()
    }
}

impl Default for RestrictionSource {
    fn default() -> Self {
        Self::new(SandboxRestrictions::default)
    }
}

impl fmt::Debug for RestrictionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestrictionSource").finish_non_exhaustive()
    }
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
    /// Folders with paths that are too long to be opened, and so may be guarded ones.
    pub(super) too_deep: Vec<PathBuf>,
}

/// A guarded path with the identity of the file, because another file may take its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GuardedPath {
    pub(super) path: PathBuf,
    file: FileId,
    /// What a link names; `None` if it is not a link. Another file may get the number of a removed one.
    link: Option<PathBuf>,
    /// The file that a link points to; `None` if it does not exist or is where commands cannot replace
    /// it.
    target: Option<FileId>,
    /// Whether another file may have taken its name because programs outside the sandbox replaced it:
    /// a file that a rule refuses to change, or a part of a repository, which git replaces.
    is_replaceable: bool,
    /// Whether only a rule refuses to change it.
    is_by_rule: bool,
    /// Whether it is only guarded because a guarded link leads to a folder on the way.
    is_linked: bool,
}

impl GuardedPath {
    /// Whether it was made or replaced since guarded paths were searched before.
    pub(super) fn is_new(&self, before: &[Self]) -> bool {
        // If the link that leads to its folder is new, that link is the one to move aside.
        let is_known = || before.iter().any(|old| old.path == self.path);
        !self.existed(before) && (!self.is_linked || is_known())
    }

    /// Whether the path existed before.
    pub(super) fn existed(&self, before: &[Self]) -> bool {
        before.iter().any(|old| old == self || old.is_replaceable && old.path == self.path)
    }

    /// Whether only a rule refuses to change it.
    pub(super) fn is_by_rule(&self) -> bool {
        self.is_by_rule
    }

    pub(super) fn new(path: &Path, data: &fs::Metadata, writable: &[PathBuf]) -> Self {
        let real = resolve(path).filter(|real| data.is_symlink() && writable.iter().any(|f| real.starts_with(f)));
        let target = real.and_then(|real| real.symlink_metadata().ok());
        Self {
            path: path.to_owned(),
            file: FileId::new(data),
            link: data.is_symlink().then(|| fs::read_link(path).unwrap_or_default()),
            target: target.as_ref().map(FileId::new),
            is_replaceable: false,
            is_by_rule: false,
            is_linked: false,
        }
    }
}

/// Device, inode and time of creation of a file: a new file may get the inode of a removed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId(u64, u64, Option<SystemTime>);

impl FileId {
    fn new(data: &fs::Metadata) -> Self {
        // Not every file system knows the time.
        Self(data.dev(), data.ino(), data.created().ok())
    }

    /// Returns the identity of the file or link at a path; `None` if there is none.
    fn of(path: &Path) -> Option<Self> {
        path.symlink_metadata().ok().as_ref().map(Self::new)
    }
}

/// Last result, valid until files or rules change.
#[derive(Debug, Default)]
pub(super) struct RestrictedPathCache {
    last: Option<CachedSearch>,
}

#[derive(Debug)]
struct CachedSearch {
    key: CacheKey,
    found: RestrictedPaths,
    watch: FolderWatch,
    link_states: Vec<(TargetPath, Option<FileId>)>,
}

/// Arguments of the cached search.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CacheKey {
    /// Increases with every change of the rules.
    rules_version: u64,
    /// Folders of the rules, which change with links that rules name.
    rule_roots: Vec<PathBuf>,
    /// Where the walk starts, with the files there, because a watch does not notice that a parent
    /// folder is replaced.
    roots: Vec<(PathBuf, Option<FileId>)>,
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
        agent_folder: &Path,
        readable: &[PathBuf],
        writable: &[PathBuf],
    ) -> RestrictedPaths {
        let folders = home.folders;
        let walk = |roots: &[PathBuf]| {
            let limits =
                WalkLimits { max_walked: MAX_WALKED_PATHS, max_found: MAX_RESTRICTED_PATHS, unlocks_folders: false };
            find_restricted(roots, refused, home, writable, limits)
        };
        let is_watched = |path: &Path| folders.iter().any(|folder| path.starts_with(folder));
        // Changes outside the session's folders are not watched: these may be too many.
        let (roots, unwatched): (Vec<PathBuf>, Vec<PathBuf>) =
            walk_roots(refused, folders, readable, writable).into_iter().partition(|root| is_watched(root));
        let others = walk(&unwatched);
        if roots.is_empty() {
            return others;
        }
        let wanted = CacheKey {
            rules_version: version,
            rule_roots: [refused.unreadable.roots.as_slice(), &refused.unwritable.roots].concat(),
            roots: roots.iter().map(|root| (root.clone(), FileId::of(root))).collect(),
            folders: folders.to_vec(),
            readable: readable.to_vec(),
            writable: writable.to_vec(),
        };
        let is_same = |last: &CachedSearch| {
            last.key == wanted && !last.watch.has_changed() && last.link_states == link_states(&last.found.links)
        };
        if let Some(last) = self.last.as_ref().filter(|last| is_same(last)) {
            return last.found.clone().with(others);
        }
        // Watch before searching, so that no change in between is missed.
        let watch = FolderWatch::start(&roots, agent_folder);
        let found = walk(&roots);
        let all = found.clone().with(others);
        self.last = Some(CachedSearch { link_states: link_states(&found.links), key: wanted, found, watch });
        all
    }
}

/// What links lead to. They may lead out of the watched folders.
fn link_states(links: &[PathBuf]) -> Vec<(TargetPath, Option<FileId>)> {
    let state = |link: TargetPath| {
        let file = link.real.as_deref().and_then(FileId::of);
        (link, file)
    };
    links.iter().map(TargetPath::new).map(state).collect()
}

impl RestrictedPaths {
    /// Adds paths that were found in another way.
    pub(super) fn with(mut self, others: Self) -> Self {
        self.covered.extend(others.covered);
        self.read_only.extend(others.read_only);
        self.links.extend(others.links);
        self.guarded.extend(others.guarded);
        self.is_incomplete |= others.is_incomplete;
        self.too_deep.extend(others.too_deep);
        self.covered.sort();
        self.read_only.sort();
        self
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

/// A path that a walk has to visit.
struct OpenPath {
    path: PathBuf,
    /// Whether a parent folder is already read-only.
    held: bool,
    /// Whether a parent folder is already covered.
    covered: bool,
    /// Whether a guarded link leads to a parent folder, so that links in it are guarded too.
    is_linked: bool,
}

impl OpenPath {
    fn root(path: PathBuf) -> Self {
        Self { path, held: false, covered: false, is_linked: false }
    }
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
    let mut open: Vec<OpenPath> = roots.iter().cloned().map(OpenPath::root).collect();
    let mut walked = 0;
    let mut followed: Vec<PathBuf> = Vec::new();
    while let Some(OpenPath { path, mut held, mut covered, is_linked }) = open.pop() {
        walked += 1;
        if walked > limits.max_walked || found.covered.len() + found.read_only.len() > limits.max_found {
            found.is_incomplete = true;
            return found;
        }
        let data = match path.symlink_metadata() {
            Ok(data) => data,
            Err(error) => {
                let can_open = path.parent().and_then(|folder| folder.symlink_metadata().ok()).is_none_or(is_own);
                found.is_incomplete |= error.kind() != std::io::ErrorKind::NotFound && can_open;
                let folder = path.parent().filter(|_| error.kind() == std::io::ErrorKind::InvalidFilename);
                found.too_deep.extend(
                    folder.filter(|&folder| !found.too_deep.iter().any(|known| known == folder)).map(Path::to_owned),
                );
                continue;
            }
        };
        // Inside it may be written, whatever protects its parent folders.
        held &= !writable.contains(&path);
        let is_in_folder = |path: &Path| folders.iter().any(|folder| path.starts_with(folder));
        let has_name = || has_guarded_name_below(&path, folders) || home.hidden_name(&path).is_some();
        // A link in a guarded folder may point to a file outside it.
        let named = guarded && (data.is_symlink() && (is_linked || has_name()) || !held && has_name());
        let is_part = guarded && !held && is_in_folder(&path) && is_repository_part(&path);
        let is_refused = guarded && !held && (refused.unwritable.matches)(&path);
        let is_guarded = named || is_part || is_refused;
        if is_guarded {
            // The command itself can replace a link, which cannot be made read-only.
            let is_replaceable = !named && !data.is_symlink();
            let is_by_rule = is_refused && !named && !is_part;
            let guarded = GuardedPath::new(&path, &data, writable);
            found.guarded.push(GuardedPath { is_replaceable, is_by_rule, is_linked, ..guarded });
        }
        if !covered && (refused.unreadable.matches)(&path) {
            covered = true;
            found.covered.extend(resolve(&path).filter(|real| may_exist(real)));
            found.links.extend(data.is_symlink().then(|| path.clone()));
        }
        if is_guarded {
            held = true;
        }
        if is_guarded && !covered {
            // A guarded link may lead to a folder of the session, which stays writable.
            let is_protected = |real: &PathBuf| may_exist(real) && (is_refused || !writable.contains(real));
            let leads_on = !data.is_symlink() || !home.config_paths.links.contains(&path);
            let protected = resolve(&path).filter(|real| leads_on && is_protected(real));
            // Links in the folder lead on.
            let linked = protected.iter().filter(|real| data.is_symlink() && is_in_folder(real) && real.is_dir());
            let linked = linked.filter(|real| !followed.contains(real)).cloned().collect::<Vec<PathBuf>>();
            open.extend(linked.iter().cloned().map(|path| OpenPath { path, held: true, covered, is_linked: true }));
            followed.extend(linked);
            found.read_only.extend(protected);
            found.links.extend(data.is_symlink().then(|| path.clone()));
        }
        // If a command that runs already removes a covered folder, it is no longer covered: guarded files in it must
        // be known.
        if data.is_dir() && (guarded || !covered) {
            if limits.unlocks_folders && data.mode() & 0o500 != 0o500 {
                let _ = safe_file::allow_owner(&path);
            }
            match fs::read_dir(&path) {
                Ok(inside) => {
                    open.extend(inside.flatten().map(|entry| OpenPath {
                        path: entry.path(),
                        held,
                        covered,
                        is_linked,
                    }));
                }
                // A command may have locked it to hide what is in it, and may open it again.
                Err(error) => found.is_incomplete |= error.kind() != std::io::ErrorKind::NotFound && is_own(data),
            }
        }
    }
    found.covered.sort();
    found.read_only.sort();
    found
}

/// Whether a file belongs to the user, who can then change its mode.
fn is_own(data: fs::Metadata) -> bool {
    data.uid() == rustix::process::geteuid().as_raw()
}

/// Whether the path has a guarded name below the session folder that contains it.
fn has_guarded_name_below(path: &Path, folders: &[PathBuf]) -> bool {
    // A folder of the session that is guarded itself does not open what is in it.
    let open = folders.iter().filter(|folder| !has_guarded_name(folder));
    let below = open.filter_map(|folder| path.strip_prefix(folder).ok());
    // The innermost session folder counts.
    let below = below.min_by_key(|below| below.components().count());
    // A link named `.config` contains folders that the walk does not visit.
    let brought = CONFIG_FOLDERS.into_iter().find(|name| path.is_symlink() && may_exist(&path.join(name)));
    let name = |below: &Path| Path::new("/").join(below).join(brought.unwrap_or_default());
    below.is_some_and(|below| !below.as_os_str().is_empty() && has_guarded_name(&name(below)))
}

/// Returns all guarded paths in the session's folders and those in `writable` that `refused` names,
/// except those below another one; with `inside` only these paths and what is in them. Without a limit,
/// because a command could otherwise hide one behind many files; and in folders that cannot be listed,
/// which are made accessible to their owner. Also returns the folders with paths that are too long.
pub(super) fn find_guarded_paths(
    refused: &SandboxRestrictions,
    home: GuardedHome<'_>,
    writable: &[PathBuf],
    inside: Option<Vec<PathBuf>>,
) -> (Vec<GuardedPath>, Vec<PathBuf>) {
    let roots = inside.unwrap_or_else(|| walk_roots(refused, home.folders, &[], writable));
    let limits = WalkLimits { max_walked: usize::MAX, max_found: usize::MAX, unlocks_folders: true };
    let found = find_restricted(&roots, refused, home, writable, limits);
    (found.guarded, found.too_deep)
}

/// Returns the settings of the session outside its folders that commands could change, because a setting
/// makes them writable or because they are links.
pub(super) fn find_settings(home: GuardedHome<'_>, writable: &[PathBuf]) -> RestrictedPaths {
    let mut found = RestrictedPaths::default();
    let is_inside = |path: &Path, set: &[PathBuf]| set.iter().any(|folder| path.starts_with(folder));
    for path in home.settings_folders.iter().flat_map(|folder| settings_paths(folder)) {
        let (Some(real), Ok(data)) = (resolve(&path), path.symlink_metadata()) else { continue };
        // The walk finds those in the session's folders, unless a link leads to a place without a guarded name. A
        // setting may open the folder by name.
        let is_linked = real != path && is_inside(&path, home.folders) && is_inside(&real, home.folders);
        if is_linked && may_exist(&real) && !home.folders.contains(&real) {
            let guarded = GuardedPath { is_replaceable: true, ..GuardedPath::new(&real, &data, writable) };
            found.guarded.push(guarded);
            found.read_only.push(real);
            continue;
        }
        let is_found = is_inside(&path, home.folders) || writable.contains(&path);
        let is_changeable = is_inside(&path, writable) || is_inside(&real, writable);
        // The agent itself replaces files in the folder.
        let is_held = !data.is_symlink() && found.guarded.iter().any(|folder| path.starts_with(&folder.path));
        if is_found || !is_changeable || is_held {
            continue;
        }
        found.guarded.push(GuardedPath::new(&path, &data, writable));
        found.links.extend(data.is_symlink().then_some(path));
        found.read_only.extend(Some(real).filter(|real| may_exist(real) && !home.folders.contains(real)));
    }
    found
}

/// Detects whether files were created, removed or renamed in some folders.
#[derive(Debug)]
struct FolderWatch {
    changed: Arc<AtomicBool>,
    /// `None` if the system could not watch; then everything may have changed.
    watcher: Option<RecommendedWatcher>,
    /// Folder of the agent, watched too, for the files of [`Self::wait_for_events`].
    agent_folder: PathBuf,
    /// What was created in the agent's folder.
    created: Receiver<PathBuf>,
}

impl FolderWatch {
    fn start(roots: &[PathBuf], agent_folder: &Path) -> Self {
        let changed = Arc::new(AtomicBool::new(false));
        let (flag, own, (sender, created)) = (Arc::clone(&changed), agent_folder.to_owned(), mpsc::channel());
        let on_event = move |event: notify::Result<notify::Event>| {
            // An error may hide a change.
            let Ok(event) = event else { return flag.store(true, Ordering::Relaxed) };
            let is_own = !event.paths.is_empty() && event.paths.iter().all(|path| path.parent() == Some(&own));
            let matters = match event.kind {
                EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)) => !is_own,
                _ => event.need_rescan(),
            };
            flag.fetch_or(matters, Ordering::Relaxed);
            if is_own && event.kind.is_create() {
                // The receiver is gone when the watch has ended.
                event.paths.into_iter().for_each(|path| drop(sender.send(path)));
            }
        };
        // A link to the root of the file system would take minutes. The search does not follow such links either, and
        // remembers what others lead to.
        let config = notify::Config::default().with_follow_symlinks(false);
        let watcher = RecommendedWatcher::new(on_event, config).ok().and_then(|mut watcher| {
            watcher.watch(agent_folder, RecursiveMode::NonRecursive).ok()?;
            roots.iter().try_for_each(|root| watcher.watch(root, RecursiveMode::Recursive)).ok()?;
            Some(watcher)
        });
        Self { changed, watcher, agent_folder: agent_folder.to_owned(), created }
    }

    fn has_changed(&self) -> bool {
        self.watcher.is_none() || !self.wait_for_events() || self.changed.load(Ordering::Relaxed)
    }

    /// Waits for the events of all changes until now. They come late but in order, so that none is missing when the one
    /// of a new file comes. Returns `false` if it does not.
    fn wait_for_events(&self) -> bool {
        let file = self.agent_folder.join(random_id("change-"));
        let is_created = fs::File::create_new(&file).is_ok();
        let _ = fs::remove_file(&file);
        let next = || self.created.recv_timeout(MAX_EVENT_DELAY).ok();
        is_created && std::iter::from_fn(next).any(|created| created == file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_noticed_at_once() {
        let temp = tempfile::tempdir().unwrap();
        let (root, own) = (temp.path().join("session"), temp.path().join("own"));
        [&root, &own].iter().for_each(|folder| fs::create_dir(folder).unwrap());
        for number in 0..50 {
            let watch = FolderWatch::start(std::slice::from_ref(&root), &own);
            fs::create_dir(own.join(format!("{number}.tmp"))).unwrap();
            assert!(!watch.has_changed());
            fs::write(root.join(number.to_string()), "").unwrap();
            assert!(watch.has_changed(), "{number}");
        }
    }

    #[test]
    fn folders_that_links_lead_to_are_not_watched() {
        let temp = tempfile::tempdir().unwrap();
        let [root, own, outside] = ["session", "own", "outside"].map(|name| temp.path().join(name));
        [&root, &own, &outside].iter().for_each(|folder| fs::create_dir(folder).unwrap());
        std::os::unix::fs::symlink(&outside, root.join("link")).unwrap();
        let watch = FolderWatch::start(std::slice::from_ref(&root), &own);
        fs::write(outside.join("a"), "").unwrap();
        assert!(!watch.has_changed());
    }
}

//! Where tools run: what the tools of a session share.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard, RwLock};
use quipu_message::Json;
use url::Url;

use super::seen_files::{ChangedFile, SeenFiles};
use super::{FetchScope, PageCache, TaskList};
use crate::clock::random_id;
use crate::path::{self, TargetPath, resolve};
use crate::sandbox::{self, CommandContext, Sandbox};

/// Hears of every change of a file before it is made.
pub trait FileChangeObserver: Send + Sync {
    /// The file is about to change; `old` is what it holds, none when it does not exist.
    /// An error stops the change.
    fn before_change(&self, path: &Path, old: Option<&[u8]>) -> io::Result<()>;
}

/// Answers a question about a text: prompt and text in, answer out.
pub type Summariser = Arc<dyn Fn(String, String) -> BoxFuture<'static, Result<String, String>> + Send + Sync>;

/// Tells whether a rule refuses or asks about the host of a URL.
pub(crate) type DeniedHostFilter = Arc<dyn Fn(&Url) -> bool + Send + Sync>;

/// Tells whether a rule keeps a file from being read.
pub type HiddenFileFilter = Arc<dyn Fn(&TargetPath) -> bool + Send + Sync>;

/// What a place is made of.
#[derive(Default, Clone)]
pub struct WorkspaceOptions {
    /// The environment of commands; our own secrets are taken out of it.
    pub env: BTreeMap<OsString, OsString>,
    /// The folder for long outputs and those of background tasks; none means a new one.
    pub output_folder: Option<PathBuf>,
    /// More folders than the root that tools may work in.
    pub folders: Vec<PathBuf>,
    /// Whether file tools stay inside these folders, whatever rules and users say.
    pub is_confined: bool,
    /// Which addresses may be fetched.
    pub fetch_scope: FetchScope,
    /// Who hears of changes of files.
    pub change_observer: Option<Arc<dyn FileChangeObserver>>,
    /// Who answers questions about web pages.
    pub summariser: Option<Summariser>,
    /// What the sandbox of commands is made of.
    pub sandbox: sandbox::SandboxOptions,
}

/// Where tools run. A subagent has a place of its own ([`Workspace::for_subagent`]).
pub struct Workspace {
    root: PathBuf,
    cwd: Mutex<PathBuf>,
    seen_files: SeenFiles,
    todos: Mutex<Vec<Json>>,
    shared: Arc<SharedWorkspace>,
}

/// What a session and its subagents have in common.
struct SharedWorkspace {
    folders: RwLock<Vec<PathBuf>>,
    hidden_files: RwLock<Option<HiddenFileFilter>>,
    denied_hosts: RwLock<Option<DeniedHostFilter>>,
    /// Shells whose children were left running, by their process group.
    leftover_groups: Mutex<Vec<u32>>,
    /// Whether the folder for outputs is ours to remove.
    owns_output_folder: bool,
    tasks: TaskList,
    page_cache: PageCache,
    output_folder: PathBuf,
    sandbox: Sandbox,
    options: WorkspaceOptions,
}

impl Drop for SharedWorkspace {
    fn drop(&mut self) {
        // Only an empty folder is removed: hosts may still read files that were reported to them.
        let _ = std::fs::remove_dir(&self.output_folder);
    }
}

/// What the agent itself signs in with, which no command needs to know.
pub(crate) const SECRET_VARIABLES: [&str; 6] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_FOUNDRY_API_KEY",
    "AWS_BEARER_TOKEN_BEDROCK",
    "CLAUDE_CODE_OAUTH_TOKEN",
];

impl Workspace {
    /// A place in the folder `root`, which must be absolute.
    pub fn new(root: impl Into<PathBuf>, mut options: WorkspaceOptions) -> Self {
        let root = root.into();
        let root = resolve(&root).unwrap_or(root);
        // `CDPATH` would change where `cd` leads; `PWD` may be another way to the folder, and
        // then `cd ..` leads elsewhere than the folder's own `..`.
        for name in SECRET_VARIABLES.into_iter().chain(["CDPATH", "PWD", "OLDPWD"]) {
            options.env.remove(OsStr::new(name));
        }
        let folders = std::mem::take(&mut options.folders);
        let own_outputs = options.output_folder.is_none();
        let outputs = options.output_folder.take().unwrap_or_else(|| std::env::temp_dir().join(random_id("quipu-")));
        let place = Self {
            cwd: Mutex::new(root.clone()),
            seen_files: SeenFiles::default(),
            todos: Mutex::default(),
            shared: Arc::new(SharedWorkspace {
                folders: RwLock::new(vec![root.clone()]),
                hidden_files: RwLock::default(),
                denied_hosts: RwLock::default(),
                leftover_groups: Mutex::default(),
                owns_output_folder: own_outputs,
                tasks: TaskList::default(),
                page_cache: PageCache::default(),
                sandbox: Sandbox::new(std::mem::take(&mut options.sandbox), &outputs),
                output_folder: outputs,
                options,
            }),
            root,
        };
        folders.iter().for_each(|folder| place.add_folder(folder));
        place
    }

    /// The place of a subagent: the same folders and hooks, its own memory of what it read.
    pub fn for_subagent(&self) -> Self {
        Self {
            root: self.root.clone(),
            cwd: Mutex::new(self.cwd()),
            seen_files: SeenFiles::default(),
            todos: Mutex::default(),
            shared: Arc::clone(&self.shared),
        }
    }

    /// The folder the session started in.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder commands start in.
    pub fn cwd(&self) -> PathBuf {
        lock(&self.cwd).clone()
    }

    /// Makes `folder` the one commands start in.
    pub fn set_cwd(&self, folder: impl Into<PathBuf>) {
        *lock(&self.cwd) = folder.into();
    }

    /// The person's own folder.
    pub fn home(&self) -> Option<PathBuf> {
        self.env().get(OsStr::new("HOME")).map(PathBuf::from)
    }

    /// The folder of the user's settings.
    pub(crate) fn config_folder(&self) -> Option<PathBuf> {
        let set = self.env().get(OsStr::new("CLAUDE_CONFIG_DIR")).filter(|set| !set.is_empty());
        let folder = set.map(PathBuf::from).or_else(|| Some(self.home()?.join(".claude")))?;
        Some(resolve(&folder).unwrap_or(folder))
    }

    /// The environment of commands.
    pub fn env(&self) -> &BTreeMap<OsString, OsString> {
        &self.shared.options.env
    }

    /// Whether file tools stay inside the session's folders, whatever rules say.
    pub fn is_confined(&self) -> bool {
        self.shared.options.is_confined
    }

    /// The folder for long outputs and those of background tasks.
    pub fn output_folder(&self) -> &Path {
        &self.shared.output_folder
    }

    /// Who answers questions about web pages.
    pub fn summariser(&self) -> Option<&Summariser> {
        self.shared.options.summariser.as_ref()
    }

    /// A path as the model wrote it, made absolute: `~` and the current folder filled in.
    pub fn absolute(&self, path: &str) -> PathBuf {
        path::absolute(path, self.home().as_deref(), &self.cwd())
    }

    /// The folders tools may work in, as they really are.
    pub fn folders(&self) -> Vec<PathBuf> {
        self.shared.folders.read().clone()
    }

    /// Lets tools work in one more folder.
    pub fn add_folder(&self, folder: &Path) {
        let folder = self.absolute(&folder.to_string_lossy());
        let folder = resolve(&folder).unwrap_or(folder);
        let mut folders = self.shared.folders.write();
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }

    /// No longer lets tools work in a folder; the root stays.
    pub fn remove_folder(&self, folder: &Path) {
        let folder = self.absolute(&folder.to_string_lossy());
        let folder = resolve(&folder).unwrap_or(folder);
        let mut folders = self.shared.folders.write();
        folders.retain(|open| *open == self.root || *open != folder);
    }

    /// Whether a path, every link of it followed, is inside the folders.
    pub fn contains(&self, path: &Path) -> bool {
        resolve(path).is_some_and(|real| self.folders().iter().any(|folder| real.starts_with(folder)))
    }

    /// Says which files searches leave out; the rules know ([`hidden`](crate::permission::hidden_file_filter)).
    pub fn set_hidden_files(&self, hides: HiddenFileFilter) {
        *self.shared.hidden_files.write() = Some(hides);
    }

    /// Which files searches leave out.
    pub(crate) fn hidden_files(&self) -> HiddenFileFilter {
        let hides = self.shared.hidden_files.read().clone();
        hides.unwrap_or_else(|| Arc::new(|_| false))
    }

    /// The values that decide what a command in the sandbox may do.
    pub(crate) fn command_context(&self) -> CommandContext<'_> {
        CommandContext { cwd: self.cwd(), folders: self.folders(), home: self.home(), env: self.env() }
    }

    /// What holds commands.
    pub fn sandbox(&self) -> &Sandbox {
        &self.shared.sandbox
    }

    /// Sets the test of hosts that rules refuse ([`enforce`](crate::permission::apply_rules)).
    pub(crate) fn set_denied_hosts(&self, refuses: DeniedHostFilter) {
        *self.shared.denied_hosts.write() = Some(refuses);
    }

    /// Whether a rule refuses or asks about the host of a URL.
    pub(crate) fn is_host_denied(&self, url: &Url) -> bool {
        let refuses = self.shared.denied_hosts.read().clone();
        refuses.is_some_and(|refuses| refuses(url))
    }

    /// Notes that a shell has ended; what it left running ends with the session.
    pub(crate) fn track_process_group(&self, shell: u32) {
        use rustix::process::{Pid, test_kill_process_group};
        let group = i32::try_from(shell).ok().and_then(Pid::from_raw);
        if group.is_some_and(|group| test_kill_process_group(group).is_ok()) {
            lock(&self.shared.leftover_groups).push(shell);
        }
    }

    /// Ends what ended shells have left running, and removes what was saved for the model.
    /// Output of background tasks stays: hosts were told where it is.
    pub(crate) fn close(&self) {
        std::mem::take(&mut *lock(&self.shared.leftover_groups)).into_iter().for_each(kill_leftover_group);
        let kept: Vec<PathBuf> = self.tasks().list().into_iter().map(|task| task.output_path).collect();
        let saved = std::fs::read_dir(self.output_folder()).into_iter().flatten().flatten().map(|entry| entry.path());
        for path in saved.filter(|path| self.shared.owns_output_folder && !kept.contains(path)) {
            let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
        }
    }

    /// What runs in the background.
    pub fn tasks(&self) -> &TaskList {
        &self.shared.tasks
    }

    /// Web pages that were read a short while ago.
    pub(crate) fn page_cache(&self) -> &PageCache {
        &self.shared.page_cache
    }

    /// Which addresses may be fetched.
    pub fn fetch_scope(&self) -> FetchScope {
        self.shared.options.fetch_scope
    }

    /// Remembers that the model has seen a file as it is.
    pub fn mark_seen(&self, path: &Path, bytes: &[u8]) {
        self.seen_files.mark_seen(path, bytes);
    }

    /// What the model knows of a file that holds `bytes`.
    pub fn knowledge_of(&self, path: &Path, bytes: &[u8]) -> FileKnowledge {
        self.seen_files.knowledge_of(path, bytes)
    }

    /// The text files that have changed since the model saw them; each change is returned once.
    pub(crate) fn take_changed_files(&self) -> Vec<ChangedFile> {
        self.seen_files.take_changed(&self.hidden_files())
    }

    /// Says that a file is about to change.
    pub(crate) fn before_change(&self, path: &Path, old: Option<&[u8]>) -> io::Result<()> {
        self.shared.options.change_observer.as_ref().map_or(Ok(()), |hook| hook.before_change(path, old))
    }

    /// The task list.
    pub fn todos(&self) -> Vec<Json> {
        lock(&self.todos).clone()
    }

    /// Puts `todos` in the place of the task list and returns the old one.
    pub fn set_todos(&self, todos: Vec<Json>) -> Vec<Json> {
        std::mem::replace(&mut *lock(&self.todos), todos)
    }
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("root", &self.root).field("folders", &self.folders()).finish_non_exhaustive()
    }
}

/// What the model knows of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKnowledge {
    /// It has not seen it.
    Unseen,
    /// It has seen it before it changed.
    Stale,
    /// It has seen what is there.
    Current,
}

/// Kills a process group whose leader is gone. While a group has members its number is
/// given to no other process, so one with a living leader is another's.
fn kill_leftover_group(leader: u32) {
    use rustix::process::{Pid, Signal, kill_process_group, test_kill_process};
    let group = i32::try_from(leader).ok().and_then(Pid::from_raw);
    if let Some(group) = group.filter(|group| test_kill_process(*group).is_err()) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

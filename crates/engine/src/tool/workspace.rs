//! Where tools run: what the tools of a session share.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard, RwLock};
use quipu_message::Json;
use tokio::sync::OnceCell;
use url::Url;

use super::seen_files::{ChangedFile, SeenFiles};
use super::{FetchScope, LinkTargets, PageCache, TaskList};
use crate::clock::random_id;
use crate::guarded_paths::config_paths::{self, ConfigPaths, ConfigSources, ScriptVariables};
use crate::guarded_paths::script_names::ScriptNames;
use crate::guarded_paths::{self, GuardedFiles, GuardedHome};
use crate::path::{self, TargetPath, resolve, resolve_without_links};
use crate::sandbox::{self, CommandContext, Sandbox};

/// Called before tools change files.
pub trait FileChangeObserver: Send + Sync {
    /// A tool is about to change the file; `old` is its content, `None` if it does not exist.
    /// An error prevents the change.
    fn before_change(&self, path: &Path, old: Option<&[u8]>) -> io::Result<()>;
}

/// Answers a prompt about a text by an API call: takes prompt and text, returns the answer.
pub type Summariser = Arc<dyn Fn(String, String) -> BoxFuture<'static, Result<String, String>> + Send + Sync>;

/// Whether a deny or ask rule matches the host of a URL.
pub(crate) type DeniedHostFilter = Arc<dyn Fn(&Url) -> bool + Send + Sync>;

/// Whether a deny or ask rule protects a file from being read.
pub type HiddenFileFilter = Arc<dyn Fn(&TargetPath) -> bool + Send + Sync>;

/// Makes the test for one search, because links that rules name may lead elsewhere than before.
pub type HiddenFileFilterSource = Arc<dyn Fn() -> HiddenFileFilter + Send + Sync>;

/// Options of a [`Workspace`].
#[derive(Default, Clone)]
pub struct WorkspaceOptions {
    /// Environment of commands; credentials of the agent are removed from it.
    pub env: BTreeMap<OsString, OsString>,
    /// Folder for long outputs and outputs of background tasks; `None` creates a temporary one.
    pub output_folder: Option<PathBuf>,
    /// Folders besides the root that tools may work in.
    pub folders: Vec<PathBuf>,
    /// Links in these folders that were on the way to folders on `PATH`: they must not be replaced.
    pub program_links: Vec<PathBuf>,
    /// Folders whose `.claude` has settings of the session, resolved: it is guarded wherever it is.
    pub settings_folders: Vec<PathBuf>,
    /// Whether file tools are limited to these folders, whatever rules and user allow.
    pub is_confined: bool,
    /// Network addresses that WebFetch may connect to.
    pub fetch_scope: FetchScope,
    /// Called before files are changed.
    pub change_observer: Option<Arc<dyn FileChangeObserver>>,
    /// Answers prompts about web pages; without it WebFetch returns the page.
    pub summariser: Option<Summariser>,
    /// Options of the sandbox for commands.
    pub sandbox: sandbox::SandboxOptions,
}

/// State that tools share: folders, current folder, files seen, background tasks, sandbox.
/// A subagent has its own ([`Workspace::for_subagent`]).
pub struct Workspace {
    root: PathBuf,
    cwd: Mutex<PathBuf>,
    seen_files: SeenFiles,
    todos: Mutex<Vec<Json>>,
    shared: Arc<SharedWorkspace>,
}

/// State that a session shares with its subagents.
struct SharedWorkspace {
    /// The root of the session, and further folders.
    folders: RwLock<Vec<PathBuf>>,
    /// Git worktrees of the root that subagents work in.
    worktrees: RwLock<Vec<PathBuf>>,
    hidden_files: RwLock<Option<HiddenFileFilterSource>>,
    denied_hosts: RwLock<Option<DeniedHostFilter>>,
    link_targets: LinkTargets,
    /// Process groups of ended shells that still have members.
    leftover_groups: Mutex<Vec<u32>>,
    /// Whether the output folder was created here and its files may be removed.
    owns_output_folder: bool,
    tasks: TaskList,
    page_cache: PageCache,
    output_folder: PathBuf,
    /// The session file, beside which long outputs are kept; `None` if the session is not kept.
    transcript: RwLock<Option<PathBuf>>,
    /// Shell script that runs before every command.
    env_script: RwLock<String>,
    /// What that script sets.
    script_variables: RwLock<ScriptVariables>,
    /// Files and folders by which the session was started, and programs that its settings name.
    start_files: RwLock<Vec<PathBuf>>,
    scripts: RwLock<Arc<ScriptNames>>,
    /// Where links in the home folder lead, once they were looked for.
    home_link_targets: OnceLock<Vec<PathBuf>>,
    /// What the user's shell defines, once it was found out.
    user_shell: OnceCell<Option<UserShell>>,
    sandbox: Sandbox,
    options: WorkspaceOptions,
}

impl SharedWorkspace {
    /// Removes the folder for outputs if it is empty: hosts may still read files that were reported to them.
    fn remove_empty_folder(&self) {
        let _ = std::fs::remove_dir(&self.output_folder);
    }
}

impl Drop for SharedWorkspace {
    fn drop(&mut self) {
        self.remove_empty_folder();
    }
}

/// Variables with the agent's own credentials, which commands do not get.
pub(crate) const SECRET_VARIABLES: [&str; 7] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_FOUNDRY_API_KEY",
    "AWS_BEARER_TOKEN_BEDROCK",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "OTEL_EXPORTER_OTLP_HEADERS",
];

impl Workspace {
    /// Creates a workspace in the folder `root`, which must be absolute.
    pub fn new(root: impl Into<PathBuf>, mut options: WorkspaceOptions) -> Self {
        let root = root.into();
        let root = resolve(&root).unwrap_or(root);
        // `CDPATH` would change where `cd` goes. `PWD` may name the folder through a link, and
        // then `cd ..` goes elsewhere than the folder's own `..`.
        for name in SECRET_VARIABLES.into_iter().chain(["CDPATH", "PWD", "OLDPWD"]) {
            options.env.remove(OsStr::new(name));
        }
        let folders = std::mem::take(&mut options.folders);
        let own_outputs = options.output_folder.is_none();
        let outputs = options.output_folder.take().unwrap_or_else(own_folder);
        let workspace = Self {
            cwd: Mutex::new(root.clone()),
            seen_files: SeenFiles::default(),
            todos: Mutex::default(),
            shared: Arc::new(SharedWorkspace {
                folders: RwLock::new(vec![root.clone()]),
                worktrees: RwLock::default(),
                hidden_files: RwLock::default(),
                denied_hosts: RwLock::default(),
                link_targets: LinkTargets::default(),
                leftover_groups: Mutex::default(),
                owns_output_folder: own_outputs,
                tasks: TaskList::default(),
                page_cache: PageCache::default(),
                sandbox: Sandbox::new(std::mem::take(&mut options.sandbox), &outputs),
                output_folder: outputs,
                transcript: RwLock::default(),
                env_script: RwLock::default(),
                script_variables: RwLock::default(),
                start_files: RwLock::default(),
                scripts: RwLock::default(),
                home_link_targets: OnceLock::new(),
                user_shell: OnceCell::new(),
                options,
            }),
            root,
        };
        folders.iter().for_each(|folder| workspace.add_folder(folder));
        workspace
    }

    /// Creates the workspace of a subagent: shared folders, tasks and sandbox, own current folder,
    /// todos and record of files seen.
    pub fn for_subagent(&self) -> Self {
        Self {
            root: self.root.clone(),
            cwd: Mutex::new(self.cwd()),
            seen_files: SeenFiles::default(),
            todos: Mutex::default(),
            shared: Arc::clone(&self.shared),
        }
    }

    /// Creates the workspace of a subagent that works in a git worktree instead of the session's
    /// root. [`apply_rules`](crate::permission::apply_rules) must be called afterwards.
    pub(crate) fn for_worktree(&self, path: &Path) -> Self {
        let root = resolve(path).unwrap_or_else(|| path.to_owned());
        self.shared.worktrees.write().push(root.clone());
        Self { cwd: Mutex::new(root.clone()), root, ..self.for_subagent() }
    }

    /// Forgets the worktree that this workspace was created for, because it was removed.
    pub(crate) fn forget_worktree(&self) {
        self.shared.worktrees.write().retain(|path| *path != self.root);
    }

    /// Returns the folder the session started in, or the subagent's worktree.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the folders that relative patterns of rules refer to: the session's root, and every
    /// worktree of it.
    pub(crate) fn rule_roots(&self) -> Vec<PathBuf> {
        let session_root = self.shared.folders.read().first().cloned();
        session_root.into_iter().chain(self.shared.worktrees.read().iter().cloned()).collect()
    }

    /// Returns the folder that commands start in: the root if a command has replaced the folder by a link
    /// that leads out of the session's folders.
    pub fn cwd(&self) -> PathBuf {
        let cwd = lock(&self.cwd).clone();
        if cwd == self.root {
            return cwd;
        }
        let is_inside = |real: &PathBuf| self.folders().iter().any(|folder| real.starts_with(folder));
        resolve(&cwd).filter(is_inside).unwrap_or_else(|| self.root.clone())
    }

    /// Sets the folder that commands start in.
    pub fn set_cwd(&self, folder: impl Into<PathBuf>) {
        *lock(&self.cwd) = folder.into();
    }

    /// Returns the user's home folder; `None` if `HOME` is not set.
    pub fn home(&self) -> Option<PathBuf> {
        self.env().get(OsStr::new("HOME")).map(PathBuf::from)
    }

    /// Returns the folder of the user's settings: `CLAUDE_CONFIG_DIR` or `~/.claude`.
    pub(crate) fn config_folder(&self) -> Option<PathBuf> {
        let set = self.env().get(OsStr::new("CLAUDE_CONFIG_DIR")).filter(|set| !set.is_empty());
        let folder = set.map(PathBuf::from).or_else(|| Some(self.home()?.join(".claude")))?;
        Some(resolve(&folder).unwrap_or(folder))
    }

    /// Returns the environment of commands.
    pub fn env(&self) -> &BTreeMap<OsString, OsString> {
        &self.shared.options.env
    }

    /// Whether file tools are limited to the session's folders, whatever rules allow.
    pub fn is_confined(&self) -> bool {
        self.shared.options.is_confined
    }

    /// Returns the folder for long outputs and outputs of background tasks.
    pub fn output_folder(&self) -> &Path {
        &self.shared.output_folder
    }

    /// Returns the folder for long outputs that stay with the session, resolved; `None` if it is not kept, or
    /// if a link leads elsewhere.
    pub fn results_folder(&self) -> Option<PathBuf> {
        let transcript = self.shared.transcript.read().clone()?;
        let name = Path::new(transcript.file_stem()?).join("tool-results");
        resolve_without_links(transcript.parent()?, &name)
    }

    /// Sets the session file, beside which long outputs are kept; `None` if they are not.
    pub fn set_transcript(&self, file: Option<PathBuf>) {
        *self.shared.transcript.write() = file;
    }

    /// Returns the shell script that runs before every command; empty if there is none.
    pub(crate) fn env_script(&self) -> String {
        self.shared.env_script.read().clone()
    }

    /// Sets the shell script that runs before every command.
    pub fn set_env_script(&self, script: String) {
        *self.shared.env_script.write() = script;
    }

    /// Returns what the script sets that runs before every command.
    pub(crate) fn script_variables(&self) -> ScriptVariables {
        self.shared.script_variables.read().clone()
    }

    /// Sets what the script sets that runs before every command: what it names is guarded.
    pub(crate) fn set_script_variables(&self, variables: ScriptVariables) {
        *self.shared.script_variables.write() = variables;
    }

    /// Guards files and folders by which the session was started.
    pub(crate) fn guard_start_files(&self, files: impl IntoIterator<Item = PathBuf>) {
        self.shared.start_files.write().extend(files);
    }

    /// Guards what commands may run that start in one of the folders, instead of what the commands before could.
    pub(crate) fn guard_scripts(&self, names: ScriptNames, folders: &[&Path]) {
        self.guard_start_files(names.linked_paths(folders));
        *self.shared.scripts.write() = Arc::new(names);
    }

    /// Returns the names in the commands whose scripts are guarded.
    pub(crate) fn script_names(&self) -> Arc<ScriptNames> {
        Arc::clone(&self.shared.scripts.read())
    }

    /// Returns the paths that decide which programs run later, as they are now.
    fn config_paths(&self) -> ConfigPaths {
        let targets = self.shared.home_link_targets.get_or_init(|| {
            let home = self.home().and_then(|home| resolve(&home));
            home.map(|home| config_paths::home_link_targets(&home)).unwrap_or_default()
        });
        ConfigPaths::find(ConfigSources {
            env: self.env(),
            script: &self.shared.script_variables.read(),
            start_files: &self.shared.start_files.read(),
            scripts: &self.shared.scripts.read(),
            program_links: &self.shared.options.program_links,
            home_link_targets: targets,
        })
    }

    /// Returns what the user's shell defines, which `make` finds out at the first call; `None` if it defines
    /// nothing.
    pub(crate) async fn user_shell(&self, make: impl Future<Output = Option<UserShell>>) -> Option<&UserShell> {
        self.shared.user_shell.get_or_init(|| make).await.as_ref()
    }

    /// Returns the function that answers prompts about web pages, if there is one.
    pub fn summariser(&self) -> Option<&Summariser> {
        self.shared.options.summariser.as_ref()
    }

    /// Makes a path from the model absolute, relative to the current folder or `~`.
    pub fn absolute(&self, path: &str) -> PathBuf {
        path::absolute(path, self.home().as_deref(), &self.cwd())
    }

    /// Returns the folders that tools may work in, resolved: the root first.
    pub fn folders(&self) -> Vec<PathBuf> {
        let further = self.shared.folders.read();
        let further = further.iter().skip(1).filter(|folder| **folder != self.root).cloned();
        std::iter::once(self.root.clone()).chain(further).collect()
    }

    /// Adds a folder that tools may work in.
    pub fn add_folder(&self, folder: &Path) {
        let folder = self.absolute(&folder.to_string_lossy());
        let folder = resolve(&folder).unwrap_or(folder);
        let mut folders = self.shared.folders.write();
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }

    /// Removes a folder that tools may work in; the root cannot be removed.
    pub fn remove_folder(&self, folder: &Path) {
        let folder = self.absolute(&folder.to_string_lossy());
        let folder = resolve(&folder).unwrap_or(folder);
        let mut folders = self.shared.folders.write();
        let further = folders.split_off(1).into_iter().filter(|open| *open != folder);
        folders.extend(further.collect::<Vec<_>>());
    }

    /// Whether a path, after resolving its links, is inside the folders.
    pub fn contains(&self, path: &Path) -> bool {
        resolve(path).is_some_and(|real| self.folders().iter().any(|folder| real.starts_with(folder)))
    }

    /// Whether a path is guarded: only a rule that names it allows changing it.
    pub(crate) fn is_guarded(&self, path: &Path) -> bool {
        self.is_target_guarded(&TargetPath::new(path))
    }

    /// Returns the first of some paths in the session's folders that is guarded.
    pub(crate) fn find_guarded(&self, mut paths: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
        self.with_home(|home| {
            let guarded = GuardedFiles::new(home);
            paths.find(|path| self.contains(path) && guarded.contains(&TargetPath::new(path)))
        })
    }

    /// As [`is_guarded`](Self::is_guarded), for a path as it was resolved: its links may lead elsewhere by now.
    pub(crate) fn is_target_guarded(&self, target: &TargetPath) -> bool {
        self.with_home(|home| guarded_paths::is_guarded(target, home))
    }

    /// Whether a guarded link leads to a resolved path.
    pub(crate) fn is_target_of_guarded_link(&self, real: &Path) -> bool {
        self.with_home(|home| guarded_paths::is_target_of_guarded_link(real, home))
    }

    /// Returns the hidden name in home that guards a path ([`GuardedHome::hidden_name`]).
    pub(crate) fn hidden_home_name(&self, path: &Path) -> Option<String> {
        self.with_home(|home| home.hidden_name(path))
    }

    fn with_home<T>(&self, use_home: impl FnOnce(GuardedHome<'_>) -> T) -> T {
        let home = self.home().map(|home| resolve(&home).unwrap_or(home));
        let agent_folder = resolve(self.output_folder()).unwrap_or_else(|| self.output_folder().to_owned());
        use_home(GuardedHome {
            home: home.as_deref(),
            folders: &self.folders(),
            agent_folder: &agent_folder,
            settings_folders: &self.shared.options.settings_folders,
            config_paths: &self.config_paths(),
        })
    }

    /// Sets which files searches leave out ([`hidden_file_filter`](crate::permission::hidden_file_filter)).
    pub fn set_hidden_files(&self, source: HiddenFileFilterSource) {
        *self.shared.hidden_files.write() = Some(source);
    }

    /// Returns the test for files that one search leaves out.
    pub(crate) fn hidden_files(&self) -> HiddenFileFilter {
        let source = self.shared.hidden_files.read().clone();
        source.map_or_else(|| Arc::new(|_: &TargetPath| false) as HiddenFileFilter, |source| source())
    }

    /// Returns what links that deny and ask rules name have led to since the session started.
    pub(crate) fn link_targets(&self) -> LinkTargets {
        self.shared.link_targets.clone()
    }

    /// The values that decide what a command in the sandbox may do.
    pub(crate) fn command_context(&self) -> CommandContext<'_> {
        CommandContext {
            cwd: self.cwd(),
            folders: self.folders(),
            settings_folders: &self.shared.options.settings_folders,
            home: self.home(),
            env: self.env(),
            config_paths: self.config_paths(),
        }
    }

    /// Returns the sandbox for commands.
    pub fn sandbox(&self) -> &Sandbox {
        &self.shared.sandbox
    }

    /// Sets the test for hosts with a deny or ask rule ([`apply_rules`](crate::permission::apply_rules)).
    pub(crate) fn set_denied_hosts(&self, refuses: DeniedHostFilter) {
        *self.shared.denied_hosts.write() = Some(refuses);
    }

    /// Whether a deny or ask rule matches the host of a URL.
    pub(crate) fn is_host_denied(&self, url: &Url) -> bool {
        let refuses = self.shared.denied_hosts.read().clone();
        refuses.is_some_and(|refuses| refuses(url))
    }

    /// Records the process group of an ended shell, so that remaining processes end with the session.
    pub(crate) fn track_process_group(&self, shell: u32) {
        use rustix::process::{Pid, test_kill_process_group};
        let group = i32::try_from(shell).ok().and_then(Pid::from_raw);
        if group.is_some_and(|group| test_kill_process_group(group).is_ok()) {
            lock(&self.shared.leftover_groups).push(shell);
        }
    }

    /// Kills processes left by ended shells and removes saved outputs. Output files of
    /// background tasks stay, because their paths were reported to hosts.
    pub(crate) fn close(&self) {
        std::mem::take(&mut *lock(&self.shared.leftover_groups)).into_iter().for_each(kill_leftover_group);
        let kept: Vec<PathBuf> = self.tasks().list().into_iter().map(|task| task.output_path).collect();
        let saved = std::fs::read_dir(self.output_folder()).into_iter().flatten().flatten().map(|entry| entry.path());
        for path in saved.filter(|path| self.shared.owns_output_folder && !kept.contains(path)) {
            let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
        }
        // Tasks that the program does not wait for may hold the workspace until it exits.
        self.shared.remove_empty_folder();
    }

    /// Returns the background tasks.
    pub fn tasks(&self) -> &TaskList {
        &self.shared.tasks
    }

    /// Returns the cache of fetched web pages.
    pub(crate) fn page_cache(&self) -> &PageCache {
        &self.shared.page_cache
    }

    /// Returns which network addresses WebFetch may connect to.
    pub fn fetch_scope(&self) -> FetchScope {
        self.shared.options.fetch_scope
    }

    /// Records that the model has seen the file with this content.
    pub fn mark_seen(&self, path: &Path, bytes: &[u8]) {
        self.seen_files.mark_seen(path, bytes);
    }

    /// Returns whether the model has seen the file with the content `bytes`.
    pub fn knowledge_of(&self, path: &Path, bytes: &[u8]) -> FileKnowledge {
        self.seen_files.knowledge_of(path, bytes)
    }

    /// Returns the text files that changed since the model saw them and that it `may_read`; each change is
    /// returned once.
    pub(crate) fn take_changed_files(&self, may_read: impl Fn(&TargetPath) -> bool) -> Vec<ChangedFile> {
        self.seen_files.take_changed(may_read)
    }

    /// Calls the change observer; an error prevents the change.
    pub(crate) fn before_change(&self, path: &Path, old: Option<&[u8]>) -> io::Result<()> {
        self.shared.options.change_observer.as_ref().map_or(Ok(()), |hook| hook.before_change(path, old))
    }

    /// Returns the todo list.
    pub fn todos(&self) -> Vec<Json> {
        lock(&self.todos).clone()
    }

    /// Replaces the todo list and returns the old one.
    pub fn set_todos(&self, todos: Vec<Json>) -> Vec<Json> {
        std::mem::replace(&mut *lock(&self.todos), todos)
    }
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workspace").field("root", &self.root).field("folders", &self.folders()).finish_non_exhaustive()
    }
}

/// What the user's shell defines.
#[derive(Debug)]
pub(crate) struct UserShell {
    /// Script with its aliases, functions and variables.
    pub(crate) file: PathBuf,
    /// The value of `PATH` in it.
    pub(crate) path: OsString,
}

/// Whether the model has seen the current content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKnowledge {
    /// The model has not seen the file.
    Unseen,
    /// The file has changed since the model saw it.
    Stale,
    /// The model has seen the current content.
    Current,
}

/// Returns a new folder in the temporary one, resolved: a command that finds the folder by name later may run
/// elsewhere, or have replaced a link in it.
fn own_folder() -> PathBuf {
    let temp = std::env::temp_dir();
    let temp = if temp.as_os_str().is_empty() { PathBuf::from("/tmp") } else { temp };
    let temp = std::path::absolute(&temp).unwrap_or(temp);
    resolve(&temp).unwrap_or(temp).join(random_id(guarded_paths::AGENT_FOLDER_PREFIX))
}

/// Kills a process group whose leader has ended. The id of a group with members is not
/// reused, so a group whose leader is alive belongs to another program.
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

//! Git worktrees below `.claude/worktrees` of the repository, each on a branch of its own: for a session
//! (`--worktree`), or for a subagent (`isolation: worktree`).
//!
//! git runs programs that the configuration of the repository names. Here it runs no hooks and no file system monitor,
//! no transport, and filters only if they are installed programs. If the folder is not trusted, it also runs no filters.
//! A repository that keeps settings or files elsewhere is then rejected.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use parking_lot::Mutex;
use quipu_message::Maybe;
use quipu_message::bookkeeping::WorktreeSession;

use crate::error::EngineError;
use crate::git::git_root;
use crate::options::Worktree;
use crate::path::resolve;
use crate::text_file;
use crate::tool::SECRET_VARIABLES;

/// The most bytes of a name.
const MAX_NAME_BYTES: usize = 64;

/// Held while a worktree is made, because git and the list of ignored files are then written.
static MAKING: Mutex<()> = Mutex::new(());

/// Finds the worktree of a session in the repository of `cwd`, and creates it if it does not exist. Also returns
/// whether it was created from the current commit. Unless `trusted`, git runs nothing that the repository configures.
pub(crate) fn enter(
    worktree: &Worktree,
    cwd: &Path,
    env: &BTreeMap<String, String>,
    trusted: bool,
) -> Result<(WorktreeSession, bool), EngineError> {
    let name = match worktree {
        Worktree::New => format!("session-{}", &crate::clock::new_id().as_str()[..8]),
        Worktree::Named(name) => name.clone(),
    };
    find_or_create(name, cwd, env, trusted).map_err(|reason| EngineError::InvalidFlag { flag: "--worktree", reason })
}

/// Finds the worktree of this name in the repository of `cwd`, and creates it if it does not exist. Also returns
/// whether it was created from the current commit: another branch, or a folder that was there before, may have
/// other files than the repository. The error says why it cannot be used.
pub(crate) fn find_or_create(
    name: String,
    cwd: &Path,
    env: &BTreeMap<String, String>,
    trusted: bool,
) -> Result<(WorktreeSession, bool), String> {
    let Some(root) = git_root(cwd) else {
        return Err(format!("{} is not in a git repository", cwd.display()));
    };
    if !is_valid_name(&name) {
        return Err(format!("'{name}' is no name; use letters, digits, '.', '_' and '-', at most {MAX_NAME_BYTES}"));
    }
    let _making = MAKING.lock();
    let git = Git { root, env, trusted };
    if !trusted && git.uses_external_files().map_err(|error| error.to_string())? {
        let git = root.join(".git");
        return Err(format!(
            "{} names files elsewhere or programs; start with --trust-folder to use it",
            git.display()
        ));
    }
    let path = root.join(".claude/worktrees").join(&name);
    // A link in the repository must not lead the session elsewhere.
    let real_root = resolve(root).unwrap_or_else(|| root.to_owned());
    if resolve(&path).is_none_or(|real| real != real_root.join(".claude/worktrees").join(&name)) {
        return Err(format!("{} leads out of the repository", path.display()));
    }
    let branch = format!("worktree-{name}");
    if root.join(".git").is_dir() && path.join(".git").symlink_metadata().is_ok() && !is_worktree_of(&path, root) {
        return Err(format!("{} is not a worktree of this repository", path.display()));
    }
    let head = git.run_for_text(&["rev-parse", "HEAD"]).map_err(|error| format!("no commit to begin from: {error}"))?;
    let is_from_head = match path.join(".git").exists() {
        true => false,
        false => {
            git.add_worktree(&path, &branch).map_err(|error| format!("cannot make {}: {error}", path.display()))?
        }
    };
    let text = |value: String| Maybe::Value(value);
    let session = WorktreeSession {
        original_cwd: text(cwd.display().to_string()),
        pre_enter_original_cwd: text(cwd.display().to_string()),
        path: text(path.display().to_string()),
        name: text(name),
        branch: text(crate::git::git_branch(&path)),
        original_branch: text(crate::git::git_branch(cwd)),
        original_head_commit: text(head),
        ..WorktreeSession::default()
    };
    Ok((session, is_from_head))
}

/// Removes a worktree and its branch if nothing was changed or committed in it. Returns whether it was
/// removed.
pub(crate) fn remove_unchanged(
    worktree: &WorktreeSession,
    env: &BTreeMap<String, String>,
    trusted: bool,
) -> io::Result<bool> {
    let text = |field: &Maybe<String>| field.text().unwrap_or_default().to_owned();
    let (path, branch, head) = (text(&worktree.path), text(&worktree.branch), text(&worktree.original_head_commit));
    let Some(root) = worktree.original_cwd.text().and_then(|cwd| git_root(Path::new(cwd))) else { return Ok(false) };
    // The repository of a linked worktree is elsewhere; only a trusted one is used.
    if root.join(".git").is_dir() && !is_worktree_of(Path::new(&path), root) {
        return Ok(false);
    }
    let _making = MAKING.lock();
    let git = Git { root, env, trusted };
    let inside = Git { root: Path::new(&path), env, trusted };
    let is_changed = || -> io::Result<bool> {
        let status =
            inside.run_for_text(&["status", "--porcelain", "--untracked-files=all", "--ignore-submodules=dirty"])?;
        Ok(!status.is_empty() || inside.run_for_text(&["rev-parse", "HEAD"])? != head)
    };
    if !trusted && git.uses_external_files()? || is_changed()? {
        return Ok(false);
    }
    git.run_for_text(&["worktree", "remove", &path])?;
    git.run_for_text(&["branch", "-D", &branch])?;
    Ok(true)
}

/// Whether the `.git` file of a worktree names a folder of this repository.
fn is_worktree_of(path: &Path, root: &Path) -> bool {
    let text = text_file::read(&path.join(".git"), Some(path), text_file::MAX_BYTES).unwrap_or_default();
    let named = text.strip_prefix("gitdir:").map(|named| path.join(named.trim()));
    let named = named.and_then(|named| fs::canonicalize(named).ok());
    let all = fs::canonicalize(root.join(".git/worktrees")).ok();
    named.as_deref().and_then(Path::parent) == all.as_deref() && all.is_some()
}

fn is_valid_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_end = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.len() <= MAX_NAME_BYTES
        && name.chars().all(is_plain)
        && name.starts_with(is_end)
        && name.ends_with(is_end)
        && !name.contains("..")
}

/// git in a repository.
struct Git<'a> {
    root: &'a Path,
    env: &'a BTreeMap<String, String>,
    trusted: bool,
}

/// The most files in the `.git` of a repository that is not trusted.
const MAX_GIT_FILES: usize = 200_000;

/// Setting with which git runs no hooks.
const NO_HOOKS: &str = "core.hooksPath=/dev/null";

impl Git<'_> {
    /// Whether the repository keeps its files elsewhere, or settings that [`Git::safe_settings`] does
    /// not see: which files are included may depend on the branch and the worktree.
    fn uses_external_files(&self) -> io::Result<bool> {
        let git = self.root.join(".git");
        // `commondir` names a folder elsewhere, and alternates those of other repositories.
        let names = ["commondir", "objects/info/alternates"];
        let has_name = names.iter().any(|name| git.join(name).symlink_metadata().is_ok());
        if !git.symlink_metadata()?.is_dir() || has_name || has_special_files(&git) {
            return Ok(true);
        }
        let listed = self.run(&[], &["config", "--local", "--no-includes", "--null", "--name-only", "--list"])?;
        let elsewhere = |key: &str| {
            let key = key.to_lowercase();
            let starts = ["include.", "includeif.", "hook."];
            starts.iter().any(|start| key.starts_with(start)) || key == "extensions.worktreeconfig"
        };
        Ok(!listed.status.success() || String::from_utf8_lossy(&listed.stdout).split('\0').any(elsewhere))
    }

    /// Creates a worktree, on a new branch or on the existing one of that name. Returns whether the branch is new.
    fn add_worktree(&self, path: &Path, branch: &str) -> io::Result<bool> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        self.exclude_worktrees()?;
        let path = path.to_string_lossy();
        let exists = self.run_for_text(&["rev-parse", "--verify", "--quiet", &format!("refs/heads/{branch}")]).is_ok();
        let args: &[&str] = match exists {
            true => &["worktree", "add", "--no-checkout", &path, branch],
            false => &["worktree", "add", "--no-checkout", "-b", branch, &path, "HEAD"],
        };
        self.run_for_text(args)?;
        // Which filters there are may depend on the branch and the folder.
        let inside = Git { root: Path::new(&*path), ..*self };
        if let Err(error) = inside.run_for_text(&["reset", "--hard", "--quiet"]) {
            self.run_for_text(&["worktree", "remove", "--force", &path])?;
            return Err(error);
        }
        Ok(!exists)
    }

    /// Makes git ignore the worktrees, in this clone only.
    fn exclude_worktrees(&self) -> io::Result<()> {
        const LINE: &str = "/.claude/worktrees/";
        let file =
            PathBuf::from(self.run_for_text(&["rev-parse", "--path-format=absolute", "--git-path", "info/exclude"])?);
        let text = match text_file::read(&file, None, text_file::MAX_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        if text.lines().any(|line| line == LINE) {
            return Ok(());
        }
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&file, format!("{text}{gap}{LINE}\n"))
    }

    /// Runs git and returns its output.
    fn run_for_text(&self, args: &[&str]) -> io::Result<String> {
        let out = self.run(&self.safe_settings()?, args)?;
        if out.status.success() {
            return Ok(String::from_utf8_lossy(&out.stdout).trim_end().to_owned());
        }
        Err(io::Error::other(String::from_utf8_lossy(&out.stderr).trim().to_owned()))
    }

    /// Settings under which git runs no hooks, and no program that may be a file of the session, which the model can
    /// change without approval: only filters that are [installed programs](is_installed_program), those of the
    /// repository only if it is trusted.
    fn safe_settings(&self) -> io::Result<Vec<String>> {
        let mut settings = vec![NO_HOOKS.to_owned(), "core.fsmonitor=false".to_owned()];
        let args = ["config", "--includes", "--show-scope", "--null", "--get-regexp", r"^(filter|hook)\."];
        let listed = self.run(&[], &args)?;
        // `-c` cannot name a key that is not UTF-8 or contains `=`.
        let unnamed = |_| io::Error::other("git has a filter whose name is not UTF-8, which cannot be turned off");
        let listed = String::from_utf8(listed.stdout).map_err(unnamed)?;
        let mut parts = listed.split('\0');
        while let (Some(scope), Some(entry)) = (parts.next(), parts.next()) {
            let (key, value) = entry.split_once('\n').unwrap_or((entry, ""));
            // The name between the first and the last dot may hold dots itself.
            let Some((driver, setting)) = key.rsplit_once('.').filter(|(driver, _)| driver.contains('.')) else {
                continue;
            };
            let may_run = self.trusted || !["local", "worktree"].contains(&scope);
            let is_filter = ["clean", "smudge", "process"].contains(&setting) && driver.starts_with("filter.");
            if is_filter && may_run && is_installed_program(value) {
                continue;
            }
            if driver.contains('=') {
                return Err(io::Error::other("git has a filter with `=` in its name, which cannot be turned off"));
            }
            match is_filter {
                true => {
                    let off = [format!("{setting}="), "required=false".to_owned()];
                    settings.extend(off.map(|rest| format!("{driver}.{rest}")));
                }
                // Hooks in the settings run whatever `core.hooksPath` is.
                false if driver.starts_with("hook.") => settings.push(format!("{driver}.enabled=false")),
                false => {}
            }
        }
        Ok(settings)
    }

    fn run(&self, settings: &[String], args: &[&str]) -> io::Result<Output> {
        #[expect(clippy::disallowed_methods, reason = "the one place that runs git")]
        let mut command = Command::new("git");
        command.current_dir(self.root).env_clear().envs(self.env).stdin(Stdio::null());
        // Another repository may be named in the environment, and hooks of this one need no credentials.
        let git_names = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"];
        for name in git_names.into_iter().chain(SECRET_VARIABLES) {
            command.env_remove(name);
        }
        command.env("GIT_TERMINAL_PROMPT", "0").env("PYTHONSAFEPATH", "1");
        // Fetching runs programs that the settings name, and may never end.
        command.env("GIT_ALLOW_PROTOCOL", "none").env("GIT_NO_LAZY_FETCH", "1");
        for setting in settings {
            command.arg("-c").arg(setting);
        }
        command.args(args).output()
    }
}

/// Programs that run the file after their options.
const RUNNERS: &str = "ash awk bash bun dash deno expect fish ksh lua make node perl php pypy pypy3 python python3 ruby \
                       run-parts sh ts-node tsx zsh";

/// Whether the command of a filter runs a program that is installed and no file of the session: `git-lfs smudge -- %f`.
fn is_installed_program(command: &str) -> bool {
    let mut words = command.split_whitespace().map(|word| word.trim_matches('"'));
    let is_word = |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || "-_%".contains(c));
    words.all(|word| is_word(word) && !RUNNERS.split(' ').any(|runner| runner == word))
}

/// Whether a folder contains a link, a pipe or a device, which git would write through or wait for, or too many
/// files to know.
fn has_special_files(folder: &Path) -> bool {
    let mut open = vec![folder.to_owned()];
    let mut visited = 0;
    while let Some(folder) = open.pop() {
        let Ok(entries) = folder.read_dir() else { return true };
        for entry in entries {
            visited += 1;
            match entry.and_then(|entry| Ok((entry.file_type()?, entry.path()))) {
                Ok((kind, path)) if kind.is_dir() => open.push(path),
                Ok((kind, _)) if kind.is_file() && visited <= MAX_GIT_FILES => {}
                _ => return true,
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository with a commit whose configuration and hooks leave a file behind when they run.
    fn hostile_repository() -> (tempfile::TempDir, PathBuf, BTreeMap<String, String>) {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap().join("repo");
        fs::create_dir(&root).unwrap();
        let mut env: BTreeMap<String, String> = BTreeMap::new();
        env.insert("PATH".to_owned(), std::env::var("PATH").unwrap());
        env.insert("HOME".to_owned(), temp.path().display().to_string());
        for (name, value) in [("AUTHOR_NAME", "a"), ("AUTHOR_EMAIL", "a@example.com")] {
            env.insert(format!("GIT_{name}"), value.to_owned());
            env.insert(format!("GIT_{}", name.replace("AUTHOR", "COMMITTER")), value.to_owned());
        }
        let git = Git { root: &root, env: &env, trusted: true };
        for args in [&["init", "-q", "-b", "main"][..], &["commit", "-q", "--allow-empty", "-m", "first"]] {
            git.run_for_text(args).unwrap();
        }
        fs::write(root.join("a.txt"), "a").unwrap();
        fs::write(root.join(".gitattributes"), "*.txt filter=evil.one\n").unwrap();
        git.run_for_text(&["add", "."]).unwrap();
        git.run_for_text(&["commit", "-q", "-m", "second"]).unwrap();
        let ran = temp.path().join("ran");
        let touch = format!("touch {}", ran.display());
        git.run_for_text(&["config", "filter.evil.one.smudge", &format!("{touch}; cat")]).unwrap();
        git.run_for_text(&["config", "core.fsmonitor", &touch]).unwrap();
        let hook = root.join(".git/hooks/post-checkout");
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        fs::write(&hook, format!("#!/bin/sh\n{touch}\n")).unwrap();
        fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        (temp, root, env)
    }

    #[test]
    fn nothing_of_an_untrusted_repository_runs() {
        let (temp, root, env) = hostile_repository();
        let ran = temp.path().join("ran");
        let (entered, is_from_head) = enter(&Worktree::Named("mine".to_owned()), &root, &env, false).unwrap();
        assert!(is_from_head);
        let path = root.join(".claude/worktrees/mine");
        assert_eq!(entered.path.text(), Some(path.to_str().unwrap()));
        assert_eq!((entered.branch.text(), entered.original_branch.text()), (Some("worktree-mine"), Some("main")));
        assert_eq!(fs::read_to_string(path.join("a.txt")).unwrap(), "a");
        assert!(!ran.exists());
    }

    /// Filters may be files of the session, also where the folder is trusted.
    #[test]
    fn only_installed_programs_run_as_filters_of_a_trusted_repository() {
        let (temp, root, mut env) = hostile_repository();
        let ran = temp.path().join("ran");
        enter(&Worktree::New, &root, &env, true).unwrap();
        assert!(!ran.exists());
        let program = temp.path().join("bin/upper");
        fs::create_dir(program.parent().unwrap()).unwrap();
        fs::write(&program, format!("#!/bin/sh\ntouch {}; tr a-z A-Z\n", ran.display())).unwrap();
        fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        env.insert("PATH".to_owned(), format!("{}:{}", temp.path().join("bin").display(), env["PATH"]));
        let git = Git { root: &root, env: &env, trusted: true };
        git.run_for_text(&["config", "filter.evil.one.smudge", "upper -- %f"]).unwrap();
        enter(&Worktree::Named("mine".to_owned()), &root, &env, false).unwrap();
        assert!(!ran.exists());
        enter(&Worktree::Named("other".to_owned()), &root, &env, true).unwrap();
        assert_eq!(fs::read_to_string(root.join(".claude/worktrees/other/a.txt")).unwrap(), "A");
        // The main worktree does not see what holds only in others.
        fs::remove_file(&ran).unwrap();
        let elsewhere = format!("[filter \"evil.one\"]\n\tsmudge = touch {}; cat\n", ran.display());
        fs::write(root.join(".git/more"), elsewhere).unwrap();
        git.run_for_text(&["config", "includeIf.onbranch:worktree-**.path", "more"]).unwrap();
        enter(&Worktree::Named("third".to_owned()), &root, &env, true).unwrap();
        assert!(!ran.exists() && root.join(".claude/worktrees/third/a.txt").exists());
        for command in ["sh f", "tools/f.sh", "./f", "python3 f.py", "upper; f", "upper $(f)", "\"tools/f\" %f"] {
            assert!(!is_installed_program(command), "{command}");
        }
        for command in ["git-lfs filter-process", "git-lfs clean -- %f", "\"git-crypt\" smudge", "nbstripout", ""] {
            assert!(is_installed_program(command), "{command}");
        }
    }

    #[test]
    fn an_untrusted_repository_with_a_filter_that_cannot_be_turned_off_is_refused() {
        for name in [&b"a=b"[..], b"x\xff"] {
            let (temp, root, env) = hostile_repository();
            let ran = temp.path().join("ran");
            let smudge = format!("\"]\n\tsmudge = touch {}; cat\n", ran.display());
            let mut config = fs::read(root.join(".git/config")).unwrap();
            config.extend([&b"[filter \""[..], name, smudge.as_bytes()].concat());
            fs::write(root.join(".git/config"), config).unwrap();
            let error = enter(&Worktree::Named("mine".to_owned()), &root, &env, false).unwrap_err().to_string();
            assert!(error.contains("cannot be turned off"), "{error}");
            assert!(!ran.exists());
        }
    }

    #[test]
    fn an_untrusted_repository_that_leads_elsewhere_is_refused() {
        let check = |change: fn(&Path, &str)| {
            let (temp, root, env) = hostile_repository();
            let ran = temp.path().join("ran");
            let filter = format!("[filter \"evil.one\"]\n\tsmudge = touch {}; cat\n", ran.display());
            fs::write(temp.path().join("mine"), "kept\n").unwrap();
            change(&root.join(".git"), &filter);
            let error = enter(&Worktree::Named("mine".to_owned()), &root, &env, false).unwrap_err().to_string();
            assert!(error.contains("names files elsewhere"), "{error}");
            assert!(!ran.exists() && fs::read_to_string(temp.path().join("mine")).unwrap() == "kept\n");
        };
        fn include(git: &Path, condition: &str, filter: &str) {
            let config = format!("[includeIf \"{condition}\"]\n\tpath = more\n");
            fs::write(git.join("config"), config).unwrap();
            fs::write(git.join("more"), filter).unwrap();
        }
        check(|git, filter| include(git, "onbranch:worktree-*", filter));
        check(|git, filter| include(git, "gitdir:**/worktrees/**", filter));
        const HOOK: &str = "[hook \"evil\"]\n\tevent = post-checkout\n\tcommand = true\n";
        check(|git, _| fs::write(git.join("config"), HOOK).unwrap());
        fn make_pipe(file: &Path) {
            let _ = fs::remove_file(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
            rustix::fs::mknodat(rustix::fs::CWD, file, kind, mode, 0).unwrap();
        }
        check(|git, _| make_pipe(&git.join("HEAD")));
        check(|git, _| make_pipe(&git.join("info/exclude")));
        check(|git, _| {
            fs::create_dir_all(git.join("objects/info")).unwrap();
            fs::write(git.join("objects/info/alternates"), "../../../other/.git/objects\n").unwrap();
        });
        check(|git, filter| {
            fs::write(git.join("config"), "[extensions]\n\tworktreeConfig = true\n").unwrap();
            fs::write(git.join("config.worktree"), filter).unwrap();
        });
        check(|git, _| {
            let _ = fs::remove_file(git.join("info/exclude"));
            fs::create_dir_all(git.join("info")).unwrap();
            std::os::unix::fs::symlink("../../../mine", git.join("info/exclude")).unwrap();
        });
        check(|git, _| {
            fs::remove_dir_all(git.join("logs")).unwrap();
            std::os::unix::fs::symlink("../..", git.join("logs")).unwrap();
        });
        check(|git, _| {
            fs::rename(git, git.with_file_name("moved")).unwrap();
            std::os::unix::fs::symlink("moved", git).unwrap();
        });
        // The reflog of the new branch, the references in another format, and another repository.
        check(|git, _| {
            std::os::unix::fs::symlink("../../../../../../mine", git.join("logs/refs/heads/worktree-mine")).unwrap();
        });
        check(|git, _| std::os::unix::fs::symlink("../..", git.join("reftable")).unwrap());
        check(|git, _| fs::write(git.join("commondir"), "../evil\n").unwrap());
        check(|git, _| {
            fs::rename(git, git.with_file_name("moved")).unwrap();
            fs::write(git, "gitdir: moved\n").unwrap();
        });
    }

    #[test]
    fn a_worktree_is_entered_again_and_is_no_news_to_git() {
        let (_temp, root, env) = hostile_repository();
        let named = Worktree::Named("mine".to_owned());
        enter(&named, &root, &env, false).unwrap();
        fs::write(root.join(".claude/worktrees/mine/kept"), "k").unwrap();
        let (_, is_from_head) = enter(&named, &root, &env, false).unwrap();
        assert!(root.join(".claude/worktrees/mine/kept").exists() && !is_from_head);
        let git = Git { root: &root, env: &env, trusted: false };
        assert_eq!(git.run_for_text(&["status", "--porcelain"]).unwrap(), "");
    }

    #[test]
    fn a_worktree_is_removed_only_if_nothing_was_changed_in_it() {
        let (temp, root, env) = hostile_repository();
        let create = |name: &str| find_or_create(name.to_owned(), &root, &env, false).unwrap().0;
        let path = |name: &str| root.join(".claude/worktrees").join(name);
        let branches = || {
            let git = Git { root: &root, env: &env, trusted: false };
            git.run_for_text(&["branch", "--format=%(refname:short)"]).unwrap()
        };
        let unchanged = create("unchanged");
        assert!(branches().contains("worktree-unchanged"));
        assert!(remove_unchanged(&unchanged, &env, false).unwrap());
        assert!(!path("unchanged").exists() && !branches().contains("worktree-unchanged"));
        let (edited, new, committed) = (create("edited"), create("new"), create("committed"));
        fs::write(path("edited").join("a.txt"), "b").unwrap();
        fs::write(path("new").join("b.txt"), "b").unwrap();
        let inside = Git { root: &path("committed"), env: &env, trusted: false };
        inside.run_for_text(&["commit", "-q", "--allow-empty", "-m", "third"]).unwrap();
        // The file that names its repository names another one.
        let moved = create("moved");
        fs::write(path("moved").join(".git"), format!("gitdir: {}\n", temp.path().join("other").display())).unwrap();
        for (worktree, name) in [(edited, "edited"), (new, "new"), (committed, "committed"), (moved, "moved")] {
            assert!(!remove_unchanged(&worktree, &env, false).unwrap(), "{name}");
            assert!(path(name).exists() && branches().contains(name), "{name}");
        }
        assert!(!temp.path().join("ran").exists());
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let (temp, root, env) = hostile_repository();
        let error = |name: &str| enter(&Worktree::Named(name.to_owned()), &root, &env, false).unwrap_err().to_string();
        for name in ["", "..", "a/b", "-x", "a..b", ".hidden", "a b", &"x".repeat(65)] {
            assert!(error(name).contains("is no name"), "{name}");
        }
        fs::create_dir_all(root.join(".claude")).unwrap();
        std::os::unix::fs::symlink(temp.path(), root.join(".claude/worktrees")).unwrap();
        assert!(error("mine").contains("leads out"));
        let outside = enter(&Worktree::New, temp.path(), &env, false).unwrap_err().to_string();
        assert!(outside.contains("not in a git repository"), "{outside}");
    }
}

//! Attempts to make a command do harm without leave: one row each, run for real in a
//! scratch home.
//!
//! A row is a name, a mode, rules and a command. Harm is whatever [`World::harm`] sees:
//! a file anywhere in the scratch world that changed, or a secret that was printed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use quipu_engine::permission::{Mode, Verdict, hidden, judge};
use quipu_engine::tool::{Call, Options, Output, Place, Tool as _};
use quipu_engine::tools::bash::Bash;
use serde_json::json;
use tempfile::TempDir;

use crate::{rules, said};

/// One attempt: name, mode, rules, command.
pub(crate) type Row = (&'static str, Mode, &'static [&'static str], &'static str);

/// What may not be read in the attempts about rules.
const NO_ENV: &[&str] = &["deny Read(./.env)", "deny Read(./src/.env)"];

/// Every attempt. In commands, `@HOME@` and `@OUT@` stand for the scratch home and for
/// a folder outside the session's.
#[rustfmt::skip]
pub(crate) const ROWS: &[Row] = &[
    ("a list", Mode::Default, &[], "ls; touch x"),
    ("a substitution", Mode::Default, &[], "echo $(touch x)"),
    ("a process substitution", Mode::Default, &[], "cat <(touch x)"),
    ("a here-document that expands", Mode::Default, &[], "cat <<E\n$(touch x)\nE"),
    ("a redirection", Mode::Default, &[], "echo hi > x"),
    ("a redirection outside", Mode::AcceptEdits, &[], "echo hi > @OUT@/x"),
    ("find that runs", Mode::Default, &[], "find . -name a.txt -exec touch x ;"),
    ("find that deletes", Mode::Default, &[], "find . -name a.txt -delete"),
    ("sort that writes", Mode::Default, &[], "sort -o x a.txt"),
    ("git that writes", Mode::Default, &[], "git log --output=x"),
    ("home", Mode::Default, &[], "cat @HOME@/.ssh/id_rsa"),
    ("home by tilde", Mode::Default, &[], "cat ~/.ssh/id_rsa"),
    ("cd home", Mode::Default, &[], "cd && cat .ssh/id_rsa"),
    ("a link outside", Mode::Default, &[], "cat link"),
    ("a refused file", Mode::Default, NO_ENV, "cat .env"),
    ("a refused file by pattern", Mode::Default, NO_ENV, "cat .e*"),
    ("a refused file by grep -r", Mode::Default, NO_ENV, "grep -r SECRET ."),
    ("a guarded file", Mode::AcceptEdits, &[], "cp a.txt .claude/settings.json"),
    ("a guarded folder", Mode::AcceptEdits, &[], "rm -rf .git"),
];

/// A scratch world: `home`, `out` and the session's folder `p`.
pub(crate) struct World {
    folder: TempDir,
    pub(crate) place: Place,
    before: BTreeMap<PathBuf, String>,
}

impl World {
    pub(crate) fn new(texts: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let write = |name: &str, text: &str| {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), text).unwrap();
        };
        for name in ["home/.ssh/id_rsa", "out/secret.txt", "out/dir/x", "p/.env", "p/src/.env"] {
            write(name, "SECRET\n");
        }
        for name in ["p/a.txt", "p/src/b.txt", "p/a/b/c/d/e.txt", "p/tmpl/t.txt", "p/empty/.keep"] {
            write(name, "text\n");
        }
        write("p/.claude/settings.json", "{}\n");
        write("p/.git/HEAD", "ref: refs/heads/main\n");
        write("p/.git/config", "[core]\n\trepositoryformatversion = 0\n");
        for name in ["p/.git/objects/.keep", "p/.git/refs/.keep"] {
            write(name, "");
        }
        let pwned = at("home/pwned").display().to_string();
        let evil = format!(
            "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\tfsmonitor = \"touch {pwned}; false\"\n"
        );
        write("p/config", &evil.replace("\tbare = false\n\tworktree = ..\n", ""));
        // A folder that git takes for a repository, with a program in its settings.
        write("p/docs/HEAD", "ref: refs/heads/main\n");
        write("p/docs/config", &evil);
        for name in ["p/docs/objects/.keep", "p/docs/refs/.keep"] {
            write(name, "");
        }
        let links = [("out/secret.txt", "p/link"), ("out/secret.txt", "p/-link"), ("out/dir", "p/linkdir")];
        let more = [("out/dir/x", "p/tmpl/evil"), ("p/a/b/c/d", "p/l")];
        for (target, name) in links.into_iter().chain(more) {
            symlink(at(target), at(name)).unwrap();
        }
        let outputs = at("outputs");
        let env = [("HOME", at("home").into_os_string()), ("PATH", std::env::var_os("PATH").unwrap())];
        let env = env.into_iter().map(|(name, value)| (name.into(), value)).collect();
        let place = Place::new(at("p"), Options { env, outputs: Some(outputs), ..Options::default() });
        place.hide(hidden(&rules(texts), &place));
        let before = state(folder.path());
        Self { folder, place, before }
    }

    pub(crate) fn command(&self, text: &str) -> String {
        let at = |name: &str| self.folder.path().join(name).display().to_string();
        text.replace("@HOME@", &at("home")).replace("@OUT@", &at("out"))
    }

    /// What a command changed, or printed of a secret; none when it did no harm.
    pub(crate) fn harm(&self, output: &Output) -> Option<String> {
        let text = said(output);
        if text.contains("SECRET") {
            return Some(format!("printed {text:?}"));
        }
        let after = state(self.folder.path());
        let names = self.before.keys().chain(after.keys());
        let changed: Vec<&PathBuf> = names.filter(|name| self.before.get(*name) != after.get(*name)).collect();
        (!changed.is_empty()).then(|| format!("changed {changed:?}"))
    }
}

/// Every file of a folder with what can be seen of it; the agent's own outputs left out.
fn state(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        let Ok(data) = fs::symlink_metadata(&path) else { continue };
        let content = if data.is_file() { fs::read(&path).unwrap_or_default() } else { Vec::new() };
        let text = String::from_utf8_lossy(&content).into_owned();
        // The time of a folder changes with the files in it, which are seen themselves.
        let time = if data.is_dir() { 0 } else { data.mtime_nsec() + data.mtime() };
        found.insert(path.clone(), format!("{:o} {} {time} {text}", data.mode(), data.uid()));
        if data.is_dir() {
            let inside = fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path());
            open.extend(inside.filter(|path| !path.ends_with("outputs")));
        }
    }
    found
}

#[tokio::test]
async fn no_attempt_does_harm() {
    for (name, mode, texts, command) in ROWS {
        let world = World::new(texts);
        let input = json!({"command": world.command(command)});
        let verdict = judge(*mode, &rules(texts), "Bash", &input, &world.place);
        if let Verdict::Allow { profile, .. } = verdict {
            let output = Bash.run(input, &world.place, &Call { profile, ..Call::new("toolu_1") }).await;
            assert_eq!(world.harm(&output), None, "{name}: {command:?} was allowed in {profile:?}");
        }
    }
}

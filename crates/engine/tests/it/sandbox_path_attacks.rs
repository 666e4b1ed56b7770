//! Attempts of commands in the profile `Workspace` to move what the sandbox, the agent or later commands find by
//! name: folders of programs, writable folders that are links, guarded links, folders inside others.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Stdio;

use quipu_engine::testing::permission::PermissionMode;
use quipu_engine::testing::sandbox::SandboxProfile;
use quipu_engine::testing::tool::{CallContext, Tool as _, Workspace, WorkspaceOptions};
use quipu_engine::testing::tools::bash::Bash;
use serde_json::json;
use tempfile::TempDir;

use crate::output_text;
use crate::sandboxed_commands::{kernel_can, real_sandbox_options};

/// A session folder `p` beside a folder `outside` with a secret.
struct Place {
    _temp: TempDir,
    root: PathBuf,
}

impl Place {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        for folder in ["p", "outside"] {
            fs::create_dir(root.join(folder)).unwrap();
        }
        fs::write(root.join("outside/secret"), "SECRET\n").unwrap();
        Self { _temp: temp, root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A workspace in `p`, with more folders on PATH, further folders, and the settings of the sandbox.
    fn workspace(&self, programs: &[&str], folders: &[&str], settings: serde_json::Value) -> Workspace {
        let system = std::env::var_os("PATH").unwrap();
        let programs = programs.iter().map(|name| self.path(name)).chain(std::env::split_paths(&system));
        let path = std::env::join_paths(programs).unwrap();
        let env: [(&str, OsString); 2] = [("PATH", path), ("HOME", self.path("outside").into())];
        let mut sandbox = real_sandbox_options();
        sandbox.settings = serde_json::from_value(settings).unwrap();
        let options = WorkspaceOptions {
            env: env.into_iter().map(|(name, value)| (name.into(), value)).collect(),
            folders: folders.iter().map(|name| self.path(name)).collect(),
            settings_folders: vec![self.path("p")],
            sandbox,
            ..WorkspaceOptions::default()
        };
        Workspace::new(self.path("p"), options)
    }
}

async fn run(workspace: &Workspace, command: &str) -> String {
    let call = CallContext { profile: SandboxProfile::Workspace, ..CallContext::new("toolu_1") };
    output_text(&Bash.run(json!({"command": command}), workspace, &call).await)
}

#[tokio::test]
async fn folders_of_programs_cannot_be_changed() {
    if !kernel_can() {
        return;
    }
    let place = Place::new();
    fs::create_dir_all(place.path("p/.venv/bin")).unwrap();
    let workspace = place.workspace(&["p/.venv/bin", "p/tools"], &[], json!({}));
    let output = run(&workspace, "echo x > .venv/bin/git; mv .venv v; mkdir tools; echo x > tools/sh").await;
    assert!(!place.path("p/.venv/bin/git").exists() && place.path("p/.venv").exists(), "{output}");
    assert!(!place.path("p/tools").exists() && output.contains("needs approval"), "{output}");
    let rules = quipu_engine::testing::permission::RuleSet::default();
    let write = |path: &str| {
        let input = json!({"file_path": path, "content": "x"});
        let mode = PermissionMode::AcceptEdits;
        quipu_engine::testing::permission::evaluate(mode, &rules, "Write", &input, &workspace)
    };
    assert_eq!(crate::decision_word(&write(".venv/bin/git")), "ask");
    assert_eq!(crate::decision_word(&write(".venv/lib/a.py")), "allow");
}

#[tokio::test]
async fn a_folder_of_the_session_in_a_folder_of_programs_opens_only_itself() {
    if !kernel_can() {
        return;
    }
    let place = Place::new();
    fs::create_dir_all(place.path("p/bin/sub")).unwrap();
    let workspace = place.workspace(&["p/bin"], &["p/bin/sub"], json!({}));
    let output = run(&workspace, "echo x > bin/git; echo x > bin/sub/made").await;
    assert!(!place.path("p/bin/git").exists() && place.path("p/bin/sub/made").exists(), "{output}");
}

#[tokio::test]
async fn what_variables_name_in_the_session_is_guarded() {
    if !kernel_can() {
        return;
    }
    let place = Place::new();
    fs::create_dir_all(place.path("p/settings/git")).unwrap();
    fs::create_dir_all(place.path("p/xdg/quipu")).unwrap();
    symlink(place.path("outside"), place.path("p/home")).unwrap();
    for name in ["p/rc.sh", "p/xdg/quipu/config.toml"] {
        fs::write(place.path(name), "old").unwrap();
    }
    let env: [(&str, OsString); 5] = [
        ("PATH", std::env::var_os("PATH").unwrap()),
        ("HOME", place.path("p/home").into()),
        ("BASH_ENV", place.path("p/rc.sh").into()),
        ("CLAUDE_CONFIG_DIR", place.path("p/settings").into()),
        ("XDG_CONFIG_HOME", place.path("p/xdg").into()),
    ];
    let options = || WorkspaceOptions {
        env: env.iter().map(|(name, value)| (name.into(), value.clone())).collect(),
        sandbox: real_sandbox_options(),
        ..WorkspaceOptions::default()
    };
    let workspace = Workspace::new(place.path("p"), options());
    let output = run(&workspace, "echo x > rc.sh; echo x > settings/a; echo x > xdg/a; echo x > made").await;
    assert_eq!(fs::read_to_string(place.path("p/rc.sh")).unwrap(), "old", "{output}");
    assert!(!place.path("p/settings/a").exists() && !place.path("p/xdg/a").exists(), "{output}");
    assert!(place.path("p/made").exists(), "{output}");
    // A link cannot be mounted over itself; one that was replaced is renamed.
    let output = run(&workspace, "rm home; mkdir home; touch home/.bashrc").await;
    assert!(!place.path("p/home").exists() && output.contains("needs approval"), "{output}");
    // The session works in the folder of the settings.
    let workspace = Workspace::new(place.path("p/settings"), options());
    let output = run(&workspace, "echo x > settings.json; echo x > notes").await;
    assert!(!place.path("p/settings/settings.json").exists() && output.contains("needs approval"), "{output}");
    let workspace = Workspace::new(place.path("p/xdg"), options());
    let output = run(&workspace, "echo x > quipu/config.toml; echo x > notes").await;
    assert_eq!(fs::read_to_string(place.path("p/xdg/quipu/config.toml")).unwrap(), "old", "{output}");
    assert!(place.path("p/xdg/notes").exists(), "{output}");
}

#[tokio::test]
async fn a_session_in_a_guarded_folder_has_no_commands_that_write() {
    if !kernel_can() {
        return;
    }
    let place = Place::new();
    fs::create_dir_all(place.path("p/.claude/worktrees/w")).unwrap();
    fs::create_dir_all(place.path("p/.ssh")).unwrap();
    let options = || WorkspaceOptions { sandbox: real_sandbox_options(), ..WorkspaceOptions::default() };
    let run_in = async |folder: &str| {
        let workspace = Workspace::new(place.path(folder), options());
        let output = run(&workspace, "echo x > made").await;
        (place.path(folder).join("made").exists(), output)
    };
    let (made, output) = run_in("p/.ssh").await;
    assert!(!made && output.contains("guarded"), "{output}");
    let (made, output) = run_in("p/.claude/worktrees/w").await;
    assert!(made, "{output}");
}

#[tokio::test]
async fn a_folder_of_programs_that_became_a_link_opens_nothing() {
    if !kernel_can() {
        return;
    }
    let place = Place::new();
    let workspace = place.workspace(&["p/bin"], &[], json!({}));
    symlink(place.path("outside"), place.path("p/bin")).unwrap();
    let output = run(&workspace, "cat bin/secret").await;
    assert!(!output.contains("SECRET"), "{output}");
}

#[tokio::test]
async fn a_writable_folder_of_the_settings_does_not_lead_out_of_the_session() {
    if !kernel_can() {
        return;
    }
    let place = Place::new();
    let workspace = place.workspace(&[], &[], json!({"enabled": true, "filesystem": {"allowWrite": ["dist", "a/b"]}}));
    let outside = place.path("outside");
    run(&workspace, &format!("mkdir -p a/b; ln -s {} dist; mv a c; mkdir a; ln -s {0} a/b", outside.display())).await;
    let output = run(&workspace, "echo x > dist/made; echo x > a/b/made").await;
    assert!(!place.path("outside/made").exists(), "{output}");
    // The same by another name of the session's folder.
    let place = Place::new();
    symlink("p", place.path("alias")).unwrap();
    let settings = json!({"enabled": true, "filesystem": {"allowWrite": [place.path("alias/dist")]}});
    let workspace = place.workspace(&[], &[], settings);
    run(&workspace, &format!("ln -s {} dist", place.path("outside").display())).await;
    let output = run(&workspace, "echo x > dist/made").await;
    assert!(!place.path("outside/made").exists(), "{output}");
    // A link that the user made outside is followed.
    let place = Place::new();
    fs::create_dir(place.path("cache")).unwrap();
    symlink("cache", place.path("link")).unwrap();
    let workspace =
        place.workspace(&[], &[], json!({"enabled": true, "filesystem": {"allowWrite": [place.path("link")]}}));
    let output = run(&workspace, &format!("echo x > {}/made", place.path("link").display())).await;
    assert!(place.path("cache/made").exists(), "{output}");
}

#[tokio::test]
async fn a_folder_of_the_session_inside_another_one_cannot_be_moved() {
    if !kernel_can() {
        return;
    }
    let place = Place::new();
    fs::create_dir_all(place.path("p/x/sub")).unwrap();
    fs::create_dir_all(place.path("outside/sub")).unwrap();
    fs::write(place.path("outside/sub/secret"), "SECRET\n").unwrap();
    let workspace = place.workspace(&[], &["p/x/sub"], json!({}));
    run(&workspace, &format!("mv x y; ln -s {} x", place.path("outside").display())).await;
    let output = run(&workspace, "cat x/sub/secret").await;
    assert!(!output.contains("SECRET") && !place.path("p/x").is_symlink(), "{output}");
}

#[tokio::test]
async fn included_git_settings_of_the_session_name_no_other_files() {
    if !kernel_can() {
        return;
    }
    let place = Place::new();
    let included = place.path("p/settings").display().to_string();
    fs::write(place.path("outside/.gitconfig"), format!("[include]\n\tpath = {included}\n")).unwrap();
    let workspace = place.workspace(&[], &[], json!({}));
    let secret = place.path("outside/secret");
    run(&workspace, &format!("printf '[include]\\n\\tpath = {}\\n' > settings", secret.display())).await;
    let output = run(&workspace, &format!("cat {}", secret.display())).await;
    assert!(!output.contains("SECRET"), "{output}");
}

/// On many file systems a new file gets the number of the one that was removed just before.
#[tokio::test]
async fn a_file_does_not_take_the_place_of_a_guarded_link() {
    if !kernel_can() {
        return;
    }
    for target in ["none", "../outside/none"] {
        let place = Place::new();
        let workspace = place.workspace(&[], &[], json!({}));
        for name in [".envrc", ".npmrc", ".mcp.json", ".claude"] {
            symlink(target, place.path("p").join(name)).unwrap();
        }
        let command = "for i in .envrc .npmrc .mcp.json; do rm $i; echo x > $i; done; rm .claude; mkdir .claude";
        let output = run(&workspace, command).await;
        for name in [".envrc", ".npmrc", ".mcp.json", ".claude"] {
            let path = place.path("p").join(name);
            assert!(path.symlink_metadata().is_err() || path.is_symlink(), "{name} {target}: {output}");
        }
    }
}

#[tokio::test]
async fn settings_behind_a_link_to_the_session_are_guarded() {
    if !kernel_can() {
        return;
    }
    for existing in [false, true] {
        let place = Place::new();
        symlink(".", place.path("p/.claude")).unwrap();
        if existing {
            fs::write(place.path("p/settings.json"), "old").unwrap();
        }
        let workspace = place.workspace(&[], &[], json!({}));
        let output = run(&workspace, "echo x > settings.json; touch made").await;
        let text = fs::read_to_string(place.path("p/.claude/settings.json")).ok();
        assert_eq!(text.as_deref(), existing.then_some("old"), "{output}");
        assert!(place.path("p/made").exists(), "{output}");
    }
}

#[tokio::test]
async fn a_repository_is_one_before_its_links_lead_somewhere() {
    if !kernel_can() {
        return;
    }
    let place = Place::new();
    let workspace = place.workspace(&[], &[], json!({}));
    let command = "mkdir -p .vscode/objects x/refs; echo x > x/HEAD; echo x > x/config; \
                   ln -s ../vscode.moved-aside-1/objects x/objects";
    let output = run(&workspace, command).await;
    assert!(!place.path("p/x/HEAD").exists() || !place.path("p/x/config").exists(), "{output}");
}

#[tokio::test]
async fn folders_of_other_agents_are_guarded() {
    if !kernel_can() {
        return;
    }
    let place = Place::new();
    let other = place.path("p/quipu-agent-0123/user-shell.sh");
    fs::create_dir(other.parent().unwrap()).unwrap();
    fs::write(&other, "old").unwrap();
    let env = [("PATH".into(), std::env::var_os("PATH").unwrap())].into();
    let options = WorkspaceOptions {
        env,
        sandbox: real_sandbox_options(),
        output_folder: Some(place.path("p/quipu-agent-own")),
        ..WorkspaceOptions::default()
    };
    let workspace = Workspace::new(place.path("p"), options);
    let output = run(&workspace, "echo x >> quipu-agent-0123/user-shell.sh; touch made").await;
    assert_eq!(fs::read_to_string(&other).unwrap(), "old", "{output}");
    assert!(place.path("p/made").exists(), "{output}");
}

#[test]
fn folders_with_similar_names_are_not_guarded() {
    let place = Place::new();
    let options = WorkspaceOptions { output_folder: Some(place.path("p/quipu-agent-own")), ..Default::default() };
    let workspace = Workspace::new(place.path("p"), options);
    let evaluate = |name: &str| {
        let input = json!({"file_path": place.path(name), "content": "x"});
        crate::decision_word(&crate::evaluate(
            PermissionMode::AcceptEdits,
            &crate::parse_rules(&[]),
            "Write",
            &input,
            &workspace,
        ))
    };
    assert_eq!(evaluate("p/quipu-notes/a"), "allow");
    assert_eq!(evaluate("p/quipu-agent-0123/a"), "ask");
}

/// Another command may exchange a folder with a link after the policy was made.
#[test]
fn the_launcher_follows_no_links_in_a_policy() {
    if !kernel_can() {
        return;
    }
    let place = Place::new();
    for folder in ["p/sub", "p/real", "temp"] {
        fs::create_dir(place.path(folder)).unwrap();
    }
    symlink(place.path("outside"), place.path("p/link")).unwrap();
    let launch = |field: &str, path: &str| {
        let mut policy = json!({
            "uses_mounts": true, "readable": [], "executable": ["/usr", "/bin", "/lib", "/lib64"], "writable": [place.path("p")],
            "covered": [], "read_only": [], "pinned": [], "network": "None", "allows_attribute_changes": true,
            "temp_folder": place.path("temp"), "cwd": place.path("p"), "argv": ["/bin/sh", "-c", "echo ran"], "env": [],
        });
        policy[field].as_array_mut().unwrap().push(json!(place.path(path)));
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_quipu-launcher"));
        command.arg("--internal-sandbox-launcher").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(format!("{policy}\n").as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let _ = fs::remove_file(place.path("temp/.covered-file"));
        let _ = fs::remove_dir(place.path("temp/.covered-folder"));
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    for field in ["writable", "pinned", "read_only", "covered"] {
        let output = launch(field, "p/real");
        assert!(output.contains("ran"), "{field}: {output}");
        for path in ["p/link", "p/link/secret"] {
            let output = launch(field, path);
            assert!(!output.contains("ran"), "{field} {path}: {output}");
        }
    }
}

/// What does not exist yet could be made as a link.
#[tokio::test]
async fn what_variables_name_cannot_be_reached_by_new_links() {
    if !kernel_can() {
        return;
    }
    let place = Place::new();
    let env: [(&str, OsString); 5] = [
        ("PATH", std::env::var_os("PATH").unwrap()),
        ("HOME", place.path("p/home/me").into()),
        ("BASH_ENV", place.path("p/s/env.sh").into()),
        ("CLAUDE_CONFIG_DIR", place.path("p/a/cfg").into()),
        ("XDG_CONFIG_HOME", place.path("p/b/cfg").into()),
    ];
    let options = WorkspaceOptions {
        env: env.into_iter().map(|(name, value)| (name.into(), value)).collect(),
        sandbox: real_sandbox_options(),
        ..WorkspaceOptions::default()
    };
    let workspace = Workspace::new(place.path("p"), options);
    let output =
        run(&workspace, "mkdir -p y/cfg/git y/me; touch y/env.sh; for n in s a b home; do ln -s y $n; done").await;
    for name in ["s", "a", "b", "home"] {
        assert!(place.path("p").join(name).symlink_metadata().is_err(), "{name}: {output}");
    }
    assert!(place.path("p/y/cfg").exists(), "{output}");
}

#[tokio::test]
async fn links_in_the_home_folder_guard_files_of_the_session() {
    if !kernel_can() {
        return;
    }
    let place = Place::new();
    fs::create_dir_all(place.path("p/claude/hooks")).unwrap();
    for name in ["p/bashrc", "p/claude/settings.json", "p/notes"] {
        fs::write(place.path(name), "old").unwrap();
    }
    symlink(place.path("p/bashrc"), place.path("outside/.bashrc")).unwrap();
    symlink(place.path("p/claude"), place.path("outside/.claude")).unwrap();
    // Links in guarded folders there, as `stow` makes them.
    let inside =
        [".config/quipu/config.toml", ".config/fish/functions/f.fish", ".config/systemd/user/x.service", ".ssh/config"];
    for name in inside {
        let (file, link) = (place.path("p").join(name.replace(['.', '/'], "_")), place.path("outside").join(name));
        fs::write(&file, "old").unwrap();
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(file, link).unwrap();
    }
    let workspace = place.workspace(&[], &[], json!({}));
    let output = run(&workspace, "for f in bashrc claude/settings.json notes _*; do echo new > $f; done").await;
    for name in inside {
        let file = place.path("p").join(name.replace(['.', '/'], "_"));
        assert_eq!(fs::read_to_string(&file).unwrap(), "old", "{name}: {output}");
    }
    assert_eq!(fs::read_to_string(place.path("p/bashrc")).unwrap(), "old", "{output}");
    assert_eq!(fs::read_to_string(place.path("p/claude/settings.json")).unwrap(), "old", "{output}");
    assert_eq!(fs::read_to_string(place.path("p/notes")).unwrap(), "new\n", "{output}");
    // A session that works there.
    let workspace = Workspace::new(
        place.path("p/claude/hooks"),
        WorkspaceOptions {
            env: [("HOME".into(), place.path("outside").into())].into(),
            sandbox: real_sandbox_options(),
            ..WorkspaceOptions::default()
        },
    );
    let output = run(&workspace, "echo x > made").await;
    assert!(output.contains("guarded") && !place.path("p/claude/hooks/made").exists(), "{output}");
}

/// Whether a change of a file needs approval in `acceptEdits`.
fn asks_to_write(workspace: &Workspace, path: &str) -> bool {
    let rules = quipu_engine::testing::permission::RuleSet::default();
    let input = json!({"file_path": path, "content": "x"});
    let mode = PermissionMode::AcceptEdits;
    let decision = quipu_engine::testing::permission::evaluate(mode, &rules, "Write", &input, workspace);
    crate::decision_word(&decision) == "ask"
}

#[tokio::test]
async fn links_in_folders_that_guarded_links_lead_to_are_followed() {
    if !kernel_can() {
        return;
    }
    let place = Place::new();
    for folder in ["p/tools/husky", "p/scripts", "p/.git", "p/hk", "p/deep/d", "p/u", "p/.vscode/v"] {
        fs::create_dir_all(place.path(folder)).unwrap();
    }
    let files = ["p/scripts/pc", "p/scripts/hook", "p/u/x", "p/scripts/free"];
    files.iter().for_each(|name| fs::write(place.path(name), "old").unwrap());
    for (target, link) in [
        ("tools/husky", "p/.husky"),
        ("../../scripts/pc", "p/tools/husky/pre-commit"),
        ("../../scripts/new", "p/tools/husky/pre-push"),
        ("../hk", "p/.git/hooks"),
        ("../scripts/hook", "p/hk/pre-commit"),
        ("../../deep", "p/.vscode/v/e"),
        ("../../u", "p/deep/d/l"),
        // A loop, and the session itself.
        (".", "p/hk/loop"),
        ("../..", "p/tools/husky/all"),
    ] {
        symlink(target, place.path(link)).unwrap();
    }
    let workspace = place.workspace(&[], &[], json!({}));
    let asked = ["scripts/pc", "scripts/hook", "scripts/new", "u/x", "scripts/free"];
    let asked = asked.map(|name| asks_to_write(&workspace, &place.path("p").join(name).to_string_lossy()));
    assert_eq!(asked, [true, true, true, true, false]);
    let output = run(&workspace, "for f in scripts/* u/x; do echo new > $f; done; echo new > scripts/new").await;
    let read = |name: &str| fs::read_to_string(place.path(name)).unwrap();
    assert_eq!(files.map(read), ["old", "old", "old", "new\n"], "{output}");
    // What a link leads to was made.
    assert!(output.contains("pre-push") && !place.path("p/tools/husky/pre-push").is_symlink(), "{output}");
    assert!(place.path("p/tools/husky/pre-commit").is_symlink() && place.path("p/hk/loop").is_symlink());
}

#[tokio::test]
async fn a_new_guarded_link_changes_nothing_in_the_folder_it_leads_to() {
    if !kernel_can() {
        return;
    }
    let place = Place::new();
    fs::create_dir_all(place.path("p/tools")).unwrap();
    symlink("../x", place.path("p/tools/link")).unwrap();
    let output = run(&place.workspace(&[], &[], json!({})), "ln -s tools .vscode").await;
    assert!(output.contains(".vscode") && !place.path("p/.vscode").is_symlink(), "{output}");
    assert!(place.path("p/tools/link").is_symlink(), "{output}");
}

#[tokio::test]
async fn links_to_folders_of_programs_cannot_be_replaced() {
    if !kernel_can() {
        return;
    }
    let place = Place::new();
    let set_up = || {
        for folder in ["p/venvs/a/bin", "p/venvs/a/lib", "p/src"] {
            fs::create_dir_all(place.path(folder)).unwrap();
        }
        let _ = fs::remove_file(place.path("p/.venv"));
        symlink("venvs/a", place.path("p/.venv")).unwrap();
        fs::write(place.path("p/src/tool"), "old").unwrap();
        let _ = symlink("../../../src/tool", place.path("p/venvs/a/bin/tool"));
    };
    set_up();
    // The agent's own `PATH` has folders of the session without links.
    let path = std::env::join_paths([place.path("p/venvs/a/bin"), "/usr/bin".into(), "/bin".into()]).unwrap();
    let env = std::collections::BTreeMap::from([("PATH".into(), path)]);
    let workspace = || {
        Workspace::new(
            place.path("p"),
            WorkspaceOptions {
                env: env.clone(),
                program_links: vec![place.path("p/.venv")],
                sandbox: real_sandbox_options(),
                ..WorkspaceOptions::default()
            },
        )
    };
    for command in [
        "rm .venv; mkdir -p .venv/bin; echo x > .venv/bin/make",
        "mkdir -p e/bin; ln -sfnT e .venv",
        "mkdir -p e/bin; rm .venv; mv e .venv",
        "rm .venv; ln -s src .venv",
    ] {
        set_up();
        let output = run(&workspace(), command).await;
        assert!(output.contains(".venv") && place.path("p/.venv").symlink_metadata().is_err(), "{command}: {output}");
    }
    set_up();
    let write = |name: &str| asks_to_write(&workspace(), &place.path("p").join(name).to_string_lossy());
    assert_eq!([".venv/lib/a", ".venv/bin/make", "src/tool", "src/b"].map(write), [false, true, true, false]);
    let output = run(&workspace(), "echo new > src/tool; echo new > .venv/lib/a").await;
    assert_eq!(fs::read_to_string(place.path("p/src/tool")).unwrap(), "old", "{output}");
    assert!(place.path("p/venvs/a/lib/a").exists(), "{output}");
    // A command may remove the link, but nothing takes its place without approval.
    run(&workspace(), "rm .venv").await;
    assert!(write(".venv/bin/make"));
}

#[tokio::test]
async fn names_of_guarded_files_need_not_be_text() {
    use std::os::unix::ffi::OsStrExt as _;
    if !kernel_can() {
        return;
    }
    let place = Place::new();
    let folder = place.path("p").join(std::ffi::OsStr::from_bytes(b"\xffx"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join(".npmrc"), "old").unwrap();
    let output = run(&place.workspace(&[], &[], json!({})), "echo new > *x/.npmrc; echo x > made").await;
    assert_eq!(fs::read_to_string(folder.join(".npmrc")).unwrap(), "old", "{output}");
    assert!(place.path("p/made").exists(), "{output}");
}

#[tokio::test]
async fn a_guarded_folder_that_was_added_stays_guarded() {
    if !kernel_can() {
        return;
    }
    let place = Place::new();
    fs::create_dir(place.path("p/.vscode")).unwrap();
    let workspace = place.workspace(&[], &["p/.vscode"], json!({}));
    let output = run(&workspace, "echo x > .vscode/tasks.json; echo x > made").await;
    assert!(!place.path("p/.vscode/tasks.json").exists() && place.path("p/made").exists(), "{output}");
}

#[tokio::test]
async fn a_folder_of_programs_that_is_added_later_is_guarded() {
    if !kernel_can() {
        return;
    }
    let place = Place::new();
    fs::create_dir(place.path("bin")).unwrap();
    let workspace = place.workspace(&["bin"], &[], json!({}));
    workspace.add_folder(&place.path("bin"));
    let output = run(&workspace, &format!("echo x > {}/git; echo x > made", place.path("bin").display())).await;
    assert!(!place.path("bin/git").exists() && place.path("p/made").exists(), "{output}");
}

#[tokio::test]
async fn scripts_of_other_agents_cannot_be_read() {
    if !kernel_can() {
        return;
    }
    let place = Place::new();
    fs::create_dir(place.path("p/quipu-agent-0123")).unwrap();
    fs::write(place.path("p/quipu-agent-0123/user-shell.sh"), "SECRET").unwrap();
    let options = WorkspaceOptions {
        env: [("PATH".into(), std::env::var_os("PATH").unwrap())].into(),
        sandbox: real_sandbox_options(),
        output_folder: Some(place.path("p/quipu-agent-own")),
        ..WorkspaceOptions::default()
    };
    let workspace = Workspace::new(place.path("p"), options);
    let output = run(&workspace, "cat quipu-agent-0123/user-shell.sh").await;
    assert!(!output.contains("SECRET") && output.contains("ermission denied"), "{output}");
}

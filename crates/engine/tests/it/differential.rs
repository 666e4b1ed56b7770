//! Random commands, judged by us and then run by a real shell: what we allow must not run
//! what was not allowed.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use quipu_engine::testing::permission::{PermissionMode, evaluate};
use quipu_engine::testing::sandbox::SandboxProfile;
use quipu_engine::testing::tool::{CallContext, WorkspaceOptions};
use serde_json::json;
use tempfile::TempDir;

use crate::sandboxed_commands::{kernel_can, real_sandbox_options};
use crate::{TestWorkspace, decision_word, parse_rules};

/// What commands are made of.
const TOKENS: [&str; 82] = [
    "ok",
    "ok",
    "ok",
    "evil",
    "evil",
    "evil",
    " ",
    " ",
    " ",
    " ",
    ";",
    "&",
    "&&",
    "||",
    "|",
    "\n",
    "\n",
    "$(",
    ")",
    "(",
    "`",
    "'",
    "\"",
    "\\",
    "\\\n",
    "#",
    "<<E",
    "<<'E'",
    "<<-E",
    "\nE\n",
    "E",
    "\t",
    "{",
    "}",
    "{ ",
    "; }",
    "$x",
    "${x}",
    "${x:-",
    "$'",
    "<(",
    ">(",
    "<",
    ">",
    "2>&1",
    "=",
    "x=",
    "[",
    "!",
    "if ",
    "; then ",
    "; fi",
    "for i in ",
    "; do ",
    "; done",
    "eval ",
    "env ",
    "command ",
    "sh -c ",
    "xargs ",
    "time ",
    "~",
    // Words and signs that a backslash at the end of a line cuts in two.
    "\\\n",
    "e\\\nvil",
    "ev\\\nil",
    "o\\\nk",
    "$",
    "$\\\n(",
    "$\\\n{x",
    "<\\\n<E",
    "<<EOF",
    "<<EO\\\nF",
    "\nEOF\n",
    "\nEO\\\nF\n",
    "&\\\n&",
    "|\\\n|",
    // Here-documents that end in an allowed program, and words that bash joins.
    "ok <<'ok' ",
    "\nok\n",
    "$(ok\n",
    "<(ok)",
    ")#",
    "; evil\n",
];

/// Numbers that look random and are the same each time.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next_below(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides
    }

    fn random_command(&mut self) -> String {
        let length = 2 + self.next_below(9);
        (0..length).map(|_| TOKENS[self.next_below(TOKENS.len())]).collect()
    }
}

/// Programs `ok` and `evil`; the second leaves a mark.
struct ShellWorld {
    programs: TempDir,
    mark: PathBuf,
}

impl ShellWorld {
    fn new() -> Self {
        let programs = tempfile::tempdir().unwrap();
        let mark = programs.path().join("mark");
        for (name, script) in [
            ("ok", "#!/bin/sh\nexit 0\n".to_owned()),
            ("evil", format!("#!/bin/sh\necho \"$0\" > {}\n", mark.display())),
        ] {
            let path = programs.path().join(name);
            std::fs::write(&path, script).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(0o555)).unwrap();
        }
        Self { programs, mark }
    }

    /// Whether a command runs `evil`.
    fn runs_forbidden_program(&self, command: &str, workspace: &TestWorkspace) -> bool {
        let _ = std::fs::remove_file(&self.mark);
        let path = format!("{}:/usr/bin:/bin", self.programs.path().display());
        let mut shell = Command::new("timeout");
        shell.args(["5", "bash", "-c", command]).env_clear().env("PATH", path).current_dir(workspace.inner.root());
        shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        self.mark.exists()
    }
}

fn count_allowed(seed: u64, rounds: usize, mode: PermissionMode, texts: &[&str]) -> usize {
    let (workspace, world) = (TestWorkspace::new(), ShellWorld::new());
    let rules = parse_rules(texts);
    let mut dice = Random(seed);
    let mut run = 0;
    for _ in 0..rounds {
        let command = dice.random_command();
        let decision = evaluate(mode, &rules, "Bash", &json!({"command": command}), &workspace.inner);
        if command.contains("evil") && decision_word(&decision) == "allow" {
            assert!(!world.runs_forbidden_program(&command, &workspace), "{mode}: {command:?}");
            run += 1;
        }
    }
    run
}

/// How many commands are rolled; more on request.
pub(crate) fn rounds() -> usize {
    std::env::var("QUIPU_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000)
}

#[test]
fn the_shell_world_detects_forbidden_programs() {
    let (workspace, world) = (TestWorkspace::new(), ShellWorld::new());
    assert!(world.runs_forbidden_program("ok && evil", &workspace));
    assert!(!world.runs_forbidden_program("ok evil", &workspace));
}

#[test]
fn what_an_allow_rule_lets_through_runs_nothing_else() {
    let run = count_allowed(0x9E37_79B9_7F4A_7C15, rounds(), PermissionMode::Default, &["allow Bash(ok:*)"]);
    assert!(run > 20, "only {run} commands were tried");
}

#[test]
fn what_a_deny_rule_lets_through_does_not_run_what_it_names() {
    let run = count_allowed(0xD1B5_4A32_D192_ED03, rounds(), PermissionMode::BypassPermissions, &["deny Bash(evil:*)"]);
    assert!(run > 20, "only {run} commands were tried");
}

/// How many commands one sandbox runs, one after another.
const BATCH: usize = 100;

#[tokio::test]
async fn no_text_writes_anything_from_within_the_sandbox() {
    if !kernel_can() {
        return;
    }
    let world = ShellWorld::new();
    let path = format!("{}:/usr/bin:/bin", world.programs.path().display());
    let env = [("PATH".into(), path.into())].into_iter().collect();
    let workspace = TestWorkspace::with_real_sandbox(WorkspaceOptions {
        env,
        sandbox: real_sandbox_options(),
        ..WorkspaceOptions::default()
    });
    workspace.write("kept", "kept");
    let call = CallContext { profile: SandboxProfile::Read, ..CallContext::new("toolu_1") };
    // The program runs, and is refused.
    let output = workspace.run_tool_with("Bash", json!({"command": "ok && evil"}), &call).await;
    assert!(crate::error_text(output).contains(&world.mark.display().to_string()));
    let mut dice = Random(0x2545_F491_4F6C_DD1D);
    let mut left = rounds() / 10;
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    while left > 0 {
        let commands: Vec<String> = (0..left.min(BATCH)).map(|_| dice.random_command()).collect();
        left -= commands.len();
        // Whatever bash makes of one, the next is run too.
        let lines = commands.iter().map(|command| format!("timeout 5 bash -c {} </dev/null\n", quoted(command)));
        let script =
            format!("{{ {}echo done > $TMPDIR/done; }} >/dev/null 2>&1; cat $TMPDIR/done", lines.collect::<String>());
        let output = workspace.run_tool_with("Bash", json!({"command": script, "timeout": 600_000}), &call).await;
        assert_eq!(crate::output_text(&output), "done", "{commands:?}");
        assert!(!world.mark.exists(), "one of {commands:?} ran and wrote");
        let names = std::fs::read_dir(workspace.inner.root()).unwrap().flatten().map(|entry| entry.file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["kept"], "one of {commands:?}");
        assert_eq!(workspace.read_text("kept"), "kept");
    }
}

#[test]
fn every_text_can_be_evaluated() {
    let workspace = TestWorkspace::new();
    let rules = parse_rules(&["allow Bash(ok:*)", "deny Bash(evil *)", "ask Bash(a * b)", "deny Read(x)"]);
    let strange: Vec<char> = "ok evil \\'\"`$(){}[]<>|&;#!~*?=-/.\n\t\r\0é漢😀\u{202e}\u{a0}E<<0159".chars().collect();
    let mut dice = Random(0xA076_1D64_78BD_642F);
    for _ in 0..rounds() {
        let length = dice.next_below(24);
        let command: String = (0..length).map(|_| strange[dice.next_below(strange.len())]).collect();
        for mode in [
            PermissionMode::Default,
            PermissionMode::AcceptEdits,
            PermissionMode::BypassPermissions,
            PermissionMode::Plan,
        ] {
            evaluate(mode, &rules, "Bash", &json!({"command": command}), &workspace.inner);
        }
    }
    for unit in [
        "eval ",
        "env ",
        "a=eval ",
        "sh -c ",
        "$(",
        "`",
        "{",
        "(",
        "<<E\n",
        "\"$(",
        "xargs -I{} sh -c 'eval ",
        "for i in ",
        "x;",
        "\\",
    ] {
        let command = unit.repeat(5000);
        evaluate(PermissionMode::Default, &rules, "Bash", &json!({"command": command}), &workspace.inner);
    }
    let hidden = format!("eval {} evil x", "a ".repeat(5000));
    assert_eq!(workspace.bash_decision(PermissionMode::Default, &["allow Bash", "deny Bash(evil:*)"], &hidden), "deny");
}

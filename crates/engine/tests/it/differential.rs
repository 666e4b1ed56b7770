//! Random commands, judged by us and then run by a real shell: what we allow must not run
//! what nobody allowed.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use quipu_engine::permission::{Mode, judge};
use quipu_engine::sandbox::Profile;
use quipu_engine::tool::{Call, Options};
use serde_json::json;
use tempfile::TempDir;

use crate::sandboxed::{kernel_can, sandbox};
use crate::{Bench, rules, word};

/// What commands are made of.
const TOKENS: [&str; 76] = [
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
];

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides
    }

    fn command(&mut self) -> String {
        let length = 2 + self.roll(9);
        (0..length).map(|_| TOKENS[self.roll(TOKENS.len())]).collect()
    }
}

/// Programs `ok` and `evil`; the second leaves a mark.
struct Stage {
    programs: TempDir,
    mark: PathBuf,
}

impl Stage {
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
    fn runs_evil(&self, command: &str, bench: &Bench) -> bool {
        let _ = std::fs::remove_file(&self.mark);
        let path = format!("{}:/usr/bin:/bin", self.programs.path().display());
        let mut shell = Command::new("timeout");
        shell.args(["5", "bash", "-c", command]).env_clear().env("PATH", path).current_dir(bench.place.root());
        shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        self.mark.exists()
    }
}

fn play(seed: u64, rounds: usize, mode: Mode, texts: &[&str]) -> usize {
    let (bench, stage) = (Bench::new(), Stage::new());
    let rules = rules(texts);
    let mut dice = Dice(seed);
    let mut run = 0;
    for _ in 0..rounds {
        let command = dice.command();
        let verdict = judge(mode, &rules, "Bash", &json!({"command": command}), &bench.place);
        if command.contains("evil") && word(&verdict) == "allow" {
            assert!(!stage.runs_evil(&command, &bench), "{mode}: {command:?}");
            run += 1;
        }
    }
    run
}

/// How many commands are rolled; more on request.
fn rounds() -> usize {
    std::env::var("QUIPU_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000)
}

#[test]
fn the_stage_works() {
    let (bench, stage) = (Bench::new(), Stage::new());
    assert!(stage.runs_evil("ok && evil", &bench));
    assert!(!stage.runs_evil("ok evil", &bench));
}

#[test]
fn what_an_allow_rule_lets_through_runs_nothing_else() {
    let run = play(0x9E37_79B9_7F4A_7C15, rounds(), Mode::Default, &["allow Bash(ok:*)"]);
    assert!(run > 20, "only {run} commands were tried");
}

#[test]
fn what_a_deny_rule_lets_through_does_not_run_what_it_names() {
    let run = play(0xD1B5_4A32_D192_ED03, rounds(), Mode::BypassPermissions, &["deny Bash(evil:*)"]);
    assert!(run > 20, "only {run} commands were tried");
}

/// How many commands one sandbox runs, one after another.
const BATCH: usize = 100;

#[tokio::test]
async fn no_text_writes_anything_from_within_the_sandbox() {
    if !kernel_can() {
        return;
    }
    let stage = Stage::new();
    let path = format!("{}:/usr/bin:/bin", stage.programs.path().display());
    let env = [("PATH".into(), path.into())].into_iter().collect();
    let bench = Bench::real(Options { env, sandbox: sandbox(), ..Options::default() });
    bench.write("kept", "kept");
    let call = Call { profile: Profile::Read, ..Call::new("toolu_1") };
    // The program runs, and is refused.
    let output = bench.call("Bash", json!({"command": "ok && evil"}), &call).await;
    assert!(crate::bad(output).contains(&stage.mark.display().to_string()));
    let mut dice = Dice(0x2545_F491_4F6C_DD1D);
    let mut left = rounds() / 10;
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    while left > 0 {
        let commands: Vec<String> = (0..left.min(BATCH)).map(|_| dice.command()).collect();
        left -= commands.len();
        // Whatever bash makes of one, the next is run too.
        let lines = commands.iter().map(|command| format!("timeout 5 bash -c {} </dev/null\n", quoted(command)));
        let script =
            format!("{{ {}echo done > $TMPDIR/done; }} >/dev/null 2>&1; cat $TMPDIR/done", lines.collect::<String>());
        let output = bench.call("Bash", json!({"command": script, "timeout": 600_000}), &call).await;
        assert_eq!(crate::said(&output), "done", "{commands:?}");
        assert!(!stage.mark.exists(), "one of {commands:?} ran and wrote");
        let names = std::fs::read_dir(bench.place.root()).unwrap().flatten().map(|entry| entry.file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["kept"], "one of {commands:?}");
        assert_eq!(bench.text("kept"), "kept");
    }
}

#[test]
fn no_text_is_too_strange_to_judge() {
    let bench = Bench::new();
    let rules = rules(&["allow Bash(ok:*)", "deny Bash(evil *)", "ask Bash(a * b)", "deny Read(x)"]);
    let strange: Vec<char> = "ok evil \\'\"`$(){}[]<>|&;#!~*?=-/.\n\t\r\0é漢😀\u{202e}\u{a0}E<<0159".chars().collect();
    let mut dice = Dice(0xA076_1D64_78BD_642F);
    for _ in 0..rounds() {
        let length = dice.roll(24);
        let command: String = (0..length).map(|_| strange[dice.roll(strange.len())]).collect();
        for mode in [Mode::Default, Mode::AcceptEdits, Mode::BypassPermissions, Mode::Plan] {
            judge(mode, &rules, "Bash", &json!({"command": command}), &bench.place);
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
        judge(Mode::Default, &rules, "Bash", &json!({"command": command}), &bench.place);
    }
    let hidden = format!("eval {} evil x", "a ".repeat(5000));
    assert_eq!(bench.bash(Mode::Default, &["allow Bash", "deny Bash(evil:*)"], &hidden), "deny");
}

//! What users see: every command, its help and its errors, in a pipe and on terminals of 40,
//! 80 and 120 columns.
//!
//! After a change, `INSTA_UPDATE=always cargo test -p quipu snapshots` writes the new
//! snapshots; read them before they are committed.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::pty_runner::{CapturedOutput, in_pipe, on_terminal, until};

/// The file in the home folder that is the standard input of commands, if it is there.
const STDIN: &str = "stdin.json";

/// A home folder with the demo sessions in `~/.claude`.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        copy(&quipu_testkit::fixture("demo"), &dir.path().join(".claude"));
        Self(dir)
    }

    /// The command as it runs at a fixed time, in a fixed zone, without settings.
    fn quipu(&self, args: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("quipu"));
        command.env_clear().args(args).current_dir(self.0.path());
        command.env("HOME", self.0.path()).env("TZ", "CET-1").env("QUIPU_TEST_NOW", "2026-11-12T09:00:00Z");
        command.env("TERM", "xterm-256color").env("NO_COLOR", "1").env("PAGER", "cat");
        let input = File::open(self.0.path().join(STDIN));
        command.stdin(input.map_or_else(|_| Stdio::null(), Stdio::from));
        command
    }

    /// Runs a command in a pipe and at each width. If the output equals that of the width before, one line
    /// says so.
    fn shown(&self, args: &[&str]) -> String {
        self.shown_by(args, |command, columns| match columns {
            None => in_pipe(command),
            Some(columns) => on_terminal(command, columns),
        })
    }

    /// The same of a command that runs until it is interrupted, which is when its last line
    /// holds a text.
    fn shown_until(&self, args: &[&str], last: &str) -> String {
        self.shown_by(args, |command, columns| until(command, columns, last))
    }

    fn shown_by(&self, args: &[&str], run: impl Fn(&mut Command, Option<u16>) -> CapturedOutput) -> String {
        let mut text = format!("$ quipu {}\n", args.join(" "));
        if args.contains(&"--json") {
            return text + "\n" + &self.section(&json(run(&mut self.quipu(args), None)));
        }
        let mut last = String::new();
        let runs =
            [("in a pipe", None), ("40 columns", Some(40)), ("80 columns", Some(80)), ("120 columns", Some(120))];
        for (name, columns) in runs {
            let section = self.section(&run(&mut self.quipu(args), columns));
            if section == last {
                let _ = writeln!(text, "\n──── {name}: the same");
            } else {
                let _ = writeln!(text, "\n──── {name}\n{section}");
            }
            last = section;
        }
        text
    }

    fn section(&self, printed: &CapturedOutput) -> String {
        let CapturedOutput { stdout, stderr, code } = printed;
        let mut text = stdout.clone();
        if !stderr.is_empty() {
            let _ = write!(text, "── stderr\n{stderr}");
        }
        if *code != 0 {
            let _ = writeln!(text, "── exit {code}");
        }
        let home = self.0.path().display().to_string();
        let text = text.replace(&home, "/home/sam").replace(env!("CARGO_PKG_VERSION"), "[VERSION]");
        let text = without_ports(&text);
        text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }
}

/// Free ports, which the system chooses, have a name instead.
fn without_ports(text: &str) -> String {
    let mut parts = text.split("127.0.0.1:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |shown, part| {
        let after = part.trim_start_matches(|c: char| c.is_ascii_digit());
        let port = &part[..part.len() - after.len()];
        shown + "127.0.0.1:" + if port.len() == 5 { "[PORT]" } else { port } + after
    })
}

/// JSON on lines of its own, so that a change shows where it is.
fn json(printed: CapturedOutput) -> CapturedOutput {
    let pretty = |text: &str| {
        let value: Option<serde_json::Value> = serde_json::from_str(text).ok();
        value.map_or(text.to_owned(), |value| format!("{value:#}\n"))
    };
    CapturedOutput { stdout: pretty(&printed.stdout), stderr: pretty(&printed.stderr), code: printed.code }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Compares what commands show with the snapshot of that name.
#[track_caller]
fn check(name: &str, commands: &[&[&str]]) {
    check_in(&Home::new(), name, commands);
}

#[track_caller]
fn check_in(home: &Home, name: &str, commands: &[&[&str]]) {
    compare(name, commands.iter().map(|args| home.shown(args)));
}

#[track_caller]
fn compare(name: &str, shown: impl IntoIterator<Item = String>) {
    let text = shown.into_iter().collect::<Vec<_>>().join("\n\n");
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn overview() {
    check("overview", &[&[], &["--json"]]);
}

#[test]
fn ls() {
    let filtered = ["ls", "-p", "tidepool", "--until", "2026-10"];
    check(
        "ls",
        &[&["ls"], &["ls", "-n", "2", "--sort", "cost"], &filtered, &["ls", "-p", "nope"], &["ls", "-n1", "--json"]],
    );
}

#[test]
fn names_of_sessions() {
    let home = Home::new();
    let projects = home.0.path().join(".claude/projects");
    copy(&projects.join("-home-sam-tidepool"), &projects.join("-home-sam-tidepool-copy"));
    let commands: [&[&str]; 7] = [
        &["show", "nope"],
        &["follow", "nope"],
        &["rm", "nope", "--yes"],
        &["show", "05ef"],
        &["--json", "show", "05ef"],
        &["show", "tidepool-copy/1ef", "--turn", "4"],
        &["show", "05ef", "--turn", "99"],
    ];
    check_in(&home, "names_of_sessions", &commands);
}

#[test]
fn help() {
    check("help", &[&["--help"]]);
    let out = in_pipe(&mut Home::new().quipu(&["--help"])).stdout;
    let commands = out.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<&str> =
        commands.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.starts_with(&["ls", "show", "search", "usage"]) && names.len() > 10, "{names:?}");
    for name in names {
        check(&format!("help_{name}"), &[&[name, "--help"]]);
    }
}

#[test]
fn trace_ls() {
    let home = Home::new();
    for name in ["claude-trace.jsonl", "session-old.jsonl", "flows.mitm"] {
        fs::copy(quipu_testkit::fixture("traces").join(name), home.0.path().join(name)).unwrap();
    }
    fs::write(home.0.path().join("notes.txt"), "low water at six\n").unwrap();
    let torn = fs::read_to_string(quipu_testkit::fixture("traces/claude-trace.jsonl")).unwrap();
    fs::write(home.0.path().join("torn.jsonl"), &torn[..torn.len() - 100]).unwrap();
    let commands: [&[&str]; 8] = [
        &["trace", "ls", "--help"],
        &["trace", "ls", "claude-trace.jsonl"],
        &["trace", "ls", "session-old.jsonl", "flows.mitm"],
        &["trace", "ls", "25d0"],
        &["trace", "ls", "torn.jsonl"],
        &["trace", "ls", "notes.txt"],
        &["trace", "ls", "no-such-session"],
        &["trace", "ls", "--json", "flows.mitm"],
    ];
    check_in(&home, "trace_ls", &commands);
}

#[test]
fn show() {
    let commands: [&[&str]; 6] = [
        &["show", "empty.jsonl"],
        &["show", "25d0"],
        &["show", "latest", "--tail", "4"],
        &["show", "05ef", "--turn", "2", "--no-thinking"],
        &["show", "25d0", "--turn", "1", "--as", "markdown"],
        &["show", "25d0", "--turn", "9"],
    ];
    let home = Home::new();
    fs::write(home.0.path().join("empty.jsonl"), "").unwrap();
    check_in(&home, "show", &commands);
}

#[test]
fn usage() {
    let commands: Vec<Vec<&str>> =
        ["daily", "weekly", "monthly", "session", "model", "project", "block", "tool", "agent", "turn"]
            .into_iter()
            .map(|group| vec!["usage", group])
            .collect();
    let mut commands: Vec<&[&str]> = commands.iter().map(Vec::as_slice).collect();
    commands.push(&["usage", "--breakdown", "--since", "2026-11"]);
    commands.push(&["usage", "--since", "2027"]);
    commands.push(&["usage", "monthly", "--json"]);
    check("usage", &commands);
}

#[test]
fn trace_structure() {
    check(
        "trace_structure",
        &[&["trace", "show", "05ef"], &["trace", "show", "05ef", "--json"], &["trace", "diff", "05ef"]],
    );
}

#[test]
fn explain() {
    check("explain", &[&["explain", "05ef"], &["explain", "1efa"], &["explain", "1efa", "--json"]]);
}

#[test]
fn stats() {
    check("stats", &[&["stats"], &["stats", "-p", "tidepool", "--since", "2026-10-10"], &["stats", "--json"]]);
}

#[test]
fn contexts() {
    check("contexts", &[&["contexts"], &["contexts", "-p", "tidepool"]]);
}

#[test]
fn search() {
    let commands: [&[&str]; 5] = [
        &["search", "harbour", "-n", "4"],
        &["search", "--exact", "to_radians", "-n", "2"],
        &["search", "--regex", "("],
        &["search", "nothing-like-this"],
        &["search", "harbour", "-n", "1", "--json"],
    ];
    check("search", &commands);
}

#[test]
fn export() {
    let home = Home::new();
    let commands: [&[&str]; 4] = [
        &["export", "25d0", "--to", "draw.md"],
        &["export", "25d0", "--to", "draw.html", "--redact"],
        &["export", "25d0", "--to", "draw.pdf"],
        &["export", "25d0", "--to", "missing/draw.md"],
    ];
    check_in(&home, "export", &commands);
}

#[test]
fn check_files() {
    let home = Home::new();
    let broken = home.0.path().join("broken.jsonl");
    fs::write(&broken, "{\"type\":\"user\"\nnot json\n{\"type\":\"hologram\",\"uuid\":\"a\"}\n").unwrap();
    let commands: [&[&str]; 5] = [
        &["check"],
        &["check", "broken.jsonl"],
        &["check", "--strict", "-q", "broken.jsonl"],
        &["check", "missing.jsonl"],
        &["check", "--json", "broken.jsonl"],
    ];
    check_in(&home, "check", &commands);
}

#[test]
fn diff_and_secrets() {
    let commands: [&[&str]; 6] = [
        &["diff", "1efa"],
        &["diff", "05ef", "--stat"],
        &["diff", "25d0"],
        &["secrets"],
        &["secrets", "25d0"],
        &["secrets", "--json"],
    ];
    check("diff_and_secrets", &commands);
}

#[test]
fn trace_cache() {
    let home = Home::new();
    fs::copy(quipu_testkit::fixture("traces/cache-misses.jsonl"), home.0.path().join("capture.jsonl")).unwrap();
    let commands: [&[&str]; 7] = [
        &["trace", "cache", "--help"],
        &["trace", "cache", "capture.jsonl"],
        &["trace", "cache", "capture.jsonl", "--json"],
        &["trace", "cache", "capture.jsonl", "--what-if", "all"],
        &["trace", "cache", "capture.jsonl", "--what-if", "ttl-1h", "--json"],
        &["trace", "cache", "capture.jsonl", "--what-if", "forever"],
        &["trace", "cache", "absent.jsonl"],
    ];
    check_in(&home, "trace_cache", &commands);
}

#[test]
fn secrets_found() {
    let home = Home::new();
    // Made up, and in two parts so that no scanner takes this file for a leak.
    let token = ["ghp", "Zk3vQ9wLr7TbXc5NdYf2HgJm8PsVuE4aRt6q"].join("_");
    let line = format!(r#"{{"type":"user","uuid":"u","message":{{"role":"user","content":"use {token} please"}}}}"#);
    let folder = home.0.path().join(".claude/projects/-home-sam-tidepool");
    fs::write(folder.join("aaaa1111-0000-4000-8000-000000000000.jsonl"), line + "\n").unwrap();
    check_in(&home, "secrets_found", &[&["secrets"], &["secrets", "--json"]]);
}

#[test]
fn changes_to_sessions() {
    let commands: [&[&str]; 4] = [
        &["--json", "rename", "05ef", "Tide tables"],
        &["--json", "tag", "05ef", "done"],
        &["--json", "rm", "05ef", "--yes"],
        &["ls"],
    ];
    check("changes_to_sessions", &commands);
}

#[test]
fn nothing_there() {
    let home = Home(tempfile::tempdir().unwrap());
    let commands: [&[&str]; 7] =
        [&[], &["ls"], &["usage"], &["search", "x"], &["check"], &["show", "latest"], &["resume"]];
    check_in(&home, "nothing_there", &commands);
}

#[test]
fn wrong_usage() {
    let commands: [&[&str]; 6] = [
        &["--claude-dir", "/nowhere", "ls"],
        &["ls", "--since", "2 weekz"],
        &["usage", "--timezone", "Middle/Earth"],
        &["serch", "tide"],
        &["ls", "--limt", "3"],
        &["--json", "ls", "--since", "soon"],
    ];
    check("wrong_usage", &commands);
}

#[test]
fn housekeeping() {
    check(
        "housekeeping",
        &[
            &["resume", "05ef"],
            &["resume", "05ef", "--json"],
            &["rename", "7dc9", "Gauge readings"],
            &["tag", "7dc9", "done"],
            &["tag", "7dc9"],
            &["tag", "7dc9", "--clear"],
            &["rm", "7dc9"],
            &["rm", "7dc9", "--yes"],
            &["rename", "05ef", " "],
            &["resume", "--help"],
            &["rm", "--help"],
        ],
    );
}

#[test]
fn doctor() {
    let home = Home::new();
    // What the machine has, and where the test's programs and index are, is not the same everywhere.
    let shown = |args: &[&str]| {
        let text = home.shown(args);
        let lines = text.lines().filter(|line| !["landlock", "user_namespaces"].iter().any(|name| line.contains(name)));
        let mask = |line: &str| {
            let known = ["index: sound", "quipu-agent: "].into_iter().find(|known| line.contains(known));
            let (before, _) = line.split_once(known?)?;
            Some(format!("{before}{} [PLACE]", known?.trim_end()))
        };
        lines.map(|line| mask(line).unwrap_or_else(|| line.to_owned())).collect::<Vec<_>>().join("\n")
    };
    let sound = shown(&["doctor"]);
    let prices = home.0.path().join(".config/quipu/prices.toml");
    fs::create_dir_all(prices.parent().unwrap()).unwrap();
    fs::write(prices, "[models\n").unwrap();
    compare("doctor", [sound, shown(&["doctor"]), shown(&["doctor", "--limit", "3"])]);
}

#[test]
fn statusline() {
    let home = Home::new();
    let session = home.0.path().join(".claude/projects/-home-sam-tidepool/05ef09b2-9c3d-4897-965b-0c47c2889d7b.jsonl");
    let given = |text: &str| fs::write(home.0.path().join(STDIN), text).unwrap();
    let mut shown = vec![home.shown(&["statusline"])];
    given(&serde_json::json!({"transcript_path": session, "model": {"display_name": "Opus"}}).to_string());
    shown.extend([home.shown(&["statusline"]), home.shown(&["statusline", "--json"])]);
    given("hello");
    shown.extend([home.shown(&["statusline"]), home.shown(&["statusline", "--json"])]);
    compare("statusline", shown);
}

#[test]
fn follow() {
    let home = Home::new();
    let last = "本次会话";
    compare(
        "follow",
        [
            home.shown_until(&["follow", "25d0", "--tail", "4"], last),
            home.shown_until(&["follow", "25d0", "--tail", "1", "--json"], last),
            home.shown(&["follow", "25d0", "--all"]),
            home.shown(&["follow", "25d0", "--tail", "some"]),
        ],
    );
}

#[test]
fn answer() {
    let home = Home::new();
    let write = |name: &str, text: &str| fs::write(home.0.path().join(name), text).unwrap();
    write("script.yaml", "- reply: Hello\n");
    write("wrong.yaml", "- reply: a\n- repley: b\n");
    compare(
        "answer",
        [
            home.shown_until(&["answer", "script.yaml"], "claude -p hi"),
            home.shown_until(&["answer", "script.yaml", "--json"], "address"),
            home.shown(&["answer", "wrong.yaml"]),
            home.shown(&["answer", "missing.yaml"]),
            home.shown(&["answer", "script.yaml", "--listen", "0.0.0.0:0"]),
            home.shown(&["answer", "script.yaml", "--listen", "nonsense"]),
            home.shown(&["--json", "answer", "wrong.yaml"]),
        ],
    );
}

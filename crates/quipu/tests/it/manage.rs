//! `resume`, `rename`, `tag`, `rm`, `doctor`, and session ids for shells.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::terminal_output::OnTerminal;

const ID: &str = "7dc934ad-8100-4f16-9ba9-44fe9c2d9a4e";
const OTHER: &str = "05ef09b2-9c3d-4897-965b-0c47c2889d7b";

/// A home with a config folder and two sessions: one of `work it` and an older one.
struct Home {
    dir: TempDir,
}

impl Home {
    fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("quipu").tempdir().unwrap();
        let home = Self { dir };
        fs::create_dir(home.path("work it")).unwrap();
        home.write(ID, "work it", "2026-11-10", "How high is the tide?");
        home.write(OTHER, "gone", "2026-11-12", "And the other one?");
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, id: &str, folder: &str, day: &str, prompt: &str) {
        let cwd = self.path(folder).display().to_string();
        let line = format!(
            r#"{{"type":"user","uuid":"u-{id}","parentUuid":null,"sessionId":"{id}","cwd":"{cwd}","timestamp":"{day}T09:00:00.000Z","message":{{"role":"user","content":"{prompt}"}}}}
{{"type":"assistant","uuid":"a-{id}","parentUuid":"u-{id}","sessionId":"{id}","cwd":"{cwd}","timestamp":"{day}T09:00:05.000Z","message":{{"id":"m-{id}","role":"assistant","model":"claude-opus-4-5","content":[{{"type":"text","text":"well"}}],"usage":{{"input_tokens":10,"output_tokens":20}}}}}}
"#
        );
        let file = self.file(id, folder);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, line).unwrap();
    }

    fn file(&self, id: &str, folder: &str) -> PathBuf {
        let cwd = self.path(folder).display().to_string();
        let project: String = cwd.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        self.path(".claude/projects").join(project).join(format!("{id}.jsonl"))
    }

    fn quipu(&self, args: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("quipu"));
        command.args(args).env_clear().env("HOME", self.path("")).current_dir(self.path(""));
        command
    }

    #[track_caller]
    fn run(&self, args: &[&str]) -> String {
        let out = self.quipu(args).output().unwrap();
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    }

    #[track_caller]
    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.run(&[&["--json"], args].concat())).unwrap()
    }

    /// The code of an error and the exit code.
    #[track_caller]
    fn fails(&self, args: &[&str]) -> (String, i32) {
        let out = self.quipu(&[&["--json"], args].concat()).output().unwrap();
        let error: Value = serde_json::from_slice(&out.stderr).unwrap();
        (error["error"]["code"].as_str().unwrap().to_owned(), out.status.code().unwrap())
    }
}

#[test]
fn resume_prints_a_command_a_shell_can_run() {
    let home = Home::new();
    let work = home.path("work it");
    let expect = format!("cd '{}' && claude --resume {ID}\n", work.display());
    assert_eq!(home.run(&["resume", "7dc9"]), expect);
    // Without a name: the latest of this folder, or else of all.
    let here = home.quipu(&["resume"]).current_dir(&work).output().unwrap();
    assert_eq!(String::from_utf8(here.stdout).unwrap(), expect);
    let out = home.quipu(&["resume"]).output().unwrap();
    assert!(String::from_utf8(out.stdout).unwrap().ends_with(&format!("claude --resume {OTHER}\n")));
    assert!(String::from_utf8(out.stderr).unwrap().contains("does not exist"));
    let json = home.json(&["resume", ID]);
    assert_eq!(json["cwd"], work.display().to_string());
    assert_eq!(json["command"], serde_json::json!(["claude", "--resume", ID]));
    // Agents look in ~/.claude, unless CLAUDE_CONFIG_DIR names another folder.
    fs::rename(home.path(".claude"), home.path("kept")).unwrap();
    let kept = home.path("kept").display().to_string();
    assert!(home.run(&["--claude-dir", "kept", "resume", ID]).contains(&format!("&& CLAUDE_CONFIG_DIR={kept} claude")));
}

#[test]
fn resume_runs_the_agent_in_the_folder_of_the_session() {
    let home = Home::new();
    let bin = home.path("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("claude"), "#!/bin/sh\necho \"$@\" in \"$(/bin/pwd)\"\nexit 7\n").unwrap();
    fs::set_permissions(bin.join("claude"), fs::Permissions::from_mode(0o755)).unwrap();
    let out = home.quipu(&["resume", ID, "--run"]).env("PATH", &bin).output().unwrap();
    let expect = format!("--resume {ID} in {}\n", home.path("work it").display());
    assert_eq!((String::from_utf8(out.stdout).unwrap(), out.status.code()), (expect, Some(7)));
    let out = home.quipu(&["resume", OTHER, "--run"]).env("PATH", &bin).output().unwrap();
    assert!(String::from_utf8(out.stderr).unwrap().contains("does not exist") && !out.status.success());
    let out = home.quipu(&["resume", ID, "--run"]).env("PATH", "/nonexistent").output().unwrap();
    assert!(String::from_utf8(out.stderr).unwrap().contains("cannot start `claude`"));
}

#[test]
fn sessions_are_renamed_and_tagged() {
    let home = Home::new();
    assert_eq!(home.run(&["rename", "7dc9", " Tides "]), format!("{ID} renamed to 'Tides'\n"));
    let listed = home.json(&["ls"]);
    let titles: Vec<&str> = listed.as_array().unwrap().iter().filter_map(|row| row["title"].as_str()).collect();
    assert!(titles.contains(&"Tides"), "{listed}");
    assert_eq!(home.fails(&["rename", "7dc9", " "]), ("session.no_title".to_owned(), 1));
    assert_eq!(home.json(&["tag", "7dc9", "done"])["tag"], "done");
    assert_eq!(home.run(&["tag", "7dc9"]), "done\n");
    assert_eq!(home.run(&["tag", "7dc9", "--clear"]), format!("{ID} tag removed\n"));
    assert_eq!(home.json(&["tag", "7dc9"])["tag"], Value::Null);
    home.run(&["check", "--strict"]);
}

#[test]
fn rm_deletes_all_that_belongs_to_a_session_and_keeps_what_it_used() {
    let home = Home::new();
    let file = home.file(ID, "work it");
    let belongs = [
        file.with_extension("").join("subagents/agent-a.jsonl"),
        home.path(".claude/file-history").join(ID).join("x@v1"),
    ];
    for path in &belongs {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    assert_eq!(home.fails(&["rm", "7dc9"]), ("rm.not_confirmed".to_owned(), 2));
    assert!(file.exists());
    let used = home.json(&["usage"])["totals"].clone();
    let deleted = home.json(&["rm", "7dc9", "--yes"]);
    assert_eq!((&deleted["deleted"], &deleted["subagents"]), (&true.into(), &1.into()));
    assert!(!file.exists() && belongs.iter().all(|path| !path.exists()));
    assert!(home.file(OTHER, "gone").exists());
    let still = home.json(&["usage"])["totals"].clone();
    assert_eq!((&still["output_tokens"], &still["cost_usd"]), (&used["output_tokens"], &used["cost_usd"]), "{still}");
    assert_eq!(home.fails(&["rm", "7dc9", "--yes"]), ("session.not_found".to_owned(), 1));
}

#[test]
fn rm_fails_while_a_program_writes() {
    let home = Home::new();
    let file = OpenOptions::new().append(true).open(home.file(ID, "work it")).unwrap();
    file.lock().unwrap();
    assert_eq!(home.fails(&["rm", "7dc9", "--yes"]), ("delete.busy".to_owned(), 1));
    file.unlock().unwrap();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let mut file = file;
    let writer = std::thread::spawn(move || {
        while stopped.recv_timeout(std::time::Duration::from_millis(5)).is_err() {
            writeln!(file, "{{\"type\":\"mode\",\"mode\":\"default\"}}").unwrap();
        }
    });
    assert_eq!(home.fails(&["rm", "7dc9", "--yes"]), ("delete.busy".to_owned(), 1));
    stop.send(()).unwrap();
    writer.join().unwrap();
    assert!(home.file(ID, "work it").exists());
}

#[test]
fn rm_asks_on_a_terminal() {
    let home = Home::new();
    for (answer, is_deleted) in [("\n", false), ("n\n", false), ("y\n", true)] {
        let mut terminal = OnTerminal::start(&mut home.quipu(&["rm", "7dc9"]), None);
        terminal.until(|screen| screen.replace('\n', "").contains("[y/N]"));
        terminal.input.write_all(answer.as_bytes()).unwrap();
        let (status, screen) = terminal.end();
        assert!(screen.contains("How high is the tide?"), "{screen}");
        assert_eq!((status.success(), home.file(ID, "work it").exists()), (is_deleted, !is_deleted), "{screen}");
    }
}

#[test]
fn doctor_reports_what_exists_and_what_is_broken() {
    let home = Home::new();
    let report = home.json(&["doctor"]);
    let status = |report: &Value, name: &str| {
        let checks = report["checks"].as_array().unwrap();
        checks.iter().find(|check| check["name"] == name).unwrap()["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(report["ok"], true);
    for (name, expect) in
        [("sessions", "ok"), ("index", "ok"), ("prices", "ok"), ("settings", "ok"), ("claude", "missing")]
    {
        assert_eq!(status(&report, name), expect, "{name}: {report}");
    }
    assert!(home.run(&["doctor"]).contains("2 sessions"));
    let config = home.path(".config/quipu");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("config.toml"), "trusted = [\"~/work\"]").unwrap();
    assert!(home.run(&["doctor"]).contains("config.toml, 1 trusted folder"));
    for broken in ["listen = ", "trusted = \"~/work\""] {
        fs::write(config.join("config.toml"), broken).unwrap();
        let out = home.quipu(&["--json", "doctor"]).output().unwrap();
        let report: Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!((out.status.code(), status(&report, "settings").as_str()), (Some(1), "failed"), "{broken}");
    }
}

#[test]
fn shells_are_given_session_ids() {
    let home = Home::new();
    let offered = home.run(&["complete-sessions"]);
    assert!(offered.lines().any(|line| line == format!("{ID}\tHow high is the tide?")), "{offered}");
    assert!(home.run(&["completions", "fish"]).contains("seen_subcommand_from show"));
    let zsh = home.run(&["completions", "zsh"]);
    assert!(zsh.starts_with("#compdef quipu\n") && zsh.matches(":_quipu_sessions'").count() >= 5, "{zsh}");
    let bash = home.path("quipu.bash");
    fs::write(&bash, home.run(&["completions", "bash"])).unwrap();
    let quipu = assert_cmd::cargo::cargo_bin("quipu");
    let script = format!(
        "source {}; COMP_WORDS=({} show 7d); COMP_CWORD=2; _quipu_with_sessions quipu 7d show; echo \"${{COMPREPLY[@]}}\"",
        bash.display(),
        quipu.display(),
    );
    let Ok(out) = Command::new("bash").args(["--norc", "-c", &script]).env("HOME", home.path("")).output() else {
        return;
    };
    assert!(String::from_utf8_lossy(&out.stdout).contains(ID), "{out:?}");
}

#[test]
fn shells_offer_the_latest_sessions_first_and_no_hidden_command() {
    let home = Home::new();
    // The older session is in the file written last.
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    OpenOptions::new().append(true).open(home.file(ID, "work it")).unwrap().set_modified(later).unwrap();
    let offered = home.run(&["complete-sessions"]);
    let ids: Vec<&str> = offered.lines().map(|line| line.get(..8).unwrap_or(line)).collect();
    let listed = home.run(&["ls"]);
    let listed: Vec<&str> = listed.lines().skip(1).map(|line| &line[..8]).collect();
    assert_eq!(ids, [&listed[..], &["latest\tt"]].concat());
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = home.run(&["completions", shell]);
        // Only where sessions are asked for.
        let calls = script.matches("complete-sessions 2>/dev/null").count();
        assert_eq!(script.matches("complete-sessions").count(), calls, "{shell}");
    }
    let completions = home.path(".config/fish/completions");
    fs::create_dir_all(&completions).unwrap();
    fs::write(completions.join("quipu.fish"), home.run(&["completions", "fish"])).unwrap();
    let folder = assert_cmd::cargo::cargo_bin("quipu").parent().unwrap().to_owned();
    for line in ["quipu show 7d", "quipu export --to x.html 7d", "quipu usage --session 7d", "quipu secrets 7d"] {
        let mut fish = Command::new("fish");
        fish.args(["-c", &format!("complete -C '{line}'")]).env_clear().env("HOME", home.path(""));
        let path = format!("{}:/usr/bin:/bin", folder.display());
        let Ok(out) = fish.env("PATH", path).output() else { return };
        assert!(String::from_utf8_lossy(&out.stdout).contains(ID), "{line}: {out:?}");
    }
}

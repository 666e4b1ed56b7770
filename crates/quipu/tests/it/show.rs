//! `quipu show`

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use serde_json::Value;

use crate::quipu;

fn demo() -> Vec<PathBuf> {
    let sessions = quipu_testkit::files_under(&quipu_testkit::fixture("demo"), |p| {
        p.extension().is_some_and(|e| e == "jsonl") && !p.to_string_lossy().contains("subagents")
    });
    assert_eq!(sessions.len(), 6);
    sessions
}

fn shown(args: &[&str], path: &std::path::Path) -> String {
    let out = quipu().arg("show").arg(path).args(args).assert().success();
    String::from_utf8(out.get_output().stdout.clone()).unwrap()
}

#[test]
fn every_view_and_form_works_on_every_demo_session() {
    for path in demo() {
        for view in ["screen", "api", "raw"] {
            for form in ["text", "markdown", "html", "json"] {
                assert!(shown(&["--view", view, "--as", form], &path).len() > 200, "{} {view} {form}", path.display());
            }
        }
        assert_eq!(shown(&["--view", "raw"], &path).into_bytes(), std::fs::read(&path).unwrap());
        let lines: Value = serde_json::from_str(&shown(&["--view", "raw", "--json"], &path)).unwrap();
        assert!(lines.as_array().unwrap().len() > 10);
    }
}

#[test]
fn the_screen_as_json_has_the_promised_shape() {
    let kinds = [
        "user",
        "assistant",
        "thinking",
        "tool",
        "image",
        "hook",
        "system",
        "summary",
        "attachment",
        "branch",
        "unknown",
        "problem",
    ];
    let mut seen = std::collections::BTreeSet::new();
    for path in demo() {
        let items: Vec<Value> = serde_json::from_str(&shown(&["--json"], &path)).unwrap();
        for item in items {
            let kind = item["kind"].as_str().unwrap().to_owned();
            assert!(kinds.contains(&kind.as_str()), "{kind}");
            assert!(item.get("uuid").is_some() && item.get("timestamp").is_some());
            if kind == "tool" {
                let tool = &item["tool"];
                assert!(tool["id"].is_string() && tool["name"].is_string() && tool.get("input").is_some());
                assert!(matches!(tool["status"].as_str(), Some("pending" | "success" | "failed")));
                assert_eq!(tool["status"] == "pending", tool.get("result").is_none(), "{tool}");
            }
            seen.insert(kind);
        }
    }
    let missing: Vec<_> = kinds.iter().filter(|kind| !seen.contains(**kind) && **kind != "problem").collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_api_view_is_fit_to_send() {
    for path in demo() {
        let messages: Vec<Value> = serde_json::from_str(&shown(&["--view", "api", "--json"], &path)).unwrap();
        for (i, message) in messages.iter().enumerate() {
            assert_eq!(message["role"], if i % 2 == 0 { "user" } else { "assistant" }, "{}", path.display());
        }
    }
}

#[test]
fn no_escape_sequence_of_a_file_reaches_the_output() {
    let line = r#"{"type":"assistant","uuid":"a","message":{"role":"assistant","content":[{"type":"text","text":"\u001b]0;owned\u0007\u001b[31mred\u001b[0m \u202eback"},{"type":"tool_use","id":"t","name":"B\u001b[2Jash","input":{"command":"\u001b[H"}}]}}"#;
    let out = quipu().args(["show", "-"]).write_stdin(line).assert().success();
    let text = String::from_utf8_lossy(&out.get_output().stdout).into_owned();
    assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
    assert!(text.contains("red") && !text.contains("owned"));
}

#[test]
fn piped_output_is_plain_and_colours_come_when_asked() {
    let path = &demo()[0];
    assert!(!shown(&[], path).contains('\u{1b}'));
    let out = quipu().args(["--color", "always", "show"]).arg(path).assert().success();
    assert!(out.get_output().stdout.contains(&0x1b));
}

#[test]
fn parts_of_a_conversation_can_be_chosen() {
    let path = demo().into_iter().find(|p| p.to_string_lossy().contains("05ef09b2")).unwrap();
    let count = |args: &[&str]| serde_json::from_str::<Vec<Value>>(&shown(args, &path)).unwrap();
    let all = count(&["--json"]);
    assert_eq!(count(&["--json", "--tail", "3"]), all[all.len() - 3..]);
    assert!(count(&["--json", "--no-tools"]).iter().all(|item| item["kind"] != "tool"));
    assert!(count(&["--json", "--no-thinking"]).iter().all(|item| item["kind"] != "thinking"));
    let first = count(&["--json", "--turn", "1"]);
    assert!(!first.is_empty() && first.len() < all.len());
    quipu().args(["show", "--turn", "99"]).arg(&path).assert().code(1);
}

#[test]
fn subagents_are_shown_under_their_call() {
    let path = demo().into_iter().find(|p| p.to_string_lossy().contains("05ef09b2")).unwrap();
    let items: Vec<Value> = serde_json::from_str(&shown(&["--json"], &path)).unwrap();
    let side = items.iter().find_map(|item| item["tool"].get("subagent")).unwrap();
    assert!(side["items"].as_array().unwrap().len() > 1 && side["agent_id"].is_string());
}

#[test]
fn a_broken_file_is_shown_with_its_problems_in_place() {
    let items: Vec<Value> =
        serde_json::from_str(&shown(&["--json"], &quipu_testkit::fixture("broken/torn-tail.jsonl"))).unwrap();
    assert_eq!(items.last().unwrap()["kind"], "problem");
    assert!(items.len() > 1);
}

#[test]
fn a_missing_session_is_an_error_with_a_hint() {
    let out = quipu().args(["show", "nowhere.jsonl"]).assert().code(1);
    let text = String::from_utf8_lossy(&out.get_output().stderr).into_owned();
    assert!(text.starts_with("error: no session matches 'nowhere.jsonl'") && text.contains("hint:"), "{text}");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    use std::io::Read;
    use std::process::{Command, Stdio};
    let big = tempfile::NamedTempFile::new().unwrap();
    let line = r#"{"type":"user","message":{"role":"user","content":"word word word word word word"}}"#;
    std::fs::write(big.path(), format!("{line}\n").repeat(20_000)).unwrap();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("quipu"))
        .args(["show", "--view", "raw"])
        .arg(big.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0; 10]).unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
}

#[test]
fn a_session_is_found_by_its_id_its_beginning_or_as_the_latest() {
    let dir = quipu_testkit::fixture("demo");
    let show = |spec: &str| quipu().arg("--claude-dir").arg(&dir).args(["show", "--json", spec]).assert();
    let whole = show("05ef09b2-9c3d-4897-965b-0c47c2889d7b").success();
    let part = show("05e").success();
    assert_eq!(whole.get_output().stdout, part.get_output().stdout);
    show("latest").success();
    show("nothing-like-it").code(1);
    let out = quipu().arg("--claude-dir").arg(&dir).args(["--json", "show", ""]).assert().code(1);
    assert!(String::from_utf8_lossy(&out.get_output().stderr).contains("session.not_found"));
}

#[test]
fn left_branches_and_hidden_texts_are_shown_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let line = |uuid: &str, parent: Value, text: &str, meta: bool| {
        let line = serde_json::json!({"type": "user", "uuid": uuid, "parentUuid": parent, "isMeta": meta,
            "message": {"role": "user", "content": text}});
        format!("{line}\n")
    };
    let lines = [
        line("a", Value::Null, "go", false),
        line("b", "a".into(), "for the model", true),
        line("x", "b".into(), "wrong way", false),
        line("c", "b".into(), "right way", false),
    ];
    std::fs::write(&path, lines.concat()).unwrap();
    let texts = |args: &[&str]| -> Vec<String> {
        let items: Vec<Value> = serde_json::from_str(&shown(args, &path)).unwrap();
        items.iter().map(|item| item["text"].as_str().unwrap().to_owned()).collect()
    };
    let left = "Branch 1 was left here: 1 item";
    assert_eq!(texts(&["--json"]), ["go", left, "right way"]);
    assert_eq!(texts(&["--json", "--full"]), ["go", "for the model", left, "right way"]);
    assert_eq!(texts(&["--json", "--branch", "1"]), ["wrong way"]);
    assert_eq!(texts(&["--json", "--branch", "all"]), ["go", left, "wrong way", "End of branch 1", "right way"]);
    // A named line is opened wherever it is in the file.
    for (n, text) in [(2, "for the model"), (3, "wrong way")] {
        let out = quipu().args(["show", "--json"]).arg(format!("{}:{n}", path.display())).assert().success();
        let items: Vec<Value> = serde_json::from_slice(&out.get_output().stdout).unwrap();
        assert_eq!(items[0]["text"], text);
    }
    let out = quipu().args(["show", "--json", "--branch", "2"]).arg(&path).assert().code(1);
    assert!(String::from_utf8_lossy(&out.get_output().stderr).contains("it has 1 left branch"));
    quipu().args(["show", "--branch", "0"]).arg(&path).assert().code(2);
    for form in ["text", "markdown", "html"] {
        let text = shown(&["--as", form], &path);
        assert!(text.contains("Branch 1 was left here: 1 item") && !text.contains("wrong way"), "{form}: {text}");
    }
}

#[test]
fn a_line_is_opened_with_the_items_around_it() {
    let dir = quipu_testkit::fixture("demo");
    let show = |spec: &str, args: &[&str]| {
        let out = quipu().arg("--claude-dir").arg(&dir).args(["show", "--json", spec]).args(args).assert().success();
        serde_json::from_slice::<Vec<Value>>(&out.get_output().stdout).unwrap()
    };
    let all = show("05ef", &[]);
    let (at, item) = all.iter().enumerate().find(|(n, item)| *n > 5 && item["kind"] == "assistant").unwrap();
    let line = item["line"].as_u64().unwrap();
    assert_eq!(show(&format!("05ef:{line}"), &[]), all[at..=at]);
    assert_eq!(show(&format!("05ef:{line}"), &["--around", "2"]), all[at - 2..=at + 2]);
    assert_eq!(show(&format!("05ef:{line}"), &["--around", "9999"]), all);
    // A result is shown by its call.
    let path = demo().into_iter().find(|p| p.to_string_lossy().contains("05ef09b2")).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let (n, result) = text.lines().enumerate().find(|(_, line)| line.contains("\"tool_result\"")).unwrap();
    let result: Value = serde_json::from_str(result).unwrap();
    let call = &result["message"]["content"][0]["tool_use_id"];
    assert_eq!(show(&format!("05ef:{}", n + 1), &[])[0]["tool"]["id"], *call);
    // The same with a path, and with the lines themselves.
    let spec = format!("{}:{line}", path.display());
    assert_eq!(show(&spec, &[]), all[at..=at]);
    let out = quipu().args(["show", "--view", "raw", "--around", "1", &spec]).assert().success();
    let lines: Vec<&str> = text.lines().skip(line as usize - 2).take(3).collect();
    assert_eq!(String::from_utf8_lossy(&out.get_output().stdout), format!("{}\n", lines.join("\n")));
}

#[test]
fn a_colon_in_the_name_of_a_file_is_no_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notes:1");
    std::fs::copy(&demo()[0], &path).unwrap();
    assert!(shown(&["--json"], &path).len() > 200);
    let error = |args: &[&str]| {
        let out = quipu().arg("--json").arg("show").args(args).assert().failure();
        serde_json::from_slice::<Value>(&out.get_output().stderr).unwrap()["error"]["code"].clone()
    };
    let path = path.to_string_lossy();
    assert_eq!(error(&[&format!("{path}:999999")]), "line.none");
    assert_eq!(error(&[&format!("{path}:0")]), "line.none");
    assert_eq!(error(&[&path, "--around", "1"]), "usage.around");
    assert_eq!(error(&["nowhere:12"]), "session.not_found");
}

#[test]
fn a_subagent_is_named_by_its_id() {
    let dir = quipu_testkit::fixture("demo");
    let show = |spec: &str| quipu().arg("--claude-dir").arg(&dir).args(["show", "--json", spec]).assert();
    for spec in ["agent-a3bbbbd40f64dd15d", "agent-a3b", "agent-2d98ce6", "agent-2d98ce6:2"] {
        let out = show(spec).success();
        assert!(!serde_json::from_slice::<Vec<Value>>(&out.get_output().stdout).unwrap().is_empty(), "{spec}");
    }
    show("agent-").code(1);
    show("agent-nobody").code(1);
}

#[test]
fn a_conversation_begins_with_a_head() {
    let path = demo().into_iter().find(|p| p.to_string_lossy().contains("05ef09b2")).unwrap();
    let text = shown(&[], &path);
    let head: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(head.len(), 4, "{text}");
    assert!(head[1].starts_with("05ef09b2-9c3d-4897-965b-0c47c2889d7b · /home/sam/"), "{head:?}");
    assert!(head[2].contains(" – ") && head[2].contains("UTC · ") && head[2].ends_with(" turns"), "{head:?}");
    assert!(head[3].contains(" cached), ") && head[3].contains(" out · $"), "{head:?}");
    assert!(shown(&["--tail", "1"], &path).starts_with(head[0]));
}

#[test]
fn the_head_of_a_part_has_the_totals_of_the_session() {
    let home = tempfile::tempdir().unwrap();
    let projects = home.path().join("config/projects/-home-sam-tidepool");
    fs::create_dir_all(&projects).unwrap();
    let path = demo().into_iter().find(|p| p.to_string_lossy().contains("05ef09b2")).unwrap();
    let copy = projects.join(path.file_name().unwrap());
    fs::copy(&path, &copy).unwrap();
    let run = |args: &[&str]| {
        let mut command = quipu();
        command.arg("--claude-dir").arg(home.path().join("config")).args(args);
        command.env("XDG_CACHE_HOME", home.path().join("cache"));
        String::from_utf8(command.assert().success().get_output().stdout.clone()).unwrap()
    };
    let head = |text: &str| text.lines().take_while(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let whole = head(&run(&["show", "05ef09b2"]));
    // The header of a part has no errors.
    let known: Vec<&str> = whole.iter().map(|line| line.trim_end_matches(" · 1 error")).collect();
    assert!(known[3].contains(" out · $"), "{known:?}");
    let part = || head(&run(&["show", "05ef09b2", "--tail", "1"]));
    assert_eq!(part(), known);
    // From the index.
    run(&["ls"]);
    assert_eq!(part(), known);
    // The index does not know the new line.
    let line = fs::read_to_string(&copy).unwrap().lines().last().unwrap().to_owned();
    fs::OpenOptions::new().append(true).open(&copy).unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    assert_eq!(part(), known);
}

#[test]
fn raw_lines_can_be_limited_to_a_turn_and_to_the_last() {
    let path = demo().into_iter().find(|p| p.to_string_lossy().contains("05ef09b2")).unwrap();
    let all = shown(&["--view", "raw"], &path);
    let last = all.lines().skip(all.lines().count() - 2).map(|line| format!("{line}\n")).collect::<String>();
    assert_eq!(shown(&["--view", "raw", "--tail", "2"], &path), last);
    let lines: Value = serde_json::from_str(&shown(&["--view", "raw", "--tail", "2", "--json"], &path)).unwrap();
    assert_eq!(lines.as_array().unwrap().len(), 2);
    let turn = shown(&["--view", "raw", "--turn", "2"], &path);
    assert!(all.contains(&turn) && !turn.is_empty() && turn.len() < all.len());
    assert_eq!(shown(&["--view", "raw", "--turn", "2", "--tail", "1"], &path).lines().next(), turn.lines().last());
    quipu().args(["show", "--view", "raw", "--turn", "99"]).arg(&path).assert().code(1);
}

#[test]
fn hooks_that_succeeded_silently_are_hidden_unless_all_is_wanted() {
    let hook = |stdout: &str| {
        format!(
            r#"{{"type":"attachment","uuid":"h{0}","attachment":{{"type":"hook_success","hookName":"PostToolUse:Read","hookEvent":"PostToolUse","stdout":"{0}"}}}}"#,
            stdout
        )
    };
    let user = r#"{"type":"user","uuid":"a","message":{"role":"user","content":"hi"}}"#;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), [user, &hook(""), &hook("formatted")].join("\n") + "\n").unwrap();
    let hooks = |args: &[&str]| shown(args, file.path()).matches("PostToolUse:Read").count();
    for form in ["text", "markdown", "html"] {
        assert_eq!((hooks(&["--as", form]), hooks(&["--as", form, "--full"])), (1, 2), "{form}");
    }
    assert_eq!(hooks(&["--json"]), 2);
}

#[test]
fn an_empty_file_is_reported_as_empty() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("empty.jsonl");
    std::fs::write(&path, "").unwrap();
    let out = quipu().arg("show").arg(&path).assert().success();
    let stderr = String::from_utf8_lossy(&out.get_output().stderr).into_owned();
    assert!(out.get_output().stdout.is_empty() && stderr.contains("is empty"), "{stderr}");
    std::fs::write(&path, "{\"type\":\"custom-title\",\"customTitle\":\"Tides\",\"sessionId\":\"s\"}\n").unwrap();
    let out = quipu().arg("show").arg(&path).assert().success();
    assert!(String::from_utf8_lossy(&out.get_output().stderr).contains("no messages to show"));
}

#[test]
fn options_that_a_view_does_not_have_are_refused() {
    let path = &demo()[0];
    let cases: [(&[&str], &str); 5] = [
        (&["--view", "raw", "--only-prompts"], "usage.parts"),
        (&["--view", "raw", "--no-tools"], "usage.parts"),
        (&["--view", "raw", "--no-thinking"], "usage.parts"),
        (&["--view", "raw", "--branch", "1"], "usage.branch"),
        (&["--view", "api", "--branch", "all"], "usage.branch"),
    ];
    for (args, code) in cases {
        let out = quipu().args(["--json", "show"]).arg(path).args(args).assert().code(2);
        let error: Value = serde_json::from_slice(&out.get_output().stderr).unwrap();
        assert_eq!(error["error"]["code"], code, "{args:?}");
    }
}

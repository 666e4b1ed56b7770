//! `quipu export`

use serde_json::Value;

use crate::quipu;

#[test]
fn a_session_is_written_in_the_format_of_its_extension() {
    let dir = tempfile::tempdir().unwrap();
    for (name, begins) in [("s.html", "<!doctype html>"), ("s.md", "# "), ("s.json", "[{")] {
        let to = dir.path().join(name);
        quipu()
            .arg("--claude-dir")
            .arg(quipu_testkit::fixture("demo"))
            .args(["export", "05ef", "--to"])
            .arg(&to)
            .assert()
            .success();
        assert!(std::fs::read_to_string(&to).unwrap().starts_with(begins));
    }
    let out = quipu()
        .arg("--claude-dir")
        .arg(quipu_testkit::fixture("demo"))
        .args(["export", "05ef", "--to", "s.pdf"])
        .assert()
        .code(2);
    assert!(String::from_utf8_lossy(&out.get_output().stderr).contains(".html, .md or .json"));
}

#[test]
fn redaction_masks_and_counts() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("s.json");
    let out = quipu()
        .arg("--claude-dir")
        .arg(quipu_testkit::fixture("demo"))
        .args(["export", "05ef", "--redact", "--json", "--to"])
        .arg(&to)
        .assert()
        .success();
    let report: Value = serde_json::from_slice(&out.get_output().stdout).unwrap();
    assert!(report["masked"]["home folder"].as_u64() > Some(0), "{report}");
    assert!(!std::fs::read_to_string(&to).unwrap().contains("/home/sam"));
}

fn export(args: &[&str], to: &std::path::Path) -> assert_cmd::assert::Assert {
    quipu()
        .arg("--claude-dir")
        .arg(quipu_testkit::fixture("demo"))
        .args(["export", "05ef", "--to"])
        .arg(to)
        .args(args)
        .assert()
}

#[test]
fn parts_of_a_conversation_are_exported() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("part.json");
    let items = |args: &[&str]| -> Vec<Value> {
        export(args, &to).success();
        serde_json::from_slice(&std::fs::read(&to).unwrap()).unwrap()
    };
    let all = items(&[]);
    assert_eq!(items(&["--tail", "3"]), all[all.len() - 3..]);
    assert!(items(&["--no-tools"]).iter().all(|item| item["kind"] != "tool"));
    assert!(all.iter().any(|item| item["kind"] == "thinking"));
    assert!(items(&["--no-thinking"]).iter().all(|item| item["kind"] != "thinking"));
    assert!(items(&["--turn", "1", "--redact"]).len() < all.len());
    export(&["--turn", "99"], &to).code(1);
}

#[test]
fn the_format_is_that_of_the_extension_in_any_case_or_the_one_chosen() {
    let dir = tempfile::tempdir().unwrap();
    for (name, args, begins) in [
        ("s.HTML", &[][..], "<!doctype html>"),
        ("s.Md", &[], "# "),
        ("s.txt", &["--as", "markdown"], "# "),
        ("-", &[], "# "),
        ("-", &["--as", "html"], "<!doctype html>"),
        ("-", &["--json"], "[{"),
    ] {
        let to = if name == "-" { name.into() } else { dir.path().join(name) };
        let out = export(args, &to).success();
        let text = if name == "-" { out.get_output().stdout.clone() } else { std::fs::read(&to).unwrap() };
        assert!(String::from_utf8_lossy(&text).starts_with(begins), "{name} {args:?}");
    }
}

#[test]
fn standard_input_can_be_exported() {
    let line = r#"{"type":"user","uuid":"a","message":{"role":"user","content":"hello there"}}"#;
    let out = quipu().args(["export", "-", "--to", "-"]).write_stdin(line).assert().success();
    assert!(String::from_utf8_lossy(&out.get_output().stdout).contains("hello there"));
}

#[test]
fn documents_have_time_duration_and_cost() {
    let out = export(&["--as", "html"], "-".as_ref()).success();
    let page = String::from_utf8_lossy(&out.get_output().stdout).into_owned();
    for fact in ["session", "folder", "branch", "started", "ended", "duration", "turns", "tokens", "cost", "tools"] {
        assert!(page.contains(&format!("<dt>{fact}</dt><dd>")), "{fact}");
    }
    assert!(page.contains("UTC</dd>"), "times have a zone");
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let out = export(&[], "/nonexistent/x.html".as_ref()).code(1);
    let text = String::from_utf8_lossy(&out.get_output().stderr).into_owned();
    assert!(text.contains("no folder '/nonexistent'"), "{text}");
}

#[test]
fn exporting_all_of_a_folder_that_is_not_there_fails() {
    let archive = tempfile::tempdir().unwrap();
    let mut command = quipu();
    command.args(["--json", "--claude-dir", "/nonexistent", "export", "--all", "--to"]).arg(archive.path().join("a"));
    let out = command.assert().failure();
    let error: serde_json::Value = serde_json::from_slice(&out.get_output().stderr).unwrap();
    assert!(error["error"]["message"].as_str().unwrap().contains("/nonexistent"), "{error}");
    assert!(!archive.path().join("a").exists());
}

#[test]
fn documents_list_what_they_omit_unless_a_part_is_requested() {
    let hidden = "3 hidden items (texts for the model, measurements)";
    let shown = |args: &[&str]| {
        let out = quipu().arg("--claude-dir").arg(quipu_testkit::fixture("demo")).args(args).assert().success();
        let [stdout, stderr] =
            [&out.get_output().stdout, &out.get_output().stderr].map(|o| o.escape_ascii().to_string());
        (stdout, stderr)
    };
    let hidden_in = |text: &str| text.contains(hidden);
    let (document, note) = shown(&["export", "25d0", "--to", "-"]);
    assert!(document.contains(&format!("- not shown: {hidden}")) && hidden_in(&note), "{note}");
    let (document, note) = shown(&["export", "25d0", "--to", "-", "--tail", "2"]);
    assert!(!hidden_in(&document) && !hidden_in(&note));
    let (page, _) = shown(&["show", "25d0", "--as", "html"]);
    assert!(page.contains("<dt>not shown</dt>"));
    let (page, _) = shown(&["show", "25d0", "--as", "html", "--full"]);
    assert!(!page.contains("<dt>not shown</dt>"));
    let (text, note) = shown(&["show", "25d0"]);
    assert!(!hidden_in(&text) && hidden_in(&note), "in a pipe the note is on stderr");
}

#[test]
fn all_sessions_of_a_project_become_a_folder_with_a_list() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("archive");
    let run = |args: &[&str]| {
        let mut command = quipu();
        command
            .arg("--claude-dir")
            .arg(quipu_testkit::fixture("demo"))
            .args(["export", "--all", "--to"])
            .arg(&to)
            .args(args);
        command.assert()
    };
    run(&["--redact"]).success();
    let list = std::fs::read_to_string(to.join("index.html")).unwrap();
    assert!(list.contains("<h1>6 sessions</h1>") && !list.contains("sam"), "{list}");
    let links: Vec<&str> = list.split("href=\"./").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(links.len(), 6);
    let ids = links.iter().filter(|link| link.starts_with("tidepool/")).count();
    assert_eq!(ids, 3, "{links:?}");
    for link in links.iter().filter(|link| link.is_ascii() && !link.contains('%')) {
        let page = std::fs::read_to_string(to.join(link)).unwrap();
        assert!(page.starts_with("<!doctype html>") && !page.contains("/home/sam"), "{link}");
    }
    std::fs::remove_dir_all(&to).unwrap();
    run(&["-p", "tidepool", "--only-prompts", "--as", "json"]).success();
    let list: Value = serde_json::from_slice(&std::fs::read(to.join("index.json")).unwrap()).unwrap();
    assert_eq!(list.as_array().unwrap().len(), 3);
    for one in list.as_array().unwrap() {
        let items: Vec<Value> =
            serde_json::from_slice(&std::fs::read(to.join(one["file"].as_str().unwrap())).unwrap()).unwrap();
        assert!(!items.is_empty() && items.iter().all(|item| item["kind"] == "user"), "{one}");
    }
    run(&["-p", "nope"]).code(1);
    run(&["--turn", "1"]).code(2);
    std::fs::write(dir.path().join("file"), "").unwrap();
    export(&["--all"], &dir.path().join("file")).code(2);
    export(&["-p", "tidepool"], &dir.path().join("s.md")).code(2);
}

#[cfg(unix)]
mod unix {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
    use std::process::{Command, Stdio};

    use super::*;

    fn mode(path: &std::path::Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_new_file_has_the_mode_of_the_umask_and_an_old_one_keeps_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let demo = quipu_testkit::fixture("demo");
        let script = format!(
            "umask 027; exec '{}' --claude-dir '{}' export 05ef --to new.md",
            assert_cmd::cargo::cargo_bin("quipu").display(),
            demo.display()
        );
        let status = Command::new("sh").args(["-c", &script]).current_dir(&dir).stderr(Stdio::null()).status().unwrap();
        assert!(status.success());
        assert_eq!(mode(&dir.path().join("new.md")), 0o640);
        let old = dir.path().join("old.md");
        fs::write(&old, "old").unwrap();
        fs::set_permissions(&old, Permissions::from_mode(0o604)).unwrap();
        export(&[], &old).success();
        assert_eq!(mode(&old), 0o604);
        assert!(fs::read_to_string(&old).unwrap().starts_with("# "));
    }

    #[test]
    fn links_are_written_through() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("target.md"), dir.path().join("link.md"));
        for exists in [false, true] {
            if !exists {
                symlink("target.md", &link).unwrap();
            }
            export(&[], &link).success();
            assert!(link.is_symlink() && fs::read_to_string(&target).unwrap().starts_with("# "), "{exists}");
        }
    }

    #[test]
    fn devices_and_fifos_stay_what_they_are() {
        export(&["--as", "markdown"], "/dev/null".as_ref()).success();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo.md");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let reader = Command::new("cat").arg(&fifo).stdout(Stdio::piped()).spawn().unwrap();
        export(&[], &fifo).success();
        let read = reader.wait_with_output().unwrap();
        assert!(read.stdout.starts_with(b"# ") && fs::metadata(&fifo).unwrap().file_type().is_fifo());
    }
}

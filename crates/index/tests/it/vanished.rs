//! What was counted of session files stays counted when they are deleted.

use std::fs;
use std::path::{Path, PathBuf};

use quipu_conversation::price::Prices;
use quipu_index::{Catalogue, GroupBy, UsageCounter, UsageLedger, UsageReport, archived_usage, scan_session};
use quipu_testkit::generate::{delete_every_third, generate_tree};
use quipu_transcript::find;
use tempfile::tempdir;

use crate::{line, now, rows, sum, window};

fn refreshed(dir: &Path) -> Catalogue {
    let catalogue = Catalogue::open(&dir.join("cache"), &[dir.to_owned()], Prices::bundled()).unwrap();
    let mut catalogue = catalogue.with_data_folder(&dir.join("data"));
    assert!(catalogue.refresh(&|_, _| ()).unwrap().is_empty());
    assert!(catalogue.archive_error().is_none());
    catalogue
}

fn count(catalogue: &Catalogue, by: GroupBy) -> UsageReport {
    let window = window();
    let mut counter = UsageCounter::new(by, &window);
    catalogue.for_each_usage(by, &window, |used| counter.add(used)).unwrap();
    counter.report(now())
}

/// Output tokens by session, and whether its files are gone.
fn sessions(catalogue: &Catalogue) -> Vec<(String, u64, bool)> {
    let rows = count(catalogue, GroupBy::Session).rows;
    let mut rows: Vec<_> =
        rows.iter().map(|row| (row.key.clone().unwrap(), row.tokens.output, row.vanished_messages > 0)).collect();
    rows.sort();
    rows
}

fn usage_line(id: &str, second: u32, output: u32) -> String {
    line(&format!("\"{id}\""), second, &format!("{id}-{second}"), &format!(r#""output_tokens":{output}"#), "") + "\n"
}

fn project(dir: &Path) -> PathBuf {
    let folder = dir.join("projects/-p");
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_deleted_session_stays_counted_and_is_marked() {
    let dir = tempdir().unwrap();
    let folder = project(dir.path());
    let [a, b, c] = ["a", "b", "c"].map(|name| folder.join(format!("{name}.jsonl")));
    fs::write(&a, usage_line("m1", 1, 5)).unwrap();
    fs::write(&b, usage_line("m1", 1, 5) + &usage_line("m2", 2, 7)).unwrap();
    fs::write(&c, usage_line("m3", 3, 100)).unwrap();
    let there = |catalogue: &Catalogue| assert_eq!(sessions(catalogue).len(), 3);
    there(&refreshed(dir.path()));
    fs::remove_file(&a).unwrap();
    fs::rename(&c, dir.path().join("aside")).unwrap();
    // What a file still holds is that session's; only the rest is the deleted one's.
    let gone = vec![("b".to_owned(), 12, false), ("c".to_owned(), 100, true)];
    assert_eq!(sessions(&refreshed(dir.path())), gone);
    assert_eq!(sessions(&refreshed(dir.path())), gone, "and once more");
    let catalogue = refreshed(dir.path());
    assert_eq!(catalogue.sessions().unwrap().len(), 1);
    assert_eq!(catalogue.vanished_sessions().unwrap().len(), 2);
    drop(catalogue);
    let kept = dir.path().join("data/usage.jsonl");
    #[cfg(unix)]
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&kept).unwrap().permissions()) & 0o777, 0o600);
    fs::remove_dir_all(dir.path().join("cache")).unwrap();
    assert_eq!(sessions(&refreshed(dir.path())), gone, "without the index");
    // It comes back, and goes again.
    let size = fs::metadata(&kept).unwrap().len();
    fs::rename(dir.path().join("aside"), &c).unwrap();
    assert_eq!(sessions(&refreshed(dir.path())), [("b".to_owned(), 12, false), ("c".to_owned(), 100, false)]);
    fs::remove_file(&c).unwrap();
    assert_eq!(sessions(&refreshed(dir.path())), gone);
    assert_eq!(fs::metadata(&kept).unwrap().len(), size, "what is kept is not kept again");
}

/// A message that searches the web, and the result of the search.
fn search(id: &str, second: u32, output: u32) -> [String; 2] {
    let call = usage_line(id, second, output).replace(
        r#""content":[]"#,
        r#""content":[{"type":"tool_use","id":"t1","name":"WebSearch","input":{"query":"tide"}}]"#,
    );
    let found = r#"{"type":"user","uuid":"r","timestamp":"2026-11-15T10:00:30Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"two"}]}}"#;
    [call, format!("{found}\n")]
}

#[test]
fn a_search_stays_counted_whose_result_only_the_deleted_copy_holds() {
    let dir = tempdir().unwrap();
    let folder = project(dir.path());
    let [call, found] = search("m1", 1, 5);
    fs::write(folder.join("copy.jsonl"), &call).unwrap();
    fs::write(folder.join("whole.jsonl"), call + &found).unwrap();
    let searches = |catalogue: &Catalogue| count(catalogue, GroupBy::Day).totals.web_searches;
    assert_eq!(searches(&refreshed(dir.path())), 1);
    fs::remove_file(folder.join("whole.jsonl")).unwrap();
    assert_eq!(searches(&refreshed(dir.path())), 1);
    fs::remove_dir_all(dir.path().join("cache")).unwrap();
    assert_eq!(searches(&refreshed(dir.path())), 1, "without the index");
}

#[test]
fn usage_added_after_part_was_archived_is_archived_too() {
    let dir = tempdir().unwrap();
    let folder = project(dir.path());
    let (main, agents) = (folder.join("a.jsonl"), folder.join("a/subagents"));
    fs::create_dir_all(&agents).unwrap();
    fs::write(agents.join("agent-1.jsonl"), usage_line("m0", 1, 3)).unwrap();
    fs::write(&main, usage_line("m1", 2, 7)).unwrap();
    refreshed(dir.path());
    fs::remove_dir_all(folder.join("a")).unwrap();
    refreshed(dir.path());
    // The answer goes on: a line of the same message with all of its output.
    fs::write(&main, usage_line("m1", 2, 7) + &usage_line("m1", 3, 162)).unwrap();
    assert_eq!(sessions(&refreshed(dir.path())), [("a".to_owned(), 165, true)]);
    fs::remove_file(&main).unwrap();
    assert_eq!(sessions(&refreshed(dir.path())), [("a".to_owned(), 165, true)]);
    fs::remove_dir_all(dir.path().join("cache")).unwrap();
    assert_eq!(sessions(&refreshed(dir.path())), [("a".to_owned(), 165, true)], "without the index");
}

#[test]
fn a_deleted_subagent_is_called_by_its_type_without_the_index_too() {
    let dir = tempdir().unwrap();
    let folder = project(dir.path());
    let agents = folder.join("a/subagents");
    fs::create_dir_all(&agents).unwrap();
    fs::write(folder.join("a.jsonl"), usage_line("m1", 1, 5)).unwrap();
    fs::write(agents.join("agent-1.jsonl"), usage_line("m2", 2, 7)).unwrap();
    fs::write(agents.join("agent-1.meta.json"), r#"{"agentType":"Explore"}"#).unwrap();
    refreshed(dir.path());
    fs::remove_file(agents.join("agent-1.jsonl")).unwrap();
    refreshed(dir.path());
    let mut counted = Vec::new();
    let kept = archived_usage(&dir.path().join("data"), &[dir.path().to_owned()]).unwrap();
    UsageLedger::new(kept)
        .for_each_usage(&Prices::bundled(), |used| counted.push((used.agent.to_owned(), used.amounts.tokens.output)));
    counted.sort();
    assert_eq!(counted, [("Explore".to_owned(), 7), ("main".to_owned(), 5)]);
}

#[test]
fn other_config_folders_do_not_see_what_is_kept() {
    let (dir, other) = (tempdir().unwrap(), tempdir().unwrap());
    let file = project(dir.path()).join("a.jsonl");
    fs::write(&file, usage_line("m1", 1, 5)).unwrap();
    refreshed(dir.path());
    fs::remove_file(&file).unwrap();
    refreshed(dir.path());
    let catalogue = Catalogue::open(&dir.path().join("cache"), &[other.path().to_owned()], Prices::bundled()).unwrap();
    let mut catalogue = catalogue.with_data_folder(&dir.path().join("data"));
    catalogue.refresh(&|_, _| ()).unwrap();
    assert_eq!(count(&catalogue, GroupBy::Day).totals.messages, 0);
}

#[test]
fn a_torn_or_foreign_line_in_the_kept_usage_costs_only_itself() {
    let dir = tempdir().unwrap();
    let folder = project(dir.path());
    let kept = dir.path().join("data/usage.jsonl");
    fs::create_dir(dir.path().join("data")).unwrap();
    fs::write(&kept, "{\"from\":\"a later version\"}\n{\"dir\":").unwrap();
    fs::write(folder.join("a.jsonl"), usage_line("m1", 1, 5)).unwrap();
    refreshed(dir.path());
    fs::remove_file(folder.join("a.jsonl")).unwrap();
    refreshed(dir.path());
    fs::remove_dir_all(dir.path().join("cache")).unwrap();
    assert_eq!(sessions(&refreshed(dir.path())), [("a".to_owned(), 5, true)]);
}

#[test]
fn without_a_data_folder_only_the_index_keeps_usage_with_a_warning() {
    let dir = tempdir().unwrap();
    let file = project(dir.path()).join("a.jsonl");
    fs::write(&file, usage_line("m1", 1, 5)).unwrap();
    fs::write(dir.path().join("data"), "a file, not a folder").unwrap();
    let open = || {
        let catalogue = Catalogue::open(&dir.path().join("cache"), &[dir.path().to_owned()], Prices::bundled());
        let mut catalogue = catalogue.unwrap().with_data_folder(&dir.path().join("data"));
        catalogue.refresh(&|_, _| ()).unwrap();
        catalogue
    };
    open();
    fs::remove_file(&file).unwrap();
    let catalogue = open();
    assert!(catalogue.archive_error().is_some());
    assert_eq!(sessions(&catalogue), [("a".to_owned(), 5, true)]);
}

#[test]
fn deleting_files_of_a_generated_tree_changes_no_total() {
    let dir = tempdir().unwrap();
    let truth = generate_tree(dir.path(), 42, 6_000_000).unwrap();
    refreshed(dir.path());
    assert!(delete_every_third(dir.path()).unwrap().len() > 2);
    let check = |count: &dyn Fn(GroupBy) -> UsageReport| {
        for (by, expect) in [
            (GroupBy::Day, &truth.by_day),
            (GroupBy::Model, &truth.by_model),
            (GroupBy::Project, &truth.by_project),
            (GroupBy::Block, &truth.by_block),
            (GroupBy::Tool, &truth.by_tool),
            (GroupBy::Agent, &truth.by_agent),
        ] {
            let report = count(by);
            assert_eq!(sum(&report.totals), truth.total, "{by:?}");
            assert!(report.totals.vanished_messages > 0);
            assert_eq!(rows(&report), *expect, "{by:?}");
        }
    };
    let catalogue = refreshed(dir.path());
    check(&|by| count(&catalogue, by));
    drop(catalogue);
    fs::remove_dir_all(dir.path().join("cache")).unwrap();
    let catalogue = refreshed(dir.path());
    check(&|by| count(&catalogue, by));
    // And counted from the files and what is kept, without any index.
    let window = window();
    check(&|by| {
        let (projects, _) = find::list_project_folders(&[dir.path().to_owned()]);
        let (histories, _) = find::list_session_files(&projects, &());
        let mut sessions: Vec<_> = histories.iter().map(|history| scan_session(history, by).0).collect();
        sessions.extend(archived_usage(&dir.path().join("data"), &[dir.path().to_owned()]).unwrap());
        let mut counter = UsageCounter::new(by, &window);
        UsageLedger::new(sessions).for_each_usage(&Prices::bundled(), |used| counter.add(used));
        counter.report(now())
    });
}

/// Any caller that may read everything sees no folder that cannot be listed.
#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_listed_has_not_vanished_and_hides_no_deletion_elsewhere() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempdir().unwrap();
    let (folder, other) = (project(dir.path()), dir.path().join("projects/-q"));
    fs::create_dir(&other).unwrap();
    fs::write(folder.join("a.jsonl"), usage_line("m1", 1, 5)).unwrap();
    fs::write(other.join("b.jsonl"), usage_line("m2", 2, 7)).unwrap();
    refreshed(dir.path());
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read_dir(&folder).is_ok() {
        return;
    }
    fs::remove_file(other.join("b.jsonl")).unwrap();
    let catalogue = Catalogue::open(&dir.path().join("cache"), &[dir.path().to_owned()], Prices::bundled()).unwrap();
    let mut catalogue = catalogue.with_data_folder(&dir.path().join("data"));
    assert_eq!(catalogue.refresh(&|_, _| ()).unwrap().len(), 1);
    assert_eq!(sessions(&catalogue), [("a".to_owned(), 5, false), ("b".to_owned(), 7, true)]);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
}

//! The catalogue says what a count straight from the files says, whatever happened in
//! between.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

use quipu_conversation::price::Prices;
use quipu_index::{Catalogue, GroupBy, ListedSession, TimeWindow, UsageCounter, UsageReport};
use quipu_testkit::generate::generate_tree;
use tempfile::tempdir;

use crate::{check_truth, line, now, report, sum, window};

fn open(dir: &Path) -> Catalogue {
    Catalogue::open(&dir.join("cache"), &[dir.to_owned()], Prices::bundled()).unwrap()
}

fn refreshed(dir: &Path) -> Catalogue {
    let mut catalogue = open(dir);
    assert!(catalogue.refresh(&|_, _| ()).unwrap().is_empty());
    catalogue
}

fn count(catalogue: &Catalogue, by: GroupBy, window: &TimeWindow) -> UsageReport {
    let mut counter = UsageCounter::new(by, window);
    catalogue.for_each_usage(by, window, |used| counter.add(used)).unwrap();
    counter.report(now())
}

const ALL: [GroupBy; 10] = [
    GroupBy::Day,
    GroupBy::Week,
    GroupBy::Month,
    GroupBy::Session,
    GroupBy::Model,
    GroupBy::Project,
    GroupBy::Block,
    GroupBy::Tool,
    GroupBy::Agent,
    GroupBy::Turn,
];

/// Both ways of counting say the same, in every grouping.
fn check(dir: &Path, catalogue: &Catalogue, window: &TimeWindow) {
    for by in ALL {
        let (ours, plain) = (count(catalogue, by, window), report(dir, by, window));
        assert_eq!(serde_json::to_value(&ours).unwrap(), serde_json::to_value(&plain).unwrap(), "{by:?}");
    }
}

fn append(path: &Path, text: &str) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

fn usage_line(id: &str, second: u32, output: u32) -> String {
    let usage = format!(r#""input_tokens":10,"output_tokens":{output}"#);
    line(&format!("\"{id}\""), second, &format!("{id}-{second}"), &usage, "") + "\n"
}

fn output(catalogue: &Catalogue) -> u64 {
    count(catalogue, GroupBy::Day, &window()).totals.tokens.output
}

/// A project folder with nothing in it.
fn project(dir: &Path) -> std::path::PathBuf {
    let folder = dir.join("projects/-p");
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn every_report_equals_the_truth_with_the_index_too() {
    let dir = tempdir().unwrap();
    let truth = generate_tree(dir.path(), 42, 6_000_000).unwrap();
    let catalogue = refreshed(dir.path());
    check_truth(&truth, |by| count(&catalogue, by, &window()));
    // And once more from what is kept.
    check(dir.path(), &refreshed(dir.path()), &window());
}

/// SQLite does not wait when two commands switch a new database to WAL: one of them fails.
#[test]
fn a_new_index_is_opened_by_one_command_at_a_time() {
    let dir = tempdir().unwrap();
    let cache = dir.path().join("cache");
    drop(open(dir.path()));
    let files = || fs::read_dir(&cache).unwrap().flatten().map(|entry| entry.path());
    let database = files().find(|path| path.extension().is_some_and(|ext| ext == "sqlite")).unwrap();
    files().for_each(|path| fs::remove_file(path).unwrap());
    // As a command that is switching the database.
    let opening = File::create(database.with_extension("opening")).unwrap();
    opening.lock().unwrap();
    let other = rusqlite::Connection::open(&database).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::thread::scope(|scope| {
        let opened = scope.spawn(|| Catalogue::open(&cache, &[dir.path().to_owned()], Prices::bundled()).map(drop));
        std::thread::sleep(std::time::Duration::from_millis(100));
        other.execute_batch("COMMIT").unwrap();
        drop(opening);
        opened.join().unwrap().unwrap();
    });
}

#[test]
fn a_window_that_cuts_a_quarter_of_an_hour_counts_its_messages() {
    let dir = tempdir().unwrap();
    generate_tree(dir.path(), 7, 2_000_000).unwrap();
    let catalogue = refreshed(dir.path());
    let all = count(&catalogue, GroupBy::Day, &window());
    let (first, last) = all.totals.span.unwrap();
    let middle = first + last.duration_since(first) / 2;
    for (since, until) in [(Some(middle), None), (None, Some(middle)), (Some(first), Some(middle))] {
        let cut = TimeWindow { since, until, ..window() };
        let totals = count(&catalogue, GroupBy::Day, &cut).totals;
        assert!(totals.messages > 0 && totals.messages < all.totals.messages);
        check(dir.path(), &catalogue, &cut);
    }
}

#[test]
fn only_what_is_new_is_read_and_it_counts_the_same() {
    let dir = tempdir().unwrap();
    let path = project(dir.path()).join("a.jsonl");
    fs::write(&path, usage_line("m1", 1, 5)).unwrap();
    assert_eq!(output(&refreshed(dir.path())), 5);
    // More of the same message, another one, half a line, then the rest of it.
    append(&path, &(usage_line("m1", 2, 9) + &usage_line("m2", 3, 20)));
    assert_eq!(output(&refreshed(dir.path())), 29);
    let half = usage_line("m3", 4, 100);
    append(&path, &half[..50]);
    assert_eq!(output(&refreshed(dir.path())), 29);
    append(&path, &half[50..]);
    let catalogue = refreshed(dir.path());
    assert_eq!(output(&catalogue), 129);
    check(dir.path(), &catalogue, &window());
    // A last line without its end counts when it is whole, and once.
    append(&path, usage_line("m4", 5, 1).trim_end());
    assert_eq!(output(&refreshed(dir.path())), 130);
    append(&path, "\n");
    assert_eq!(output(&refreshed(dir.path())), 130);
}

#[test]
fn files_cut_replaced_or_rewritten_are_read_again() {
    let dir = tempdir().unwrap();
    let path = project(dir.path()).join("a.jsonl");
    fs::write(&path, usage_line("m1", 1, 5) + &usage_line("m2", 2, 7)).unwrap();
    assert_eq!(output(&refreshed(dir.path())), 12);
    File::options().write(true).open(&path).unwrap().set_len(usage_line("m1", 1, 5).len() as u64).unwrap();
    assert_eq!(output(&refreshed(dir.path())), 5, "cut");
    let other = dir.path().join("other");
    fs::write(&other, usage_line("m3", 3, 30) + &usage_line("m4", 4, 40)).unwrap();
    fs::rename(&other, &path).unwrap();
    assert_eq!(output(&refreshed(dir.path())), 70, "replaced");
    // The same file, longer, but with another beginning.
    fs::write(&path, usage_line("m5", 5, 100) + &usage_line("m6", 6, 200) + &usage_line("m7", 7, 300)).unwrap();
    let catalogue = refreshed(dir.path());
    assert_eq!(output(&catalogue), 600, "rewritten");
    check(dir.path(), &catalogue, &window());
}

#[test]
fn a_copy_is_credited_to_the_remaining_session() {
    let dir = tempdir().unwrap();
    let folder = project(dir.path());
    let (a, b) = (folder.join("a.jsonl"), folder.join("b.jsonl"));
    fs::write(&a, usage_line("m1", 1, 5)).unwrap();
    fs::write(&b, usage_line("m1", 1, 5) + &usage_line("m2", 2, 7)).unwrap();
    let keys = |catalogue: &Catalogue| -> Vec<(String, u64)> {
        let report = count(catalogue, GroupBy::Session, &window());
        let mut keys: Vec<_> = report.rows.iter().map(|row| (row.key.clone().unwrap(), row.tokens.output)).collect();
        keys.sort();
        keys
    };
    let rows = |rows: &[(&str, u64)]| rows.iter().map(|(key, n)| ((*key).to_owned(), *n)).collect::<Vec<_>>();
    assert_eq!(keys(&refreshed(dir.path())), rows(&[("a", 5), ("b", 7)]));
    fs::rename(&a, dir.path().join("kept")).unwrap();
    assert_eq!(keys(&refreshed(dir.path())), rows(&[("b", 12)]), "gone");
    fs::rename(dir.path().join("kept"), &a).unwrap();
    let catalogue = refreshed(dir.path());
    assert_eq!(keys(&catalogue), rows(&[("a", 5), ("b", 7)]), "back");
    check(dir.path(), &catalogue, &window());
}

#[test]
fn subagents_count_for_their_session_wherever_their_files_lie() {
    let dir = tempdir().unwrap();
    let folder = project(dir.path());
    fs::write(folder.join("a.jsonl"), usage_line("m1", 1, 5)).unwrap();
    fs::create_dir_all(folder.join("a/subagents")).unwrap();
    fs::write(folder.join("a/subagents/agent-x.jsonl"), usage_line("m2", 2, 7)).unwrap();
    let beside = usage_line("m3", 3, 11).replacen('{', r#"{"sessionId":"a","isSidechain":true,"#, 1);
    fs::write(folder.join("agent-y.jsonl"), &beside).unwrap();
    let catalogue = refreshed(dir.path());
    let report = count(&catalogue, GroupBy::Session, &window());
    assert_eq!((report.rows.len(), report.rows[0].tokens.output), (1, 23));
    check(dir.path(), &catalogue, &window());
    fs::write(folder.join("agent-y.jsonl"), beside + &usage_line("m4", 4, 100)).unwrap();
    fs::remove_file(folder.join("a/subagents/agent-x.jsonl")).unwrap();
    let catalogue = refreshed(dir.path());
    assert_eq!(output(&catalogue), 123, "what the deleted file used stays counted");
    let listed = catalogue.sessions().unwrap();
    assert_eq!((listed.len(), listed[0].subagents, listed[0].messages), (1, 1, 3));
}

#[test]
fn other_prices_change_the_money_of_what_was_counted_before() {
    let dir = tempdir().unwrap();
    fs::write(project(dir.path()).join("a.jsonl"), usage_line("m1", 1, 1_000_000)).unwrap();
    let dear = |catalogue: &Catalogue| {
        (count(catalogue, GroupBy::Day, &window()).totals.cost.as_f64(), catalogue.sessions().unwrap()[0].cost_usd)
    };
    let before = dear(&refreshed(dir.path()));
    let text = "[[price]]\nmodels = [\"claude-opus-5-5\"]\neffective_from = 2020-01-01\nsource = \"mine\"\ninput = 0\noutput = 1\n";
    let prices = Prices::with_overrides(text, "mine").unwrap();
    let mut catalogue = Catalogue::open(&dir.path().join("cache"), &[dir.path().to_owned()], prices).unwrap();
    catalogue.refresh(&|_, _| ()).unwrap();
    assert_eq!(before, (20.00004, 20.00004));
    assert_eq!(dear(&catalogue), (1.0, 1.0));
}

#[test]
fn a_broken_database_is_renamed_and_rebuilt() {
    let dir = tempdir().unwrap();
    fs::write(project(dir.path()).join("a.jsonl"), usage_line("m1", 1, 5)).unwrap();
    drop(refreshed(dir.path()));
    let database = fs::read_dir(dir.path().join("cache"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|ext| ext == "sqlite"))
        .unwrap();
    fs::write(&database, "not a database at all, but long enough to be taken for one ".repeat(100)).unwrap();
    let catalogue = refreshed(dir.path());
    assert!(catalogue.broken_database().is_some_and(|aside| fs::read(aside).unwrap().starts_with(b"not a database")));
    assert_eq!(output(&catalogue), 5);
}

#[test]
fn a_line_that_is_not_text_costs_one_line() {
    let dir = tempdir().unwrap();
    let folder = project(dir.path());
    fs::write(folder.join("a.jsonl"), usage_line("m1", 1, 5)).unwrap();
    fs::write(folder.join("b.jsonl"), [b"\xff\xfe not text\n".as_slice(), usage_line("m2", 2, 7).as_bytes()].concat())
        .unwrap();
    let catalogue = refreshed(dir.path());
    assert_eq!(output(&catalogue), 12, "a line that is not UTF-8 costs one line");
    check(dir.path(), &catalogue, &window());
}

#[test]
fn several_at_once_agree() {
    let dir = tempdir().unwrap();
    let truth = generate_tree(dir.path(), 3, 1_500_000).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let catalogue = refreshed(dir.path());
                assert_eq!(sum(&count(&catalogue, GroupBy::Day, &window()).totals), truth.total);
            });
        }
    });
}

#[test]
fn sessions_are_listed_with_their_forks() {
    let dir = tempdir().unwrap();
    let folder = project(dir.path());
    fs::write(folder.join("a.jsonl"), usage_line("m1", 1, 5)).unwrap();
    fs::write(folder.join("b.jsonl"), usage_line("m1", 1, 5) + &usage_line("m2", 2, 7)).unwrap();
    let listed = refreshed(dir.path()).sessions().unwrap();
    let b: &ListedSession = listed.iter().find(|session| session.session_id == "b").unwrap();
    assert_eq!((b.forked_from.as_deref(), b.messages, b.tokens.output), (Some("a"), 2, 12));
    // A fork whose entries have ids of their own says what they are copies of.
    let copy = usage_line("m1", 3, 5).replacen('{', r#"{"forkedFrom":{"sessionId":"a","messageUuid":"x"},"#, 1);
    fs::write(folder.join("c.jsonl"), copy).unwrap();
    let listed = refreshed(dir.path()).sessions().unwrap();
    let c: &ListedSession = listed.iter().find(|session| session.session_id == "c").unwrap();
    assert_eq!(c.forked_from.as_deref(), Some("a"));
}

#[test]
fn an_index_that_was_not_used_for_long_is_deleted() {
    let dir = tempdir().unwrap();
    fs::write(project(dir.path()).join("a.jsonl"), usage_line("m1", 1, 5)).unwrap();
    drop(refreshed(dir.path()));
    let other = dir.path().join("cache/index-00000000000000aa.sqlite");
    let lock = other.with_extension("lock");
    let foreign = dir.path().join("cache/notes.txt");
    for path in [&other, &lock, &foreign] {
        fs::write(path, "").unwrap();
    }
    drop(refreshed(dir.path()));
    assert!(other.exists(), "it is new");
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(40 * 24 * 3600);
    for path in [&other, &foreign] {
        File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
    }
    assert_eq!(output(&refreshed(dir.path())), 5);
    assert!(!other.exists() && !lock.exists() && foreign.exists());
}

#[test]
fn one_session_is_refreshed_without_reading_the_others() {
    let dir = tempdir().unwrap();
    let folder = project(dir.path()).canonicalize().unwrap();
    let (a, b) = (folder.join("a.jsonl"), folder.join("b.jsonl"));
    fs::write(&a, usage_line("m1", 1, 5)).unwrap();
    fs::write(&b, usage_line("m2", 2, 7)).unwrap();
    let mut catalogue = open(dir.path());
    let status = catalogue.session_status(&a).unwrap().unwrap();
    assert_eq!((status.session.tokens.output, output(&catalogue)), (5, 5));
    assert_eq!(status.last_message.unwrap().tokens.input, 10);
    catalogue.refresh(&|_, _| ()).unwrap();
    append(&a, &usage_line("m3", 3, 20));
    append(&b, &usage_line("m4", 4, 100));
    assert_eq!(catalogue.session_status(&a).unwrap().unwrap().session.tokens.output, 25);
    assert_eq!(output(&catalogue), 32);
    assert!(catalogue.session_status(&folder.join("none.jsonl")).unwrap().is_none());
    check(dir.path(), &refreshed(dir.path()), &window());
}

#[test]
fn a_rewind_to_before_what_was_kept_has_its_turns_right() {
    let dir = tempdir().unwrap();
    let path = project(dir.path()).join("a.jsonl");
    let prompt_line = |uuid: &str, parent: &str| {
        format!(
            r#"{{"type":"user","uuid":"{uuid}","parentUuid":{parent},"timestamp":"2026-11-15T10:00:00Z","message":{{"role":"user","content":"go"}}}}"#
        ) + "\n"
    };
    let answered = |id: &str, second: u32, parent: &str| {
        usage_line(id, second, 1).replacen('{', &format!(r#"{{"parentUuid":"{parent}","#), 1)
    };
    let mut text = prompt_line("u1", "null") + &answered("m1", 1, "u1");
    for n in 2..40 {
        let before = format!("\"m{}-{}\"", n - 1, n - 1);
        text += &(prompt_line(&format!("u{n}"), &before) + &answered(&format!("m{n}"), n, &format!("u{n}")));
    }
    fs::write(&path, &text).unwrap();
    drop(refreshed(dir.path()));
    // Back to the first answer, with another second prompt.
    append(&path, &(prompt_line("v2", "\"m1-1\"") + &answered("w2", 50, "v2")));
    let catalogue = refreshed(dir.path());
    let report = count(&catalogue, GroupBy::Turn, &window());
    let second = report.rows.iter().find(|row| row.key.as_deref() == Some("a:2")).unwrap();
    assert_eq!((report.rows.len(), second.messages), (39, 2));
    assert_eq!(catalogue.sessions().unwrap()[0].turns, 2);
    check(dir.path(), &catalogue, &window());
}

//! Counting against the truth of a generated tree, and a test per rule.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a failed unwrap is a failed test")]

mod catalogue;
mod search;
mod search_completeness;
mod turns;
mod vanished;

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use jiff::ToSpan;
use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use quipu_conversation::price::Prices;
use quipu_index::{
    GroupBy, TimeWindow, UnpricedCount, UnpricedKind, UsageCounter, UsageLedger, UsageReport, UsageRow, scan_session,
};
use quipu_testkit::generate::{ExpectedSum, ExpectedUsage, generate_tree};
use quipu_transcript::find;

fn ledger(dir: &Path, by: GroupBy) -> UsageLedger {
    let (projects, _) = find::list_project_folders(&[dir.to_owned()]);
    let (histories, errors) = find::list_session_files(&projects, &());
    assert!(errors.is_empty());
    UsageLedger::new(histories.iter().map(|history| scan_session(history, by).0).collect())
}

/// Counts straight from the files.
fn report(dir: &Path, by: GroupBy, window: &TimeWindow) -> UsageReport {
    let mut counter = UsageCounter::new(by, window);
    ledger(dir, by).for_each_usage(&Prices::bundled(), |used| counter.add(used));
    counter.report(now())
}

fn now() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().unwrap()
}

fn window() -> TimeWindow {
    TimeWindow { zone: TimeZone::UTC, ..TimeWindow::default() }
}

fn sum(row: &UsageRow) -> ExpectedSum {
    ExpectedSum {
        input: row.tokens.input,
        output: row.tokens.output,
        cache_write_5m: row.tokens.cache_write_5m,
        cache_write_1h: row.tokens.cache_write_1h,
        cache_read: row.tokens.cache_read,
        searches: row.web_searches,
        messages: row.messages,
        nano_usd: (row.cost.as_f64() * 1e9).round() as u64,
        unpriced: row.unpriced.keys().cloned().collect(),
    }
}

fn rows(report: &UsageReport) -> BTreeMap<String, ExpectedSum> {
    report.rows.iter().map(|row| (row.key.clone().unwrap(), sum(row))).collect()
}

/// A report in each grouping equals the truth, to the token and the billionth of a dollar.
fn check_truth(truth: &ExpectedUsage, report: impl Fn(GroupBy) -> UsageReport) {
    let check = |by: GroupBy, expect: &BTreeMap<String, ExpectedSum>| {
        let report = report(by);
        assert_eq!(sum(&report.totals), truth.total, "{by:?}");
        let rows = rows(&report);
        let differ: Vec<_> = expect.iter().filter(|(key, sum)| rows.get(*key) != Some(sum)).collect();
        assert!(differ.is_empty() && rows.len() == expect.len(), "{by:?} {differ:?}");
    };
    check(GroupBy::Day, &truth.by_day);
    check(GroupBy::Session, &truth.by_session);
    check(GroupBy::Model, &truth.by_model);
    check(GroupBy::Project, &truth.by_project);
    check(GroupBy::Block, &truth.by_block);
    check(GroupBy::Tool, &truth.by_tool);
    check(GroupBy::Agent, &truth.by_agent);
    check(GroupBy::Turn, &truth.by_turn);
    for (by, len) in [(GroupBy::Month, 7), (GroupBy::Week, 10)] {
        let mut expect: BTreeMap<String, ExpectedSum> = BTreeMap::new();
        for (day, sum) in &truth.by_day {
            let day: jiff::civil::Date = day.parse().unwrap();
            let first =
                if by == GroupBy::Month { day } else { day - i64::from(day.weekday().since(Weekday::Monday)).days() };
            expect.entry(first.to_string()[..len].to_owned()).or_default().add(sum);
        }
        check(by, &expect);
    }
}

#[test]
fn every_report_equals_the_truth_to_the_token_and_the_cent() {
    let dir = tempfile::tempdir().unwrap();
    let truth = generate_tree(dir.path(), 42, 6_000_000).unwrap();
    assert!(truth.files > 10, "{}", truth.files);
    assert!(truth.total.unpriced.len() == 1 && truth.total.searches > 5);
    assert!(truth.by_agent.len() == 2 && truth.by_tool.len() == 4);
    check_truth(&truth, |by| report(dir.path(), by, &window()));
}

/// Writes sessions given as lines and counts them.
fn count(sessions: &[(&str, &[String])]) -> UsageRow {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("projects/-p");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, lines) in sessions {
        std::fs::write(folder.join(format!("{name}.jsonl")), lines.join("\n") + "\n").unwrap();
    }
    report(dir.path(), GroupBy::Day, &window()).totals
}

fn line(id: &str, time: u32, uuid: &str, usage: &str, more: &str) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"{uuid}","timestamp":"2026-11-15T10:00:{time:02}Z"{more},"message":{{"id":{id},"role":"assistant","model":"claude-opus-5-5","content":[],"usage":{{{usage}}}}}}}"#
    )
}

#[test]
fn within_a_session_an_id_counts_once_by_its_fullest_line() {
    let row = count(&[(
        "a",
        &[
            line("\"m\"", 1, "u1", r#""input_tokens":5,"output_tokens":9"#, ""),
            line("\"m\"", 2, "u2", r#""input_tokens":7,"output_tokens":9"#, ""),
            line("\"m\"", 3, "u3", r#""input_tokens":100,"output_tokens":1"#, ""),
        ],
    )]);
    assert_eq!((row.messages, row.tokens.input, row.tokens.output), (1, 7, 9));
}

#[test]
fn a_missing_id_falls_back_to_the_request_and_an_empty_request_is_none() {
    let usage = r#""input_tokens":1,"output_tokens":1"#;
    let row = count(&[(
        "a",
        &[
            line("null", 1, "u1", usage, r#","requestId":"r""#),
            line("null", 2, "u2", usage, r#","requestId":"r""#),
            line("null", 3, "u3", usage, r#","requestId":"""#),
            line("null", 4, "u4", usage, r#","requestId":"""#),
        ],
    )]);
    assert_eq!(row.messages, 3);
}

#[test]
fn in_another_session_an_id_is_a_copy_only_with_a_shared_time_or_uuid() {
    let usage = r#""input_tokens":1,"output_tokens":1"#;
    let first = line("\"m\"", 1, "u1", usage, "");
    assert_eq!(
        count(&[("a", std::slice::from_ref(&first)), ("b", std::slice::from_ref(&first))]).messages,
        1,
        "a fork"
    );
    assert_eq!(
        count(&[("a", std::slice::from_ref(&first)), ("b", &[line("\"m\"", 1, "u9", usage, "")])]).messages,
        1,
        "new ids, old times"
    );
    assert_eq!(count(&[("a", &[first]), ("b", &[line("\"m\"", 9, "u9", usage, "")])]).messages, 2, "another message");
}

#[test]
fn a_zero_split_does_not_hide_what_was_written() {
    let usage = r#""cache_creation_input_tokens":1000000,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"output_tokens":0"#;
    let row = count(&[("a", &[line("\"m\"", 1, "u", usage, "")])]);
    assert_eq!((row.tokens.cache_write_5m, row.cost.as_f64()), (1_000_000, 5.0));
}

#[test]
fn a_recorded_cost_is_used_and_an_unknown_model_is_named() {
    let usage = r#""input_tokens":1000000,"output_tokens":0"#;
    let recorded = line("\"m\"", 1, "u", usage, r#","costUSD":0.25"#);
    assert_eq!(count(&[("a", &[recorded])]).cost.as_f64(), 0.25);
    let unknown = line("\"m\"", 1, "u", usage, "").replace("claude-opus-5-5", "claude-opus-5-6");
    let row = count(&[("a", &[unknown])]);
    assert_eq!((row.cost.as_f64(), row.tokens.input), (0.0, 1_000_000));
    assert_eq!(row.unpriced.into_keys().collect::<Vec<_>>(), ["claude-opus-5-6"]);
}

#[test]
fn fast_mode_without_a_price_is_distinguished_from_a_model_without_one() {
    let usage = r#""input_tokens":1000000,"output_tokens":0,"speed":"fast""#;
    let fast = line("\"m\"", 1, "u", usage, "").replace("claude-opus-5-5", "claude-haiku-4-5");
    let plain = line("\"n\"", 1, "v", r#""input_tokens":1000000,"output_tokens":0"#, "");
    let row = count(&[("a", &[fast, plain.replace("claude-opus-5-5", "claude-haiku-4-5")])]);
    let unknown = UnpricedCount { reason: UnpricedKind::UnknownSpeed, messages: 1 };
    assert_eq!(row.unpriced, BTreeMap::from([("claude-haiku-4-5 (fast mode)".to_owned(), unknown)]));
    assert_eq!(row.cost.as_f64(), 1.0);
}

#[test]
fn a_message_copied_in_part_counts_with_its_fullest_copy() {
    let part = |time: u32, output: u32| {
        line("\"m\"", time, &format!("u{time}"), &format!(r#""input_tokens":3,"output_tokens":{output}"#), "")
    };
    let (copy, whole) = ([part(1, 7), part(2, 2)], [part(1, 7), part(2, 2), part(3, 162)]);
    for sessions in [[("a", &copy[..]), ("b", &whole[..])], [("a", &whole[..]), ("b", &copy[..])]] {
        let row = count(&sessions);
        assert_eq!((row.messages, row.tokens.input, row.tokens.output), (1, 3, 162));
    }
}

#[test]
fn what_progress_lines_repeat_counts_only_where_no_line_of_its_own_is() {
    let repeat = |line: &str, uuid: &str| {
        format!(
            r#"{{"type":"progress","uuid":"{uuid}","timestamp":"2026-11-15T10:00:01Z","data":{{"type":"agent_progress","agentId":"a1","message":{line}}}}}"#
        )
    };
    let usage_line = |output: u32| line("\"m\"", 1, "u1", &format!(r#""output_tokens":{output}"#), "");
    let progress = repeat(&usage_line(3), "p1");
    assert_eq!(count(&[("a", &[progress.clone(), repeat(&usage_line(5), "p2")])]).tokens.output, 5, "only there");
    for lines in [[usage_line(40), progress.clone()], [progress.clone(), usage_line(40)]] {
        let row = count(&[("a", &lines)]);
        assert_eq!((row.messages, row.tokens.output), (1, 40), "in the same session");
    }
    let row = count(&[("a", &[repeat(&usage_line(90), "p1")]), ("b", &[usage_line(40)])]);
    assert_eq!((row.messages, row.tokens.output), (1, 40), "in another session");
}

#[test]
fn a_message_is_shared_among_the_tools_it_calls() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("projects/-p");
    std::fs::create_dir_all(&folder).unwrap();
    let call = |n: u32, name: &str| {
        let block = format!(r#""content":[{{"type":"tool_use","id":"t{n}","name":"{name}","input":{{}}}}]"#);
        line("\"m\"", n, &format!("u{n}"), r#""output_tokens":11"#, "").replace("\"content\":[]", &block)
    };
    let lines = [call(1, "Read"), call(2, "Bash"), call(3, "Read"), line("\"n\"", 4, "u4", r#""output_tokens":1"#, "")];
    std::fs::write(folder.join("a.jsonl"), lines.join("\n")).unwrap();
    let rows: Vec<_> = report(dir.path(), GroupBy::Tool, &window()).rows;
    let rows: Vec<_> = rows.iter().map(|row| (row.key.as_deref().unwrap(), row.messages, row.tokens.output)).collect();
    assert_eq!(rows, [("Bash", 0, 5), ("Read", 1, 6), ("(none)", 1, 1)]);
}

#[test]
fn the_programs_own_messages_are_no_rows() {
    let own = line("\"m\"", 1, "u", r#""input_tokens":0,"output_tokens":0"#, "");
    assert_eq!(count(&[("a", &[own.replace("claude-opus-5-5", "<synthetic>")])]).messages, 0);
}

#[test]
fn a_cost_without_usage_counts_before_and_after_the_message() {
    let long = "word ".repeat(2000);
    let line = |before: &str, after: &str| {
        format!(
            r#"{{"type":"assistant"{before},"message":{{"id":"m","model":"claude-opus-5-5","content":[{{"type":"text","text":"{long}"}}]}}{after},"timestamp":"2025-06-01T10:00:00Z"}}"#
        )
    };
    let cost = r#","costUSD":0.25"#;
    for line in [line(cost, ""), line("", cost)] {
        assert_eq!(count(&[("a", &[line])]).cost.as_f64(), 0.25);
    }
}

#[test]
fn searches_without_a_counter_are_counted_by_their_results() {
    let ask = line("\"m\"", 1, "u", r#""output_tokens":1"#, "")
        .replace("\"content\":[]", r#""content":[{"type":"tool_use","id":"t","name":"WebSearch","input":{}},{"type":"tool_use","id":"f","name":"WebSearch","input":{}}]"#);
    let answer = |id: &str, bad: bool| {
        format!(
            r#"{{"type":"user","uuid":"r{id}","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","is_error":{bad},"content":"x"}}]}}}}"#
        )
    };
    let row = count(&[("a", &[ask, answer("t", false), answer("f", true)])]);
    assert_eq!(row.web_searches, 1);
    assert!((row.cost.as_f64() - 0.01 - 0.00002).abs() < 1e-12);
}

#[test]
fn the_input_of_a_tool_is_not_read_as_usage() {
    let odd = line("\"m\"", 1, "u", r#""input_tokens":3,"output_tokens":4"#, "").replace(
        "\"content\":[]",
        r#""content":[{"type":"tool_use","id":"t","name":"Write","input":{"id":null,"model":null,"usage":{"output_tokens":999}}}]"#,
    );
    let row = count(&[("a", &[odd])]);
    assert_eq!((row.messages, row.tokens.output), (1, 4));
}

#[test]
fn blocks_begin_at_the_full_hour_and_end_after_five_hours() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("projects/-p");
    std::fs::create_dir_all(&folder).unwrap();
    let at = |n: u32, time: &str| {
        line(&format!("\"m{n}\""), 0, &format!("u{n}"), r#""output_tokens":1"#, "").replace("10:00:00", time)
    };
    let lines = [at(1, "08:40:00"), at(2, "13:30:00"), at(3, "13:50:00"), at(4, "19:10:00")];
    std::fs::write(folder.join("a.jsonl"), lines.join("\n")).unwrap();
    let report = report(dir.path(), GroupBy::Block, &window());
    let rows: Vec<_> = report.rows.iter().map(|row| (row.key.as_deref().unwrap(), row.messages)).collect();
    assert_eq!(rows, [("2026-11-15T08:00:00Z", 1), ("2026-11-15T13:00:00Z", 2), ("2026-11-15T19:00:00Z", 1)]);
}

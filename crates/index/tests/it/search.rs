//! What was said is found: words, identifiers, paths, phrases and Chinese.

use std::fs;
use std::path::Path;

use quipu_conversation::price::Prices;
use quipu_index::{Catalogue, Hit, Pattern, Query, SearchRole, SearchTerms, SessionKey, hits_in_line, matching_lines};
use quipu_transcript::find;
use tempfile::tempdir;

fn user(uuid: &str, content: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"{uuid}","timestamp":"2026-11-15T10:00:00Z","message":{{"role":"user","content":{content}}}}}"#
    )
}

fn assistant(uuid: &str, blocks: &str) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"{uuid}","timestamp":"2026-11-15T10:00:01Z","message":{{"role":"assistant","content":[{blocks}]}}}}"#
    )
}

fn session_lines() -> Vec<String> {
    vec![
        user("u1", r#""When does the tide turn in 抽奖脚本?""#),
        assistant("a1", r#"{"type":"thinking","thinking":"the harbour empties at noon"}"#),
        assistant(
            "a2",
            r#"{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"grep -n getUserById src/tide/table.rs"}}"#,
        ),
        user(
            "u2",
            r#"[{"type":"tool_result","tool_use_id":"t1","content":"12: fn getUserById(user_id: u32) \"quoted\""}]"#,
        ),
        user(
            "u3",
            r#"[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"HTTPServer is down"}]}]"#,
        ),
        assistant("a3", r#"{"type":"text","text":"It turns at noon, see src/tide/table.rs; 12 passed. Größe"}"#),
    ]
}

fn write(dir: &Path, name: &str, lines: &[String]) {
    let folder = dir.join("projects/-home-dev-tidepool");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("{name}.jsonl")), lines.join("\n") + "\n").unwrap();
}

fn indexed(dir: &Path) -> Catalogue {
    let mut catalogue = Catalogue::open(&dir.join("cache"), &[dir.to_owned()], Prices::bundled()).unwrap();
    catalogue.refresh(&|_, _| ()).unwrap();
    assert!(catalogue.index_text(&|_, _| ()).unwrap().is_empty());
    catalogue
}

fn search(catalogue: &Catalogue, text: &str, query: Query) -> Vec<Hit> {
    catalogue.search(&SearchTerms::parse(text).unwrap(), &query).unwrap().hits
}

fn found(catalogue: &Catalogue, text: &str) -> Vec<Hit> {
    search(catalogue, text, Query::default())
}

fn ids(hits: &[Hit]) -> Vec<&str> {
    let mut ids: Vec<&str> = hits.iter().filter_map(|hit| hit.uuid.as_deref()).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn words_identifiers_paths_phrases_and_chinese_are_found() {
    let dir = tempdir().unwrap();
    write(dir.path(), "s", &session_lines());
    let catalogue = indexed(dir.path());
    let check = |text: &str, expect: &[&str]| {
        assert_eq!(ids(&found(&catalogue, text)), expect, "{text}");
    };
    check("tide", &["a2", "a3", "u1"]);
    check("TIDE turn", &["u1"]);
    check("\"turns at noon\"", &["a3"]);
    check("\"noon at turns\"", &[]);
    check("getUserById", &["a2", "u2"]);
    check("user", &["a2", "u2"]);
    check("user_id", &["u2"]);
    check("httpserver", &["u3"]);
    check("HTTP_Server", &["u3"]);
    check("HTTPServer", &["u3"]);
    check("GETUSERBYID", &["a2", "u2"]);
    check("tide OR harbour", &["a1", "a2", "a3", "u1"]);
    check("noon -harbour", &["a3"]);
    check("table.rs;", &["a2", "a3"]);
    check("\"table.rs;\"", &["a3"]);
    check("user_id:", &["u2"]);
    check("getUserById(", &["u2"]);
    check("bash", &["a2"]);
    check("server", &["u3"]);
    check("src/tide/table.rs", &["a2", "a3"]);
    check("抽奖", &["u1"]);
    check("奖脚本", &["u1"]);
    check("抽脚", &[]);
    check("本", &["u1"]);
    check("harb*", &["a1"]);
    check("größe", &["a3"]);
}

#[test]
fn hits_have_their_position_and_show_the_match() {
    let dir = tempdir().unwrap();
    write(dir.path(), "s", &session_lines());
    let hits = found(&indexed(dir.path()), "server");
    let Hit { session_id, line, role, tool, snippet, timestamp, score, .. } = &hits[0];
    assert_eq!((session_id.as_str(), *line, *role), ("s", 5, "tool"));
    assert_eq!((tool.as_deref(), timestamp.as_deref()), (None, Some("2026-11-15T10:00:00Z")));
    assert_eq!(snippet, "HTTP«Server» is down");
    assert!(*score > 0.0);
    let shape = serde_json::to_value(&hits[0]).unwrap();
    for key in ["session_id", "uuid", "path", "line", "timestamp", "role", "tool", "snippet", "score"] {
        assert!(shape.get(key).is_some(), "{key}");
    }
}

#[test]
fn filters_narrow_what_is_found() {
    let dir = tempdir().unwrap();
    write(dir.path(), "s", &session_lines());
    let catalogue = indexed(dir.path());
    let check = |text: &str, query: Query, expect: &[&str]| assert_eq!(ids(&search(&catalogue, text, query)), expect);
    let all = Query::default;
    check("tide", Query { role: Some(SearchRole::User), ..all() }, &["u1"]);
    check("tide", Query { role: Some(SearchRole::Assistant), ..all() }, &["a2", "a3"]);
    check("noon", Query { role: Some(SearchRole::Thinking), ..all() }, &["a1"]);
    check("user", Query { tool: Some("bash".to_owned()), ..all() }, &["a2", "u2"]);
    let only =
        |project: &str| Some([SessionKey { project: project.to_owned(), id: "s".to_owned() }].into_iter().collect());
    check("noon", Query { sessions: only("-home-dev-tidepool"), ..all() }, &["a1", "a3"]);
    check("noon", Query { sessions: only("-home-dev-other"), ..all() }, &[]);
    check("tide", Query { until: Some("2026-11-15T10:00:01Z".parse().unwrap()), ..all() }, &["u1"]);
    check("tide", Query { since: Some("2026-11-15T10:00:01Z".parse().unwrap()), ..all() }, &["a2", "a3"]);
    check("getUserById", Query { limit: 1, ..all() }, &["u2"]);
}

#[test]
fn a_session_gives_no_more_hits_than_it_may() {
    let dir = tempdir().unwrap();
    let lines = |name: &str| (0..9).map(|n| user(&format!("{name}{n}"), &format!("\"tide {n}\""))).collect::<Vec<_>>();
    write(dir.path(), "s", &lines("s"));
    write(dir.path(), "t", &lines("t")[..2]);
    let query = Query { limit_per_session: 3, limit: 20, ..Query::default() };
    let found = indexed(dir.path()).search(&SearchTerms::parse("tide").unwrap(), &query).unwrap();
    let count = |session: &str| found.hits.iter().filter(|hit| hit.session_id == session).count();
    assert_eq!((count("s"), count("t")), (3, 2));
    assert_eq!(found.capped_sessions.into_iter().map(|key| key.id).collect::<Vec<_>>(), ["s"]);
}

#[test]
fn adjacent_words_come_first() {
    let dir = tempdir().unwrap();
    let lines = [
        user("u1", "\"the command failed with exit status 1 in the end, after a long time and much work\""),
        user("u2", "\"Exit code 1: status\""),
        user("u3", "\"status 1 exit\""),
    ];
    write(dir.path(), "s", &lines);
    let hits = found(&indexed(dir.path()), "exit status 1");
    assert_eq!(hits[0].uuid.as_deref(), Some("u1"));
    assert_eq!(hits.len(), 3);
    assert!(hits[0].snippet.contains("«exit» «status» «1»"), "{}", hits[0].snippet);
    assert!(hits.windows(2).all(|pair| pair[0].score >= pair[1].score));
}

#[test]
fn punctuation_is_compared() {
    let dir = tempdir().unwrap();
    let lines = [
        user("u1", "\"C++ and #104, 50% of @entire at 2026-02-12T22:40\""),
        user("u2", "\"C and 104, 50 of entire in 2026, 02 and 12\""),
    ];
    write(dir.path(), "s", &lines);
    let catalogue = indexed(dir.path());
    for text in ["C++", "#104", "50%", "@entire", "2026-02-12", "\"C++ and\""] {
        assert_eq!(ids(&found(&catalogue, text)), ["u1"], "{text}");
    }
    assert_eq!(ids(&found(&catalogue, "c")), ["u1", "u2"]);
    assert_eq!(ids(&found(&catalogue, "c -c++")), ["u2"]);
}

/// One line of each sort that the screen shows.
fn notices() -> Vec<String> {
    let line = |uuid: &str, rest: &str| format!(r#"{{"uuid":"{uuid}","timestamp":"2026-11-15T10:00:02Z",{rest}}}"#);
    let attachment = |uuid: &str, body: &str| line(uuid, &format!(r#""type":"attachment","attachment":{{{body}}}"#));
    let said = |uuid: &str, flag: &str, text: &str| {
        line(uuid, &format!(r#""type":"user",{flag}"message":{{"role":"user","content":"{text}"}}"#))
    };
    vec![
        attachment("q1", r#""type":"queued_command","prompt":"gannet while you work","commandMode":"prompt""#),
        attachment(
            "h1",
            r#""type":"hook_blocking_error","hookName":"Stop","blockingError":{"blockingError":"gannet blocked"}"#,
        ),
        line("y1", r#""type":"system","subtype":"informational","content":"going on with gannet""#),
        said("m1", r#""isMeta":true,"#, "gannet for the model"),
        said("c1", r#""isCompactSummary":true,"#, "this session is being continued: gannet"),
        said("n1", "", "<task-notification>gannet is done</task-notification>"),
        said("p1", "", r"see the gannet\n\n<system-reminder>\na puffin\n</system-reminder>"),
        line(
            "g1",
            r#""type":"progress","toolUseID":"t","parentToolUseID":"t","data":{"type":"agent_progress","agentId":"x1","message":{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"the gannet's agent"}]}}}"#,
        ),
        line(
            "g2",
            r#""type":"progress","toolUseID":"t","parentToolUseID":"t","data":{"type":"agent_progress","agentId":"own","message":{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"gannet in its own file"}]}}}"#,
        ),
        r#"{"type":"ai-title","aiTitle":"All about the gannet","sessionId":"s"}"#.to_owned(),
        r#"{"type":"ai-title","aiTitle":"All about the gannet","sessionId":"s"}"#.to_owned(),
    ]
}

#[test]
fn everything_the_screen_shows_is_found() {
    let dir = tempdir().unwrap();
    write(dir.path(), "s", &notices());
    let agents = dir.path().join("projects/-home-dev-tidepool/s/subagents");
    fs::create_dir_all(&agents).unwrap();
    fs::write(
        agents.join("agent-own.jsonl"),
        assistant("o1", r#"{"type":"text","text":"gannet in its own file"}"#) + "\n",
    )
    .unwrap();
    let catalogue = indexed(dir.path());
    let hits = found(&catalogue, "gannet");
    assert_eq!(ids(&hits), ["c1", "g1", "h1", "m1", "n1", "o1", "p1", "q1", "y1"]);
    assert_eq!(hits.iter().filter(|hit| hit.uuid.is_none()).count(), 1, "a title, once");
    assert!(hits.iter().all(|hit| hit.snippet.contains("«gannet»")));
    let agent = hits.iter().find(|hit| hit.uuid.as_deref() == Some("o1")).unwrap();
    assert_eq!(agent.agent.as_deref(), Some("agent-own"));
    let role = |role: SearchRole| ids_of(search(&catalogue, "gannet", Query { role: Some(role), ..Query::default() }));
    assert_eq!(role(SearchRole::User), ["p1", "q1"], "what the user typed");
    assert_eq!(role(SearchRole::System), ["c1", "h1", "m1", "n1", "y1"]);
    assert_eq!(ids(&search(&catalogue, "puffin", Query { role: Some(SearchRole::User), ..Query::default() })), [""; 0]);
    assert_eq!(ids(&found(&catalogue, "puffin")), ["p1"]);
}

fn ids_of(hits: Vec<Hit>) -> Vec<String> {
    ids(&hits).into_iter().map(str::to_owned).collect()
}

#[test]
fn new_lines_are_found_and_old_ones_of_a_rewritten_file_are_not() {
    let dir = tempdir().unwrap();
    write(dir.path(), "s", &session_lines()[..3]);
    assert_eq!(ids(&found(&indexed(dir.path()), "getUserById")), ["a2"]);
    write(dir.path(), "s", &session_lines());
    let hits = found(&indexed(dir.path()), "getUserById");
    assert_eq!(ids(&hits), ["a2", "u2"]);
    let result = hits.iter().find(|hit| hit.uuid.as_deref() == Some("u2")).unwrap();
    assert_eq!((result.line, result.tool.as_deref()), (4, Some("Bash")), "the call was read the time before");
    write(dir.path(), "s", &[user("n1", "\"something else entirely\"")]);
    let catalogue = indexed(dir.path());
    assert!(found(&catalogue, "getUserById").is_empty());
    assert_eq!(ids(&found(&catalogue, "entirely")), ["n1"]);
    fs::remove_file(dir.path().join("projects/-home-dev-tidepool/s.jsonl")).unwrap();
    assert!(found(&indexed(dir.path()), "entirely").is_empty());
}

#[test]
fn a_fork_is_found_once() {
    let dir = tempdir().unwrap();
    write(dir.path(), "a", &session_lines());
    write(dir.path(), "b", &session_lines());
    assert_eq!(found(&indexed(dir.path()), "harbour").len(), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_whose_name_is_not_unicode_is_searched_and_listed() {
    use std::os::unix::ffi::OsStrExt;
    let dir = tempdir().unwrap();
    let folder = dir.path().join("projects").join(std::ffi::OsStr::from_bytes(b"bad\xff\xfename"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("s.jsonl"), session_lines().join("\n")).unwrap();
    let catalogue = indexed(dir.path());
    let hits = found(&catalogue, "harbour");
    assert_eq!(ids(&hits), ["a1"]);
    assert!(hits[0].path.is_file());
    assert!(serde_json::to_string(&hits).is_ok());
    assert_eq!(catalogue.sessions().unwrap().len(), 1);
}

#[test]
fn files_are_scanned_for_decoded_texts_and_patterns() {
    let dir = tempdir().unwrap();
    let mut lines = session_lines();
    lines.push(user("e1", r#""one\ntwo \u62bd\u5956 \"three\" a\/b""#));
    lines.push(user("e2", r#""Vec<u8> -> \u003cdiv\u003e a\\b C:\\x => 🚀 RÉSUMÉ""#));
    write(dir.path(), "s", &lines);
    let (projects, _) = find::list_project_folders(&[dir.path().to_owned()]);
    let (histories, _) = find::list_session_files(&projects, &());
    let scan = |pattern: Pattern, query: Query, expect: &[&str]| {
        let (places, errors) = matching_lines(&histories[0], &pattern);
        assert!(errors.is_empty());
        let hits: Vec<Hit> =
            places.iter().flat_map(|place| hits_in_line(&histories[0], place, &pattern, &query)).collect();
        assert_eq!(ids(&hits), expect, "{pattern:?}");
        hits
    };
    let exact = |text: &str, expect: &[&str]| {
        scan(Pattern::exact(text).unwrap(), Query::default(), expect);
    };
    exact("getUserById(user_id", &["u2"]);
    exact("getuserbyid", &[]);
    exact("\"quoted\"", &["u2"]);
    exact("one\ntwo", &["e1"]);
    exact("抽奖", &["e1", "u1"]);
    exact("a/b", &["e1"]);
    for text in ["Vec<u8>", "->", "=>", "<div>", "a\\b", "C:\\x", "🚀"] {
        exact(text, &["e2"]);
    }
    exact("\\bdiv\\b", &[]);
    // Bytes of the line that no one said.
    exact("tool_result", &[]);
    scan(Pattern::regex("^two").unwrap(), Query::default(), &["e1"]);
    scan(Pattern::regex(r"get\w+ById").unwrap(), Query::default(), &["a2", "u2"]);
    let tool = Query { tool: Some("Bash".to_owned()), ..Query::default() };
    let hits = scan(Pattern::exact("12: fn").unwrap(), tool, &["u2"]);
    assert_eq!((hits[0].tool.as_deref(), hits[0].line), (Some("Bash"), 4));
    assert_eq!(hits[0].snippet, "«12: fn» getUserById(user_id: u32) \"quoted\"");
    for (query, expect) in [("🚀", &["e2"][..]), ("->", &["e2"]), ("résumé", &["e2"]), ("TABLE.RS", &["a2", "a3"])]
    {
        scan(Pattern::from_terms(SearchTerms::parse(query).unwrap()), Query::default(), expect);
    }
    for bad in [Pattern::regex("("), Pattern::regex(""), Pattern::exact("")] {
        assert!(bad.is_err());
    }
}

#[test]
fn a_session_is_capped_only_if_it_holds_more_hits() {
    let dir = tempdir().unwrap();
    let say = |uuid: &str, text: &str| user(uuid, &format!("\"{text}\""));
    write(dir.path(), "s", &[say("a", "#104 first"), say("b", "#104 second"), say("c", "#104 third")]);
    let other = dir.path().join("projects/-home-dev-shore");
    fs::create_dir_all(&other).unwrap();
    // The index finds both, but one without its sign.
    fs::write(other.join("s.jsonl"), [say("d", "#104 fourth"), say("e", "104 fifth")].join("\n") + "\n").unwrap();
    let catalogue = indexed(dir.path());
    let query = |per_session| Query { limit_per_session: per_session, ..Query::default() };
    let found = |per_session| catalogue.search(&SearchTerms::parse("#104").unwrap(), &query(per_session)).unwrap();
    let one = found(1);
    assert_eq!(one.hits.len(), 2, "one of each project");
    assert_eq!(one.capped_sessions, [SessionKey { project: "-home-dev-tidepool".into(), id: "s".into() }].into());
    assert_eq!((found(3).hits.len(), found(3).capped_sessions.len()), (4, 0));
}

#[test]
fn a_long_text_without_spaces_is_found_if_it_is_no_data() {
    let dir = tempdir().unwrap();
    let tide = "潮汐每天涨落两次".repeat(30);
    let cipher = "QUJDREVGR0hJSktMTU5P".repeat(30);
    let call = |id: &str, text: &str| {
        assistant(id, &format!(r#"{{"type":"tool_use","id":"{id}","name":"Write","input":{{"content":"{text}"}}}}"#))
    };
    write(dir.path(), "s", &[call("a", &format!("{tide}月亮")), call("b", &cipher)]);
    let catalogue = indexed(dir.path());
    assert_eq!(ids(&found(&catalogue, "月亮")), ["a"]);
    assert!(found(&catalogue, "QUJDREVGR0hJSktMTU5P*").is_empty());
}

#[test]
fn a_path_of_common_words_is_found_in_the_index() {
    let dir = tempdir().unwrap();
    let say = |uuid: &str, text: &str| user(uuid, &format!("\"{text}\""));
    let mut lines: Vec<String> =
        (0..600).map(|n| say(&format!("n{n}"), "rs for the ve of tide in src, and a name of a table")).collect();
    let paths = [
        ("plain", "see src/tide/ve.rs:12"),
        ("capitals", "see SRC/Tide/VE.RS"),
        ("other_parts", "see src/tiDe/ve.rs"),
        ("two_other_parts", "see sRc/tide/vE.rs and no more"),
        ("longer", "see my_src/tide/ve.rsBackup"),
        ("no_match", "see src/tides/ve.rs and src/tide/ve_rs"),
    ];
    lines.extend(paths.iter().map(|(uuid, text)| say(uuid, text)));
    lines.extend([say("table", "in tide/tableName.rs"), say("lower", "in tide/tablename.rs")]);
    write(dir.path(), "s", &lines);
    let catalogue = indexed(dir.path());
    let check = |text: &str, expect: &[&str]| {
        let query = Query { limit: 20, ..Query::default() };
        let found = catalogue.search(&SearchTerms::parse(text).unwrap(), &query).unwrap();
        assert!(!found.is_incomplete, "{text} need not be looked for in the files");
        assert_eq!(ids(&found.hits), expect, "{text}");
    };
    check("src/tide/ve.rs", &["capitals", "longer", "other_parts", "plain", "two_other_parts"]);
    check("tide/ve.r*", &["capitals", "longer", "other_parts", "plain", "two_other_parts"]);
    check("tide/tableName.rs", &["lower", "table"]);
    check("TIDE/tablename.rs", &["lower", "table"]);
}

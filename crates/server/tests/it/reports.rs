//! Overview, usage, search and what is computed from one session.

use std::fs;

use serde_json::{Value, json};

use crate::client::{Events, TestServer, demo};
use crate::scratch::{Scratch, assistant, result, text, user};

const TIDE: &str = "05ef09b2-9c3d-4897-965b-0c47c2889d7b";

fn rows(report: &Value) -> &Vec<Value> {
    report["rows"].as_array().unwrap()
}

fn sum(rows: &[Value], field: &str) -> f64 {
    rows.iter().map(|row| row[field].as_f64().unwrap()).sum()
}

#[track_caller]
fn assert_close(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-9, "{a} {b}");
}

#[test]
fn usage_is_the_same_however_it_is_grouped() {
    let server = demo();
    server.wait_for_index();
    let total = server.json("/api/usage?by=monthly")["totals"]["cost_usd"].as_f64().unwrap();
    assert!(total > 0.1, "{total}");
    for by in ["daily", "weekly", "monthly", "session", "model", "project", "block", "tool", "agent"] {
        let report = server.json(&format!("/api/usage?by={by}"));
        assert_close(sum(rows(&report), "cost_usd"), total);
    }
    let cells = server.json("/api/usage/hours");
    assert_close(sum(cells.as_array().unwrap(), "cost_usd"), total);
    assert!(cells.as_array().unwrap().iter().all(|cell| cell["weekday"].as_i64() < Some(7)));
    let days = server.json("/api/usage/heatmap?year=2026");
    assert_close(sum(days.as_array().unwrap(), "cost_usd"), total);
    assert_eq!(server.json("/api/usage/heatmap?year=2020"), json!([]));
    let session = &server.json("/api/usage?by=session")["rows"][0];
    assert!(session["title"].is_string() && session["cwd"].is_string(), "{session}");
    assert_eq!(server.get("/api/usage?by=nothing").status, 400);
}

#[test]
fn usage_is_filtered_by_time_project_and_model() {
    let server = demo();
    server.wait_for_index();
    let all = server.json("/api/usage?by=daily");
    let day = rows(&all)[0]["key"].as_str().unwrap().to_owned();
    let one = server.json(&format!("/api/usage?by=daily&since={day}&until={day}"));
    assert_eq!(rows(&one), &rows(&all)[..1]);
    let projects = server.json("/api/usage?by=project");
    let tidepool = rows(&projects).iter().find(|row| row["key"] == "-home-sam-tidepool").unwrap();
    let filtered = server.json("/api/usage?by=project&project=Tidepool");
    assert_eq!(rows(&filtered), &vec![tidepool.clone()]);
    let models = server.json("/api/usage?by=model&model=HAIKU");
    assert!(rows(&models).iter().all(|row| row["key"].as_str().unwrap().contains("haiku")));
    let refused = server.get("/api/usage?since=tomorrowish");
    assert_eq!((refused.status, refused.json()["error"]["code"].clone()), (400, json!("query.time")));
}

#[test]
fn a_period_is_compared_with_the_one_before() {
    let server = demo();
    server.wait_for_index();
    let all = server.json("/api/usage?by=daily");
    let days = rows(&all);
    let (first, last) = (days[0]["key"].as_str().unwrap(), days.last().unwrap()["key"].as_str().unwrap());
    let compared = server.json(&format!("/api/usage/compare?since={last}&until={last}"));
    assert_eq!(compared["current"]["cost_usd"], days.last().unwrap()["cost_usd"]);
    let since: jiff::civil::Date = first.parse().unwrap();
    let next = since.tomorrow().unwrap();
    let compared = server.json(&format!("/api/usage/compare?since={next}&until={next}"));
    assert_eq!(compared["previous"]["cost_usd"], days[0]["cost_usd"]);
}

#[test]
fn usage_as_a_table_cannot_be_taken_for_formulas() {
    let scratch = Scratch::new(&[user("a", None, "=HYPERLINK(\"http://evil.example\")")]);
    let mut line = assistant("b", "a", text("hi"));
    line["timestamp"] = json!("2026-11-16T10:00:01Z");
    line["message"]["usage"] = json!({"input_tokens": 1, "output_tokens": 2});
    scratch.append("s", &[line]);
    let server = scratch.server();
    server.wait_for_index();
    let reply = server.get("/api/usage.csv?by=session");
    assert_eq!(reply.header("content-type"), "text/csv; charset=utf-8");
    assert!(reply.header("content-disposition").starts_with("attachment"));
    let table = reply.text();
    assert!(table.starts_with("key,title,"), "{table}");
    assert!(table.contains("\"s\",\"'=HYPERLINK(\"\"http://evil.example\"\")\","), "{table}");
}

#[test]
fn the_overview_has_projects_recent_sessions_and_today() {
    let server = demo();
    server.wait_for_index();
    let overview = server.json("/api/overview");
    let projects = overview["projects"].as_array().unwrap();
    assert_eq!(projects.len(), 3);
    assert_eq!(projects.iter().map(|project| project["sessions"].as_u64().unwrap()).sum::<u64>(), 6);
    assert_eq!(overview["recent"].as_array().unwrap().len(), 6);
    assert_eq!(overview["today"], json!({"cost_usd": 0.0, "messages": 0, "sessions": 0}));
}

#[test]
fn words_are_found_when_the_texts_are_indexed() {
    let server = demo();
    server.wait_for_index();
    let mut events = Events::open(&server);
    let first = server.json("/api/search?q=harbour");
    if first["complete"] == false {
        events.find("index", |event| {
            event["state"] == "ready" && server.json("/api/search?q=harbour")["complete"] == true
        });
    }
    let found = server.json("/api/search?q=harbour");
    let hit = &found["hits"][0];
    assert!(hit["snippet"].as_str().unwrap().to_lowercase().contains("harbour"), "{hit}");
    let window = server.json(&format!("/api/sessions/{}/items?line={}", hit["key"].as_str().unwrap(), hit["line"]));
    assert!(window["position"].is_u64());
    let limited = server.json("/api/search?q=harbour&limit=1");
    assert_eq!((limited["hits"].as_array().unwrap().len(), limited["complete"].clone()), (1, json!(false)));
    assert_eq!(server.json("/api/search?q=harbour&project=shoreline-nothing")["hits"], json!([]));
    let exact = server.json("/api/search?q=to_radians()&exact=1");
    assert!(!exact["hits"].as_array().unwrap().is_empty());
    let regex = server.json("/api/search?q=to_rad[a-z]%2B&regex=1&role=tool");
    assert!(regex["hits"].as_array().unwrap().iter().all(|hit| hit["tool"].is_string()));
    assert_eq!(server.get("/api/search?q=(&regex=1").status, 400);
    assert_eq!(server.get("/api/search?q=").status, 400);
}

#[test]
fn find_looks_through_the_whole_session() {
    let call = json!({"type": "tool_use", "id": "t", "name": "Task", "input": {"prompt": "look"}});
    let scratch = Scratch::new(&[
        user("a", None, "where is the Needle?"),
        assistant("b", "a", call),
        result("c", "b", "t", "a needle in the result"),
        user("d", Some("c"), "nothing here"),
    ]);
    let mut inner = user("x1", None, "needle of the subagent");
    inner["isSidechain"] = json!(true);
    inner["agentId"] = json!("x");
    scratch.append("s/subagents/agent-x", &[inner]);
    fs::write(scratch.path("s/subagents/agent-x").with_extension("meta.json"), r#"{"toolUseId":"t"}"#).unwrap();
    let server = scratch.server();
    let found = server.json("/api/sessions/s/find?q=needle");
    let places: Vec<_> =
        found["matches"].as_array().unwrap().iter().map(|m| (m["position"].clone(), m["agent"].clone())).collect();
    // The result and the subagent are shown by the card of the call.
    assert_eq!(places, [(json!(0), json!(null)), (json!(1), json!(null)), (json!(1), json!("x"))]);
    assert_eq!(found["complete"], true);
    assert_eq!(server.json("/api/sessions/s/find?q=haystack")["matches"], json!([]));
    assert_eq!(server.get("/api/sessions/s/find?q=").status, 400);
}

#[test]
fn turns_have_their_cost_time_and_tools() {
    let server = demo();
    let turns = server.json(&format!("/api/sessions/{TIDE}/turns"));
    let structure = server.json(&format!("/api/sessions/{TIDE}"));
    let resume = structure["resume"].as_str().unwrap();
    assert!(resume.starts_with("cd /home/sam/tidepool && CLAUDE_CONFIG_DIR=") && resume.ends_with(TIDE), "{resume}");
    let list = turns["turns"].as_array().unwrap();
    assert_eq!(list.len(), structure["turns"].as_array().unwrap().len());
    assert_eq!(turns["version"], structure["version"]);
    assert!(sum(list, "cost_usd") > 0.1 && sum(list, "duration_ms") > 1000.0, "{turns}");
    assert!(sum(list, "tool_calls") > 3.0 && sum(list, "failed_tool_calls") >= 1.0, "{turns}");
}

#[test]
fn a_turn_after_a_rewind_has_its_own_cost_and_ends_with_its_answer() {
    let answer = |uuid: &str, parent: &str, time: &str| {
        let mut line = assistant(uuid, parent, text(uuid));
        line["timestamp"] = json!(time);
        line["message"]["model"] = json!("claude-haiku-4-5");
        line["message"]["usage"] = json!({"input_tokens": 1000, "output_tokens": 1000});
        line
    };
    let mut command = user("f", Some("e"), "<command-name>/rename</command-name>");
    command["timestamp"] = json!("2026-11-16T11:00:00Z");
    let scratch = Scratch::new(&[
        user("a", None, "first"),
        answer("b", "a", "2026-11-16T10:00:02Z"),
        user("c", Some("b"), "abandoned"),
        user("d", Some("b"), "second"),
        answer("e", "d", "2026-11-16T10:00:05Z"),
        command,
    ]);
    let turns = scratch.server().json("/api/sessions/s/turns");
    let list = turns["turns"].as_array().unwrap();
    let times: Vec<_> = list.iter().map(|turn| turn["duration_ms"].as_i64().unwrap()).collect();
    assert_eq!(times, [2000, 5000], "{turns}");
    assert!(list.iter().all(|turn| turn["cost_usd"].as_f64() > Some(0.001)), "{turns}");
}

#[test]
fn calls_cache_explanation_and_changes_are_those_of_the_commands() {
    let server = demo();
    let path = quipu_testkit::fixture(&format!("demo/projects/-home-sam-tidepool/{TIDE}.jsonl"));
    let prices = quipu_conversation::price::Prices::bundled();
    let trace = quipu_trace::Trace::open(&[&path]).unwrap();
    let structure = quipu_trace::Structure::new(&trace);
    let calls = server.json(&format!("/api/sessions/{TIDE}/calls"));
    let expected = quipu_trace::TraceRows::new(&trace, &structure, &prices);
    let expected = serde_json::to_value(&expected).unwrap();
    assert_eq!((&calls["sessions"], &calls["calls"]), (&expected["sessions"], &expected["calls"]));
    assert!(!calls["calls"].as_array().unwrap().is_empty());
    let cache = server.json(&format!("/api/sessions/{TIDE}/cache"));
    assert_eq!(cache["calls"].as_array().unwrap().len(), calls["calls"].as_array().unwrap().len());
    assert_eq!(cache["what_if"][0]["policy"], "counted");
    let last = calls["calls"].as_array().unwrap().last().unwrap()["id"].as_str().unwrap();
    let diff = server.json(&format!("/api/sessions/{TIDE}/calls/diff?b={last}"));
    assert_eq!(diff[0]["to"], last);
    assert_eq!(server.get(&format!("/api/sessions/{TIDE}/calls/diff?b=none")).status, 404);
    let explain = server.json(&format!("/api/sessions/{TIDE}/explain"));
    assert_eq!(explain["session_id"], TIDE);
    // The second answer is the document that was kept.
    assert_eq!((&calls["is_captured"], &calls["has_captures"]), (&false.into(), &false.into()));
    assert_eq!(server.json(&format!("/api/sessions/{TIDE}/calls?source=session_file")), calls);
    let last = calls["calls"].as_array().unwrap().last().unwrap()["id"].as_str().unwrap();
    assert!(server.json(&format!("/api/sessions/{TIDE}/calls/diff?b={last}&source=session_file")).is_array());
    let timeline = server.json(&format!("/api/sessions/{TIDE}/timeline"));
    let turns = timeline["turns"].as_array().unwrap();
    assert_eq!(turns.len(), explain["money"]["turns"].as_array().unwrap().len());
    for turn in turns {
        let spans = turn["spans"].as_array().unwrap();
        let sum: u64 = spans.iter().map(|span| span["duration_ms"].as_u64().unwrap()).sum();
        assert_eq!(turn["duration_ms"], sum);
    }
    assert_eq!(turns[0]["spans"][0]["activity"], "model");
    assert_eq!(server.json(&format!("/api/sessions/{TIDE}/explain")), explain);
    let changes = server.json(&format!("/api/sessions/{TIDE}/changes"));
    assert!(changes[0]["diff"].as_str().unwrap().starts_with("--- "), "{changes}");
}

#[test]
fn an_export_is_a_file_to_save() {
    let scratch = Scratch::new(&[user("a", None, "my key is sk-ant-api03-0123456789abcdefghijABCDEFGHIJ0123456789")]);
    let server = scratch.server();
    for (to, content_type) in
        [("html", "text/html; charset=utf-8"), ("md", "text/markdown; charset=utf-8"), ("json", "application/json")]
    {
        let reply = server.get(&format!("/api/sessions/s/export?to={to}"));
        assert_eq!((reply.status, reply.header("content-type")), (200, content_type));
        assert_eq!(reply.header("content-disposition"), format!("attachment; filename=\"s.{to}\""));
        assert!(reply.text().contains("sk-ant-api03"));
        let masked = server.get(&format!("/api/sessions/s/export?to={to}&redact=1"));
        assert!(!masked.text().contains("sk-ant-api03-0123456789abcdef"), "{to}");
    }
    assert_eq!(server.get("/api/sessions/s/export?to=exe").status, 400);
}

fn post(server: &TestServer, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let token = format!("Bearer {}", server.token);
    let reply = server.send(method, path, &[("authorization", &token)], body.to_string().as_bytes());
    (reply.status, reply.json())
}

#[test]
fn titles_tags_and_stars_are_kept() {
    let scratch = Scratch::new(&[user("a", None, "one")]);
    let server = scratch.server();
    server.wait_for_index();
    assert_eq!(
        post(&server, "POST", "/api/sessions/s/title", &json!({"title": " Tides "})),
        (200, json!({"title": "Tides"}))
    );
    let tags = json!({"tags": ["done", "late, maybe", "done"]});
    let expected = json!({"tags": ["done", "late", "maybe"]});
    assert_eq!(post(&server, "POST", "/api/sessions/s/tags", &tags), (200, expected.clone()));
    assert_eq!(
        post(&server, "POST", "/api/sessions/s/star", &json!({"starred": true})),
        (200, json!({"starred": true}))
    );
    let check = || {
        let row = server.json("/api/sessions?tag=late&starred=1")["sessions"][0].clone();
        assert_eq!(
            (row["title"].clone(), row["tags"].clone(), row["starred"].clone()),
            (json!("Tides"), expected["tags"].clone(), json!(true))
        );
    };
    check();
    // The index reads the same from the file.
    let mut events = Events::open(&server);
    scratch.append("s", &[assistant("b", "a", text("two"))]);
    events.find("sessions", |_| server.json("/api/sessions?q=tides")["sessions"][0]["messages"] == 1);
    check();
    assert_eq!(server.json("/api/sessions?tag=lat")["total"], 0);
    assert_eq!(post(&server, "POST", "/api/sessions/s/tags", &json!({"tags": []})), (200, json!({"tags": []})));
    assert_eq!(post(&server, "POST", "/api/sessions/s/title", &json!({"title": " "})).0, 400);
    assert_eq!(post(&server, "POST", "/api/sessions/s/title", &json!({"name": 1})).0, 400);
    assert_eq!(post(&server, "POST", "/api/sessions/none/star", &json!({"starred": true})).0, 404);
    assert_eq!(post(&server, "POST", "/api/sessions/s/star", &json!({"starred": false})).0, 200);
    assert_eq!(server.json("/api/sessions?starred=1")["total"], 0);
}

#[test]
fn a_deleted_session_is_gone_and_its_usage_stays() {
    let scratch = Scratch::new(&[user("a", None, "one")]);
    let mut line = assistant("b", "a", text("hi"));
    line["timestamp"] = json!("2026-11-16T10:00:01Z");
    line["message"]["usage"] = json!({"input_tokens": 10, "output_tokens": 20});
    scratch.append("s", &[line]);
    let server = scratch.server();
    server.wait_for_index();
    let before = server.json("/api/usage?by=daily");
    assert_eq!(post(&server, "DELETE", "/api/sessions/s", &json!({})), (200, json!({"deleted": true})));
    assert!(!scratch.path("s").exists());
    assert_eq!(server.get("/api/sessions/s").status, 404);
    assert_eq!(server.json("/api/sessions")["total"], 0);
    assert_eq!(server.json("/api/usage?by=daily")["totals"]["output_tokens"], before["totals"]["output_tokens"]);
}

#[test]
fn settings_are_written_beside_those_of_others() {
    let server = demo();
    let settings = server.json("/api/settings");
    assert_eq!((settings["language"].clone(), settings["theme"].clone()), (json!(null), json!(null)));
    let path = settings["config"].as_str().unwrap().to_owned();
    fs::create_dir_all(std::path::Path::new(&path).parent().unwrap()).unwrap();
    fs::write(&path, "# mine\ntrusted = [\"~/work\"]\n").unwrap();
    assert_eq!(post(&server, "PUT", "/api/settings", &json!({"language": "zh", "theme": "dark"})).0, 200);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("# mine\ntrusted = [\"~/work\"]\n") && text.contains("language = \"zh\""), "{text}");
    assert_eq!(server.json("/api/status")["theme"], "dark");
    let (status, _) = post(&server, "PUT", "/api/settings", &json!({"theme": "auto"}));
    assert_eq!((status, server.json("/api/settings")["theme"].clone()), (200, json!(null)));
    assert_eq!(server.json("/api/settings")["language"], "zh");
    let changes = json!({"claude_dirs": ["~/.claude", "/work/claude"], "prices_text": "[[price]]\nmodels = 3\n"});
    assert_eq!(post(&server, "PUT", "/api/settings", &changes).0, 400);
    assert_eq!(server.json("/api/settings")["claude_dirs"], json!([]));
    let changes = json!({"claude_dirs": ["~/.claude", "/work/claude"], "prices_text": "# mine\n"});
    assert_eq!(post(&server, "PUT", "/api/settings", &changes).0, 200);
    let settings = server.json("/api/settings");
    assert_eq!((&settings["claude_dirs"], &settings["language"]), (&changes["claude_dirs"], &json!("zh")));
    assert_eq!(settings["prices_text"], "# mine\n");
    assert_eq!(post(&server, "PUT", "/api/settings", &json!({"claude_dirs": [], "prices_text": ""})).0, 200);
    let settings = server.json("/api/settings");
    assert_eq!((&settings["claude_dirs"], &settings["prices_text"]), (&json!([]), &json!("")));
    assert_eq!(post(&server, "PUT", "/api/settings", &json!({"theme": "<script>"})).0, 400);
}

//! Reminders sent with user prompts, and the system prompt that stays the same.

use std::fs;

use quipu_message::Json;
use serde_json::{Value, json};

use super::scripted_agent::ScriptedAgent;

/// The system prompt of a request, as one text.
fn system(stage: &ScriptedAgent, request: usize) -> String {
    let request = stage.answerer.requests().swap_remove(request).request.unwrap();
    let blocks: Vec<Value> = request.system.get().and_then(|json: &Json| json.read().ok()).unwrap_or_default();
    blocks.iter().map(|block| block["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join("\n\n")
}

/// All messages of a request, as one text.
fn messages(stage: &ScriptedAgent, request: usize) -> String {
    let request = stage.answerer.requests().swap_remove(request).request.unwrap();
    request.messages.iter().map(|message| message.content.to_text()).collect::<Vec<_>>().join("\n\n")
}

/// The kinds of the attachments in the session's file.
fn attached(stage: &ScriptedAgent) -> Vec<String> {
    let text = fs::read_to_string(stage.session_file()).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter_map(|line| line["attachment"]["type"].as_str().map(str::to_owned)).collect()
}

fn session_id(lines: &[Value]) -> String {
    lines[0]["session_id"].as_str().unwrap().to_owned()
}

#[test]
fn facts_are_told_once_and_the_system_prompt_holds_none() {
    let stage = ScriptedAgent::new("hello.yaml");
    let id = session_id(&stage.lines(&["hello"]));
    stage.lines(&["hello", "--resume", &id]);
    let folder = stage.folder.path.display().to_string();
    for request in [0, 1] {
        let (system, messages) = (system(&stage, request), messages(&stage, request));
        assert!(!system.contains(&folder) && !system.contains("claude-") && !system.contains("20"), "{system}");
        for fact in [format!("Working directory: {folder}"), "The model is claude-".into(), "Today is 20".into()] {
            assert_eq!(messages.matches(&fact).count(), 1, "{fact} in request {request}: {messages}");
        }
    }
    assert_eq!(attached(&stage), ["environment", "model", "agent_listing_delta", "date", "prompt_snapshot"]);
}

#[test]
fn what_has_changed_is_told_again() {
    let stage = ScriptedAgent::new("hello.yaml");
    let id = session_id(&stage.lines(&["hello"]));
    stage.write(".claude/skills/count/SKILL.md", "---\nname: count\ndescription: Counts things\n---\nCount.");
    stage.lines(&["hello", "--resume", &id, "--model", "claude-haiku-4-5"]);
    let text = messages(&stage, 1);
    assert!(
        text.contains("The model is claude-opus-5-5.") && text.contains("The model is claude-haiku-4-5."),
        "{text}"
    );
    assert!(text.contains("- count: Counts things"), "{text}");
    assert_eq!(text.matches("Working directory").count(), 1);
}

#[test]
fn a_compaction_is_followed_by_the_facts() {
    let stage = ScriptedAgent::new("full.yaml");
    let mut talk = stage.spawn(&[]);
    for text in ["zero", "begin at one", "two", "three"] {
        talk.send_prompt(text);
        talk.read_result();
    }
    talk.end();
    let text = messages(&stage, stage.answerer.requests().len() - 1);
    assert!(text.contains("The person counts to three."), "{text}");
    for fact in ["Working directory", "The model is", "Subagents for the Agent tool", "Today is"] {
        assert_eq!(text.matches(fact).count(), 1, "{fact}: {text}");
    }
}

#[test]
fn a_recorded_system_prompt_is_sent_until_a_compaction() {
    let stage = ScriptedAgent::new("full.yaml");
    let id = session_id(&stage.lines(&["hello", "--append-system-prompt", "FIRST"]));
    stage.lines(&["hello", "--resume", &id, "--append-system-prompt", "SECOND"]);
    assert_eq!(system(&stage, 0), system(&stage, 1));
    assert!(system(&stage, 0).ends_with("FIRST"));
    let mut talk = stage.spawn(&["--resume", &id, "--append-system-prompt", "THIRD"]);
    talk.send_request("1", json!({"subtype": "initialize", "systemPromptSnapshot": false}));
    talk.send_prompt("hello");
    talk.read_result();
    talk.end();
    assert!(system(&stage, 2).ends_with("THIRD"));
    // It was not recorded: the first record still counts.
    stage.lines(&["begin at one", "--resume", &id, "--append-system-prompt", "FOURTH"]);
    assert!(system(&stage, 3).ends_with("FIRST"));
    let lines = stage.lines(&["/compact", "--resume", &id]);
    assert!(lines.iter().any(|line| line["subtype"] == "compact_boundary"), "{lines:?}");
    stage.lines(&["hello", "--resume", &id, "--append-system-prompt", "FIFTH"]);
    assert!(system(&stage, stage.answerer.requests().len() - 1).ends_with("FIFTH"));
}

#[test]
fn a_record_of_another_program_is_not_sent() {
    let stage = ScriptedAgent::new("hello.yaml");
    let id = session_id(&stage.lines(&["hello"]));
    let file = stage.session_file();
    let text =
        fs::read_to_string(&file).unwrap().replace(r#","writer":"quipu-agent""#, "").replace("You are quipu", "THEIRS");
    fs::write(&file, text).unwrap();
    stage.lines(&["hello", "--resume", &id]);
    assert!(!system(&stage, 1).contains("THEIRS"));
}

const PIRATE: &str = "---\nname: Pirate\ndescription: Talks like a pirate\n---\nSpeak like a pirate. MARKER";

#[test]
fn an_output_style_of_the_project_is_told_and_named() {
    let stage = ScriptedAgent::new("hello.yaml");
    stage.write(".claude/output-styles/pirate.md", PIRATE);
    stage.write(".claude/settings.local.json", r#"{"outputStyle": "Pirate"}"#);
    let lines = stage.lines(&["hello"]);
    assert_eq!(lines[0]["output_style"], "Pirate");
    assert!(messages(&stage, 0).contains("MARKER") && !system(&stage, 0).contains("MARKER"));
    let kinds = attached(&stage);
    let styles: Vec<&String> = kinds.iter().filter(|kind| kind.starts_with("output_style")).collect();
    assert_eq!(styles, ["output_style_instructions", "output_style"]);
    assert!(!system(&stage, 0).contains("plain sentences"));
}

#[test]
fn only_a_trusted_folder_takes_the_programs_own_instructions_away() {
    let stage = ScriptedAgent::new("hello.yaml");
    stage.write(".claude/output-styles/pirate.md", PIRATE);
    let run = |args: &[&str]| {
        let args = [&["-p", "hello", "--settings", r#"{"outputStyle": "Pirate"}"#], args].concat();
        let out = stage.command(&args).env("CLAUDE_CONFIG_DIR", stage.folder.path.join("config")).output().unwrap();
        assert!(out.status.success());
        system(&stage, stage.answerer.requests().len() - 1)
    };
    assert!(run(&[]).contains("You work on the code"));
    let trusted = run(&["--trust-folder"]);
    assert!(!trusted.contains("You work on the code") && trusted.contains("is data"), "{trusted}");
}

#[test]
fn an_unknown_output_style_is_only_named() {
    let stage = ScriptedAgent::new("hello.yaml");
    let lines = stage.lines(&["hello", "--settings", r#"{"outputStyle": "none-such"}"#]);
    assert_eq!(lines[0]["output_style"], "none-such");
    assert!(!attached(&stage).iter().any(|kind| kind.starts_with("output_style")));
    assert!(system(&stage, 0).contains("plain sentences"));
    assert_eq!(stage.lines(&["hello"])[0]["output_style"], "default");
}

#[test]
fn output_styles_are_listed_chosen_and_left() {
    let stage = ScriptedAgent::new("hello.yaml");
    stage.write(".claude/output-styles/brief.md", "Be brief. BRIEFLY");
    let mut talk = stage.spawn(&["--setting-sources", "user,project,local"]);
    talk.send_request("1", json!({"subtype": "initialize"}));
    let answer = talk.read_until(|line| line["type"] == "control_response")["response"]["response"].clone();
    let names = json!(["default", "Proactive", "Concise", "Explanatory", "Learning", "brief"]);
    assert_eq!((&answer["available_output_styles"], &answer["output_style"]), (&names, &json!("default")));
    let choose = |style: &str| json!({"subtype": "update_settings", "source": "localSettings", "settings": {"outputStyle": style}});
    talk.send_request("2", choose("brief"));
    talk.send_prompt("hello");
    talk.read_result();
    assert!(messages(&stage, 0).contains("BRIEFLY"));
    talk.send_request("3", choose("default"));
    talk.send_prompt("hello");
    talk.read_result();
    assert!(messages(&stage, 1).contains("No output style is in force any more"));
    talk.send_request("4", choose("none"));
    let refused = talk.read_until(|line| line["response"]["request_id"] == "4");
    assert_eq!(refused["response"]["subtype"], "error");
    talk.end();
}

#[test]
fn the_language_of_settings_is_asked_for() {
    let stage = ScriptedAgent::new("hello.yaml");
    stage.lines(&["hello", "--settings", r#"{"language": "japanese"}"#]);
    assert!(system(&stage, 0).contains("in this language: japanese"));
}

#[test]
fn another_system_prompt_follows_one_line() {
    let stage = ScriptedAgent::new("hello.yaml");
    stage.lines(&["hello", "--system-prompt", "BE KIND"]);
    let both = system(&stage, 0);
    let (identity, rest) = both.split_once("\n\n").unwrap();
    assert_eq!(rest, "BE KIND");
    assert!(identity.starts_with("You are quipu-agent") && !identity.contains('\n'));
}

#[test]
fn a_subagents_file_counts_as_it_is_when_it_is_called() {
    let script = r#"
- {when: {subagent: true}, reply: Reported.}
- {when: {result_of: Agent}, reply: Done.}
- {when: {says: send}, reply: [{tool: Agent, input: {description: d, prompt: p, subagent_type: scout}}]}
- reply: Yes.
"#;
    let stage = ScriptedAgent::from_script_text(script);
    let scout = |text: &str| format!("---\nname: scout\ndescription: Looks\n---\n{text}");
    stage.write(".claude/agents/scout.md", &scout("ONE"));
    let subagent_prompt = || {
        let seen = stage.answerer.requests();
        let number = seen.iter().rposition(|seen| seen.body.contains("ONE") || seen.body.contains("TWO"));
        number.map(|number| system(&stage, number)).unwrap_or_default()
    };
    let mut talk = stage.spawn(&[]);
    talk.send_prompt("send");
    talk.read_result();
    assert_eq!(subagent_prompt(), "ONE");
    stage.write(".claude/agents/scout.md", &scout("TWO"));
    talk.send_prompt("send");
    talk.read_result();
    assert_eq!(subagent_prompt(), "TWO");
    // A deleted one is announced as removed.
    fs::remove_file(stage.folder.path.join(".claude/agents/scout.md")).unwrap();
    talk.send_prompt("send");
    talk.read_result();
    let result = talk.heard.iter().rfind(|line| line["message"]["content"][0]["type"] == "tool_result").unwrap();
    assert!(result.to_string().contains("no subagent scout"), "{result}");
    talk.send_prompt("hello");
    talk.read_result();
    assert!(messages(&stage, stage.answerer.requests().len() - 1).contains("These subagents are gone: scout"));
    // One that the host gave stays, one that was edited is read again.
    stage.write(".claude/agents/scout.md", &scout("THREE"));
    let given = json!({"mine": {"description": "Of the host", "prompt": "HOST"}});
    talk.send_request("1", json!({"subtype": "initialize", "agents": given}));
    talk.send_request("2", json!({"subtype": "reload_plugins"}));
    let reloaded = talk.read_until(|line| line["response"]["request_id"] == "2");
    let agents = reloaded["response"]["response"]["agents"].as_array().unwrap().clone();
    let names: Vec<&str> = agents.iter().map(|agent| agent["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Explore", "Plan", "general-purpose", "mine", "scout"]);
    talk.end();
}

#[test]
fn an_edit_that_cannot_succeed_is_not_asked_about() {
    let script = r#"
- {when: {result_of: Edit}, reply: Done.}
- {when: {says: inside}, reply: [{tool: Edit, input: {file_path: a.txt, old_string: none, new_string: b}}]}
- {when: {says: outside}, reply: [{tool: Edit, input: {file_path: ../outside.txt, old_string: none, new_string: b}}]}
- reply: Yes.
"#;
    let stage = ScriptedAgent::from_script_text(script);
    stage.write("a.txt", "text");
    let outside = stage.folder.path.parent().unwrap().join("outside.txt");
    fs::write(&outside, "text").unwrap();
    let mut talk = stage.spawn(&["--permission-prompt-tool", "stdio"]);
    talk.send_prompt("inside");
    talk.read_result();
    assert!(!talk.heard.iter().any(|line| line["type"] == "control_request"));
    let result = talk.heard.iter().find(|line| line["message"]["content"][0]["type"] == "tool_result").unwrap();
    assert!(result.to_string().contains("not found in file"), "{result}");
    assert_eq!(result["tool_result_meta"], Value::Null);
    // The content of a file outside must not show before it is permitted.
    talk.send_prompt("outside");
    talk.read_until(|line| line["type"] == "control_request");
    talk.send_response(json!({"behavior": "deny", "message": "no"}));
    talk.read_result();
    talk.end();
    fs::remove_file(outside).unwrap();
}

#[test]
fn a_file_that_changed_outside_is_told() {
    let script = r#"
- {when: {result_of: Bash}, reply: Done.}
- {when: {result_of: Read}, reply: [{tool: Bash, input: {command: echo changed >> a.txt}}]}
- {when: {says: read}, reply: [{tool: Read, input: {file_path: a.txt}}]}
- reply: Yes.
"#;
    let stage = ScriptedAgent::from_script_text(script);
    stage.write("a.txt", "one\n");
    let mut talk = stage.spawn(&["--allowedTools", "Bash"]);
    talk.send_prompt("read");
    talk.read_result();
    let text = messages(&stage, 2);
    assert!(text.contains("1\tone\n2\tchanged") && text.contains("has changed since you saw it"), "{text}");
    stage.write("a.txt", "one\nby hand\n");
    talk.send_prompt("and now");
    talk.read_result();
    talk.end();
    assert!(messages(&stage, 3).contains("2\tby hand"));
    assert_eq!(attached(&stage).iter().filter(|kind| *kind == "edited_text_file").count(), 2);
}

#[test]
fn a_web_search_is_a_call_of_its_own() {
    let script = r#"
- {when: {result_of: WebSearch}, reply: Found.}
- when: {tool: web_search}
  reply:
    - block: {type: server_tool_use, id: srvtoolu_1, name: web_search, input: {query: tides}}
    - block: {type: web_search_tool_result, tool_use_id: srvtoolu_1, content: [{type: web_search_result, url: "https://example.com/t", title: Tides, encrypted_content: x, page_age: null}]}
    - Tides rise.
- {when: {says: search}, reply: [{tool: WebSearch, input: {query: tides, allowed_domains: [example.com]}}]}
- {when: {says: both}, reply: [{tool: WebSearch, input: {query: tides, allowed_domains: [a.com], blocked_domains: [b.com]}}]}
"#;
    let stage = ScriptedAgent::from_script_text(script);
    let lines = stage.lines(&["search", "--allowedTools", "WebSearch"]);
    assert_eq!(lines.last().unwrap()["result"], "Found.");
    let side: Value = serde_json::from_str(&stage.answerer.requests()[1].body).unwrap();
    let tool =
        json!({"type": "web_search_20250305", "name": "web_search", "allowed_domains": ["example.com"], "max_uses": 8});
    assert_eq!(side["tools"].as_array().unwrap().len(), 1);
    for (key, value) in tool.as_object().unwrap() {
        assert_eq!(&side["tools"][0][key], value);
    }
    assert_eq!(side["messages"].as_array().unwrap().len(), 1);
    let result = lines.iter().find(|line| line["tool_use_result"].is_object()).unwrap();
    let links = json!({"tool_use_id": "srvtoolu_1", "content": [{"title": "Tides", "url": "https://example.com/t"}]});
    assert_eq!(result["tool_use_result"]["results"], json!([links, "Tides rise."]));
    assert_eq!(result["tool_use_result"]["searchCount"], 1);
    assert!(result["message"]["content"][0]["content"].as_str().unwrap().contains("Tides rise."), "{result}");
    // Without a rule permission is needed; both lists at once mean nothing.
    let refused = stage.lines(&["search"]);
    assert_eq!(refused.last().unwrap()["permission_denials"].as_array().unwrap().len(), 1);
    let planned = stage.lines(&["search", "--allowedTools", "WebSearch", "--permission-mode", "plan"]);
    assert_eq!(planned.last().unwrap()["result"], "Found.");
    let both = stage.lines(&["both", "--allowedTools", "WebSearch"]);
    assert!(both.iter().any(|line| line.to_string().contains("not both")));
}

#[test]
fn a_rule_for_some_files_is_told_with_the_first_of_them() {
    let script = r#"
- {when: {result_of: Read}, reply: Done.}
- {when: {says: both}, reply: [{tool: Read, input: {file_path: src/a.rs}}, {tool: Read, input: {file_path: src/b.rs}}]}
- {when: {says: other}, reply: [{tool: Read, input: {file_path: notes.txt}}]}
"#;
    let stage = ScriptedAgent::from_script_text(script);
    for name in ["src/a.rs", "src/b.rs"] {
        stage.write(name, "fn main() {}");
    }
    stage.write(".claude/rules/rust.md", "---\npaths: src/**/*.rs\n---\nRULE-RUST");
    stage.write(".claude/rules/all.md", "RULE-ALL");
    let mut talk = stage.spawn(&[]);
    talk.send_prompt("other");
    talk.read_result();
    assert!(messages(&stage, 0).contains("RULE-ALL") && !messages(&stage, 1).contains("RULE-RUST"));
    talk.send_prompt("both");
    talk.read_result();
    talk.end();
    assert_eq!(messages(&stage, 3).matches("RULE-RUST").count(), 1);
    assert_eq!(attached(&stage).iter().filter(|kind| *kind == "nested_memory").count(), 1);
    stage.lines(&["both", "--bare"]);
    assert!(!stage.answerer.requests().last().unwrap().body.contains("RULE-RUST"));
}

#[test]
fn rules_for_some_files_are_read_again_when_the_context_or_the_permissions_change() {
    let script = r#"
- {when: {result_of: Read}, reply: Done.}
- {when: {says: go}, reply: [{tool: Read, input: {file_path: a.rs}}]}
"#;
    let stage = ScriptedAgent::from_script_text(script);
    stage.write("a.rs", "fn main() {}");
    let rule = |text: &str| stage.write(".claude/rules/rust.md", &format!("---\npaths: '*.rs'\n---\n{text}"));
    let told = |text: &str| stage.answerer.requests().last().unwrap().body.contains(text);
    rule("RULE-OLD");
    let mut talk = stage.spawn(&[]);
    talk.send_prompt("go");
    talk.read_result();
    assert!(told("RULE-OLD"));
    rule("RULE-NEW");
    talk.send_prompt("/clear");
    talk.read_result();
    talk.send_prompt("go");
    talk.read_result();
    assert!(told("RULE-NEW") && !told("RULE-OLD"));
    talk.send_prompt("/clear");
    talk.read_result();
    let settings = json!({"permissions": {"deny": ["Read(./.claude/rules/**)"]}});
    talk.send_request("1", json!({"subtype": "apply_flag_settings", "settings": settings}));
    talk.send_prompt("go");
    talk.read_result();
    talk.end();
    assert!(!told("RULE-NEW"));
}

#[test]
fn skills_that_the_host_left_out_stay_out() {
    let stage = ScriptedAgent::new("hello.yaml");
    for name in ["one", "two"] {
        stage.write(&format!(".claude/skills/{name}/SKILL.md"), &format!("---\nname: {name}\ndescription: d\n---\nx"));
    }
    let mut talk = stage.spawn(&[]);
    talk.send_request("1", json!({"subtype": "initialize", "skills": ["one"]}));
    talk.send_request("2", json!({"subtype": "reload_skills"}));
    let reloaded = talk.read_until(|line| line["response"]["request_id"] == "2");
    let skills = reloaded["response"]["response"]["skills"].as_array().unwrap().clone();
    assert_eq!(skills.iter().map(|skill| skill["name"].as_str().unwrap()).collect::<Vec<_>>(), ["one"]);
    talk.end();
}

#[test]
fn commands_know_the_session_they_run_in() {
    let script = r#"
- {when: {result_of: Bash}, reply: Done.}
- {when: {says: go}, reply: [{tool: Bash, input: {command: "echo $CLAUDE_CODE_SESSION_ID $CLAUDE_CODE_ENTRYPOINT"}}]}
"#;
    let stage = ScriptedAgent::from_script_text(script);
    let id = "11111111-2222-4333-8444-555555555555";
    let lines = stage.lines(&["go", "--session-id", id, "--allowedTools", "Bash"]);
    let result = lines.iter().find(|line| line["tool_use_result"].is_object()).unwrap();
    assert_eq!(result["tool_use_result"]["stdout"], format!("{id} sdk-cli"));
}

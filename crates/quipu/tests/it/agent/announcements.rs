//! Reminders sent with user prompts, and the system prompt that stays the same.

use std::fs;

use quipu_message::Json;
use serde_json::{Value, json};

use super::scripted_agent::ScriptedAgent;

/// The system prompt of a request, as one text.
fn system(agent: &ScriptedAgent, request: usize) -> String {
    let request = agent.server.requests().swap_remove(request).request.unwrap();
    let blocks: Vec<Value> = request.system.get().and_then(|json: &Json| json.read().ok()).unwrap_or_default();
    blocks.iter().map(|block| block["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join("\n\n")
}

/// All messages of a request, as one text.
fn messages(agent: &ScriptedAgent, request: usize) -> String {
    let request = agent.server.requests().swap_remove(request).request.unwrap();
    request.messages.iter().map(|message| message.content.to_text()).collect::<Vec<_>>().join("\n\n")
}

/// The kinds of the attachments in the session's file.
fn attached(agent: &ScriptedAgent) -> Vec<String> {
    let text = fs::read_to_string(agent.session_file()).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter_map(|line| line["attachment"]["type"].as_str().map(str::to_owned)).collect()
}

fn session_id(lines: &[Value]) -> String {
    lines[0]["session_id"].as_str().unwrap().to_owned()
}

#[test]
fn facts_are_sent_once_and_are_not_in_the_system_prompt() {
    let agent = ScriptedAgent::new("hello.yaml");
    let id = session_id(&agent.lines(&["hello"]));
    agent.lines(&["hello", "--resume", &id]);
    let folder = agent.folder.path.display().to_string();
    for request in [0, 1] {
        let (system, messages) = (system(&agent, request), messages(&agent, request));
        assert!(!system.contains(&folder) && !system.contains("claude-") && !system.contains("20"), "{system}");
        for fact in [format!("Working directory: {folder}"), "The model is claude-".into(), "Today is 20".into()] {
            assert_eq!(messages.matches(&fact).count(), 1, "{fact} in request {request}: {messages}");
        }
    }
    assert_eq!(attached(&agent), ["environment", "model", "agent_listing_delta", "date", "prompt_snapshot"]);
}

#[test]
fn changed_facts_are_sent_again() {
    let agent = ScriptedAgent::new("hello.yaml");
    let id = session_id(&agent.lines(&["hello"]));
    agent.write(".claude/skills/count/SKILL.md", "---\nname: count\ndescription: Counts things\n---\nCount.");
    agent.lines(&["hello", "--resume", &id, "--model", "claude-haiku-4-5"]);
    let text = messages(&agent, 1);
    assert!(
        text.contains("The model is claude-opus-5-5.") && text.contains("The model is claude-haiku-4-5."),
        "{text}"
    );
    assert!(text.contains("- count: Counts things"), "{text}");
    assert_eq!(text.matches("Working directory").count(), 1);
}

#[test]
fn a_compaction_is_followed_by_the_facts() {
    let agent = ScriptedAgent::new("full.yaml");
    let mut process = agent.spawn(&[]);
    for text in ["zero", "begin at one", "two", "three"] {
        process.send_prompt(text);
        process.read_result();
    }
    process.end();
    let text = messages(&agent, agent.server.requests().len() - 1);
    assert!(text.contains("The person counts to three."), "{text}");
    for fact in ["Working directory", "The model is", "Subagents for the Agent tool", "Today is"] {
        assert_eq!(text.matches(fact).count(), 1, "{fact}: {text}");
    }
}

#[test]
fn a_recorded_system_prompt_is_sent_until_a_compaction() {
    let agent = ScriptedAgent::new("full.yaml");
    let id = session_id(&agent.lines(&["hello", "--append-system-prompt", "FIRST"]));
    agent.lines(&["hello", "--resume", &id, "--append-system-prompt", "SECOND"]);
    assert_eq!(system(&agent, 0), system(&agent, 1));
    assert!(system(&agent, 0).ends_with("FIRST"));
    let mut process = agent.spawn(&["--resume", &id, "--append-system-prompt", "THIRD"]);
    process.send_request("1", json!({"subtype": "initialize", "systemPromptSnapshot": false}));
    process.send_prompt("hello");
    process.read_result();
    process.end();
    assert!(system(&agent, 2).ends_with("THIRD"));
    // It was not recorded: the first record still counts.
    agent.lines(&["begin at one", "--resume", &id, "--append-system-prompt", "FOURTH"]);
    assert!(system(&agent, 3).ends_with("FIRST"));
    let lines = agent.lines(&["/compact", "--resume", &id]);
    assert!(lines.iter().any(|line| line["subtype"] == "compact_boundary"), "{lines:?}");
    agent.lines(&["hello", "--resume", &id, "--append-system-prompt", "FIFTH"]);
    assert!(system(&agent, agent.server.requests().len() - 1).ends_with("FIFTH"));
}

#[test]
fn a_record_of_another_program_is_not_sent() {
    let agent = ScriptedAgent::new("hello.yaml");
    let id = session_id(&agent.lines(&["hello"]));
    let file = agent.session_file();
    let text =
        fs::read_to_string(&file).unwrap().replace(r#","writer":"quipu-agent""#, "").replace("You are quipu", "THEIRS");
    fs::write(&file, text).unwrap();
    agent.lines(&["hello", "--resume", &id]);
    assert!(!system(&agent, 1).contains("THEIRS"));
}

const PIRATE: &str = "---\nname: Pirate\ndescription: Talks like a pirate\n---\nSpeak like a pirate. MARKER";

#[test]
fn an_output_style_of_the_project_is_announced_with_its_name() {
    let agent = ScriptedAgent::new("hello.yaml");
    agent.write(".claude/output-styles/pirate.md", PIRATE);
    agent.write(".claude/settings.local.json", r#"{"outputStyle": "Pirate"}"#);
    let lines = agent.lines(&["hello"]);
    assert_eq!(lines[0]["output_style"], "Pirate");
    assert!(messages(&agent, 0).contains("MARKER") && !system(&agent, 0).contains("MARKER"));
    let kinds = attached(&agent);
    let styles: Vec<&String> = kinds.iter().filter(|kind| kind.starts_with("output_style")).collect();
    assert_eq!(styles, ["output_style_instructions", "output_style"]);
    assert!(!system(&agent, 0).contains("plain sentences"));
}

#[test]
fn only_a_trusted_folder_takes_the_programs_own_instructions_away() {
    let agent = ScriptedAgent::new("hello.yaml");
    agent.write(".claude/output-styles/pirate.md", PIRATE);
    let run = |args: &[&str]| {
        let args = [&["-p", "hello", "--settings", r#"{"outputStyle": "Pirate"}"#], args].concat();
        let out = agent.command(&args).env("CLAUDE_CONFIG_DIR", agent.folder.path.join("config")).output().unwrap();
        assert!(out.status.success());
        system(&agent, agent.server.requests().len() - 1)
    };
    assert!(run(&[]).contains("You work on the code"));
    let trusted = run(&["--trust-folder"]);
    assert!(!trusted.contains("You work on the code") && trusted.contains("is data"), "{trusted}");
}

#[test]
fn an_unknown_output_style_is_only_named() {
    let agent = ScriptedAgent::new("hello.yaml");
    let lines = agent.lines(&["hello", "--settings", r#"{"outputStyle": "none-such"}"#]);
    assert_eq!(lines[0]["output_style"], "none-such");
    assert!(!attached(&agent).iter().any(|kind| kind.starts_with("output_style")));
    assert!(system(&agent, 0).contains("plain sentences"));
    assert_eq!(agent.lines(&["hello"])[0]["output_style"], "default");
}

#[test]
fn output_styles_are_listed_chosen_and_left() {
    let agent = ScriptedAgent::new("hello.yaml");
    agent.write(".claude/output-styles/brief.md", "Be brief. BRIEFLY");
    let mut process = agent.spawn(&["--setting-sources", "user,project,local"]);
    process.send_request("1", json!({"subtype": "initialize"}));
    let answer = process.read_until(|line| line["type"] == "control_response")["response"]["response"].clone();
    let names = json!(["default", "Proactive", "Concise", "Explanatory", "Learning", "brief"]);
    assert_eq!((&answer["available_output_styles"], &answer["output_style"]), (&names, &json!("default")));
    let choose = |style: &str| json!({"subtype": "update_settings", "source": "localSettings", "settings": {"outputStyle": style}});
    process.send_request("2", choose("brief"));
    process.send_prompt("hello");
    process.read_result();
    assert!(messages(&agent, 0).contains("BRIEFLY"));
    process.send_request("3", choose("default"));
    process.send_prompt("hello");
    process.read_result();
    assert!(messages(&agent, 1).contains("No output style is in force any more"));
    process.send_request("4", choose("none"));
    let refused = process.read_until(|line| line["response"]["request_id"] == "4");
    assert_eq!(refused["response"]["subtype"], "error");
    process.end();
}

#[test]
fn the_language_of_settings_is_asked_for() {
    let agent = ScriptedAgent::new("hello.yaml");
    agent.lines(&["hello", "--settings", r#"{"language": "japanese"}"#]);
    assert!(system(&agent, 0).contains("in this language: japanese"));
}

#[test]
fn another_system_prompt_follows_one_line() {
    let agent = ScriptedAgent::new("hello.yaml");
    agent.lines(&["hello", "--system-prompt", "BE KIND"]);
    let both = system(&agent, 0);
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
    let agent = ScriptedAgent::from_script_text(script);
    let scout = |text: &str| format!("---\nname: scout\ndescription: Looks\n---\n{text}");
    agent.write(".claude/agents/scout.md", &scout("ONE"));
    let subagent_prompt = || {
        let seen = agent.server.requests();
        let number = seen.iter().rposition(|seen| seen.body.contains("ONE") || seen.body.contains("TWO"));
        number.map(|number| system(&agent, number)).unwrap_or_default()
    };
    let mut process = agent.spawn(&[]);
    process.send_prompt("send");
    process.read_result();
    assert_eq!(subagent_prompt(), "ONE");
    agent.write(".claude/agents/scout.md", &scout("TWO"));
    process.send_prompt("send");
    process.read_result();
    assert_eq!(subagent_prompt(), "TWO");
    // A deleted one is announced as removed.
    fs::remove_file(agent.folder.path.join(".claude/agents/scout.md")).unwrap();
    process.send_prompt("send");
    process.read_result();
    let result = process.lines.iter().rfind(|line| line["message"]["content"][0]["type"] == "tool_result").unwrap();
    assert!(result.to_string().contains("no subagent scout"), "{result}");
    process.send_prompt("hello");
    process.read_result();
    assert!(messages(&agent, agent.server.requests().len() - 1).contains("These subagents are gone: scout"));
    // One that the host gave stays, one that was edited is read again.
    agent.write(".claude/agents/scout.md", &scout("THREE"));
    let given = json!({"mine": {"description": "Of the host", "prompt": "HOST"}});
    process.send_request("1", json!({"subtype": "initialize", "agents": given}));
    process.send_request("2", json!({"subtype": "reload_plugins"}));
    let reloaded = process.read_until(|line| line["response"]["request_id"] == "2");
    let agents = reloaded["response"]["response"]["agents"].as_array().unwrap().clone();
    let names: Vec<&str> = agents.iter().map(|agent| agent["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Explore", "Plan", "general-purpose", "mine", "scout"]);
    process.end();
}

#[test]
fn an_edit_that_cannot_succeed_is_not_asked_about() {
    let script = r#"
- {when: {result_of: Edit}, reply: Done.}
- {when: {says: inside}, reply: [{tool: Edit, input: {file_path: a.txt, old_string: none, new_string: b}}]}
- {when: {says: outside}, reply: [{tool: Edit, input: {file_path: ../outside.txt, old_string: none, new_string: b}}]}
- reply: Yes.
"#;
    let agent = ScriptedAgent::from_script_text(script);
    agent.write("a.txt", "text");
    let outside = agent.folder.path.parent().unwrap().join("outside.txt");
    fs::write(&outside, "text").unwrap();
    let mut process = agent.spawn(&["--permission-prompt-tool", "stdio"]);
    process.send_prompt("inside");
    process.read_result();
    assert!(!process.lines.iter().any(|line| line["type"] == "control_request"));
    let result = process.lines.iter().find(|line| line["message"]["content"][0]["type"] == "tool_result").unwrap();
    assert!(result.to_string().contains("not found in file"), "{result}");
    assert_eq!(result["tool_result_meta"], Value::Null);
    // The content of a file outside must not show before it is permitted.
    process.send_prompt("outside");
    process.read_until(|line| line["type"] == "control_request");
    process.send_response(json!({"behavior": "deny", "message": "no"}));
    process.read_result();
    process.end();
    fs::remove_file(outside).unwrap();
}

#[test]
fn a_file_that_changed_outside_is_announced() {
    let script = r#"
- {when: {result_of: Bash}, reply: Done.}
- {when: {result_of: Read}, reply: [{tool: Bash, input: {command: echo changed >> a.txt}}]}
- {when: {says: read}, reply: [{tool: Read, input: {file_path: a.txt}}]}
- reply: Yes.
"#;
    let agent = ScriptedAgent::from_script_text(script);
    agent.write("a.txt", "one\n");
    let mut process = agent.spawn(&["--allowedTools", "Bash"]);
    process.send_prompt("read");
    process.read_result();
    let text = messages(&agent, 2);
    assert!(text.contains("1\tone\n2\tchanged") && text.contains("has changed since you saw it"), "{text}");
    agent.write("a.txt", "one\nby hand\n");
    process.send_prompt("and now");
    process.read_result();
    process.end();
    assert!(messages(&agent, 3).contains("2\tby hand"));
    assert_eq!(attached(&agent).iter().filter(|kind| *kind == "edited_text_file").count(), 2);
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
    let agent = ScriptedAgent::from_script_text(script);
    let lines = agent.lines(&["search", "--allowedTools", "WebSearch"]);
    assert_eq!(lines.last().unwrap()["result"], "Found.");
    let side: Value = serde_json::from_str(&agent.server.requests()[1].body).unwrap();
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
    let refused = agent.lines(&["search"]);
    assert_eq!(refused.last().unwrap()["permission_denials"].as_array().unwrap().len(), 1);
    let planned = agent.lines(&["search", "--allowedTools", "WebSearch", "--permission-mode", "plan"]);
    assert_eq!(planned.last().unwrap()["result"], "Found.");
    let both = agent.lines(&["both", "--allowedTools", "WebSearch"]);
    assert!(both.iter().any(|line| line.to_string().contains("not both")));
}

#[test]
fn a_rule_for_some_files_is_sent_with_the_first_of_them() {
    let script = r#"
- {when: {result_of: Read}, reply: Done.}
- {when: {says: both}, reply: [{tool: Read, input: {file_path: src/a.rs}}, {tool: Read, input: {file_path: src/b.rs}}]}
- {when: {says: other}, reply: [{tool: Read, input: {file_path: notes.txt}}]}
"#;
    let agent = ScriptedAgent::from_script_text(script);
    for name in ["src/a.rs", "src/b.rs"] {
        agent.write(name, "fn main() {}");
    }
    agent.write(".claude/rules/rust.md", "---\npaths: src/**/*.rs\n---\nRULE-RUST");
    agent.write(".claude/rules/all.md", "RULE-ALL");
    let mut process = agent.spawn(&[]);
    process.send_prompt("other");
    process.read_result();
    assert!(messages(&agent, 0).contains("RULE-ALL") && !messages(&agent, 1).contains("RULE-RUST"));
    process.send_prompt("both");
    process.read_result();
    process.end();
    assert_eq!(messages(&agent, 3).matches("RULE-RUST").count(), 1);
    assert_eq!(attached(&agent).iter().filter(|kind| *kind == "nested_memory").count(), 1);
    agent.lines(&["both", "--bare"]);
    assert!(!agent.server.requests().last().unwrap().body.contains("RULE-RUST"));
}

#[test]
fn rules_for_some_files_are_read_again_when_the_context_or_the_permissions_change() {
    let script = r#"
- {when: {result_of: Read}, reply: Done.}
- {when: {says: go}, reply: [{tool: Read, input: {file_path: a.rs}}]}
"#;
    let agent = ScriptedAgent::from_script_text(script);
    agent.write("a.rs", "fn main() {}");
    let rule = |text: &str| agent.write(".claude/rules/rust.md", &format!("---\npaths: '*.rs'\n---\n{text}"));
    let was_sent = |text: &str| agent.server.requests().last().unwrap().body.contains(text);
    rule("RULE-OLD");
    let mut process = agent.spawn(&[]);
    process.send_prompt("go");
    process.read_result();
    assert!(was_sent("RULE-OLD"));
    rule("RULE-NEW");
    process.send_prompt("/clear");
    process.read_result();
    process.send_prompt("go");
    process.read_result();
    assert!(was_sent("RULE-NEW") && !was_sent("RULE-OLD"));
    process.send_prompt("/clear");
    process.read_result();
    let settings = json!({"permissions": {"deny": ["Read(./.claude/rules/**)"]}});
    process.send_request("1", json!({"subtype": "apply_flag_settings", "settings": settings}));
    process.send_prompt("go");
    process.read_result();
    process.end();
    assert!(!was_sent("RULE-NEW"));
}

#[test]
fn skills_that_the_host_left_out_stay_out() {
    let agent = ScriptedAgent::new("hello.yaml");
    for name in ["one", "two"] {
        agent.write(&format!(".claude/skills/{name}/SKILL.md"), &format!("---\nname: {name}\ndescription: d\n---\nx"));
    }
    let mut process = agent.spawn(&[]);
    process.send_request("1", json!({"subtype": "initialize", "skills": ["one"]}));
    process.send_request("2", json!({"subtype": "reload_skills"}));
    let reloaded = process.read_until(|line| line["response"]["request_id"] == "2");
    let skills = reloaded["response"]["response"]["skills"].as_array().unwrap().clone();
    assert_eq!(skills.iter().map(|skill| skill["name"].as_str().unwrap()).collect::<Vec<_>>(), ["one"]);
    process.end();
}

#[test]
fn commands_know_the_session_they_run_in() {
    let script = r#"
- {when: {result_of: Bash}, reply: Done.}
- {when: {says: go}, reply: [{tool: Bash, input: {command: "echo $CLAUDE_CODE_SESSION_ID $CLAUDE_CODE_ENTRYPOINT"}}]}
"#;
    let agent = ScriptedAgent::from_script_text(script);
    let id = "11111111-2222-4333-8444-555555555555";
    let lines = agent.lines(&["go", "--session-id", id, "--allowedTools", "Bash"]);
    let result = lines.iter().find(|line| line["tool_use_result"].is_object()).unwrap();
    assert_eq!(result["tool_use_result"]["stdout"], format!("{id} sdk-cli"));
}

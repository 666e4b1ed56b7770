//! What becomes of a prompt before the model is asked: saved prompts and local commands; and
//! other lines of the host.

use std::process::Stdio;

use serde_json::{Value, json};

use super::scripted_agent::{AgentProcess, ScriptedAgent, kinds};

const HELLO: &str = "- reply: Good day.";

/// The texts of the last message that the model was sent, without those of the agent.
fn sent(agent: &ScriptedAgent) -> Vec<String> {
    let request = agent.server.requests().pop().unwrap().request.unwrap();
    let last = request.messages.last().unwrap().content.clone();
    let texts = last.into_blocks().iter().filter_map(|block| block.text().map(str::to_owned)).collect::<Vec<_>>();
    texts.into_iter().filter(|text| !text.contains("<system-reminder>")).collect()
}

fn entries(agent: &ScriptedAgent) -> Vec<Value> {
    let text = std::fs::read_to_string(agent.session_file()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn say_with_id(process: &mut AgentProcess, content: Value) {
    process.send(json!({"type": "user", "uuid": "11111111-1111-4111-8111-111111111111",
        "message": {"role": "user", "content": content}}));
}

#[test]
fn a_saved_prompt_gets_its_arguments_and_its_model() {
    let agent = ScriptedAgent::from_script_text(HELLO);
    agent.write(".claude/commands/fix.md", "---\nmodel: claude-haiku-4-5\n---\nFix $0 in $ARGUMENTS[1].");
    let lines = agent.lines(&["/fix \"the typo\" notes.txt"]);
    assert_eq!(sent(&agent).last().unwrap(), "Fix the typo in notes.txt.");
    assert_eq!((&lines[0]["subtype"], &lines[0]["model"]), (&json!("init"), &json!("claude-haiku-4-5")));
    assert_eq!(agent.server.requests()[0].request.as_ref().unwrap().model, "claude-haiku-4-5");
    let attached = entries(&agent).into_iter().find(|line| line["attachment"]["type"] == "command_permissions");
    assert_eq!(attached.unwrap()["attachment"]["model"], "claude-haiku-4-5");
    // For its own turn alone.
    agent.lines(&["and now?", "--model", "claude-opus-5-5", "--continue"]);
    assert_eq!(agent.server.requests()[1].request.as_ref().unwrap().model, "claude-opus-5-5");
}

#[test]
fn the_last_text_of_a_message_may_be_a_saved_prompt() {
    let agent = ScriptedAgent::from_script_text(HELLO);
    agent.write(".claude/commands/greet.md", "Greet $ARGUMENTS.");
    let mut process = agent.spawn(&[]);
    say_with_id(
        &mut process,
        json!([{"type": "text", "text": "Context first."}, {"type": "text", "text": "/greet Ada"}]),
    );
    assert_eq!(process.read_result()["result"], "Good day.");
    process.end();
    let sent = sent(&agent);
    assert_eq!(sent[sent.len() - 2..], ["Context first.", "Greet Ada."]);
    assert!(sent[0].contains("<command-name>/greet</command-name>"), "{sent:?}");
    let last = entries(&agent).into_iter().rfind(|line| line["type"] == "last-prompt").unwrap();
    assert_eq!(last["lastPrompt"], "/greet Ada");
}

#[test]
fn commands_of_the_interactive_program_are_answered_without_the_model() {
    for name in ["help", "login", "status"] {
        let agent = ScriptedAgent::from_script_text(HELLO);
        let lines = agent.lines(&[&format!("/{name}")]);
        assert_eq!(kinds(&lines), ["system/init", "assistant", "result/success"]);
        assert_eq!(lines[2]["result"], format!("/{name} is not available in this environment"));
        assert_eq!((&lines[2]["num_turns"], &lines[2]["is_error"]), (&json!(0), &json!(false)));
        assert!(agent.server.requests().is_empty(), "{name}");
    }
    // The user's own command of that name is theirs.
    let agent = ScriptedAgent::from_script_text(HELLO);
    agent.write(".claude/commands/help.md", "Help me.");
    assert_eq!(agent.lines(&["/help"]).last().unwrap()["result"], "Good day.");
}

#[test]
fn a_local_command_is_echoed_under_the_id_of_its_prompt() {
    // `/cost` is another name for `/usage`.
    for (typed, name) in [("/cost", "usage"), ("/clear", "clear")] {
        let agent = ScriptedAgent::from_script_text(HELLO);
        let mut process = agent.spawn(&["--replay-user-messages"]);
        say_with_id(&mut process, json!(typed));
        let result = process.read_result();
        let (_, heard) = process.end();
        let echo = heard.iter().find(|line| line["isReplay"] == true).unwrap();
        assert_eq!(echo["uuid"], "11111111-1111-4111-8111-111111111111", "{typed}");
        let words = echo["message"]["content"].as_str().unwrap();
        assert!(words.contains(&format!("<command-name>/{name}</command-name>")), "{words}");
        assert_eq!(result["local_command"], typed[1..]);
    }
}

#[test]
fn an_unknown_command_does_not_name_the_session() {
    let agent = ScriptedAgent::from_script_text(HELLO);
    let mut process = agent.spawn(&[]);
    for words in ["hello there", "/nosuch x", "/cost"] {
        process.send_prompt(words);
        process.read_result();
    }
    process.end();
    let prompts: Vec<Value> = entries(&agent).into_iter().filter(|line| line["type"] == "last-prompt").collect();
    assert!(prompts.iter().all(|line| line["lastPrompt"] == "hello there"), "{prompts:?}");
    assert!(!prompts.is_empty());
}

#[test]
fn an_error_line_of_the_host_is_reported_and_the_session_continues() {
    let agent = ScriptedAgent::from_script_text(HELLO);
    let mut command = agent.command(&super::scripted_agent::STREAM);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let lines = [
        json!({"type": "error", "error": "the editor crashed"}),
        json!({"type": "user", "message": {"role": "user", "content": "hi"}}),
    ];
    for line in lines {
        std::io::Write::write_all(&mut stdin, format!("{line}\n").as_bytes()).unwrap();
    }
    drop(stdin);
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success());
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(stderr.contains("the host reports an error: the editor crashed"), "{stderr}");
    assert!(String::from_utf8_lossy(&out.stdout).contains("Good day."));
}

#[test]
fn the_users_own_prices_count_and_a_broken_file_of_them_is_an_error() {
    let agent =
        ScriptedAgent::from_script_text("- {reply: Good day., usage: {input_tokens: 1000000, output_tokens: 0}}");
    let prices =
        "[[price]]\nmodels = [\"house-model\"]\neffective_from = 2025-01-01\nsource = \"us\"\ninput = 7\noutput = 9\n";
    agent.write(".config/quipu/prices.toml", prices);
    let lines = agent.lines(&["hi", "--model", "house-model"]);
    assert_eq!(lines.last().unwrap()["total_cost_usd"], 7.0);
    let usage = std::process::Command::new(env!("CARGO_BIN_EXE_quipu"))
        .args(["usage", "session", "--json", "--claude-dir"])
        .arg(agent.folder.path.join(".claude"))
        .env_clear()
        .env("HOME", &agent.folder.path)
        .output()
        .unwrap();
    let usage: Value = serde_json::from_slice(&usage.stdout).unwrap();
    assert_eq!(usage["totals"]["cost_usd"], 7.0, "{usage}");
    agent.write(".config/quipu/prices.toml", "[[price]]\nmodels = 7\n");
    let out = agent.run(&["-p", "hi"]);
    assert_eq!(out.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(stderr.contains("prices.toml") && stderr.contains("line 2"), "{stderr}");
    assert_eq!(agent.server.requests().len(), 1);
}

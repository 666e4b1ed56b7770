//! What is sent: attachments of older files, cleared results, old confirmations.

use quipu_conversation::{clear_microcompacted, for_api};
use serde_json::{Value, json};

use crate::scenarios::{
    assistant_entry, conversation_from, screen_texts, text_block, tool_result, tool_use, user_entry,
};

fn attached(uuid: &str, parent: &str, attachment: Value) -> Value {
    json!({"type": "attachment", "uuid": uuid, "parentUuid": parent, "version": "2.1.197", "attachment": attachment})
}

/// The texts of the last user message for one attachment after a prompt.
fn texts(attachment: Value) -> Vec<String> {
    let conversation = conversation_from(&[user_entry("p", None, json!("go")), attached("a", "p", attachment)]);
    let messages = conversation.for_api();
    messages[0].content.blocks()[1..].iter().map(|b| b.text().unwrap_or("(media)").to_owned()).collect()
}

#[track_caller]
fn reminds(attachment: Value, text: &str) {
    assert_eq!(texts(attachment), [format!("<system-reminder>\n{text}\n</system-reminder>")]);
}

#[test]
fn attachments_of_older_files_are_sent_from_what_they_hold() {
    let file = json!({"type": "text", "file": {"filePath": "/a.txt", "content": "one\ntwo\n", "numLines": 2, "startLine": 1, "totalLines": 2}});
    reminds(
        json!({"type": "file", "filename": "/a.txt", "content": file}),
        "The user mentioned /a.txt, which holds:\n1\tone\n2\ttwo",
    );
    reminds(
        json!({"type": "hook_additional_context", "content": ["mind the gap"], "hookName": "UserPromptSubmit", "hookEvent": "UserPromptSubmit"}),
        "UserPromptSubmit hook additional context: mind the gap",
    );
    reminds(
        json!({"type": "hook_success", "content": "hi", "stdout": "hi\n", "hookName": "SessionStart:startup", "hookEvent": "SessionStart"}),
        "SessionStart:startup hook success: hi",
    );
    reminds(
        json!({"type": "nested_memory", "path": "/x/CLAUDE.md", "content": {"path": "/x/CLAUDE.md", "type": "Project", "content": "Be brief."}}),
        "Contents of /x/CLAUDE.md:\n\nBe brief.",
    );
    reminds(
        json!({"type": "edited_text_file", "filename": "/a.txt", "snippet": "1\tnew"}),
        "/a.txt was changed outside of this conversation:\n1\tnew",
    );
    reminds(
        json!({"type": "todo_reminder", "itemCount": 1, "content": [{"content": "mow", "status": "pending", "activeForm": "Mowing"}]}),
        "Task list:\n- [pending] mow",
    );
    reminds(
        json!({"type": "diagnostics", "isNew": true, "files": [{"uri": "file:///a.ts", "diagnostics": [
            {"message": "boom", "severity": "Error", "range": {"start": {"line": 10, "character": 2}}}]}]}),
        "Diagnostics of the editor:\nfile:///a.ts:11 Error: boom",
    );
    assert_eq!(texts(json!({"type": "queued_command", "prompt": "faster", "commandMode": "prompt"})), ["faster"]);
    let picture = json!({"type": "image", "file": {"base64": "AA==", "type": "image/png"}});
    assert_eq!(texts(json!({"type": "file", "filename": "/a.png", "content": picture}))[1], "(media)");
}

#[test]
fn attachments_for_the_user_and_facts_of_the_session_are_not_sent() {
    for attachment in [
        json!({"type": "hook_system_message", "content": "hello", "hookName": "Stop", "hookEvent": "Stop"}),
        json!({"type": "hook_success", "stdout": "fine", "hookName": "PostToolUse:Bash", "hookEvent": "PostToolUse"}),
        json!({"type": "skill_listing", "content": "many"}),
        json!({"type": "todo_reminder", "itemCount": 0, "content": []}),
        json!({"type": "max_turns_reached", "maxTurns": 2}),
    ] {
        assert_eq!(texts(attachment.clone()), [""; 0], "{attachment}");
    }
}

#[test]
fn context_of_a_hook_with_role_system_is_sent_again() {
    let mut line = attached(
        "a",
        "p",
        json!({"type": "hook_additional_context", "content": ["x"], "hookName": "H", "hookEvent": "H"}),
    );
    line["rendered"] = json!([{"content": "<system-reminder>\nfrom a hook\n</system-reminder>"}]);
    line["renderedRole"] = json!("system");
    let mut date = attached("d", "a", json!({"type": "date", "date": "2026-11-15"}));
    date["rendered"] = json!([{"content": "Today is Sunday"}]);
    date["renderedRole"] = json!("system");
    let conversation = conversation_from(&[user_entry("p", None, json!("go")), line, date]);
    assert_eq!(conversation.for_api()[0].content.to_text(), "go\n<system-reminder>\nfrom a hook\n</system-reminder>");
}

#[test]
fn results_and_attachments_that_were_cleared_are_not_sent() {
    let conversation = conversation_from(&[
        user_entry("p", None, json!("go")),
        attached("f", "p", json!({"type": "critical_system_reminder", "content": "old"})),
        assistant_entry("a", "f", "m1", tool_use("t1")),
        user_entry("r", Some("a"), tool_result("t1")),
        assistant_entry("b", "r", "m2", tool_use("t2")),
        user_entry("s", Some("b"), tool_result("t2")),
        json!({"type": "system", "subtype": "microcompact_boundary", "uuid": "c", "parentUuid": "s", "content": "Context microcompacted",
            "microcompactMetadata": {"trigger": "auto", "preTokens": 9, "tokensSaved": 3, "compactedToolIds": ["t1"], "clearedAttachmentUUIDs": ["f"]}}),
        user_entry("q", Some("c"), json!("more")),
    ]);
    let sent = serde_json::to_value(conversation.for_api()).unwrap();
    assert_eq!(sent[0]["content"].as_array().unwrap().len(), 1);
    assert_eq!(sent[2]["content"][0]["content"], "[Old tool result cleared from the context]");
    assert_eq!(sent[4]["content"][0]["content"], "from t2");
    assert!(screen_texts(&conversation).contains(&"Context cleared of 1 old tool result".to_owned()));
    // An agent makes messages of one turn after another.
    let mut nodes: Vec<_> = conversation.path().into_iter().cloned().collect();
    clear_microcompacted(&mut nodes);
    let first: Vec<_> = nodes.iter().take(3).collect();
    assert_eq!(serde_json::to_value(for_api(&first)).unwrap().as_array().unwrap()[..], sent.as_array().unwrap()[..3]);
}

#[test]
fn confirmations_of_old_commands_are_not_text_of_the_model() {
    let confirmation = "<local-command>\n<command-name>/compact</command-name>\n<local-command-stdout>Compacted.</local-command-stdout>\n</local-command>";
    let caveat = "<local-command-caveat>Caveat: not for the model</local-command-caveat>";
    let conversation = conversation_from(&[
        user_entry("p", None, json!("go")),
        assistant_entry("a", "p", "m1", text_block("done")),
        assistant_entry("b", "a", "m2", text_block(confirmation)),
        assistant_entry("c", "b", "m3", text_block(caveat)),
        user_entry("q", Some("c"), json!("more")),
    ]);
    let sent: Vec<String> = conversation.for_api().iter().map(|m| m.content.to_text()).collect();
    assert_eq!(sent, ["go", "done", "more"]);
}

#[test]
fn fields_nested_in_data_are_read_by_all() {
    let nested = json!({"type": "system", "subtype": "local_command", "uuid": "c", "parentUuid": "p",
        "data": {"content": "<local-command-stdout>$1</local-command-stdout>"}});
    let conversation = conversation_from(&[user_entry("p", None, json!("go")), nested]);
    assert_eq!(screen_texts(&conversation), ["go", "$1"]);
    assert!(conversation.for_api()[0].content.to_text().contains("$1"));
}

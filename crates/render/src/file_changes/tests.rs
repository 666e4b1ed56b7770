use quipu_conversation::Conversation;
use serde_json::{Value, json};

use super::*;

/// A session of tool calls, each with what its result holds.
#[derive(Default)]
struct SessionBuilder {
    lines: Vec<Value>,
}

impl SessionBuilder {
    fn call(mut self, name: &str, input: Value, is_error: bool, output: Value) -> Self {
        let id = format!("t{}", self.lines.len());
        self.lines
            .push(json!({"type": "assistant", "uuid": format!("a{id}"), "message": {"role": "assistant", "content": [
            {"type": "tool_use", "id": id, "name": name, "input": input}]}}));
        self.lines.push(json!({"type": "user", "uuid": format!("u{id}"), "toolUseResult": output, "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": "done", "is_error": is_error}]}}));
        self
    }

    fn write(self, path: &str, before: Option<&str>, content: &str) -> Self {
        let output = json!({"type": if before.is_some() { "update" } else { "create" }, "filePath": path,
            "content": content, "structuredPatch": [], "originalFile": before});
        self.call("Write", json!({"file_path": path, "content": content}), false, output)
    }

    fn edit(self, path: &str, before: Option<&str>, old: &str, new: &str) -> Self {
        let output = json!({"filePath": path, "oldString": old, "newString": new, "structuredPatch": [], "originalFile": before});
        self.call("Edit", json!({"file_path": path, "old_string": old, "new_string": new}), false, output)
    }

    fn bash(self, command: &str) -> Self {
        self.call("Bash", json!({"command": command}), false, json!({}))
    }

    fn changes(&self) -> Vec<FileChange> {
        self.changes_with(&|_| None)
    }

    fn changes_with(&self, backup: &dyn Fn(&str) -> Option<Option<String>>) -> Vec<FileChange> {
        let mut conversation = Conversation::default();
        for (line, value) in (1..).zip(&self.lines) {
            conversation.push_line(line, &value.to_string());
        }
        file_changes(&conversation.for_ui(), Some("/srv/app"), backup)
    }

    #[track_caller]
    fn check_change(&self, status: ChangeStatus, diff: &str) {
        let changes = self.changes();
        assert_eq!(changes.len(), 1, "{changes:#?}");
        assert_eq!((changes[0].status, &*changes[0].diff, changes[0].missing), (status, diff, 0));
    }
}

#[test]
fn all_changes_of_a_file_are_one_diff() {
    SessionBuilder::default()
        .edit("/srv/app/a.rs", Some("one\ntwo\nthree\n"), "two", "2")
        .edit("/srv/app/a.rs", Some("one\n2\nthree\n"), "three", "3")
        .check_change(ChangeStatus::Modified, "--- a/a.rs\n+++ b/a.rs\n@@ -1,3 +1,3 @@\n one\n-two\n-three\n+2\n+3\n");
}

#[test]
fn a_new_file_comes_from_nothing_and_a_removed_one_leads_there() {
    let story = SessionBuilder::default().write("/srv/app/new.md", None, "a\nb\n");
    story.check_change(ChangeStatus::Created, "--- /dev/null\n+++ b/new.md\n@@ -0,0 +1,2 @@\n+a\n+b\n");
    assert_eq!(story.bash("cd x && rm -f new.md other.md").changes(), []);
    SessionBuilder::default()
        .write("/srv/app/old.md", Some("a\n"), "b\n")
        .bash("git rm old.md")
        .check_change(ChangeStatus::Deleted, "--- a/old.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n");
}

#[test]
fn files_outside_the_folder_keep_their_path_and_a_missing_newline_is_marked() {
    SessionBuilder::default().edit("/etc/x", Some("a"), "a", "b").check_change(
        ChangeStatus::Modified,
        "--- /etc/x\n+++ /etc/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n",
    );
}

#[test]
fn failed_and_pending_calls_and_changes_taken_back_do_not_count() {
    let failed = json!({"file_path": "/srv/app/a", "content": "x"});
    let mut story = SessionBuilder::default().call("Write", failed.clone(), true, json!("Error: refused"));
    story.lines.push(json!({"type": "assistant", "uuid": "p", "message": {"role": "assistant", "content": [
        {"type": "tool_use", "id": "p", "name": "Write", "input": failed}]}}));
    assert_eq!(story.changes(), []);
    let back =
        SessionBuilder::default().edit("/srv/app/a", Some("1"), "1", "2").edit("/srv/app/a", Some("2"), "2", "1");
    assert_eq!(back.changes(), []);
}

#[test]
fn missing_texts_are_taken_from_earlier_calls_reads_and_backups() {
    let edit = json!({"file_path": "/srv/app/a", "old_string": "b", "new_string": "B"});
    let bare = |story: SessionBuilder| story.call("Edit", edit.clone(), false, Value::Null);
    let expected = "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n";
    let read = json!({"type": "text", "file": {"filePath": "/srv/app/a", "content": "a\nb\n", "numLines": 3, "startLine": 1, "totalLines": 3}});
    bare(SessionBuilder::default().call("Read", json!({"file_path": "/srv/app/a"}), false, read))
        .check_change(ChangeStatus::Modified, expected);
    let mut told = SessionBuilder::default().call("Read", json!({"file_path": "/srv/app/a"}), false, Value::Null);
    told.lines[1]["message"]["content"][0]["content"] = "     1→a\n     2→b\n".into();
    bare(told).check_change(ChangeStatus::Modified, expected);
    let mut created = SessionBuilder::default().call(
        "Write",
        json!({"file_path": "/srv/app/n", "content": "x\n"}),
        false,
        Value::Null,
    );
    created.lines[1]["message"]["content"][0]["content"] = "File created successfully at: /srv/app/n".into();
    created.check_change(ChangeStatus::Created, "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n");
    bare(SessionBuilder::default().write("/srv/app/a", None, "a\nb\n"))
        .check_change(ChangeStatus::Created, "--- /dev/null\n+++ b/a\n@@ -0,0 +1,2 @@\n+a\n+B\n");
    let changes =
        bare(SessionBuilder::default()).changes_with(&|path| (path == "/srv/app/a").then(|| Some("a\nb\n".to_owned())));
    assert_eq!((&*changes[0].diff, changes[0].missing), (expected, 0));
}

#[test]
fn a_change_that_cannot_be_reconstructed_is_counted() {
    let edit = json!({"file_path": "/srv/app/a", "old_string": "b", "new_string": "B"});
    let story = SessionBuilder::default().call("Edit", edit, false, Value::Null);
    let changes = story.changes();
    assert_eq!((changes[0].missing, &*changes[0].diff), (1, ""));
    let later = story.edit("/srv/app/a", Some("x\n"), "x", "y").changes();
    assert_eq!((later[0].missing, &*later[0].diff), (1, "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n"));
}

#[test]
fn changes_by_others_in_between_are_announced() {
    let changes = SessionBuilder::default()
        .edit("/srv/app/a", Some("1\n"), "1", "2")
        .edit("/srv/app/a", Some("2 formatted\n"), "2", "3")
        .changes();
    assert!(changes[0].changed_outside);
    assert_eq!(changes[0].diff, "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+3 formatted\n");
}

#[test]
fn hunks_replace_texts_that_do_not_match() {
    let hunk = json!({"oldStart": 2, "oldLines": 1, "newStart": 2, "newLines": 2, "lines": [" b", "+c"]});
    let output = json!({"filePath": "/srv/app/a", "oldString": "“b”", "newString": "x", "structuredPatch": [hunk], "originalFile": "a\nb\n"});
    let input = json!({"file_path": "/srv/app/a", "old_string": "“b”", "new_string": "x"});
    SessionBuilder::default()
        .call("Edit", input, false, output)
        .check_change(ChangeStatus::Modified, "--- a/a\n+++ b/a\n@@ -1,2 +1,3 @@\n a\n b\n+c\n");
}

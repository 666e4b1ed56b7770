//! Write, Edit, NotebookEdit, TodoWrite.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use quipu_engine::testing::permission::PermissionMode;
use quipu_engine::testing::tool::{FileChangeObserver, WorkspaceOptions};
use serde_json::{Value, json};

use crate::{TestWorkspace, error_text, success_text};

const FILE_STATE_NOTE: &str = "(file state is current in your context — no need to Read it back)";

#[tokio::test]
async fn writing_makes_a_file_and_the_folders_above_it() {
    let workspace = TestWorkspace::new();
    let name = workspace.path_text("a/b/c.txt");
    let output = workspace.run_tool("Write", json!({"file_path": name, "content": "one\ntwo\n"})).await;
    let raw = json!({"type": "create", "filePath": name, "content": "one\ntwo\n", "structuredPatch": [], "originalFile": null, "userModified": false});
    assert_eq!(output.raw, Some(raw));
    assert_eq!(success_text(output), format!("File created successfully at: {name} {FILE_STATE_NOTE}"));
    assert_eq!(workspace.read_text("a/b/c.txt"), "one\ntwo\n");
}

#[tokio::test]
async fn a_file_that_changed_since_it_was_read_is_left_alone() {
    let workspace = TestWorkspace::new();
    workspace.write("a", "x");
    let write = json!({"file_path": "a", "content": "y"});
    let edit = json!({"file_path": "a", "old_string": "x", "new_string": "y"});
    success_text(workspace.run_tool("Read", json!({"file_path": "a"})).await);
    workspace.write("a", "changed");
    for (tool, input) in [("Write", &write), ("Edit", &edit)] {
        assert!(error_text(workspace.run_tool(tool, input.clone()).await).contains("changed since it was read"));
    }
    assert_eq!(workspace.read_text("a"), "changed");
    success_text(workspace.run_tool("Read", json!({"file_path": "a"})).await);
    success_text(workspace.run_tool("Write", write).await);
    success_text(workspace.run_tool("Edit", json!({"file_path": "a", "old_string": "y", "new_string": "z"})).await);
    assert_eq!(workspace.read_text("a"), "z");
}

#[tokio::test]
async fn an_edit_does_not_multiply_a_file_beyond_what_can_be_read() {
    let workspace = TestWorkspace::new();
    let text = "a".repeat(100_000);
    workspace.write("a", &text);
    let edit = json!({"file_path": "a", "old_string": "a", "new_string": text, "replace_all": true});
    assert!(error_text(workspace.run_tool("Edit", edit).await).contains("larger than 64.0MB"));
    assert_eq!(workspace.read_text("a"), text);
}

#[tokio::test]
async fn a_path_that_is_too_long_is_refused_at_once() {
    let workspace = TestWorkspace::new();
    let input = json!({"file_path": format!("/{}", "a/".repeat(1_000_000))});
    assert_eq!(crate::decision_word(&workspace.evaluate(PermissionMode::Default, &[], "Read", &input)), "ask");
}

#[tokio::test]
async fn a_file_that_was_not_read_may_be_changed_but_a_notebook_may_not() {
    let workspace = TestWorkspace::new();
    workspace.write("a", "x\n");
    workspace.write("b", "x");
    workspace.write("n.ipynb", r#"{"cells":[]}"#);
    let edit = workspace.run_tool("Edit", json!({"file_path": "a", "old_string": "x", "new_string": "y"})).await;
    // Nothing says that the model knows the rest of the file.
    assert!(success_text(edit).ends_with("has been updated successfully."));
    assert!(
        success_text(workspace.run_tool("Write", json!({"file_path": "b", "content": "y"})).await)
            .ends_with(FILE_STATE_NOTE)
    );
    assert_eq!((workspace.read_text("a").as_str(), workspace.read_text("b").as_str()), ("y\n", "y"));
    let cell = json!({"notebook_path": "n.ipynb", "new_source": "y", "cell_type": "code", "edit_mode": "insert"});
    let unread = "<tool_use_error>File has not been read yet. Read it first before writing to it.</tool_use_error>";
    assert_eq!(error_text(workspace.run_tool("NotebookEdit", cell).await), unread);
}

#[tokio::test]
async fn a_subagent_reads_for_itself() {
    let workspace = TestWorkspace::new();
    workspace.write("a", "x");
    success_text(workspace.run_tool("Read", json!({"file_path": "a"})).await);
    workspace.write("a", "x changed");
    let other = TestWorkspace { inner: workspace.inner.for_subagent(), ..TestWorkspace::new() };
    let edit = json!({"file_path": "a", "old_string": "x", "new_string": "y"});
    assert!(error_text(workspace.run_tool("Edit", edit.clone()).await).contains("changed since"));
    success_text(other.run_tool("Edit", edit).await);
}

#[tokio::test]
async fn an_edit_reports_what_it_changed() {
    let workspace = TestWorkspace::new();
    let name = workspace.path_text("a.txt");
    workspace.write("a.txt", "one\ntwo\n");
    success_text(workspace.run_tool("Read", json!({"file_path": name})).await);
    let input = json!({"file_path": name, "old_string": "two", "new_string": "2", "replace_all": false});
    let output = workspace.run_tool("Edit", input).await;
    let hunk = json!({"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2, "lines": [" one", "-two", "+2"]});
    let raw = json!({"filePath": name, "oldString": "two", "newString": "2", "originalFile": "one\ntwo\n", "structuredPatch": [hunk], "userModified": false, "replaceAll": false});
    assert_eq!(output.raw.as_ref().unwrap().to_string(), raw.to_string());
    assert_eq!(success_text(output), format!("The file {name} has been updated successfully. {FILE_STATE_NOTE}"));
    assert_eq!(workspace.read_text("a.txt"), "one\n2\n");
}

#[tokio::test]
async fn an_edit_must_name_one_place() {
    let workspace = TestWorkspace::new();
    workspace.write("a", "x y x\n");
    success_text(workspace.run_tool("Read", json!({"file_path": "a"})).await);
    let edit = |old: &str, new: &str, all: bool| json!({"file_path": "a", "old_string": old, "new_string": new, "replace_all": all});
    assert!(error_text(workspace.run_tool("Edit", edit("x", "z", false)).await).contains("2 times"));
    assert_eq!(
        error_text(workspace.run_tool("Edit", edit("q", "z", false)).await),
        "<tool_use_error>String to replace not found in file.\nString: q</tool_use_error>"
    );
    assert!(error_text(workspace.run_tool("Edit", edit("x", "x", false)).await).contains("No changes to make"));
    assert!(error_text(workspace.run_tool("Edit", edit("", "x", false)).await).contains("already there"));
    success_text(workspace.run_tool("Edit", edit("x", "z", true)).await);
    assert_eq!(workspace.read_text("a"), "z y z\n");
    assert!(
        error_text(
            workspace.run_tool("Edit", json!({"file_path": "none", "old_string": "a", "new_string": "b"})).await
        )
        .contains("does not exist")
    );
    success_text(workspace.run_tool("Edit", json!({"file_path": "new", "old_string": "", "new_string": "b"})).await);
    assert_eq!(workspace.read_text("new"), "b");
}

#[tokio::test]
async fn line_ends_marks_and_other_encodings_are_kept() {
    let workspace = TestWorkspace::new();
    workspace.write("crlf", "\u{feff}one\r\ntwo\r\n");
    workspace.write("mixed", "one\r\ntwo\n");
    workspace.write("latin", b"caf\xe9 one");
    for name in ["crlf", "mixed", "latin"] {
        success_text(workspace.run_tool("Read", json!({"file_path": name})).await);
    }
    let edit = |name: &str, old: &str| json!({"file_path": name, "old_string": old, "new_string": "1\n2"});
    success_text(workspace.run_tool("Edit", edit("crlf", "one\ntwo")).await);
    success_text(workspace.run_tool("Edit", edit("mixed", "two")).await);
    assert!(error_text(workspace.run_tool("Edit", edit("latin", "one")).await).contains("UTF-8"));
    assert_eq!(workspace.read_text("crlf"), "\u{feff}1\r\n2\r\n");
    assert_eq!(workspace.read_text("mixed"), "one\r\n1\n2\n");
    assert_eq!(std::fs::read(workspace.path("latin")).unwrap(), b"caf\xe9 one");
}

/// Records the changes that it is notified of.
#[derive(Default)]
struct RecordingObserver(Mutex<Vec<(PathBuf, Option<Vec<u8>>)>>, bool);

impl FileChangeObserver for RecordingObserver {
    fn before_change(&self, path: &Path, old: Option<&[u8]>) -> io::Result<()> {
        self.0.lock().push((path.to_owned(), old.map(<[u8]>::to_vec)));
        if self.1 { Err(io::Error::other("no room")) } else { Ok(()) }
    }
}

#[tokio::test]
async fn every_change_is_reported_before_it_is_made() {
    let diary = Arc::new(RecordingObserver::default());
    let workspace = TestWorkspace::with_options(WorkspaceOptions {
        change_observer: Some(diary.clone()),
        ..WorkspaceOptions::default()
    });
    success_text(workspace.run_tool("Write", json!({"file_path": "a", "content": "1"})).await);
    success_text(workspace.run_tool("Edit", json!({"file_path": "a", "old_string": "1", "new_string": "2"})).await);
    success_text(workspace.run_tool("Write", json!({"file_path": "a", "content": "3"})).await);
    let events = diary.0.lock().clone();
    let file = workspace.path("a");
    assert_eq!(events, [(file.clone(), None), (file.clone(), Some(b"1".to_vec())), (file, Some(b"2".to_vec()))]);
}

#[tokio::test]
async fn a_change_that_cannot_be_kept_is_not_made() {
    let workspace = TestWorkspace::with_options(WorkspaceOptions {
        change_observer: Some(Arc::new(RecordingObserver(Mutex::default(), true))),
        ..WorkspaceOptions::default()
    });
    assert!(
        error_text(workspace.run_tool("Write", json!({"file_path": "a", "content": "1"})).await).contains("no room")
    );
    assert!(!workspace.path("a").exists());
}

#[tokio::test]
async fn notebooks_are_changed_cell_by_cell() {
    let workspace = TestWorkspace::new();
    let cell = |id: &str, source: &str| json!({"cell_type": "code", "execution_count": 3, "id": id, "metadata": {}, "outputs": [1], "source": [source]});
    let book = json!({"cells": [cell("a", "1"), cell("b", "2")], "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    workspace.write("n.ipynb", serde_json::to_string(&book).unwrap() + "\n");
    success_text(workspace.run_tool("Read", json!({"file_path": "n.ipynb"})).await);
    let edit = |more: Value| {
        let mut input = json!({"notebook_path": "n.ipynb", "new_source": "new"});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        input
    };
    assert_eq!(
        success_text(workspace.run_tool("NotebookEdit", edit(json!({"cell_id": "b"}))).await),
        "Updated cell b with new"
    );
    success_text(
        workspace
            .run_tool("NotebookEdit", edit(json!({"cell_id": "a", "edit_mode": "insert", "cell_type": "markdown"})))
            .await,
    );
    let deleted = workspace.run_tool("NotebookEdit", edit(json!({"cell_id": "cell-0", "edit_mode": "delete"}))).await;
    assert_eq!(deleted.raw.unwrap()["edit_mode"], "delete");
    assert!(error_text(workspace.run_tool("NotebookEdit", edit(json!({"cell_id": "z"}))).await).contains("no cell z"));
    assert!(
        error_text(workspace.run_tool("NotebookEdit", edit(json!({"edit_mode": "insert"}))).await)
            .contains("cell_type")
    );
    let text = workspace.read_text("n.ipynb");
    assert!(text.starts_with("{\n \"cells\": [\n  {") && text.ends_with("}\n"));
    let book: Value = serde_json::from_str(&text).unwrap();
    let kinds: Vec<_> = book["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| (cell["cell_type"].clone(), cell["source"].clone()))
        .collect();
    assert_eq!(kinds, [(json!("markdown"), json!("new")), (json!("code"), json!("new"))]);
    assert_eq!(book["cells"][1]["outputs"], json!([]));
    assert!(book["cells"][0]["id"].is_string());
}

#[tokio::test]
async fn the_task_list_is_kept_until_all_is_done() {
    let workspace = TestWorkspace::new();
    let list = |status: &str| json!({"todos": [{"content": "A", "status": status, "activeForm": "Doing A"}]});
    let first = workspace.run_tool("TodoWrite", list("in_progress")).await;
    assert_eq!(first.raw.unwrap(), json!({"oldTodos": [], "newTodos": list("in_progress")["todos"]}));
    let last = workspace.run_tool("TodoWrite", list("completed")).await;
    assert_eq!(last.raw.unwrap()["oldTodos"], list("in_progress")["todos"]);
    assert!(workspace.inner.todos().is_empty());
    let wrong = error_text(
        workspace
            .run_tool("TodoWrite", json!({"todos": [{"content": "A", "status": "soon", "activeForm": "x"}]}))
            .await,
    );
    assert!(wrong.contains("`status` must be one of `pending`, `in_progress`, `completed` (in `todos[0]`)"), "{wrong}");
}

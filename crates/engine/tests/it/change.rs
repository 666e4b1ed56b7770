//! Write, Edit, NotebookEdit, TodoWrite.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use quipu_engine::tool::{BeforeChange, Options};
use serde_json::{Value, json};

use crate::{Bench, bad, good};

const CURRENT: &str = "(file state is current in your context — no need to Read it back)";

#[tokio::test]
async fn writing_makes_a_file_and_the_folders_above_it() {
    let bench = Bench::new();
    let name = bench.name("a/b/c.txt");
    let output = bench.run("Write", json!({"file_path": name, "content": "one\ntwo\n"})).await;
    let raw = json!({"type": "create", "filePath": name, "content": "one\ntwo\n", "structuredPatch": [], "originalFile": null, "userModified": false});
    assert_eq!(output.raw, Some(raw));
    assert_eq!(good(output), format!("File created successfully at: {name} {CURRENT}"));
    assert_eq!(bench.text("a/b/c.txt"), "one\ntwo\n");
}

#[tokio::test]
async fn a_file_that_changed_since_it_was_read_is_left_alone() {
    let bench = Bench::new();
    bench.write("a", "x");
    let write = json!({"file_path": "a", "content": "y"});
    let edit = json!({"file_path": "a", "old_string": "x", "new_string": "y"});
    good(bench.run("Read", json!({"file_path": "a"})).await);
    bench.write("a", "changed");
    for (tool, input) in [("Write", &write), ("Edit", &edit)] {
        assert!(bad(bench.run(tool, input.clone()).await).contains("changed since it was read"));
    }
    assert_eq!(bench.text("a"), "changed");
    good(bench.run("Read", json!({"file_path": "a"})).await);
    good(bench.run("Write", write).await);
    good(bench.run("Edit", json!({"file_path": "a", "old_string": "y", "new_string": "z"})).await);
    assert_eq!(bench.text("a"), "z");
}

#[tokio::test]
async fn a_file_that_was_not_read_may_be_changed_but_a_notebook_may_not() {
    let bench = Bench::new();
    bench.write("a", "x\n");
    bench.write("b", "x");
    bench.write("n.ipynb", r#"{"cells":[]}"#);
    let edit = bench.run("Edit", json!({"file_path": "a", "old_string": "x", "new_string": "y"})).await;
    // Nothing says that the model knows the rest of the file.
    assert!(good(edit).ends_with("has been updated successfully."));
    assert!(good(bench.run("Write", json!({"file_path": "b", "content": "y"})).await).ends_with(CURRENT));
    assert_eq!((bench.text("a").as_str(), bench.text("b").as_str()), ("y\n", "y"));
    let cell = json!({"notebook_path": "n.ipynb", "new_source": "y", "cell_type": "code", "edit_mode": "insert"});
    let unread = "<tool_use_error>File has not been read yet. Read it first before writing to it.</tool_use_error>";
    assert_eq!(bad(bench.run("NotebookEdit", cell).await), unread);
}

#[tokio::test]
async fn a_subagent_reads_for_itself() {
    let bench = Bench::new();
    bench.write("a", "x");
    good(bench.run("Read", json!({"file_path": "a"})).await);
    bench.write("a", "x changed");
    let other = Bench { place: bench.place.for_subagent(), ..Bench::new() };
    let edit = json!({"file_path": "a", "old_string": "x", "new_string": "y"});
    assert!(bad(bench.run("Edit", edit.clone()).await).contains("changed since"));
    good(other.run("Edit", edit).await);
}

#[tokio::test]
async fn an_edit_says_what_it_changed() {
    let bench = Bench::new();
    let name = bench.name("a.txt");
    bench.write("a.txt", "one\ntwo\n");
    good(bench.run("Read", json!({"file_path": name})).await);
    let input = json!({"file_path": name, "old_string": "two", "new_string": "2", "replace_all": false});
    let output = bench.run("Edit", input).await;
    let hunk = json!({"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2, "lines": [" one", "-two", "+2"]});
    let raw = json!({"filePath": name, "oldString": "two", "newString": "2", "originalFile": "one\ntwo\n", "structuredPatch": [hunk], "userModified": false, "replaceAll": false});
    assert_eq!(output.raw.as_ref().unwrap().to_string(), raw.to_string());
    assert_eq!(good(output), format!("The file {name} has been updated successfully. {CURRENT}"));
    assert_eq!(bench.text("a.txt"), "one\n2\n");
}

#[tokio::test]
async fn an_edit_must_name_one_place() {
    let bench = Bench::new();
    bench.write("a", "x y x\n");
    good(bench.run("Read", json!({"file_path": "a"})).await);
    let edit = |old: &str, new: &str, all: bool| json!({"file_path": "a", "old_string": old, "new_string": new, "replace_all": all});
    assert!(bad(bench.run("Edit", edit("x", "z", false)).await).contains("2 times"));
    assert_eq!(
        bad(bench.run("Edit", edit("q", "z", false)).await),
        "<tool_use_error>String to replace not found in file.\nString: q</tool_use_error>"
    );
    assert!(bad(bench.run("Edit", edit("x", "x", false)).await).contains("No changes to make"));
    assert!(bad(bench.run("Edit", edit("", "x", false)).await).contains("already there"));
    good(bench.run("Edit", edit("x", "z", true)).await);
    assert_eq!(bench.text("a"), "z y z\n");
    assert!(
        bad(bench.run("Edit", json!({"file_path": "none", "old_string": "a", "new_string": "b"})).await)
            .contains("does not exist")
    );
    good(bench.run("Edit", json!({"file_path": "new", "old_string": "", "new_string": "b"})).await);
    assert_eq!(bench.text("new"), "b");
}

#[tokio::test]
async fn line_ends_marks_and_other_encodings_are_kept() {
    let bench = Bench::new();
    bench.write("crlf", "\u{feff}one\r\ntwo\r\n");
    bench.write("mixed", "one\r\ntwo\n");
    bench.write("latin", b"caf\xe9 one");
    for name in ["crlf", "mixed", "latin"] {
        good(bench.run("Read", json!({"file_path": name})).await);
    }
    let edit = |name: &str, old: &str| json!({"file_path": name, "old_string": old, "new_string": "1\n2"});
    good(bench.run("Edit", edit("crlf", "one\ntwo")).await);
    good(bench.run("Edit", edit("mixed", "two")).await);
    assert!(bad(bench.run("Edit", edit("latin", "one")).await).contains("UTF-8"));
    assert_eq!(bench.text("crlf"), "\u{feff}1\r\n2\r\n");
    assert_eq!(bench.text("mixed"), "one\r\n1\n2\n");
    assert_eq!(std::fs::read(bench.path("latin")).unwrap(), b"caf\xe9 one");
}

/// Keeps what it is told.
#[derive(Default)]
struct Diary(Mutex<Vec<(PathBuf, Option<Vec<u8>>)>>, bool);

impl BeforeChange for Diary {
    fn before_change(&self, path: &Path, old: Option<&[u8]>) -> io::Result<()> {
        self.0.lock().unwrap().push((path.to_owned(), old.map(<[u8]>::to_vec)));
        if self.1 { Err(io::Error::other("no room")) } else { Ok(()) }
    }
}

#[tokio::test]
async fn every_change_is_told_before_it_is_made() {
    let diary = Arc::new(Diary::default());
    let bench = Bench::with(Options { before_change: Some(diary.clone()), ..Options::default() });
    good(bench.run("Write", json!({"file_path": "a", "content": "1"})).await);
    good(bench.run("Edit", json!({"file_path": "a", "old_string": "1", "new_string": "2"})).await);
    good(bench.run("Write", json!({"file_path": "a", "content": "3"})).await);
    let told = diary.0.lock().unwrap().clone();
    let file = bench.path("a");
    assert_eq!(told, [(file.clone(), None), (file.clone(), Some(b"1".to_vec())), (file, Some(b"2".to_vec()))]);
}

#[tokio::test]
async fn a_change_that_cannot_be_kept_is_not_made() {
    let bench =
        Bench::with(Options { before_change: Some(Arc::new(Diary(Mutex::default(), true))), ..Options::default() });
    assert!(bad(bench.run("Write", json!({"file_path": "a", "content": "1"})).await).contains("no room"));
    assert!(!bench.path("a").exists());
}

#[tokio::test]
async fn notebooks_are_changed_cell_by_cell() {
    let bench = Bench::new();
    let cell = |id: &str, source: &str| json!({"cell_type": "code", "execution_count": 3, "id": id, "metadata": {}, "outputs": [1], "source": [source]});
    let book = json!({"cells": [cell("a", "1"), cell("b", "2")], "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    bench.write("n.ipynb", serde_json::to_string(&book).unwrap() + "\n");
    good(bench.run("Read", json!({"file_path": "n.ipynb"})).await);
    let edit = |more: Value| {
        let mut input = json!({"notebook_path": "n.ipynb", "new_source": "new"});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        input
    };
    assert_eq!(good(bench.run("NotebookEdit", edit(json!({"cell_id": "b"}))).await), "Updated cell b with new");
    good(
        bench.run("NotebookEdit", edit(json!({"cell_id": "a", "edit_mode": "insert", "cell_type": "markdown"}))).await,
    );
    let deleted = bench.run("NotebookEdit", edit(json!({"cell_id": "cell-0", "edit_mode": "delete"}))).await;
    assert_eq!(deleted.raw.unwrap()["edit_mode"], "delete");
    assert!(bad(bench.run("NotebookEdit", edit(json!({"cell_id": "z"}))).await).contains("no cell z"));
    assert!(bad(bench.run("NotebookEdit", edit(json!({"edit_mode": "insert"}))).await).contains("cell_type"));
    let text = bench.text("n.ipynb");
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
    let bench = Bench::new();
    let list = |status: &str| json!({"todos": [{"content": "A", "status": status, "activeForm": "Doing A"}]});
    let first = bench.run("TodoWrite", list("in_progress")).await;
    assert_eq!(first.raw.unwrap(), json!({"oldTodos": [], "newTodos": list("in_progress")["todos"]}));
    let last = bench.run("TodoWrite", list("completed")).await;
    assert_eq!(last.raw.unwrap()["oldTodos"], list("in_progress")["todos"]);
    assert!(bench.place.todos().is_empty());
    let wrong =
        bad(bench.run("TodoWrite", json!({"todos": [{"content": "A", "status": "soon", "activeForm": "x"}]})).await);
    assert!(wrong.contains("`status` must be one of `pending`, `in_progress`, `completed` (in `todos[0]`)"), "{wrong}");
}

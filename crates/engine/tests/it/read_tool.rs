use serde_json::json;

use crate::{TestWorkspace, error_text, success_text};

#[tokio::test]
async fn lines_have_their_numbers_and_the_last_line_may_be_empty() {
    let workspace = TestWorkspace::new();
    workspace.write("a.txt", "one\ntwo\n");
    let output = workspace.run_tool("Read", json!({"file_path": workspace.path_text("a.txt")})).await;
    let raw = output.raw.clone().unwrap();
    assert_eq!(success_text(output), "1\tone\n2\ttwo\n3\t");
    let file = json!({"filePath": workspace.path_text("a.txt"), "content": "one\ntwo\n", "numLines": 3, "startLine": 1, "totalLines": 3});
    assert_eq!(raw, json!({"type": "text", "file": file}));
}

#[tokio::test]
async fn offset_and_limit_choose_lines() {
    let workspace = TestWorkspace::new();
    workspace.write("a.txt", "1st\r\n2nd\r\n3rd\r\n4th");
    let part = workspace.run_tool("Read", json!({"file_path": "a.txt", "offset": 2, "limit": 2})).await;
    assert_eq!(success_text(part), "2\t2nd\n3\t3rd");
    let beyond = workspace.run_tool("Read", json!({"file_path": "a.txt", "offset": 9})).await;
    assert!(success_text(beyond).contains("has 4 lines"));
}

#[tokio::test]
async fn unreadable_files_are_reported() {
    let workspace = TestWorkspace::new();
    workspace.write("empty", "");
    workspace.write("binary", b"a\0b");
    workspace.write("long", "word\n".repeat(1999) + &"x".repeat(2000).repeat(60));
    workspace.write("wide", "abcdefgh\n".repeat(20_000));
    assert!(success_text(workspace.run_tool("Read", json!({"file_path": "empty"})).await).contains("empty"));
    assert!(error_text(workspace.run_tool("Read", json!({"file_path": "binary"})).await).contains("binary"));
    let long = success_text(workspace.run_tool("Read", json!({"file_path": "long"})).await);
    assert_eq!(long.lines().last().unwrap(), format!("2000\t{}", "x".repeat(2000)));
    assert!(
        error_text(workspace.run_tool("Read", json!({"file_path": "wide", "limit": 20000})).await).contains("in parts")
    );
    let missing = error_text(workspace.run_tool("Read", json!({"file_path": "/nonexistent/file"})).await);
    let cwd = workspace.inner.cwd();
    assert_eq!(missing, format!("File does not exist. Note: your current working directory is {}.", cwd.display()));
    assert!(
        error_text(workspace.run_tool("Read", json!({"file_path": "."})).await)
            .starts_with("EISDIR: illegal operation")
    );
    assert!(
        error_text(workspace.run_tool("Read", json!({"file_path": "/dev/zero"})).await).contains("not a regular file")
    );
}

#[tokio::test]
async fn pictures_documents_and_notebooks_are_shown_as_such() {
    let workspace = TestWorkspace::new();
    workspace.write("p.bin", b"\x89PNG\r\n\x1a\n....");
    let output = workspace.run_tool("Read", json!({"file_path": "p.bin"})).await;
    assert_eq!(output.content.blocks()[0].tag(), "image");
    assert_eq!(output.raw.unwrap()["file"]["type"], "image/png");
    workspace.write("d.pdf", b"%PDF-1.4 ...");
    let output = workspace.run_tool("Read", json!({"file_path": "d.pdf"})).await;
    assert_eq!(output.content.blocks()[1].tag(), "document");
    let cells = json!([
        {"cell_type": "markdown", "source": ["# A\n", "b"]},
        {"id": "x1", "cell_type": "code", "source": "1+1", "outputs": [{"output_type": "execute_result", "data": {"text/plain": ["2"]}}]},
    ]);
    workspace.write("n.ipynb", json!({"cells": cells}).to_string());
    let output = success_text(workspace.run_tool("Read", json!({"file_path": "n.ipynb"})).await);
    assert_eq!(
        output,
        "<cell id=\"cell-0\"><cell_type>markdown</cell_type># A\nb</cell id=\"cell-0\">\n<cell id=\"x1\">1+1</cell id=\"x1\">\n2"
    );
}

#[tokio::test]
async fn a_wrong_input_is_reported_field_by_field() {
    let workspace = TestWorkspace::new();
    let wrong = error_text(workspace.run_tool("Read", json!({"path": "x", "limit": "3"})).await);
    assert_eq!(
        wrong,
        "<tool_use_error>InputValidationError: Read failed due to the following issues:\n\
         The required parameter `file_path` is missing\n\
         An unexpected parameter `path` was provided\n\
         The parameter `limit` type is expected as `integer` but provided as `string`</tool_use_error>"
    );
}

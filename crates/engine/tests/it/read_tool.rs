use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use quipu_engine::testing::sandbox;
use quipu_engine::testing::tool::WorkspaceOptions;
use quipu_testkit::fixture;
use serde_json::json;

use crate::{TestWorkspace, error_text, output_text, success_text};

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
async fn pictures_and_notebooks_are_shown_as_such() {
    let workspace = TestWorkspace::new();
    workspace.write("p.bin", b"\x89PNG\r\n\x1a\n....");
    let output = workspace.run_tool("Read", json!({"file_path": "p.bin"})).await;
    assert_eq!(output.content.blocks()[0].tag(), "image");
    assert_eq!(output.raw.unwrap()["file"]["type"], "image/png");
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

/// A workspace with a program that reads PDF files, and the files of `fixtures/pdf`.
fn pdf_workspace() -> TestWorkspace {
    let launcher = Some(Path::new(env!("CARGO_BIN_EXE_quipu-launcher")).to_owned());
    let sandbox = sandbox::SandboxOptions { launcher, ..sandbox::SandboxOptions::default() };
    let workspace = TestWorkspace::with_options(WorkspaceOptions { sandbox, ..WorkspaceOptions::default() });
    for name in ["one-page.pdf", "twelve-pages.pdf", "bomb.pdf"] {
        workspace.write(name, fs::read(fixture("pdf").join(name)).unwrap());
    }
    workspace
}

/// A PDF of blank pages, without a table of its objects.
fn blank_pages(count: usize) -> String {
    let kids: String = (0..count).map(|n| format!("{} 0 R ", n + 3)).collect();
    let pages: String =
        (0..count).map(|n| format!("{} 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>> endobj\n", n + 3)).collect();
    format!(
        "%PDF-1.4\n1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj\n\
         2 0 obj <</Type/Pages/Count {count}/Kids[{kids}]>> endobj\n{pages}trailer <</Root 1 0 R>>\n"
    )
}

#[tokio::test]
async fn a_pdf_is_shown_whole_unless_pages_are_chosen() {
    let workspace = pdf_workspace();
    for (name, pages) in [("one-page.pdf", json!("")), ("twelve-pages.pdf", json!(null))] {
        let mut input = json!({"file_path": name});
        if pages.is_string() {
            input["pages"] = pages;
        }
        let output = workspace.run_tool("Read", input).await;
        let bytes = fs::read(workspace.path(name)).unwrap();
        assert_eq!(output.content.blocks()[1].tag(), "document");
        let raw = output.raw.unwrap();
        assert_eq!(raw["type"], "pdf");
        assert_eq!(raw["file"]["base64"], BASE64.encode(bytes));
    }
}

#[tokio::test]
async fn pages_of_a_pdf_are_shown_as_a_pdf_of_these_pages() {
    let workspace = pdf_workspace();
    let output = workspace.run_tool("Read", json!({"file_path": "twelve-pages.pdf", "pages": "4-5"})).await;
    let raw = output.raw.clone().unwrap();
    let text = output_text(&output);
    assert!(text.contains("PDF pages read: 4-5 of 12 from") && text.contains("twelve-pages.pdf (3.8KB)"), "{text}");
    assert_eq!(output.content.blocks()[1].tag(), "document");
    let shown = BASE64.decode(raw["file"]["base64"].as_str().unwrap()).unwrap();
    let shown = String::from_utf8_lossy(&shown);
    assert!(shown.contains("This is page 5.") && !shown.contains("This is page 6."));
    assert_eq!(raw["file"]["originalSize"], 3935);
}

#[tokio::test]
async fn a_pdf_that_cannot_be_shown_is_an_error_with_the_reason() {
    let workspace = pdf_workspace();
    workspace.write("broken.pdf", b"%PDF-1.4 ...");
    let read = async |name: &str, pages: &str| {
        error_text(workspace.run_tool("Read", json!({"file_path": name, "pages": pages})).await)
    };
    workspace.write("long.pdf", blank_pages(101));
    assert!(read("long.pdf", "").await.contains("it has 101 pages, and more than 100 are not read at once"));
    assert!(read("twelve-pages.pdf", "10-14").await.contains("it has 12 pages, so there is no page 14"));
    assert!(read("twelve-pages.pdf", "1-99").await.contains("at most 20 pages"));
    assert!(read("twelve-pages.pdf", "one").await.contains("`one` is not a page"));
    assert!(read("broken.pdf", "1").await.contains("it is not a valid PDF file"));
}

#[tokio::test]
async fn a_pdf_that_needs_gigabytes_to_be_read_is_refused() {
    let workspace = pdf_workspace();
    let error = error_text(workspace.run_tool("Read", json!({"file_path": "bomb.pdf"})).await);
    assert!(error.contains("more memory or time than is allowed"), "{error}");
}

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Message;
use crate::user_assistant::User;

fn file(path: &str) -> ContextKind {
    ContextKind::File { path: path.into() }
}

fn other(text: &str) -> ContextKind {
    ContextKind::Other { text: text.into() }
}

fn web(url: &str, title: Option<&str>) -> ContextKind {
    ContextKind::Web { url: url.into(), title: title.map(str::to_owned) }
}

fn folder(path: &str, file_count: u64) -> ContextKind {
    ContextKind::Folder { path: path.into(), file_count }
}

fn symbol(name: &str, symbol_type: &str, file: &str, line: u64) -> ContextKind {
    ContextKind::Symbol { name: name.into(), symbol_type: symbol_type.into(), file: file.into(), line }
}

fn problems(count: u64, severity: Option<&str>) -> ContextKind {
    ContextKind::Problems { count, severity: severity.map(str::to_owned) }
}

fn git(git_type: &str) -> ContextKind {
    ContextKind::Git { git_type: git_type.into() }
}

fn kinds(split: SplitText<'_>) -> Vec<ContextKind> {
    split.contexts.into_iter().map(|context| context.kind).collect()
}

fn block_of(kinds: &[ContextKind]) -> String {
    write_block(&kinds.iter().cloned().map(ContextRef::from).collect::<Vec<_>>())
}

/// Checks that a reference is written as a line and read back from it.
fn check(reference: &ContextKind, line: &str) {
    let text = block_of(std::slice::from_ref(reference));
    assert_eq!(text, format!("> **上下文资料**\n> \n> - {line}\n\n"));
    assert_eq!(kinds(split_block(&text).unwrap()), std::slice::from_ref(reference), "{line}");
}

/// Checks how a line reads, and that it is written again as it was.
fn check_line(line: &str, expected: &ContextKind) {
    let text = format!("> **上下文资料**\n> - {line}\n\n");
    let split = split_block(&text).unwrap();
    assert_eq!(write_block_with_header(split.header, &split.contexts), text);
    assert_eq!(kinds(split), std::slice::from_ref(expected), "{line:?}");
}

/// Checks what a reference that cannot be shown as it is becomes.
fn check_displayed(reference: &ContextKind, shown: &ContextKind) {
    assert_eq!(reference.as_displayed(), *shown);
    assert_eq!(shown.as_displayed(), *shown);
}

fn check_text(text: &str) {
    assert_eq!(split_block(text), None, "{text:?}");
}

#[test]
fn each_kind_is_written_and_read() {
    check(&file("src/main.rs"), "📄 `src/main.rs`");
    check(&web("https://example.com", Some("示例")), "🌐 https://example.com (示例)");
    check(&web("https://example.com", None), "🌐 https://example.com");
    check(&folder("src/main", 15), "📁 `src/main` (15个文件)");
    let place = symbol("Name.method()", "FUNCTION", "Main.kt", 45);
    check(&place, "🔗 `Name.method()` (FUNCTION) - Main.kt:45");
    check(&ContextKind::Terminal { lines: 50, is_error: true }, "💻 终端输出 (50行) ⚠️");
    check(&ContextKind::Terminal { lines: 50, is_error: false }, "💻 终端输出 (50行)");
    check(&problems(3, Some("ERROR")), "⚠️ 问题报告 (3个) [ERROR]");
    check(&problems(3, None), "⚠️ 问题报告 (3个)");
    check(&git("DIFF"), "🔀 Git DIFF");
    check(&ContextKind::Selection, "✏️ 当前选择内容");
    check(&ContextKind::Workspace, "🏠 当前工作区");
    check(&other("🎲 something new"), "🎲 something new");
}

#[test]
fn awkward_fields_are_read_back() {
    check(&file(""), "📄 ``");
    check(&file("`"), "📄 ```");
    check(&file("a`b (3个文件)"), "📄 `a`b (3个文件)`");
    check(&folder("a` (3个文件)", 2), "📁 `a` (3个文件)` (2个文件)");
    check(&folder("", 0), "📁 `` (0个文件)");
    check(&web("", None), "🌐 ");
    check(&web("", Some("")), "🌐  ()");
    check(&web("http://x/(a)", Some("t) (u")), "🌐 http://x/(a) (t) (u)");
    check(&symbol("a`", "T)", "x) - y:1", 2), "🔗 `a`` (T)) - x) - y:1:2");
    check(&symbol("", "", "", 0), "🔗 `` () - :0");
    check(&problems(0, Some("] [")), "⚠️ 问题报告 (0个) [] []");
    check(&git(""), "🔀 Git ");
    check(&other(" "), " ");
}

#[test]
fn what_the_block_cannot_hold_is_made_to_fit() {
    check_displayed(&file("a\nb\r\nc\u{2028}d"), &file("a b  c d"));
    check_displayed(&web("http://a b", Some("x\ny")), &web("http://a%20b", Some("x y")));
    check_displayed(&symbol("a` (b", "c) - d", "e\nf", 1), &symbol("a' (b", "c)-d", "e f", 1));
    check_displayed(&other("a\nb"), &other("a b"));
    check_displayed(&other(""), &other("?"));
    check_displayed(&other("📄 `a`"), &file("a"));
    check_displayed(&git("DIFF\n\n> **x**"), &git("DIFF  > **x**"));
}

#[test]
fn a_message_is_split_from_its_references() {
    let text = "> **上下文资料**\n> \n> - 📄 `a.kts`\n> - 📄 `b.kt`\n\n请分析\n\n> - 📄 `c`\n\n";
    let split = split_block(text).unwrap();
    assert_eq!(split.header, BlockHeader::Spaced);
    assert_eq!(split.rest, "请分析\n\n> - 📄 `c`\n\n");
    assert_eq!(format!("{}{}", split.block, split.rest), text);
    assert_eq!(kinds(split), [file("a.kts"), file("b.kt")]);
}

#[test]
fn only_the_first_block_is_taken() {
    let one = block_of(&[file("a")]);
    let text = one.repeat(2);
    let split = split_block(&text).unwrap();
    assert_eq!((split.contexts.len(), split.rest), (1, one.as_str()));
}

#[test]
fn the_message_may_be_empty() {
    assert_eq!(split_block(&block_of(&[file("a")])).unwrap().rest, "");
}

#[test]
fn a_line_that_is_almost_a_kind_is_kept_as_it_is() {
    for line in [
        "📄 a.rs",
        "📄 `a.rs` ",
        "📄 `",
        "📄`a.rs`",
        "🌐 http://x title",
        "🌐 http://x  (t)",
        "📁 `src` (015个文件)",
        "📁 `src` (+1个文件)",
        "📁 `src` (-1个文件)",
        "📁 `src`",
        "🔗 `f` (FUNCTION) - a.kt",
        "💻 终端输出 (5行) !",
        "💻 终端输出 (99999999999999999999行)",
        "⚠ 问题报告 (3个) [ERROR]",
        "⚠️ 问题报告 (3个)[ERROR]",
        "🔀 git DIFF",
        "✏️ 选择",
        "🏠 ",
        "🏠",
        "📄 `a\rb`",
        "plain words\r",
    ] {
        check_line(line, &other(line));
    }
}

#[test]
fn a_text_that_only_resembles_the_block_stays_text() {
    check_text("");
    check_text("hello");
    check_text("> **上下文资料**");
    check_text("> **上下文资料**\n> \n\nhello");
    check_text("> **上下文资料**\n> \n> - 📄 `a`\nhello");
    check_text("> **上下文资料**\n> \n> - 📄 `a`\n");
    check_text("> **上下文资料**\n> \n> - 📄 `a`");
    check_text("> **上下文资料**\n> \n> - 📄 `a`\n> \n\nhello");
    check_text("> **上下文资料**\n> \n> \n> - 📄 `a`\n\nhello");
    check_text("> **上下文资料**\n>\n> - 📄 `a`\n\nhello");
    check_text("> **上下文资料**\n> - \n\nhello");
    check_text("> **上下文资料**\n> - 📄 `a`\n> - \n\nhello");
    check_text("> **上下文资料** \n> \n> - 📄 `a`\n\nhello");
    check_text("> **上下文资料**\r\n> \r\n> - 📄 `a`\r\n\r\nhello");
    check_text(" > **上下文资料**\n> \n> - 📄 `a`\n\nhello");
    check_text("hello\n> **上下文资料**\n> \n> - 📄 `a`\n\n");
    check_text("> **Context**\n> \n> - 📄 `a`\n\nhello");
}

#[test]
fn no_references_make_no_block() {
    assert_eq!(write_block(&[]), "");
    assert_eq!(write_block_with_header(BlockHeader::Tight, &[]), "");
}

/// Checks that a JSON object reads as a reference and is written with the same fields.
fn check_json(json: &Value, shown: &ContextKind) {
    let context: ContextRef = serde_json::from_value(json.clone()).unwrap();
    assert_eq!(context.kind, *shown, "{json}");
    assert_eq!(serde_json::to_value(&context).unwrap(), *json);
}

#[test]
fn each_kind_has_its_structured_form() {
    check_json(&json!({"type": "FileReference", "path": "a", "fullPath": "/x/a", "displayType": "TAG"}), &file("a"));
    check_json(&json!({"type": "WebReference", "url": "u", "title": "t"}), &web("u", Some("t")));
    check_json(&json!({"type": "WebReference", "url": "u"}), &web("u", None));
    check_json(&json!({"type": "WebReference", "url": "u", "title": null}), &web("u", None));
    check_json(&json!({"type": "FolderReference", "path": "a", "fileCount": 3}), &folder("a", 3));
    check_json(
        &json!({"type": "SymbolReference", "name": "n", "symbolType": "T", "file": "f", "line": 4}),
        &symbol("n", "T", "f", 4),
    );
    check_json(
        &json!({"type": "TerminalReference", "lines": 5, "isError": true}),
        &ContextKind::Terminal { lines: 5, is_error: true },
    );
    let quiet = ContextKind::Terminal { lines: 5, is_error: false };
    check_json(&json!({"type": "TerminalReference", "lines": 5, "isError": false}), &quiet);
    check_json(&json!({"type": "TerminalReference", "lines": 5}), &quiet);
    check_json(&json!({"type": "ProblemsReference", "count": 2, "severity": "ERROR"}), &problems(2, Some("ERROR")));
    check_json(&json!({"type": "GitReference", "gitType": "DIFF"}), &git("DIFF"));
    check_json(&json!({"type": "SelectionReference"}), &ContextKind::Selection);
    check_json(&json!({"type": "WorkspaceReference"}), &ContextKind::Workspace);
    check_json(&json!({"type": "OtherReference", "text": "x"}), &other("x"));
}

#[test]
fn a_made_file_reference_has_the_usual_fields_in_order() {
    let json = serde_json::to_string(&ContextRef::file("a.rs", "/x/a.rs")).unwrap();
    let expected = r#"{"type":"FileReference","path":"a.rs","fullPath":"/x/a.rs","displayType":"TAG"}"#;
    assert_eq!(json, expected);
}

#[test]
fn unknown_fields_and_types_survive_in_order() {
    for json in [
        r#"{"type":"GitReference","gitType":"LOG","z":1,"a":{"y":null,"b":[1.5]},"displayType":"TAG"}"#,
        r#"{"type":"ImageReference","size":3,"name":"x.png"}"#,
        r#"{"name":"x.png","type":"ImageReference"}"#,
        r#"{"type":"SelectionReference","text":"x"}"#,
    ] {
        let context: ContextRef = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&context).unwrap(), json);
    }
    let image: ContextRef = serde_json::from_value(json!({"type": "ImageReference", "n": 1})).unwrap();
    assert_eq!(image.kind, other("ImageReference"));
}

#[test]
fn a_known_type_with_a_bad_body_is_an_error_that_names_it() {
    for (json, expected) in [
        (json!({"type": "FileReference"}), "FileReference: missing field `path`"),
        (json!({"type": "FolderReference", "path": "a", "fileCount": -1}), "FolderReference: invalid"),
        (json!({"type": "WebReference", "url": "u", "title": 5}), "WebReference: invalid type"),
        (json!({"path": "a"}), "context reference without a `type`"),
        (json!({"type": 3}), "context reference without a `type`"),
        (json!("FileReference"), "invalid type: string"),
    ] {
        let error = serde_json::from_value::<ContextRef>(json).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn a_changed_field_replaces_what_was_read() {
    let json = json!({"type": "TerminalReference", "lines": 5, "isError": false, "x": 1});
    let mut context: ContextRef = serde_json::from_value(json).unwrap();
    context.kind = ContextKind::Terminal { lines: 6, is_error: true };
    let changed = json!({"type": "TerminalReference", "lines": 6, "isError": true, "x": 1});
    assert_eq!(serde_json::to_value(&context).unwrap(), changed);
}

#[test]
fn every_kind_is_among_the_types() {
    let kinds = [
        file(""),
        web("", None),
        folder("", 0),
        symbol("", "", "", 0),
        ContextKind::Terminal { lines: 0, is_error: false },
        problems(0, None),
        git(""),
        ContextKind::Selection,
        ContextKind::Workspace,
        other(""),
    ];
    let types = kinds.map(|kind| to_object(&kind).unwrap()["type"].as_str().unwrap().to_owned());
    assert_eq!(types, KNOWN_TYPES);
}

/// Field texts rich in what separates fields.
fn field() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(
        &[
            "a",
            "`",
            "` (",
            "(",
            ")",
            ") - ",
            " ",
            "\n",
            "\r",
            ":",
            "1",
            "个文件)",
            "个)",
            "行)",
            "[",
            "]",
            "📄",
            "> - ",
            "⚠️",
            "\u{2028}",
        ][..],
    );
    prop_oneof![prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat()), any::<String>(),]
}

fn reference() -> impl Strategy<Value = ContextKind> {
    prop_oneof![
        field().prop_map(|path| ContextKind::File { path }),
        (field(), prop::option::of(field())).prop_map(|(url, title)| ContextKind::Web { url, title }),
        (field(), any::<u64>()).prop_map(|(path, file_count)| ContextKind::Folder { path, file_count }),
        (field(), field(), field(), any::<u64>())
            .prop_map(|(name, symbol_type, file, line)| { ContextKind::Symbol { name, symbol_type, file, line } }),
        (any::<u64>(), any::<bool>()).prop_map(|(lines, is_error)| ContextKind::Terminal { lines, is_error }),
        (any::<u64>(), prop::option::of(field()))
            .prop_map(|(count, severity)| ContextKind::Problems { count, severity }),
        field().prop_map(|git_type| ContextKind::Git { git_type }),
        Just(ContextKind::Selection),
        Just(ContextKind::Workspace),
        field().prop_map(|text| ContextKind::Other { text }),
    ]
}

/// The documented replacements, spelled out apart from the writer.
fn apply_replacements(reference: ContextKind) -> ContextKind {
    let line = |text: String| text.replace(['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'], " ");
    match reference {
        ContextKind::File { path } => file(&line(path)),
        ContextKind::Web { url, title } => web(&line(url).replace(' ', "%20"), title.map(line).as_deref()),
        ContextKind::Folder { path, file_count } => folder(&line(path), file_count),
        ContextKind::Symbol { name, symbol_type, file, line: number } => {
            let name = line(name).replace("` (", "' (");
            symbol(&name, &line(symbol_type).replace(") - ", ")-"), &line(file), number)
        }
        ContextKind::Problems { count, severity } => problems(count, severity.map(line).as_deref()),
        ContextKind::Git { git_type } => git(&line(git_type)),
        other @ ContextKind::Other { .. } => other.as_displayed(),
        plain => plain,
    }
}

/// Texts that are blocks or nearly so.
fn text() -> impl Strategy<Value = String> {
    let line = prop_oneof![reference().prop_map(|reference| reference.to_bullet()), "[^\n]{1,12}"];
    let lines = prop::collection::vec(line.prop_map(|line| format!("{BULLET}{line}\n")), 1..5);
    let spacer = prop::sample::select(&["", BLOCK_SPACER][..]);
    let block = (spacer, lines, field())
        .prop_map(|(spacer, lines, rest)| format!("{BLOCK_TITLE}{spacer}{}\n{rest}", lines.concat()));
    let piece =
        prop::sample::select(&[BLOCK_TITLE, BLOCK_SPACER, BULLET, "> - 📄 `a`\n", "\n", "x", " ", "\r", "> "][..]);
    let pieces = prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat());
    prop_oneof![block, pieces.prop_map(|pieces| format!("{BLOCK_TITLE}{pieces}"))]
}

#[test]
fn a_block_is_put_before_the_first_text_once() {
    let file = ContextRef::file("a.rs", "/p/a.rs");
    let block = write_block(std::slice::from_ref(&file));
    let attached = |content: Content| {
        let user = User { message: Message { content, ..Message::default() }, ..User::default() };
        let once = user.with_contexts(vec![file.clone()]);
        assert_eq!(once.clone().with_contexts(vec![file.clone()]), once);
        assert_eq!(once.contexts.get(), Some(&vec![file.clone()]));
        once.message.content
    };
    assert_eq!(attached("explain".into()), Content::Text(format!("{block}explain")));
    let image = || Block::Image(Box::default());
    assert_eq!(
        attached(vec![image(), Block::new_text("this"), Block::new_text("and this")].into()),
        Content::Blocks(vec![image(), Block::new_text(format!("{block}this")), Block::new_text("and this")])
    );
    assert_eq!(attached(vec![image()].into()), Content::Blocks(vec![Block::new_text(block.clone()), image()]));
    let mut plain = Content::from("explain");
    prepend_block(&mut plain, &[]);
    assert_eq!(plain, Content::from("explain"));
}

proptest! {
    #[test]
    fn a_written_block_gives_back_references_and_message(
        references in prop::collection::vec(reference(), 1..6),
        rest in prop_oneof![field(), text()],
    ) {
        let text = block_of(&references) + &rest;
        let split = split_block(&text).unwrap();
        let expected: Vec<_> = references.into_iter().map(apply_replacements).collect();
        prop_assert_eq!(split.rest, rest);
        prop_assert_eq!(kinds(split), expected);
    }

    #[test]
    fn an_accepted_text_is_written_again_exactly(text in text()) {
        if let Some(split) = split_block(&text) {
            prop_assert_eq!(write_block_with_header(split.header, &split.contexts), split.block);
            prop_assert_eq!(format!("{}{}", split.block, split.rest), text);
        }
    }

    #[test]
    fn what_is_displayed_stays_as_it_is(reference in reference()) {
        let shown = reference.as_displayed();
        prop_assert_eq!(shown.as_displayed(), shown);
    }

    #[test]
    fn the_structured_form_keeps_every_field(shown in reference()) {
        let context = ContextRef::from(shown);
        let json = serde_json::to_string(&context).unwrap();
        prop_assert_eq!(serde_json::from_str::<ContextRef>(&json).unwrap(), context);
    }
}

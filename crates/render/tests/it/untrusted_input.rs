//! Whatever the items hold, nothing of it acts: not on a terminal, not in a page.

use proptest::prelude::*;
use quipu_conversation::{ItemKind, ScreenItem, SubagentCard, ToolCard, ToolStatus};
use quipu_message::context_ref::{ContextKind as Context, ContextRef};
use quipu_message::{Block, Content, Json};
use quipu_render::{
    Html, Markdown, Redactor, SessionDetails, Terminal, ThinkingDisplay, find_secrets, find_secrets_in_line,
};
use serde_json::json;

/// Text of the worst sort: escapes, controls, Markdown and HTML, all mixed.
fn untrusted_text() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        "\\PC{0,8}",
        "[\\x00-\\x1f\\x7f\u{80}-\u{9f}\u{202a}-\u{202e}\u{2066}-\u{2069}]{1,4}",
        prop::sample::select(vec![
            "\x1b[31m",
            "\x1b]0;t\x07",
            "\x1b]8;;x\x1b\\",
            "\x1bP1q",
            "\u{9b}2J",
            "\x1b",
            "\r",
            "\n",
            "\n\n",
            "\t",
            "&#27;[2J",
            "&#x9b;",
            "&#0;",
            "# ",
            "- ",
            "1. ",
            "> ",
            "```rust\n",
            "```\n",
            "`",
            "**",
            "| a | b |\n|--|--|\n| ",
            " | ",
            "[a](",
            "javascript:alert(1)",
            ")",
            "<script>",
            "</script>",
            "</style>",
            "<img src=x onerror=y>",
            "<a href='",
            "\" on",
            "=x ",
            "![x](data:text/html,y)",
            "<javascript:x>",
            "[x]: javascript:y\n",
            "'\"",
            "&lt;script&gt;",
            "<!--",
            "抽奖",
            "👩‍🚀",
            "    ",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat())
}

fn input() -> impl Strategy<Value = (String, Json)> {
    (untrusted_text(), untrusted_text(), untrusted_text(), 0..11usize).prop_map(|(a, b, c, tool)| {
        let (name, input) = match tool {
            0 => ("Bash", json!({"command": a, "description": b})),
            1 => ("Read", json!({"file_path": a})),
            2 => ("Write", json!({"file_path": format!("{a}.rs"), "content": b})),
            3 => ("Edit", json!({"file_path": a, "old_string": b, "new_string": c})),
            4 => ("Grep", json!({"pattern": a, "path": b, "glob": c})),
            5 => ("TodoWrite", json!({"todos": [{"content": a, "status": "completed"}]})),
            6 => ("ExitPlanMode", json!({"plan": a})),
            7 => ("Task", json!({"prompt": a, "description": b, "subagent_type": c})),
            8 => ("AskUserQuestion", json!({"questions": [{"question": a, "header": b, "options": [{"label": c}]}]})),
            9 => ("WebFetch", json!({"url": a, "prompt": b})),
            _ => return (a, Json::from_serialize(&json!({b: c}))),
        };
        (name.to_owned(), Json::from_serialize(&input))
    })
}

fn card() -> impl Strategy<Value = ToolCard> {
    let status = prop::sample::select(vec![ToolStatus::Pending, ToolStatus::Success, ToolStatus::Failed]);
    (input(), untrusted_text(), untrusted_text(), untrusted_text(), status, any::<bool>()).prop_map(
        |((name, input), said, kind, data, status, blocks)| {
            let image = json!({"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}});
            let result = if blocks {
                let image = serde_json::from_str::<Block>(&image.to_string()).unwrap();
                let unknown = serde_json::from_str::<Block>(&json!({"type": data, "x": said}).to_string()).unwrap();
                Content::Blocks(vec![Block::new_text(&*said), image, unknown])
            } else {
                Content::Text(said)
            };
            ToolCard {
                id: "t".into(),
                name: name.into(),
                input,
                status,
                result: Some(result),
                result_missing: false,
                output: None,
                finished_at: None,
                subagent: None,
            }
        },
    )
}

fn item() -> impl Strategy<Value = ScreenItem> {
    use ItemKind::*;
    let kind = prop::sample::select(vec![
        User, Assistant, Assistant, Thinking, Tool, Tool, Image, Hook, System, Summary, Attachment, Branch, Unknown,
        Problem,
    ]);
    let words = (untrusted_text(), untrusted_text(), untrusted_text(), untrusted_text());
    (kind, words, prop::option::of(card()), any::<bool>(), 1..9u64).prop_map(
        |(kind, (a, b, c, d), tool, is_error, line)| {
            let contexts = [
                Context::File { path: c.clone() },
                Context::Web { url: c, title: None },
                Context::Other { text: b.clone() },
            ];
            ScreenItem {
                uuid: Some(d.clone().into()),
                kind,
                timestamp: Some(b.clone()),
                text: Some(a),
                contexts: contexts.into_iter().map(ContextRef::from).collect(),
                tool,
                derived_from: None,
                model: Some(d),
                source: None,
                is_error,
                is_silent: is_error,
                hidden: false,
                branch: None,
                items: None,
                line,
            }
        },
    )
}

/// Items, one of them with a subagent's conversation inside.
fn items() -> impl Strategy<Value = Vec<ScreenItem>> {
    (prop::collection::vec(item(), 1..4), prop::collection::vec(item(), 0..3)).prop_map(|(mut items, inner)| {
        if let Some(card) = items.iter_mut().find_map(|item| item.tool.as_mut()) {
            card.subagent = Some(SubagentCard { agent_id: None, entries: inner.len(), items: inner });
        }
        items
    })
}

/// What is left of the output once our own colour sequences are taken out.
fn without_colours(mut text: &str) -> String {
    let mut rest = String::new();
    while let Some((before, after)) = text.split_once("\x1b[") {
        rest.push_str(before);
        match after.split_once('m').filter(|(codes, _)| codes.bytes().all(|b| b.is_ascii_digit() || b == b';')) {
            Some((_, after)) => text = after,
            None => return format!("{rest}\x1b[{after}"),
        }
    }
    rest + text
}

fn is_foreign_control(c: char) -> bool {
    c != '\n' && c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Goes through every tag of a page: each must be one we write ourselves.
fn check_page(page: &str) -> Result<(), TestCaseError> {
    const TAGS: &str = "!doctype html head meta title style body header h1 h2 h3 h4 h5 h6 dl div dt dd nav ol ul li a main article \
        details summary span small b p pre code strong em del ins blockquote table thead tbody tr th td hr br input img";
    const ATTRIBUTES: &str = "lang charset http-equiv content name class id href rel title aria-label open src alt style type \
        disabled checked start html";
    let (_, body) = page.split_once("</style>").unwrap();
    for tag in body.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').ok_or_else(|| TestCaseError::fail(format!("an open tag: {tag}")))?;
        let tag = tag.trim_start_matches('/').trim_end_matches('/');
        let (name, mut rest) = tag.split_once(' ').unwrap_or((tag, ""));
        prop_assert!(TAGS.split_whitespace().any(|known| known == name), "<{tag}>");
        while !rest.trim().is_empty() {
            let (attribute, after) = rest.trim_start().split_once("=\"").unwrap_or((rest.trim(), "\""));
            prop_assert!(ATTRIBUTES.split_whitespace().any(|known| known == attribute), "{attribute} in <{tag}>");
            let (value, after) = after.split_once('"').unwrap();
            if attribute == "href" {
                let known = ["#", "http:", "https:", "mailto:"];
                prop_assert!(known.iter().any(|k| value.to_lowercase().starts_with(k)), "{value}");
            }
            prop_assert!(attribute != "src" || value.starts_with("data:image/"), "{value}");
            rest = after;
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn nothing_acts_on_a_terminal(items in items(), width in 0..120usize, full in any::<bool>()) {
        let terminal = Terminal { width, show_full: full, thinking: ThinkingDisplay::Full, ..Terminal::default() };
        let plain = terminal.render(&items);
        prop_assert!(!plain.chars().any(is_foreign_control), "{plain:?}");
        let coloured = Terminal { color: true, ..terminal }.render(&items);
        let left = without_colours(&coloured);
        prop_assert!(!left.chars().any(is_foreign_control), "{coloured:?}");
    }

    #[test]
    fn nothing_acts_in_a_page(items in items(), title in untrusted_text()) {
        let details = SessionDetails { title: Some(title.clone()), cwd: Some(title), ..SessionDetails::default() };
        let page = Html { details, ..Html::default() }.render(&items);
        prop_assert!(!page.to_lowercase().contains("<script"), "{page}");
        prop_assert!(!page.to_lowercase().contains("href=\"javascript:"), "{page}");
        prop_assert!(!page.chars().any(|c| is_foreign_control(c) && c != '\t'), "{page:?}");
        check_page(&page)?;
    }

    #[test]
    fn a_document_holds_no_controls(items in items(), title in untrusted_text()) {
        let details = SessionDetails { title: Some(title), ..SessionDetails::default() };
        let document = Markdown { details, show_full: true, ..Markdown::default() }.render(&items);
        prop_assert!(!document.chars().any(|c| is_foreign_control(c) && c != '\t'), "{document:?}");
    }

    #[test]
    fn secrets_of_any_text_are_in_order_and_masked_once(pieces in prop::collection::vec(text_with_secret(), 0..8)) {
        let text = pieces.concat();
        let mut end = 0;
        for secret in find_secrets(&text) {
            prop_assert!(secret.range.start >= end && secret.range.end > secret.range.start, "{secret:?} in {text:?}");
            end = secret.range.end;
            prop_assert!(text.get(secret.range).is_some());
        }
        find_secrets_in_line(&text, &mut |_, _| {});
        let once = Redactor::default().redact_text(&text).into_owned();
        prop_assert_eq!(Redactor::default().redact_text(&once), &*once, "{:?}", text);
    }
}

/// Names, signs, values and beginnings of tokens in any order.
fn text_with_secret() -> impl Strategy<Value = String> {
    let words = vec![
        "password",
        "API_KEY",
        "--token",
        "Cookie:",
        "curl -u a",
        "://",
        "@",
        ":",
        "=",
        "\"",
        "'",
        "`",
        "\\",
        " ",
        "\n",
        "hunter2",
        "ghp_",
        "sk-",
        "eyJ",
        ".",
        "-----BEGIN PRIVATE KEY-----",
        "machine x login y password ",
        "Basic ",
        "a1B2c3D4e5F6g7H8i9J0k1L2m3",
        "/home/",
        "-Users-",
        "sam",
        "抽奖",
        "\u{a0}",
        "[",
        "]",
        "[secret]",
    ];
    prop_oneof![untrusted_text(), prop::sample::select(words).prop_map(str::to_owned)]
}

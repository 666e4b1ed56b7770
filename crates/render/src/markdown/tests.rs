use proptest::prelude::*;
use pulldown_cmark::{Event, Parser};
use quipu_conversation::Conversation;

use super::escape::{PARSER_OPTIONS, code_block, code_span, escape_markdown, neutralize_markdown};
use super::{Markdown, SessionDetails};

#[test]
fn a_conversation_is_a_document() {
    let mut conversation = Conversation::default();
    let lines = [
        r#"{"type":"user","uuid":"a","timestamp":"2026-11-15T09:14:00Z","message":{"role":"user","content":"list <them>"}}"#,
        r#"{"type":"assistant","uuid":"b","parentUuid":"a","message":{"role":"assistant","model":"m","content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}},{"type":"text","text":"```\nopen"}]}}"#,
        r#"{"type":"user","uuid":"c","parentUuid":"b","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"a\n```\nb"}]}}"#,
    ];
    for (i, line) in lines.iter().enumerate() {
        conversation.push_line(i as u64 + 1, line);
    }
    let about = SessionDetails {
        title: Some("List *it*".to_owned()),
        cwd: Some("/home/sam".to_owned()),
        ..SessionDetails::default()
    };
    let document = Markdown { details: about, ..Markdown::default() }.render(&conversation.for_ui());
    assert_eq!(
        document,
        "# List \\*it\\*

- folder: /home/sam

## you · 2026-11-15 09:14

list &lt;them>

## m

> *thinking*
>
> hm

**Bash** ✓ `$ ls`

````
a
```
b
````

```
open
```
"
    );
}

/// All text that a document shows.
fn plain_text(markdown: &str) -> String {
    let word = |event| match event {
        Event::Text(text) | Event::Code(text) => text.to_string(),
        Event::Html(_) | Event::InlineHtml(_) => "HTML".to_owned(),
        _ => String::new(),
    };
    Parser::new_ext(markdown, PARSER_OPTIONS).map(word).collect()
}

#[test]
fn an_open_fence_is_closed_and_no_other() {
    assert_eq!(neutralize_markdown("~~~~sh\nx"), "~~~~sh\nx\n~~~~");
    assert_eq!(neutralize_markdown("```\nx\n```"), "```\nx\n```");
    assert_eq!(neutralize_markdown("```\nx\n```\n\nafter"), "```\nx\n```\n\nafter");
    assert_eq!(neutralize_markdown("a <script>x</script> `<b>`"), "a &lt;script>x&lt;/script> `<b>`");
}

proptest! {
    #[test]
    fn foreign_markdown_brings_no_html(text in "([a-z<>/!`#*=\" -]|<b>|<!--|-->|<script>|</pre>|<div |\n){0,40}") {
        prop_assert!(!plain_text(&neutralize_markdown(&text)).contains("HTML"), "{}", neutralize_markdown(&text));
    }

    #[test]
    fn a_fence_holds_any_text(text in "([a-z`~<>#* -]|\n){0,60}") {
        let text = if text.ends_with('\n') { text } else { text + "\n" };
        prop_assert_eq!(plain_text(&format!("{}\n\nend", code_block("", &text))), format!("{text}end"));
    }

    #[test]
    fn a_code_span_holds_any_line(text in "[a-z`\\\\<*]{1,20}") {
        prop_assert_eq!(plain_text(&code_span(&text)), text);
    }

    #[test]
    fn escaped_words_are_shown_as_they_are(text in "[a-z][a-z`*_<>#|~&;\\\\\\[\\]!()]{0,20}") {
        prop_assert_eq!(plain_text(&escape_markdown(&text)), text);
    }
}

use proptest::prelude::*;
use pulldown_cmark::{Event, Parser};
use quipu_conversation::Conversation;

use super::text::{OPTIONS, code_span, escaped, fenced, tame};
use super::{About, Markdown};

#[test]
fn a_conversation_is_a_document() {
    let mut talk = Conversation::default();
    let lines = [
        r#"{"type":"user","uuid":"a","timestamp":"2026-11-15T09:14:00Z","message":{"role":"user","content":"list <them>"}}"#,
        r#"{"type":"assistant","uuid":"b","parentUuid":"a","message":{"role":"assistant","model":"m","content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}},{"type":"text","text":"```\nopen"}]}}"#,
        r#"{"type":"user","uuid":"c","parentUuid":"b","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"a\n```\nb"}]}}"#,
    ];
    for (i, line) in lines.iter().enumerate() {
        talk.push_line(i as u64 + 1, line);
    }
    let about = About { title: Some("List *it*".to_owned()), cwd: Some("/home/sam".to_owned()), ..About::default() };
    let document = Markdown { about, ..Markdown::default() }.render(&talk.for_ui());
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
fn words(markdown: &str) -> String {
    let word = |event| match event {
        Event::Text(text) | Event::Code(text) => text.to_string(),
        Event::Html(_) | Event::InlineHtml(_) => "HTML".to_owned(),
        _ => String::new(),
    };
    Parser::new_ext(markdown, OPTIONS).map(word).collect()
}

#[test]
fn an_open_fence_is_closed_and_no_other() {
    assert_eq!(tame("~~~~sh\nx"), "~~~~sh\nx\n~~~~");
    assert_eq!(tame("```\nx\n```"), "```\nx\n```");
    assert_eq!(tame("```\nx\n```\n\nafter"), "```\nx\n```\n\nafter");
    assert_eq!(tame("a <script>x</script> `<b>`"), "a &lt;script>x&lt;/script> `<b>`");
}

proptest! {
    #[test]
    fn foreign_markdown_brings_no_html(text in "([a-z<>/!`#*=\" -]|<b>|<!--|-->|<script>|</pre>|<div |\n){0,40}") {
        prop_assert!(!words(&tame(&text)).contains("HTML"), "{}", tame(&text));
    }

    #[test]
    fn a_fence_holds_any_text(text in "([a-z`~<>#* -]|\n){0,60}") {
        let text = if text.ends_with('\n') { text } else { text + "\n" };
        prop_assert_eq!(words(&format!("{}\n\nend", fenced("", &text))), format!("{text}end"));
    }

    #[test]
    fn a_code_span_holds_any_line(text in "[a-z`\\\\<*]{1,20}") {
        prop_assert_eq!(words(&code_span(&text)), text);
    }

    #[test]
    fn escaped_words_are_shown_as_they_are(text in "[a-z][a-z`*_<>#|~&;\\\\\\[\\]!()]{0,20}") {
        prop_assert_eq!(words(&escaped(&text)), text);
    }
}

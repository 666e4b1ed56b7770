use quipu_conversation::Conversation;

use super::Html;
use super::escape::{encode_fragment, safe_href};
use super::from_markdown;

fn rendered(markdown: &str) -> String {
    let mut out = String::new();
    from_markdown::push_markdown(markdown, &mut out);
    out.trim_end().to_owned()
}

#[track_caller]
fn check(markdown: &str, expect: &str) {
    assert_eq!(rendered(markdown), expect);
}

#[test]
fn raw_html_is_shown_as_text() {
    check("a <b onclick=x>c</b>", "<p>a &lt;b onclick=x&gt;c&lt;/b&gt;</p>");
    check("<script>alert(1)</script>", "<p class=\"raw\">&lt;script&gt;alert(1)&lt;/script&gt;</p>");
    check("</style>\n\n**b**", "<p class=\"raw\">&lt;/style&gt;\n</p>\n<p><strong>b</strong></p>");
}

#[test]
fn links_lead_to_the_web_or_to_mail() {
    let rel = "rel=\"noopener noreferrer nofollow\"";
    check(
        "[a](https://e.org/?q=\"x\"&y)",
        &format!("<p><a href=\"https://e.org/?q=&quot;x&quot;&amp;y\" {rel}>a</a></p>"),
    );
    check("<mailto:a@e.org>", &format!("<p><a href=\"mailto:a@e.org\" {rel}>mailto:a@e.org</a></p>"));
    check("[a](javascript:alert(1))", "<p>a <span class=\"url\">(javascript:alert(1))</span></p>");
    check("[a](src/main.rs)", "<p>a <span class=\"url\">(src/main.rs)</span></p>");
    check("![a](https://e.org/x.png)", &format!("<p><a href=\"https://e.org/x.png\" {rel}>a</a></p>"));
    check(
        "[![a](https://e.org/x.png)](https://e.org)",
        &format!("<p><a href=\"https://e.org\" {rel}>a <span class=\"url\">(https://e.org/x.png)</span></a></p>"),
    );
    for hostile in [
        "JAVASCRIPT:x",
        " javascript:x",
        "java\nscript:x",
        "data:text/html,x",
        "vbscript:x",
        "//e.org",
        "&#106;avascript:x",
    ] {
        assert_eq!(safe_href(hostile), None, "{hostile}");
    }
}

#[test]
fn code_is_escaped_and_coloured() {
    check(
        "```rust\nlet a = \"</code><script>\";\n```",
        "<pre class=\"code\"><code><span class=\"k\">let</span> a = \
         <span class=\"s\">&quot;&lt;/code&gt;&lt;script&gt;&quot;</span>;\n</code></pre>",
    );
}

#[test]
fn an_id_cannot_leave_its_attribute() {
    assert_eq!(encode_fragment("a\" b<"), "a%22%20b%3C");
    let mut conversation = Conversation::default();
    conversation.push_line(1, r#"{"type":"user","uuid":"x\" onload=\"y","message":{"role":"user","content":"hi"}}"#);
    let page = Html::default().render(&conversation.for_ui());
    assert!(page.contains("<article class=\"said\" id=\"x&quot; onload=&quot;y\">hi</article>"), "{page}");
}

#[test]
fn images_are_embedded_only_if_valid() {
    let page = |kind: &str, data: &str| {
        let mut conversation = Conversation::default();
        conversation.push_line(1, r#"{"type":"assistant","uuid":"a","message":{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"X","input":{}}]}}"#);
        conversation.push_line(2, &format!(r#"{{"type":"user","uuid":"b","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":[{{"type":"image","source":{{"type":"base64","media_type":"{kind}","data":"{data}"}}}}]}}]}}}}"#));
        Html::default().render(&conversation.for_ui())
    };
    assert!(page("image/png", "aGk=").contains("<img src=\"data:image/png;base64,aGk=\" alt=\"image png, 3 bytes\">"));
    assert!(!page("image/svg+xml", "aGk=").contains("<img"));
    assert!(!page("image/png", "x' onerror='y").contains("<img"));
}

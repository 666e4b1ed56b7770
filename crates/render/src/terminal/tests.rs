use quipu_conversation::Conversation;

use super::{Terminal, ThinkingDisplay};

/// The items of some lines.
fn items_from_lines(lines: &[&str]) -> Vec<quipu_conversation::ScreenItem> {
    let mut conversation = Conversation::default();
    for (i, line) in lines.iter().enumerate() {
        conversation.push_line(i as u64 + 1, line);
    }
    conversation.for_ui()
}

fn narrow_terminal() -> Terminal {
    Terminal { width: 44, ..Terminal::default() }
}

#[track_caller]
fn check(terminal: &Terminal, lines: &[&str], expect: &str) {
    let shown = terminal.render(&items_from_lines(lines));
    assert_eq!(shown, expect, "\n{shown}");
}

/// A line in which the model says `text`.
fn assistant_line(text: &str) -> String {
    let uuid: String = text.chars().filter(char::is_ascii_alphabetic).take(5).collect();
    let text = serde_json::to_string(text).unwrap();
    format!(
        r#"{{"type":"assistant","uuid":"{uuid}","timestamp":"2026-11-15T09:15:00Z","message":{{"role":"assistant","model":"claude-opus-5-5","content":[{{"type":"text","text":{text}}}]}}}}"#
    )
}

const USER_LINE: &str = r#"{"type":"user","uuid":"a","timestamp":"2026-11-15T09:14:00Z","message":{"role":"user","content":"> **上下文资料**\n> \n> - 📄 `src/main.rs`\n\nplease read this and say what it does"}}"#;

/// Two lines: a call of a tool, and its result.
fn tool_call_lines(name: &str, input: &str, result: &str, is_error: bool) -> [String; 2] {
    let result = serde_json::to_string(result).unwrap();
    [
        format!(
            r#"{{"type":"assistant","uuid":"c","message":{{"role":"assistant","model":"m","content":[{{"type":"tool_use","id":"t","name":"{name}","input":{input}}}]}}}}"#
        ),
        format!(
            r#"{{"type":"user","uuid":"d","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":{result},"is_error":{is_error}}}]}}}}"#
        ),
    ]
}

#[track_caller]
fn check_call(name: &str, input: &str, result: &str, expect: &str) {
    let [call, answer] = tool_call_lines(name, input, result, false);
    check(&narrow_terminal(), &[&call, &answer], &format!("▌ m\n{expect}"));
}

#[test]
fn speakers_and_days_are_shown_once() {
    check(
        &narrow_terminal(),
        &[USER_LINE, &assistant_line("It prints *hello*."), &assistant_line("Nothing `else`.")],
        "▌ you  2026-11-15 09:14
  [📄 src/main.rs]
  please read this and say what it does

▌ claude-opus-5-5  09:15
  It prints hello.

  Nothing `else`.
",
    );
}

#[test]
fn markdown_is_laid_out() {
    check(
        &narrow_terminal(),
        &[&assistant_line(
            "# Title\n\none two three four five six seven eight nine\n\n- a list item that is long enough to wrap around\n  - [x] done\n- b\n\n1. x\n2. y\n\n> quoted words\n\n```rust\nfn main() {}\n```\n\n| 名 | n |\n|:--|--:|\n| 抽奖 | 1 |\n\nsee [here](https://example.org) and <https://e.org>\n\n---\n\n<b>raw</b>",
        )],
        "▌ claude-opus-5-5  2026-11-15 09:15
  # Title

  one two three four five six seven eight
  nine

  • a list item that is long enough to wrap
    around
    ◦ ☑ done
  • b

  1. x
  2. y

  ▎ quoted words

    fn main() {}

  ┌──────┬───┐
  │ 名   │ n │
  ├──────┼───┤
  │ 抽奖 │ 1 │
  └──────┴───┘

  see here (https://example.org) and
  https://e.org

  ──────────────────────────────────────────

  <b>raw</b>
",
    );
}

#[test]
fn a_wide_table_is_wrapped_into_its_columns() {
    check(
        &narrow_terminal(),
        &[&assistant_line("| key | what it means |\n|--|--|\n| a | a long explanation that does not fit in one row |")],
        "▌ claude-opus-5-5  2026-11-15 09:15
  ┌─────┬──────────────────────────────────┐
  │ key │ what it means                    │
  ├─────┼──────────────────────────────────┤
  │ a   │ a long explanation that does not │
  │     │ fit in one row                   │
  └─────┴──────────────────────────────────┘
",
    );
}

#[test]
fn a_command_shows_its_output_without_escapes_and_cut() {
    let output: String = (1..=12).map(|n| format!("\x1b[32mline {n}\x1b[0m\n")).collect();
    check_call(
        "Bash",
        r#"{"command":"seq 12"}"#,
        &output,
        "  ✓ ok Bash $ seq 12
    line 1
    line 2
    line 3
    line 4
    line 5
    line 6
    line 7
    line 8
    … +4 lines
",
    );
}

#[test]
fn a_failure_has_a_message() {
    let [call, answer] = tool_call_lines("Bash", r#"{"command":"false"}"#, "<tool_use_error>no</tool_use_error>", true);
    check(&narrow_terminal(), &[&call, &answer], "▌ m\n  ✗ failed Bash $ false\n    no\n");
    check(&narrow_terminal(), &[&call], "▌ m\n  … pending Bash $ false\n");
}

#[test]
fn known_tools_have_their_own_form() {
    check_call(
        "Read",
        r#"{"file_path":"/a/b.rs","offset":10,"limit":2}"#,
        "    10→x\n    11→y",
        "  ✓ ok Read /a/b.rs:10-11 (2 lines)\n",
    );
    check_call(
        "Edit",
        r#"{"file_path":"a.rs","old_string":"let a = 1;\nb","new_string":"let a = 2;\nb"}"#,
        "done",
        "  ✓ ok Edit a.rs (+1 −1)\n    - let a = 1;\n    + let a = 2;\n      b\n",
    );
    check_call(
        "TodoWrite",
        r#"{"todos":[{"content":"x","status":"completed"},{"content":"y","status":"in_progress"},{"content":"z"}]}"#,
        "noted",
        "  ✓ ok TodoWrite (1 of 3 done)\n    ☑ x\n    ▸ y\n    ☐ z\n",
    );
    check_call(
        "Grep",
        r#"{"pattern":"now"}"#,
        "Found 1 file\nsrc/a.rs",
        "  ✓ ok Grep now (1 found)\n    Found 1 file\n    src/a.rs\n",
    );
    check_call("mcp__gauge__read", r#"{"station":"x"}"#, "3", "  ✓ ok gauge:read {\"station\":\"x\"}\n    3\n");
}

#[test]
fn thinking_is_folded_shown_or_hidden() {
    let line = r#"{"type":"assistant","uuid":"b","message":{"role":"assistant","model":"m","content":[{"type":"thinking","thinking":"first\nsecond\n\nthird"}]}}"#;
    check(&narrow_terminal(), &[line], "▌ m\n  ∴ first (+2 lines)\n");
    let full = Terminal { thinking: ThinkingDisplay::Full, ..narrow_terminal() };
    check(&full, &[line], "▌ m\n  ∴ first\n    second\n\n    third\n");
    check(&Terminal { thinking: ThinkingDisplay::Hidden, ..narrow_terminal() }, &[line], "");
}

#[test]
fn what_cannot_be_read_is_shown_as_such() {
    check(
        &narrow_terminal(),
        &["{", r#"{"type":"hologram","uuid":"x","parentUuid":null,"beam":7}"#],
        "  ! line 1: not JSON: EOF while parsing an
    object at line 1 column 1

  ? unknown: {\"type\":\"hologram\",\"uuid\":\"x\",…
",
    );
}

#[test]
fn colours_are_our_own() {
    let terminal = Terminal { color: true, ..narrow_terminal() };
    let shown = terminal.render(&items_from_lines(&[&assistant_line("a **b** \x1b[5mc")]));
    assert_eq!(
        shown,
        "\x1b[1m\x1b[35m▌ claude-opus-5-5\x1b[0m\x1b[2m  2026-11-15 09:15\x1b[0m\n  a \x1b[1mb\x1b[0m c\n"
    );
}

#[test]
fn item_by_item_is_the_same_as_all_at_once() {
    let items = items_from_lines(&[USER_LINE, &assistant_line("one"), &assistant_line("two")]);
    let terminal = narrow_terminal();
    let (mut flow, mut shown) = (terminal.renderer(), String::new());
    items.iter().for_each(|item| flow.render_item(item, &mut shown).unwrap());
    assert_eq!(shown, terminal.render(&items));
}

//! Renders a session file, to look at: `look FILE [text|color|full|md|html] [WIDTH]`.
#![allow(clippy::print_stdout, clippy::disallowed_methods, clippy::print_stderr, reason = "a command for developers")]

use std::time::Instant;

use quipu_conversation::Conversation;
use quipu_render::{Html, Markdown, SessionDetails, Terminal, ThinkingDisplay};

fn main() -> std::io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let text = std::fs::read_to_string(args.first().map_or("/dev/stdin", |path| path))?;
    let form = args.get(1).map_or("color", |form| form);
    let mut conversation = Conversation::default();
    for (i, line) in text.lines().enumerate() {
        conversation.push_line(i as u64 + 1, line);
    }
    let items = conversation.for_ui();
    let width = args.get(2).and_then(|width| width.parse().ok()).unwrap_or(100);
    let terminal = Terminal { width, color: form != "text", ..Terminal::default() };
    let start = Instant::now();
    let out = match form {
        "full" => Terminal { show_full: true, thinking: ThinkingDisplay::Full, ..terminal }.render(&items),
        "md" => Markdown { details: about(), ..Markdown::default() }.render(&items),
        "html" => Html { details: about(), ..Html::default() }.render(&items),
        _ => terminal.render(&items),
    };
    eprintln!("{} items, {} bytes in, {} bytes out, {:?}", items.len(), text.len(), out.len(), start.elapsed());
    print!("{out}");
    Ok(())
}

fn about() -> SessionDetails {
    SessionDetails {
        title: Some("A tide command".to_owned()),
        session_id: Some("05ef09b2-9c3d-4897-965b-0c47c2889d7b".to_owned()),
        cwd: Some("/home/sam/tidepool".to_owned()),
        model: Some("claude-opus-5-5".to_owned()),
        started: Some("2026-10-12 08:14".to_owned()),
        ..SessionDetails::default()
    }
}

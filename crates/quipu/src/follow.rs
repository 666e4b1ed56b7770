//! `quipu follow`

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use quipu_conversation::{Conversation, ScreenItem, Status};
use quipu_render::{Terminal, Thinking};
use quipu_transcript::{Followed, Follower};

use crate::args::{FollowArgs, Global};
use crate::output::Output;
use crate::sessions;
use crate::show::about;
use crate::time::local_time;

/// How long the file must be quiet before what is there counts as caught up.
const QUIET: Duration = Duration::from_millis(30);

pub(crate) fn run(args: &FollowArgs, global: &Global, output: &Output) -> Result<ExitCode> {
    let path = sessions::find(&args.session, global)?;
    let mut follower = Follower::open(&path)?;
    let mut talk = Conversation::default();
    if !global.quiet {
        let _ = writeln!(anstream::stderr().lock(), "following {}; Ctrl-C ends", path.display());
    }
    // First all that is there, then each thing as it comes.
    while let Some(event) = follower.next(QUIET)? {
        take(event, &mut talk);
    }
    let terminal = Terminal {
        width: output.width,
        color: output.color,
        thinking: if args.full { Thinking::Full } else { Thinking::Folded },
        full: args.full,
        base: about(&talk).cwd,
        local: local_time,
        ..Terminal::default()
    };
    let mut flow = terminal.flow();
    let mut shown = talk.for_ui().len().saturating_sub(args.tail);
    loop {
        let items = talk.for_ui();
        let settled = settled(&items).max(shown.min(items.len()));
        if shown > items.len() {
            shown = 0;
        }
        for item in &items[shown.min(settled)..settled] {
            let mut text = String::new();
            // Writing to a string cannot fail.
            let _ = flow.items(std::slice::from_ref(item), &mut text);
            output.bytes(text.as_bytes())?;
        }
        shown = settled;
        let Some(event) = follower.next(Duration::from_secs(3600))? else { continue };
        take(event, &mut talk);
        while let Some(event) = follower.next(Duration::ZERO)? {
            take(event, &mut talk);
        }
    }
}

/// How many of the items will not change any more: a call that waits for its result
/// is shown when it has one.
fn settled(items: &[ScreenItem]) -> usize {
    let pending = |item: &ScreenItem| item.tool.as_ref().is_some_and(|tool| tool.status == Status::Pending);
    items.iter().position(pending).unwrap_or(items.len())
}

fn take(event: Followed, talk: &mut Conversation) {
    match event {
        Followed::Line { number, bytes, .. } => talk.push_line(number, &String::from_utf8_lossy(&bytes)),
        Followed::Truncated | Followed::Replaced => *talk = Conversation::default(),
    }
}

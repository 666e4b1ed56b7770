//! Manages sessions from the command line, under `CLAUDE_CONFIG_DIR` or `~/.claude`.
//!
//! `sessions list [DIR]` · `show ID` · `rename ID TITLE` · `tag ID [TAG]` · `delete ID` ·
//! `fork ID [UUID]` · `subagents ID` · `subagent ID AGENT`
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "an example prints its results"
)]

use std::error::Error;

use quipu_message::Entry;
use quipu_sdk::sessions::{ForkOptions, ListOptions, Sessions};

const USAGE: &str = "usage: sessions list [DIR] | show ID | rename ID TITLE | tag ID [TAG] | delete ID | \
                     fork ID [UUID] | subagents ID | subagent ID AGENT";

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let sessions = Sessions::from_env();
    match args[..] {
        ["list"] => list(&sessions),
        ["list", dir] => list(&sessions.in_project(dir)),
        ["show", id] => show(&sessions.messages(&id.into())?),
        ["rename", id, title] => sessions.rename(&id.into(), title)?,
        ["tag", id] => sessions.tag(&id.into(), None)?,
        ["tag", id, tag] => sessions.tag(&id.into(), Some(tag))?,
        ["delete", id] => sessions.delete(&id.into())?,
        ["fork", id] => println!("{}", sessions.fork(&id.into(), &ForkOptions::default())?),
        ["fork", id, at] => {
            let options = ForkOptions { up_to: Some(at.into()), ..ForkOptions::default() };
            println!("{}", sessions.fork(&id.into(), &options)?);
        }
        ["subagents", id] => {
            for file in sessions.subagents(&id.into())? {
                println!("{}\t{}", file.agent_id, file.description.unwrap_or_default());
            }
        }
        ["subagent", id, agent] => show(&sessions.subagent_messages(&id.into(), &agent.into())?),
        _ => return Err(USAGE.into()),
    }
    Ok(())
}

fn list(sessions: &Sessions) {
    let (listed, errors) = sessions.list(&ListOptions::default());
    for info in listed {
        println!("{}\t{}\t{}", info.id, info.tag.unwrap_or_default(), info.summary);
    }
    for error in errors {
        eprintln!("{error}");
    }
}

fn show(messages: &[Entry]) {
    for entry in messages {
        let (who, content) = match entry {
            Entry::User(line) => ("user", &line.message.content),
            Entry::Assistant(line) => ("assistant", &line.message.content),
            _ => continue,
        };
        println!("{who}\t{}", content.to_text().replace('\n', " "));
    }
}

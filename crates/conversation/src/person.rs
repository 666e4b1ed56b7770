//! Telling what the person said from what the program said for them.

use quipu_message::context::{self, ContextRef};
use quipu_message::local_command::{self, Part, Tag};
use quipu_message::synthetic::{NO_CONTENT, is_synthetic};
use quipu_message::turn::User;
use quipu_message::{Block, Content};

/// One text of a `user` line, seen for what it is.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// Words or a command of the person, with what they attached.
    Prompt {
        /// What was typed.
        text: String,
        /// What was attached.
        contexts: Vec<ContextRef>,
    },
    /// What a local command printed, or a notice.
    Notice(String),
    /// Nothing for people's eyes.
    Hidden,
}

/// Looks at one text of a `user` line.
pub fn said(text: &str) -> Said {
    if is_synthetic(text) {
        return Said::Notice(text.to_owned());
    }
    let typed = local_command::typed(text).trim();
    if !typed.is_empty() && typed != NO_CONTENT {
        // Compared whole: a context block stands at the very start.
        return match context::split(local_command::typed(text)) {
            Some(split) => Said::Prompt { text: split.rest.to_owned(), contexts: split.contexts },
            None => Said::Prompt { text: typed.to_owned(), contexts: Vec::new() },
        };
    }
    if let Some(command) = local_command::command(text) {
        return Said::Prompt { text: command.line(), contexts: Vec::new() };
    }
    if let Some(command) = local_command::bash_input(text) {
        return Said::Prompt { text: format!("! {command}"), contexts: Vec::new() };
    }
    if let Some(output) = local_command::output(text) {
        let lines: Vec<&str> = [output.stdout, output.stderr].into_iter().flatten().map(str::trim).collect();
        let text = lines.join("\n").trim().to_owned();
        return if text.is_empty() { Said::Hidden } else { Said::Notice(text) };
    }
    let notice = local_command::parts(text).into_iter().find_map(|part| match part {
        Part::Tagged { tag: Tag::TaskNotification, body, .. } => Some(body.trim().to_owned()),
        _ => None,
    });
    notice.map_or(Said::Hidden, Said::Notice)
}

/// The user's prompt in a `user` entry; `None` if the entry holds none.
pub fn prompt(user: &User) -> Option<String> {
    let unspoken = user.is_meta.is_true()
        || user.is_compact_summary.is_true()
        || user.is_virtual.is_true()
        || user.is_synthetic.is_true();
    if unspoken {
        return None;
    }
    match &user.message.content {
        Content::Text(text) => asked([text.as_str()], false),
        content => {
            let media = |block: &Block| matches!(block, Block::Image(_) | Block::Document(_));
            asked(content.blocks().iter().filter_map(Block::text), content.blocks().iter().any(media))
        }
    }
}

/// What the user asked with some texts and perhaps pictures or documents; `None` if none of
/// it is theirs.
pub(crate) fn asked<'a>(texts: impl IntoIterator<Item = &'a str>, has_media: bool) -> Option<String> {
    let prompts = texts.into_iter().filter_map(|text| match said(text) {
        Said::Prompt { text, .. } => Some(text),
        _ => None,
    });
    let prompts: Vec<String> = prompts.collect();
    if prompts.is_empty() { has_media.then(String::new) } else { Some(prompts.join("\n")) }
}

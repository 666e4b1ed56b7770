//! Separates what the user typed from what the program wrote into `user` entries.

use quipu_message::context_ref::{self, ContextRef};
use quipu_message::synthetic::{NO_CONTENT, is_synthetic};
use quipu_message::tagged_text::{self, TextPart, TextTag};
use quipu_message::user_assistant::User;
use quipu_message::{Block, Content};

/// What one text of a `user` entry is.
#[derive(Debug, Clone, PartialEq)]
pub enum UserText {
    /// Typed by the user: a prompt or a command.
    Prompt {
        /// The typed text, without tags and attachments.
        text: String,
        /// Attached files, selections and other references.
        contexts: Vec<ContextRef>,
    },
    /// Output of a local command, or a notice.
    Notice(String),
    /// Meant for the model only.
    Hidden,
}

/// Classifies one text of a `user` entry.
pub fn classify_user_text(text: &str) -> UserText {
    if is_synthetic(text) {
        return UserText::Notice(text.to_owned());
    }
    let typed = tagged_text::typed_text(text).trim();
    if !typed.is_empty() && typed != NO_CONTENT {
        // Not trimmed: a context block is at the very start.
        return match context_ref::split_block(tagged_text::typed_text(text)) {
            Some(split) => UserText::Prompt { text: split.rest.to_owned(), contexts: split.contexts },
            None => UserText::Prompt { text: typed.to_owned(), contexts: Vec::new() },
        };
    }
    if let Some(command) = tagged_text::slash_command(text) {
        return UserText::Prompt { text: command.command_line(), contexts: Vec::new() };
    }
    if let Some(command) = tagged_text::bash_input(text) {
        return UserText::Prompt { text: format!("! {command}"), contexts: Vec::new() };
    }
    if let Some(output) = tagged_text::command_output(text) {
        let lines: Vec<&str> = [output.stdout, output.stderr].into_iter().flatten().map(str::trim).collect();
        let text = lines.join("\n").trim().to_owned();
        return if text.is_empty() { UserText::Hidden } else { UserText::Notice(text) };
    }
    let notice = tagged_text::split_parts(text).into_iter().find_map(|part| match part {
        TextPart::Tagged { tag: TextTag::TaskNotification, body, .. } => Some(body.trim().to_owned()),
        _ => None,
    });
    notice.map_or(UserText::Hidden, UserText::Notice)
}

/// The user's prompt in a `user` entry; `None` if the entry holds none.
pub fn user_prompt(user: &User) -> Option<String> {
    let is_generated = user.is_meta.is_true()
        || user.is_compact_summary.is_true()
        || user.is_virtual.is_true()
        || user.is_synthetic.is_true();
    if is_generated {
        return None;
    }
    match &user.message.content {
        Content::Text(text) => prompt_from_texts([text.as_str()], false),
        content => {
            let media = |block: &Block| matches!(block, Block::Image(_) | Block::Document(_));
            prompt_from_texts(content.blocks().iter().filter_map(Block::text), content.blocks().iter().any(media))
        }
    }
}

/// Joins the prompts in some texts. Empty if there are only images or documents; `None` if
/// nothing was typed or attached by the user.
pub(crate) fn prompt_from_texts<'a>(texts: impl IntoIterator<Item = &'a str>, has_media: bool) -> Option<String> {
    let prompts = texts.into_iter().filter_map(|text| match classify_user_text(text) {
        UserText::Prompt { text, .. } => Some(text),
        _ => None,
    });
    let prompts: Vec<String> = prompts.collect();
    if prompts.is_empty() { has_media.then(String::new) } else { Some(prompts.join("\n")) }
}

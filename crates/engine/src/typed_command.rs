//! Slash commands as users type them.

use quipu_message::context_ref;
use quipu_message::{Block, Content};

/// A slash command as the user typed it.
#[derive(Debug, PartialEq)]
pub(crate) struct TypedCommand<'a> {
    /// Its name, without the slash.
    pub(crate) name: &'a str,
    /// The text after the name.
    pub(crate) args: &'a str,
    /// The blocks before the command, which the model gets before its text.
    pub(crate) preceding_blocks: Vec<Block>,
}

impl<'a> TypedCommand<'a> {
    /// The command in the last text block of a message, after the context block if there is one. `None`
    /// if that is not a command; a path or a single slash is not.
    pub(crate) fn from_content(content: &'a Content) -> Option<Self> {
        let (text, blocks) = match content {
            Content::Text(text) => (text, &[][..]),
            Content::Blocks(blocks) => match blocks.split_last()? {
                (Block::Text(last), before) => (&last.text, before),
                _ => return None,
            },
            Content::Other(_) => return None,
        };
        let mut before = blocks.to_vec();
        let typed = match context_ref::split_block(text) {
            Some(split) => {
                before.push(Block::new_text(split.block));
                split.rest
            }
            None => text,
        };
        let (name, args) = split_command(typed)?;
        Some(Self { name, args, preceding_blocks: before })
    }
}

/// The name and the arguments of a command; `None` if the text is not one.
fn split_command(text: &str) -> Option<(&str, &str)> {
    let (name, args) = text.strip_prefix('/')?.split_once(char::is_whitespace).unwrap_or((&text[1..], ""));
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':');
    (!name.is_empty() && name.chars().all(fits)).then_some((name, args.trim()))
}

#[cfg(test)]
mod tests {
    use quipu_message::context_ref::{ContextRef, prepend_block};
    use quipu_message::{Block, Content};

    use super::{TypedCommand, split_command};

    #[test]
    fn a_command_is_a_slash_and_a_name() {
        assert_eq!(split_command("/compact keep it short"), Some(("compact", "keep it short")));
        assert_eq!(split_command("/git:log"), Some(("git:log", "")));
        assert_eq!(split_command("/home/dev is my folder"), None);
        assert_eq!(split_command("/ "), None);
        assert_eq!(split_command("no slash"), None);
    }

    #[test]
    fn the_last_text_of_a_message_may_be_a_command() {
        let text = |text: &str| Block::new_text(text);
        let content = Content::Blocks(vec![text("Context first."), text("/greet Ada")]);
        let expected = TypedCommand { name: "greet", args: "Ada", preceding_blocks: vec![text("Context first.")] };
        assert_eq!(TypedCommand::from_content(&content), Some(expected));
        let content = Content::Blocks(vec![text("/greet Ada"), text("then this")]);
        assert_eq!(TypedCommand::from_content(&content), None);
        let mut content = Content::from("/greet Ada");
        prepend_block(&mut content, &[ContextRef::file("a.rs", "/a.rs")]);
        let typed = TypedCommand::from_content(&content).unwrap();
        assert_eq!((typed.name, typed.preceding_blocks.len()), ("greet", 1));
    }
}

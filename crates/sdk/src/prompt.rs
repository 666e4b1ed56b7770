//! Prompts for an agent.

use std::pin::Pin;

use futures_util::{Stream, StreamExt as _, stream};
use quipu_message::user_assistant::User;
use quipu_message::{Block, Content, Envelope, Maybe, Message, Role, SessionId, Spelling, Uuid};

/// One or more prompts: text, blocks with images and documents, or a stream of user entries.
pub struct Prompt(Pin<Box<dyn Stream<Item = User> + Send>>);

impl Prompt {
    /// Sends each entry of a stream as soon as the stream yields it.
    pub fn stream(messages: impl Stream<Item = User> + Send + 'static) -> Self {
        Self(Box::pin(messages))
    }

    pub(crate) async fn next(&mut self) -> Option<User> {
        self.0.next().await
    }

    fn single(content: Content) -> Self {
        Self::stream(stream::once(std::future::ready(user_message(content))))
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self::single(Content::from(text))
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self::single(Content::from(text))
    }
}

impl From<Vec<Block>> for Prompt {
    fn from(blocks: Vec<Block>) -> Self {
        Self::single(Content::Blocks(blocks))
    }
}

impl From<User> for Prompt {
    fn from(message: User) -> Self {
        Self::stream(stream::once(std::future::ready(message)))
    }
}

/// A user entry with this content and a new UUID, which
/// [`Handle::rewind_files`](crate::Handle::rewind_files) takes.
pub fn user_message(content: impl Into<Content>) -> User {
    user_message_with_id(content.into(), Uuid::from(uuid::Uuid::new_v4().to_string()))
}

pub(crate) fn user_message_with_id(content: Content, id: Uuid) -> User {
    User {
        message: Message { role: Role::User, content, ..Message::default() },
        envelope: Envelope {
            parent_tool_use_id: Maybe::Null,
            session_id: Maybe::Value(SessionId::from("")),
            uuid: Maybe::Value(id),
            spelling: Spelling::STREAM,
            ..Envelope::default()
        },
        ..User::default()
    }
}

//! What is said to an agent.

use std::pin::Pin;

use futures_util::{Stream, StreamExt as _, stream};
use quipu_message::user_assistant::User;
use quipu_message::{Block, Content, Envelope, Maybe, Message, Role, SessionId, Spelling, Uuid};

/// One or more things to say: text, blocks (with pictures and documents), or a stream
/// of messages.
pub struct Prompt(Pin<Box<dyn Stream<Item = User> + Send>>);

impl Prompt {
    /// Says each message of a stream as it comes.
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

/// A message of a person with the given content, as agents read it. It has an id, by
/// which files can be rewound to it.
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

//! The message inside a line: the same in files, on the stream and in the API.

use crate::macros::{open_str_enum, wire};
use crate::values::StopReason;
use crate::{Content, Json, MessageId, Usage};

open_str_enum! {
    /// Author of a message.
    pub enum Role {
        /// The user, the program on the user's behalf, or tool results.
        "user" => User,
        /// The model.
        "assistant" => Assistant,
        /// The program, inside the conversation.
        "system" => System,
    }
}

wire! {
    /// A message as the API has it.
    pub struct Message {
        /// Id given by the API; absent on user messages.
        id: opt MessageId,
        /// `message` on responses; absent on user messages.
        kind: opt String = "type",
        /// Author of the message.
        role: req Role,
        /// Model that wrote the message; absent on user messages.
        model: opt String,
        /// Text or content blocks.
        content: req Content,
        /// Why the model stopped; `null` while it is still writing.
        stop_reason: opt StopReason,
        /// Stop sequence that the model wrote.
        stop_sequence: opt String,
        /// Details of the stop, for example of a refusal.
        stop_details: opt Json,
        /// Usage of the API call.
        usage: opt Usage,
        /// Container that code execution used.
        container: opt Json,
        /// What the server cleared from the context.
        context_management: opt Json,
        /// The server's own diagnosis, for example of a cache miss.
        diagnostics: opt Json,
    }
}

impl Message {
    /// A message with a role and content, all other fields absent.
    pub fn new(role: Role, content: impl Into<Content>) -> Self {
        Self { role, content: content.into(), ..Self::default() }
    }
}

//! The message inside a line: the same in files, on the stream and in the API.

use crate::macros::{open_str_enum, wire};
use crate::values::StopReason;
use crate::{Content, Json, MessageId, Usage};

open_str_enum! {
    /// Who speaks.
    pub enum Role {
        /// The person, or the program on the person's side.
        "user" => User,
        /// The model.
        "assistant" => Assistant,
        /// The program, inside the conversation.
        "system" => System,
    }
}

wire! {
    /// A message as the API knows it.
    pub struct Message {
        /// The API's id; absent on what the person says.
        id: opt MessageId,
        /// `message`, on answers.
        kind: opt String = "type",
        /// Who speaks.
        role: req Role,
        /// The model that answered.
        model: opt String,
        /// What is said.
        content: req Content,
        /// Why the model stopped; `null` while it still writes.
        stop_reason: opt StopReason,
        /// The sequence that stopped it.
        stop_sequence: opt String,
        /// More about the stop.
        stop_details: opt Json,
        /// What the call used.
        usage: opt Usage,
        /// The container that code ran in.
        container: opt Json,
        /// What the server cleared from the context.
        context_management: opt Json,
    }
}

impl Message {
    /// A message with nothing but a role and content.
    pub fn new(role: Role, content: impl Into<Content>) -> Self {
        Self { role, content: content.into(), ..Self::default() }
    }
}

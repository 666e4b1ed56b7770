//! What a client sends to a chat: messages, replies to prompts, interrupts, changes of mode and model.

use std::sync::Arc;

use axum::extract::{Path, State};
use quipu_message::context_ref::ContextRef;
use quipu_message::control::request::CancelAsyncMessage;
use quipu_message::values::MediaSourceKind;
use quipu_message::{Block, Content, Image, MediaSource, Uuid};
use quipu_sdk::user_message;
use quipu_transcript::error_chain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::chats::shown;
use crate::app::App;
use crate::chat::PromptReply;
use crate::error::ApiError;
use crate::json::{Json, JsonBody};

/// Types of images that the API takes.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// A message for the agent.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct MessageBody {
    text: String,
    /// What the user attached, as in the field `contexts` of a user entry.
    #[serde(default)]
    #[schemars(with = "Vec<std::collections::BTreeMap<String, Value>>")]
    contexts: Vec<ContextRef>,
    #[serde(default)]
    images: Vec<ImageBody>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ImageBody {
    /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    media_type: String,
    /// The image in base64.
    data: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SentMessage {
    /// UUID of the message, which its entry in the session has, too.
    uuid: String,
}

pub(crate) async fn send(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    JsonBody(body): JsonBody<MessageBody>,
) -> Result<Json, ApiError> {
    let chat = app.chats.find(&id)?;
    if body.text.trim().is_empty() && body.images.is_empty() && body.contexts.is_empty() {
        return Err(ApiError::bad_request("message.empty", "the message is empty"));
    }
    let text = body.text.clone();
    let contexts = body.contexts.clone();
    let mut message = user_message(body.into_content()?);
    if !contexts.is_empty() {
        message = message.with_contexts(contexts);
    }
    let queued = chat.send(message, text)?;
    Ok(Json::new(&SentMessage { uuid: queued.uuid }))
}

impl MessageBody {
    fn into_content(self) -> Result<Content, ApiError> {
        if self.images.is_empty() {
            return Ok(self.text.into());
        }
        let mut blocks = Vec::new();
        for image in self.images {
            if !IMAGE_TYPES.contains(&image.media_type.as_str()) {
                return Err(ApiError::bad_request("image.type", format!("`{}` is not supported", image.media_type))
                    .with_hint(format!("use {}", IMAGE_TYPES.join(", "))));
            }
            let source = MediaSource {
                kind: MediaSourceKind::Base64,
                media_type: image.media_type.into(),
                data: image.data.into(),
                ..MediaSource::default()
            };
            blocks.push(Block::Image(Box::new(Image { source, ..Image::default() })));
        }
        if !self.text.is_empty() {
            blocks.push(Block::new_text(self.text));
        }
        Ok(Content::Blocks(blocks))
    }
}

/// Removes a message that the agent has not begun with.
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    Path((id, uuid)): Path<(String, String)>,
) -> Result<Json, ApiError> {
    let chat = app.chats.find(&id)?;
    let request =
        CancelAsyncMessage { message_uuid: Uuid::from(uuid.as_str()).into(), ..CancelAsyncMessage::default() };
    let response = chat.agent().await?.request(request).await.map_err(sdk_error)?;
    if !response.cancelled {
        return Err(ApiError::conflict("message.started", "the agent has begun with this message already"));
    }
    chat.remove_from_queue(&uuid);
    Ok(shown(&chat))
}

/// Ends the running turn.
pub(crate) async fn interrupt(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<Json, ApiError> {
    let chat = app.chats.find(&id)?;
    chat.agent().await?.interrupt().await.map_err(sdk_error)?;
    Ok(shown(&chat))
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct PermissionModeBody {
    permission_mode: String,
}

pub(crate) async fn permission_mode(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    JsonBody(body): JsonBody<PermissionModeBody>,
) -> Result<Json, ApiError> {
    let chat = app.chats.find(&id)?;
    let response = chat.agent().await?.set_permission_mode(body.permission_mode.as_str()).await.map_err(sdk_error)?;
    chat.set_permission_mode(response.mode.as_str());
    Ok(shown(&chat))
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ModelBody {
    /// Name of the model; `null` lets the agent choose.
    model: Option<String>,
}

pub(crate) async fn model(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    JsonBody(body): JsonBody<ModelBody>,
) -> Result<Json, ApiError> {
    let chat = app.chats.find(&id)?;
    let response = chat.agent().await?.set_model(body.model.as_deref()).await.map_err(sdk_error)?;
    chat.set_model(&response.model);
    Ok(shown(&chat))
}

/// Replies to a prompt.
pub(crate) async fn reply(
    State(app): State<Arc<App>>,
    Path((id, prompt)): Path<(String, String)>,
    JsonBody(reply): JsonBody<PromptReply>,
) -> Result<Json, ApiError> {
    let chat = app.chats.find(&id)?;
    chat.reply(&prompt, reply)?;
    Ok(shown(&chat))
}

/// An error of the agent, with the SDK's code.
pub(crate) fn sdk_error(error: quipu_sdk::Error) -> ApiError {
    ApiError::conflict(error.code(), error_chain(&error))
}

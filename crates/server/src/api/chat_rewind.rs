//! `/api/chats/{id}/rewind`: takes files and conversation back to before a message.

use std::sync::Arc;

use axum::extract::{Path, State};
use quipu_conversation::SkeletonView;
use quipu_message::control::response::RewindFilesResponse;
use quipu_message::{Entry, Uuid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::api::chat_control::sdk_error;
use crate::api::chats::shown;
use crate::app::App;
use crate::chat::Chat;
use crate::error::ApiError;
use crate::json::{Json, JsonBody};

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct RewindBody {
    /// UUID of the user's message; what it caused is undone.
    uuid: String,
    /// Whether files are restored.
    #[serde(default)]
    files: bool,
    /// Whether the conversation continues before the message. The agent is started again.
    #[serde(default)]
    conversation: bool,
    /// Only reports what would change.
    #[serde(default)]
    dry_run: bool,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct RewindReply {
    can_rewind: bool,
    /// Why it cannot be done.
    error: Option<String>,
    /// Files that change.
    files: Vec<String>,
    /// Lines that are added.
    insertions: u64,
    /// Lines that are removed.
    deletions: u64,
    /// The chat, if the conversation was rewound.
    #[schemars(with = "Option<Chat>")]
    chat: Option<Box<RawValue>>,
}

pub(crate) async fn rewind(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    JsonBody(body): JsonBody<RewindBody>,
) -> Result<Json, ApiError> {
    let chat = app.chats.find(&id)?;
    chat.check_idle()?;
    let agent = chat.agent().await?;
    let mut reply = RewindReply { can_rewind: true, ..RewindReply::default() };
    if body.files {
        let uuid = Uuid::from(body.uuid.as_str());
        let preview = agent.preview_rewind(&uuid).await;
        reply.add_files(preview)?;
        if reply.can_rewind && !body.dry_run {
            let done = agent.rewind_files(&uuid).await.map_err(sdk_error)?;
            reply.can_rewind = done.can_rewind;
        }
    }
    if body.conversation && reply.can_rewind {
        let key = chat.state().chat.key.clone();
        let uuid = body.uuid.clone();
        let kept = Arc::clone(&app).blocking(move |app| {
            let path = app.list.resolve(&key)?;
            app.sessions.with(&path, |session| entry_before(session.view(), &uuid))?
        });
        let kept = kept.await?;
        if !body.dry_run {
            chat.rewind_conversation(kept).await?;
            reply.chat = serde_json::from_slice(&shown(&chat).bytes()).ok();
        }
    }
    Ok(Json::new(&reply))
}

impl RewindReply {
    fn add_files(&mut self, preview: Result<RewindFilesResponse, quipu_sdk::Error>) -> Result<(), ApiError> {
        match preview {
            Ok(preview) => {
                self.can_rewind = preview.can_rewind;
                self.files = preview.files_changed.into_option().unwrap_or_default();
                self.insertions = preview.insertions.into_option().unwrap_or_default();
                self.deletions = preview.deletions.into_option().unwrap_or_default();
                Ok(())
            }
            Err(quipu_sdk::Error::Refused { error, .. }) => {
                (self.can_rewind, self.error) = (false, Some(error));
                Ok(())
            }
            Err(error) => Err(sdk_error(error)),
        }
    }
}

/// UUID of the message before a message of the user; `None` if it is the first one. Fails if the
/// session does not have it.
fn entry_before(view: SkeletonView<'_>, uuid: &str) -> Result<Option<String>, ApiError> {
    let mut entries = (0..view.len()).rev().filter_map(|position| view.entry(position));
    let is_asked_for = |entry: &Entry| entry.envelope().and_then(|envelope| envelope.uuid.text()) == Some(uuid);
    if !entries.any(|node| is_asked_for(&node.entry)) {
        return Err(ApiError::not_found("message.not_found", format!("the conversation has no message {uuid}"))
            .with_hint("messages of branches that were left cannot be rewound to"));
    }
    Ok(entries.find_map(|node| match &node.entry {
        entry @ (Entry::User(_) | Entry::Assistant(_)) => entry.envelope()?.uuid.text().map(str::to_owned),
        _ => None,
    }))
}

//! `/api/chats/{id}/events`: what happens in a chat, as lines of JSON.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::app::App;
use crate::chat::{ActiveChat, EventCursor, ViewerGuard, ping_line};
use crate::error::ApiError;

/// A line is sent at least this often, so that both ends notice a lost connection.
const PING_INTERVAL: Duration = Duration::from_secs(15);
/// Changes within this time are sent together.
const MIN_INTERVAL: Duration = Duration::from_millis(30);

pub(crate) async fn events(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<Response, ApiError> {
    let chat = app.chats.find(&id)?;
    let client = EventClient {
        changes: chat.changes(),
        stopping: app.stop_signal(),
        cursor: EventCursor::default(),
        next_at: Instant::now(),
        _viewer: chat.add_viewer(),
        chat,
    };
    let lines = stream::unfold(client, async |mut client| {
        let lines = client.next_lines().await?;
        Some((Ok::<_, Infallible>(lines), client))
    });
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response())
}

/// A client that follows a chat.
struct EventClient {
    chat: Arc<ActiveChat>,
    changes: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    cursor: EventCursor,
    /// Earliest time for the next lines.
    next_at: Instant,
    _viewer: ViewerGuard,
}

impl EventClient {
    /// The next lines; `None` at the end. Called when the client has taken the lines before, so that
    /// a slow client gets fewer and longer ones.
    async fn next_lines(&mut self) -> Option<Vec<u8>> {
        let ping_at = Instant::now() + PING_INTERVAL;
        loop {
            tokio::time::sleep_until(self.next_at).await;
            self.changes.mark_unchanged();
            let lines = self.cursor.next_lines(&self.chat.state());
            if !lines.is_empty() {
                self.next_at = Instant::now() + MIN_INTERVAL;
                return Some(lines);
            }
            tokio::select! {
                changed = self.changes.changed() => changed.ok()?,
                () = tokio::time::sleep_until(ping_at) => return Some(ping_line()),
                _ = self.stopping.wait_for(|is_stopping| *is_stopping) => return None,
            }
        }
    }
}

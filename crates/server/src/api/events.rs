//! `/api/events`: what changes, as lines of JSON while it happens.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::broadcast::error::RecvError;

use crate::app::App;
use crate::event::Event;

/// A line is sent at least this often, so that both ends notice a lost connection.
const PING_INTERVAL: Duration = Duration::from_secs(15);

pub(crate) async fn events(State(app): State<Arc<App>>) -> Response {
    let receiver = app.events.subscribe();
    let stopping = app.stop_signal();
    let page = app.pages.add();
    let state = (receiver, stopping, page, true);
    let lines = stream::unfold(state, |(mut receiver, mut stopping, page, is_first)| async move {
        // The first line is sent at once: a client then knows that it misses nothing.
        let event = if is_first {
            Event::Ping
        } else {
            tokio::select! {
                event = receiver.recv() => match event {
                    Ok(event) => event,
                    // The client is too slow: it has to look at everything again.
                    Err(RecvError::Lagged(_)) => Event::Sessions,
                    Err(RecvError::Closed) => return None,
                },
                () = tokio::time::sleep(PING_INTERVAL) => Event::Ping,
                _ = stopping.wait_for(|is_stopping| *is_stopping) => return None,
            }
        };
        let mut line = serde_json::to_vec(&event).unwrap_or_default();
        line.push(b'\n');
        Some((Ok::<_, Infallible>(line), (receiver, stopping, page, false)))
    });
    ([(CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response()
}

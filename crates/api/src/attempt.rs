//! One HTTP attempt: sends a request and reads the response.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quipu_message::api::{self, StreamError, StreamEvent, TokenCount};
use quipu_message::{Content, Message, RequestId, line, sse};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout};

use crate::endpoint::{Credential, Endpoint};
use crate::error::ApiError;
use crate::event::{ApiEvent, ApiResponse, EventSender, ReceiverDropped};
use crate::request::Request;
use crate::retry::{RetryClock, retry_after};
use crate::secret::Secret;

/// Longest response that is read if it is not streamed.
const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// Most content blocks of a response.
const MAX_RESPONSE_BLOCKS: usize = 20_000;

/// How much of an error response is kept.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// Makes single attempts at an endpoint. Retries are decided in `client`.
pub(crate) struct Connection {
    pub(crate) http: reqwest::Client,
    pub(crate) endpoint: Endpoint,
    pub(crate) clock: Arc<dyn RetryClock>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The HTTP client would show the proxy's password.
        f.debug_struct("Connection").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// Result of an attempt, unless the caller dropped the call.
type AttemptResult = Result<Result<(), ApiError>, ReceiverDropped>;

/// Unwraps a result, or returns its error from an attempt.
macro_rules! try_attempt {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(error) => return Ok(Err(error)),
        }
    };
}

impl Connection {
    /// Sends a request and forwards its response, up to `Completed`, to the caller.
    pub(crate) async fn request_message(
        &self,
        request: &Request,
        wire: &api::Request,
        sender: &mut EventSender,
    ) -> AttemptResult {
        let response = try_attempt!(self.post("/v1/messages", request, wire).await);
        let request_id = request_id(&response);
        let is_stream = content_type(&response).contains("text/event-stream");
        if is_stream {
            self.read_stream(response, request_id, sender).await
        } else {
            self.read_whole(response, request_id, sender).await
        }
    }

    /// Returns the number of tokens in the prompt of a request.
    pub(crate) async fn count_tokens(&self, request: &Request) -> Result<u64, ApiError> {
        let response = self.post("/v1/messages/count_tokens", request, &request.to_count_request()).await?;
        let request_id = request_id(&response);
        let count: TokenCount = self.read_json(response, &request_id).await?;
        Ok(count.input_tokens)
    }

    /// Reads a response that is not streamed, because we asked for that or the server chose it.
    async fn read_whole(
        &self,
        response: Response,
        request_id: Option<RequestId>,
        sender: &mut EventSender,
    ) -> AttemptResult {
        let mut message: Message = try_attempt!(self.read_json(response, &request_id).await);
        let content = std::mem::take(&mut message.content);
        let head = Message { content: Content::Blocks(Vec::new()), ..message.clone() };
        sender.send(ApiEvent::Started { message: head, request_id: request_id.clone() }).await?;
        for (index, block) in content.clone().into_blocks().into_iter().enumerate() {
            sender.send(ApiEvent::Block { index, block }).await?;
        }
        message.content = content;
        sender.send(ApiEvent::Completed(ApiResponse { message, request_id })).await?;
        Ok(Ok(()))
    }

    /// Reads a streamed response and forwards its events as they arrive.
    ///
    /// The events are not put together here: that, and complaints about their order, is up
    /// to [`ApiCall`](crate::ApiCall). This function answers for what can be tried again:
    /// connections, timeouts, limits and errors that the server sends.
    async fn read_stream(
        &self,
        mut response: Response,
        request_id: Option<RequestId>,
        sender: &mut EventSender,
    ) -> AttemptResult {
        let limits = &self.endpoint.limits;
        let mut parser = sse::Parser::new();
        let bad = |reason: String| self.bad_response(reason, &request_id);
        let (mut received, mut blocks, mut last_event_at) = (0_usize, 0_usize, Instant::now());
        let mut has_started = false;
        sender.open_stream(request_id.clone()).await?;
        while let Some(bytes) = try_attempt!(self.next_chunk(&mut response).await) {
            received += bytes.len();
            if received > limits.max_response_bytes {
                return Ok(Err(bad(format!("it is longer than {} bytes", limits.max_response_bytes))));
            }
            // Pings keep the connection open and do not count as progress.
            if last_event_at.elapsed() > limits.response_timeout {
                return Ok(Err(ApiError::IdleTimeout { after: limits.response_timeout }));
            }
            for event in parser.push(&bytes) {
                let event = try_attempt!(event.map_err(|oversize| bad(oversize.to_string())));
                let event = try_attempt!(parse_event(&event.data).map_err(|e| bad(format!("bad event: {e}"))));
                if !matches!(event, StreamEvent::Ping(_)) {
                    last_event_at = Instant::now();
                }
                match &event {
                    StreamEvent::MessageStart(_) => has_started = true,
                    StreamEvent::BlockStart(_) => blocks += 1,
                    StreamEvent::Error(error) => return Ok(Err(self.stream_error(error, request_id))),
                    _ => {}
                }
                if blocks > MAX_RESPONSE_BLOCKS {
                    return Ok(Err(bad(format!("it has more than {MAX_RESPONSE_BLOCKS} blocks"))));
                }
                let is_last = matches!(event, StreamEvent::MessageStop(_));
                sender.send_stream_event(event).await?;
                if is_last {
                    return Ok(Ok(()));
                }
            }
        }
        let reason = match parser.finish() {
            Err(cut) => cut.to_string(),
            Ok(()) if has_started => "the message has no end".to_owned(),
            Ok(()) => "it was empty".to_owned(),
        };
        Ok(Err(ApiError::Truncated { host: self.endpoint.host(), reason }))
    }

    /// The error that a server sends in the middle of a stream.
    fn stream_error(&self, error: &StreamError, request_id: Option<RequestId>) -> ApiError {
        let kind = error.error.kind.get().cloned().unwrap_or_else(|| "error".into());
        let message = self.endpoint.mask_secrets(error.error.message.text().unwrap_or_default().to_owned());
        ApiError::StreamFailed { kind, message, request_id }
    }

    /// Sends a request; returns the response if its status is a success, else an error.
    async fn post(&self, path: &str, request: &Request, wire: &api::Request) -> Result<Response, ApiError> {
        let Endpoint { limits, .. } = &self.endpoint;
        let body = request.to_body(wire).map_err(|e| ApiError::BadRequest { reason: e.to_string() })?;
        let helper = match &self.endpoint.credential {
            Some(Credential::Helper(helper)) => Some((helper, helper.key().await?)),
            _ => None,
        };
        let (url, headers) = self.url_and_headers(path, request, helper.as_ref().map(|(_, key)| key))?;
        let has_credential = headers.contains_key("x-api-key") || headers.contains_key("authorization");
        if !has_credential && self.endpoint.needs_credential() {
            let reason = "set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, or apiKeyHelper in the settings";
            return Err(ApiError::NoKey { reason: reason.to_owned() });
        }
        let response = self.http.post(url).headers(headers).body(reqwest::Body::wrap(body)).send();
        let sent = timeout(limits.response_timeout, response)
            .await
            .map_err(|_| ApiError::ResponseTimeout { after: limits.response_timeout })?;
        let response = sent.map_err(|e| self.connection_error(e))?;
        if let Some((helper, _)) = helper.filter(|_| response.status() == StatusCode::UNAUTHORIZED) {
            helper.refuse();
        }
        if response.status().is_success() { Ok(response) } else { Err(self.status_error(response).await) }
    }

    /// URL and headers of a request. `helper_key` is the key that a [`Credential::Helper`] gave.
    fn url_and_headers(
        &self,
        path: &str,
        request: &Request,
        helper_key: Option<&Secret>,
    ) -> Result<(Url, HeaderMap), ApiError> {
        let mut headers = HeaderMap::new();
        let mut set = |name: &str, value: &str| {
            let bad = || ApiError::BadRequest { reason: format!("invalid value for the header {name}") };
            let mut text = HeaderValue::from_str(value).map_err(|_| bad())?;
            text.set_sensitive(true);
            headers.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?, text);
            Ok::<(), ApiError>(())
        };
        set("accept", "application/json")?;
        set("content-type", "application/json")?;
        set("anthropic-version", "2023-06-01")?;
        set("user-agent", &self.endpoint.user_agent)?;
        set("x-app", "cli")?;
        match &self.endpoint.credential {
            Some(Credential::ApiKey(key)) => set("x-api-key", key.reveal())?,
            Some(Credential::Bearer(token)) => set("authorization", &format!("Bearer {}", token.reveal()))?,
            Some(Credential::Helper(_)) | None => {}
        }
        if let Some(key) = helper_key {
            set("x-api-key", key.reveal())?;
            set("authorization", &format!("Bearer {}", key.reveal()))?;
        }
        let mut betas: Vec<&str> = Vec::new();
        let named = self.endpoint.betas.iter().chain(&request.betas).map(String::as_str);
        for beta in named.chain(request.required_betas()) {
            if !betas.contains(&beta) {
                betas.push(beta);
            }
        }
        if !betas.is_empty() {
            set("anthropic-beta", &betas.join(","))?;
        }
        if let Some(session) = &request.session_id {
            set("x-claude-code-session-id", session.as_str())?;
        }
        if let Some(agent) = &request.agent_id {
            set("x-claude-code-agent-id", agent.as_str())?;
        }
        for (name, value) in &self.endpoint.headers {
            set(name, value.reveal())?;
        }
        Ok((self.endpoint.method_url(path, !betas.is_empty()), headers))
    }

    /// The next bytes of a response; `None` at its end.
    async fn next_chunk(&self, response: &mut Response) -> Result<Option<bytes::Bytes>, ApiError> {
        let idle: Duration = self.endpoint.limits.idle_timeout;
        let chunk = timeout(idle, response.chunk()).await.map_err(|_| ApiError::IdleTimeout { after: idle })?;
        chunk.map_err(|e| ApiError::Truncated { host: self.endpoint.host(), reason: error_chain(&e.without_url()) })
    }

    /// Reads a response to its end, or up to `max_bytes`.
    async fn read_bytes(&self, response: &mut Response, max_bytes: usize) -> Result<Vec<u8>, ApiError> {
        let mut all = Vec::new();
        while let Some(bytes) = self.next_chunk(response).await? {
            let room = max_bytes - all.len();
            all.extend_from_slice(&bytes[..bytes.len().min(room)]);
            if all.len() == max_bytes {
                break;
            }
        }
        Ok(all)
    }

    async fn read_json<T: DeserializeOwned>(
        &self,
        mut response: Response,
        id: &Option<RequestId>,
    ) -> Result<T, ApiError> {
        let kind = content_type(&response);
        if !kind.contains("json") {
            let kind = if kind.is_empty() { "no content type".to_owned() } else { kind };
            return Err(self.bad_response(format!("expected JSON, got {kind}"), id));
        }
        let bytes = self.read_bytes(&mut response, MAX_RESPONSE_BYTES).await?;
        let text = String::from_utf8_lossy(&bytes);
        serde_json::from_str(&line::replace_lone_surrogates(&text)).map_err(|e| self.bad_response(e.to_string(), id))
    }

    /// Makes an error of a response whose status is not a success.
    async fn status_error(&self, mut response: Response) -> ApiError {
        let status = response.status();
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let retry_after = retry_after(header, self.clock.now());
        let should_retry = match header("x-should-retry") {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        };
        let in_header = request_id(&response);
        // The status is worth reporting even if the body cannot be read.
        let bytes = self.read_bytes(&mut response, MAX_ERROR_BYTES).await.unwrap_or_default();
        let body = self.endpoint.mask_secrets(String::from_utf8_lossy(&bytes).into_owned());
        let error: Option<StreamError> = serde_json::from_str(&body).ok();
        let (kind, message, in_body) = error.map_or((None, None, None), |error| {
            (error.error.kind.into_option(), error.error.message.into_option(), error.request_id.into_option())
        });
        ApiError::Status {
            status: status.as_u16(),
            kind,
            message: message.unwrap_or_else(|| status.canonical_reason().unwrap_or("error").to_owned()),
            body,
            request_id: in_header.or(in_body),
            retry_after,
            should_retry,
        }
    }

    fn connection_error(&self, error: reqwest::Error) -> ApiError {
        let (host, source) = (self.endpoint.host(), error.without_url());
        if source.is_builder() || source.is_request() && source.is_body() {
            return ApiError::BadRequest { reason: error_chain(&source) };
        }
        if source.is_connect() {
            ApiError::Connect { host, source }
        } else {
            ApiError::ConnectionClosed { host, source }
        }
    }

    /// An error for a response that breaks the protocol.
    pub(crate) fn bad_response(&self, reason: String, request_id: &Option<RequestId>) -> ApiError {
        ApiError::BadResponse {
            host: self.endpoint.host(),
            reason: self.endpoint.mask_secrets(reason),
            request_id: request_id.clone(),
        }
    }
}

fn parse_event(data: &str) -> serde_json::Result<StreamEvent> {
    serde_json::from_str(data)
        .or_else(|error| serde_json::from_str(&line::replace_lone_surrogates(data)).map_err(|_| error))
}

fn request_id(response: &Response) -> Option<RequestId> {
    response.headers().get("request-id").and_then(|id| id.to_str().ok()).map(RequestId::from)
}

fn content_type(response: &Response) -> String {
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
    kind.unwrap_or_default().to_lowercase()
}

/// An error with its causes, outermost first.
fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

//! One attempt: a request goes out, its answer is heard as it comes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quipu_conversation::{AccumulateError, Accumulator};
use quipu_message::api::{self, StreamError, StreamEvent, TokenCount};
use quipu_message::{Content, Message, RequestId, line, sse};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use crate::client::{ApiEvent, ApiResponse};
use crate::endpoint::{Credential, Endpoint};
use crate::error::ApiError;
use crate::request::Request;
use crate::retry::{RetryClock, retry_after};
use crate::secret::Secret;

/// The most bytes of an answer in one piece.
const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// The most blocks of an answer.
const MAX_RESPONSE_BLOCKS: usize = 20_000;

/// The most bytes of an error that are kept.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// The line to the endpoint.
pub(crate) struct Connection {
    pub(crate) http: reqwest::Client,
    pub(crate) endpoint: Endpoint,
    pub(crate) clock: Arc<dyn RetryClock>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The HTTP client would show the proxy's password.
        f.debug_struct("Line").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// Nobody listens any more.
#[derive(Debug)]
pub(crate) struct ReceiverDropped;

/// The one who asked, at the other end of a channel.
#[derive(Debug)]
pub(crate) struct EventSender {
    events: mpsc::Sender<Result<ApiEvent, ApiError>>,
    /// Whether an answer has begun that was neither finished nor withdrawn.
    response_started: bool,
}

impl EventSender {
    pub(crate) fn new(out: mpsc::Sender<Result<ApiEvent, ApiError>>) -> Self {
        Self { events: out, response_started: false }
    }

    pub(crate) async fn send(&mut self, heard: ApiEvent) -> Result<(), ReceiverDropped> {
        self.response_started |= matches!(heard, ApiEvent::Started { .. });
        self.events.send(Ok(heard)).await.map_err(|_| ReceiverDropped)
    }

    pub(crate) async fn send_error(&mut self, error: ApiError) -> Result<(), ReceiverDropped> {
        self.events.send(Err(error)).await.map_err(|_| ReceiverDropped)
    }

    /// Takes back what was heard of an answer that broke.
    pub(crate) async fn withdraw(&mut self) -> Result<(), ReceiverDropped> {
        if std::mem::take(&mut self.response_started) { self.send(ApiEvent::Withdrawn).await } else { Ok(()) }
    }
}

/// What an attempt gives, unless nobody listens any more.
type AttemptResult = Result<Result<ApiResponse, ApiError>, ReceiverDropped>;

/// Goes on with a value, or ends the attempt with its error.
macro_rules! attempt {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(error) => return Ok(Err(error)),
        }
    };
}

impl Connection {
    /// Sends a request and tells the listener what comes.
    pub(crate) async fn request_message(
        &self,
        request: &Request,
        wire: &api::Request,
        hearing: &mut EventSender,
    ) -> AttemptResult {
        let response = attempt!(self.post("/v1/messages", request, wire).await);
        let request_id = request_id(&response);
        let is_stream = content_type(&response).contains("text/event-stream");
        if is_stream {
            self.read_stream(response, request_id, hearing).await
        } else {
            self.read_whole(response, request_id, hearing).await
        }
    }

    /// Asks for the size of a prompt.
    pub(crate) async fn count_tokens(&self, request: &Request) -> Result<u64, ApiError> {
        let response = self.post("/v1/messages/count_tokens", request, &request.to_count_request()).await?;
        let request_id = request_id(&response);
        let count: TokenCount = self.read_json(response, &request_id).await?;
        Ok(count.input_tokens)
    }

    /// Hears an answer that comes in one piece, because we or the server chose so.
    async fn read_whole(
        &self,
        response: Response,
        request_id: Option<RequestId>,
        hearing: &mut EventSender,
    ) -> AttemptResult {
        let message: Message = attempt!(self.read_json(response, &request_id).await);
        let begun = Message { content: Content::Blocks(Vec::new()), ..message.clone() };
        hearing.send(ApiEvent::Started { message: begun, request_id: request_id.clone() }).await?;
        for (index, block) in message.content.clone().into_blocks().into_iter().enumerate() {
            hearing.send(ApiEvent::Block { index, block }).await?;
        }
        Ok(Ok(ApiResponse { message, request_id }))
    }

    /// Hears an answer as it is written.
    async fn read_stream(
        &self,
        mut response: Response,
        request_id: Option<RequestId>,
        hearing: &mut EventSender,
    ) -> AttemptResult {
        let mut parser = sse::Parser::new();
        let mut growing = Accumulator::default();
        let bad = |reason: String| self.bad_response(reason, &request_id);
        let (mut received, mut blocks, mut last_news) = (0_usize, 0_usize, Instant::now());
        while let Some(bytes) = attempt!(self.next_chunk(&mut response).await) {
            received += bytes.len();
            if received > self.endpoint.limits.max_response_bytes {
                return Ok(Err(bad(format!("it is longer than {} bytes", self.endpoint.limits.max_response_bytes))));
            }
            // Pings keep the connection, and say nothing of whether an answer will come.
            if last_news.elapsed() > self.endpoint.limits.response_timeout {
                return Ok(Err(ApiError::IdleTimeout { after: self.endpoint.limits.response_timeout }));
            }
            for event in parser.push(&bytes) {
                let event = attempt!(event.map_err(|oversize| bad(oversize.to_string())));
                let event: StreamEvent = attempt!(parse_event(&event.data).map_err(|e| bad(format!("bad event: {e}"))));
                if !matches!(event, StreamEvent::Ping(_)) {
                    last_news = Instant::now();
                }
                blocks += usize::from(matches!(event, StreamEvent::BlockStart(_)));
                if blocks > MAX_RESPONSE_BLOCKS {
                    return Ok(Err(bad(format!("it has more than {MAX_RESPONSE_BLOCKS} blocks"))));
                }
                match growing.push(&event) {
                    // What the model wrote is no JSON, most often because it ran out of room
                    // in the middle: the tool refuses the empty input and the model hears of it.
                    Ok(()) | Err(AccumulateError::BadInput { .. }) => {}
                    Err(AccumulateError::Server { kind, message }) => {
                        let message = self.endpoint.mask_secrets(message);
                        return Ok(Err(ApiError::StreamFailed { kind, message, request_id }));
                    }
                    Err(error) => return Ok(Err(bad(error.to_string()))),
                }
                if let StreamEvent::MessageStart(start) = &event {
                    let (message, request_id) = (start.message.clone(), request_id.clone());
                    hearing.send(ApiEvent::Started { message, request_id }).await?;
                }
                let stopped = match &event {
                    StreamEvent::BlockStop(stop) => {
                        growing.partial_block(stop.index).cloned().map(|block| (stop.index, block))
                    }
                    _ => None,
                };
                hearing.send(ApiEvent::Event(event)).await?;
                if let Some((index, block)) = stopped {
                    hearing.send(ApiEvent::Block { index, block }).await?;
                }
                if growing.is_complete() {
                    let finished = growing.finish().map_err(|e| bad(e.to_string()));
                    return Ok(finished.map(|message| ApiResponse { message, request_id }));
                }
            }
        }
        let reason = match parser.finish() {
            Err(cut) => cut.to_string(),
            Ok(()) if growing.has_started() => "the message has no end".to_owned(),
            Ok(()) => "it was empty".to_owned(),
        };
        Ok(Err(ApiError::Truncated { host: self.endpoint.host(), reason }))
    }

    /// Sends a request and gives the response when its status is a success.
    async fn post(&self, path: &str, request: &Request, wire: &impl Serialize) -> Result<Response, ApiError> {
        let Endpoint { limits, .. } = &self.endpoint;
        let body = request.to_body(wire).map_err(|e| ApiError::BadRequest { reason: e.to_string() })?;
        let helper = match &self.endpoint.credential {
            Some(Credential::Helper(helper)) => Some((helper, helper.key().await?)),
            _ => None,
        };
        let (url, headers) = self.url_and_headers(path, request, helper.as_ref().map(|(_, key)| key))?;
        let sending = self.http.post(url).headers(headers).body(reqwest::Body::wrap(body)).send();
        let sent = timeout(limits.response_timeout, sending)
            .await
            .map_err(|_| ApiError::ResponseTimeout { after: limits.response_timeout })?;
        let response = sent.map_err(|e| self.connection_error(e))?;
        if let Some((helper, _)) = helper.filter(|_| response.status() == StatusCode::UNAUTHORIZED) {
            helper.refuse();
        }
        if response.status().is_success() { Ok(response) } else { Err(self.status_error(response).await) }
    }

    /// Where a request goes, and its headers. `helped` is the key of a helper.
    fn url_and_headers(
        &self,
        path: &str,
        request: &Request,
        helped: Option<&Secret>,
    ) -> Result<(Url, HeaderMap), ApiError> {
        let mut headers = HeaderMap::new();
        let mut set = |name: &str, value: &str| {
            let bad = || ApiError::BadRequest { reason: format!("the header {name} cannot hold its value") };
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
        if let Some(key) = helped {
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

    /// The next bytes of an answer; `None` at its end.
    async fn next_chunk(&self, response: &mut Response) -> Result<Option<bytes::Bytes>, ApiError> {
        let idle: Duration = self.endpoint.limits.idle_timeout;
        let piece = timeout(idle, response.chunk()).await.map_err(|_| ApiError::IdleTimeout { after: idle })?;
        piece.map_err(|e| ApiError::Truncated { host: self.endpoint.host(), reason: error_chain(&e.without_url()) })
    }

    /// All bytes of an answer, up to a limit.
    async fn read_bytes(&self, response: &mut Response, most: usize) -> Result<Vec<u8>, ApiError> {
        let mut all = Vec::new();
        while let Some(bytes) = self.next_chunk(response).await? {
            let room = most - all.len();
            all.extend_from_slice(&bytes[..bytes.len().min(room)]);
            if all.len() == most {
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
            return Err(self.bad_response(format!("it sent {kind} where JSON belongs"), id));
        }
        let bytes = self.read_bytes(&mut response, MAX_RESPONSE_BYTES).await?;
        let text = String::from_utf8_lossy(&bytes);
        serde_json::from_str(&line::replace_lone_surrogates(&text)).map_err(|e| self.bad_response(e.to_string(), id))
    }

    /// What an error status says.
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
        // A body that breaks off still leaves us the status.
        let bytes = self.read_bytes(&mut response, MAX_ERROR_BYTES).await.unwrap_or_default();
        let body = self.endpoint.mask_secrets(String::from_utf8_lossy(&bytes).into_owned());
        let said: Option<StreamError> = serde_json::from_str(&body).ok();
        let (kind, message, in_body) = said.map_or((None, None, None), |said| {
            (said.error.kind.into_option(), said.error.message.into_option(), said.request_id.into_option())
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

    fn bad_response(&self, reason: String, request_id: &Option<RequestId>) -> ApiError {
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

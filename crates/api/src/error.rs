//! Errors of API calls.

use std::time::Duration;

use quipu_message::RequestId;
use quipu_message::user_assistant::AssistantErrorKind;

/// Why an API call failed. Never contains our credentials, even if the server repeats them.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// No connection: unknown host, refused, or no trusted certificate.
    #[error("cannot connect to {host}")]
    Connect {
        /// Host and port of the endpoint.
        host: String,
        /// Error of the HTTP client.
        #[source]
        source: reqwest::Error,
    },
    /// The connection broke before a response.
    #[error("{host} closed the connection without a response")]
    ConnectionClosed {
        /// Host and port of the endpoint.
        host: String,
        /// Error of the HTTP client.
        #[source]
        source: reqwest::Error,
    },
    /// The response broke off.
    #[error("the response of {host} broke off: {reason}")]
    Truncated {
        /// Host and port of the endpoint.
        host: String,
        /// How it ended.
        reason: String,
    },
    /// The response did not start in time.
    #[error("no response within {} s", after.as_secs_f64())]
    ResponseTimeout {
        /// Time waited.
        after: Duration,
    },
    /// The response stopped for too long.
    #[error("the response stopped for {} s", after.as_secs_f64())]
    IdleTimeout {
        /// Time waited.
        after: Duration,
    },
    /// The response has an error status.
    #[error("{status} {message}")]
    Status {
        /// The HTTP status.
        status: u16,
        /// Error type of the API, such as `overloaded_error`.
        kind: Option<String>,
        /// Error message for the user.
        message: String,
        /// Body of the response.
        body: String,
        /// ID of the HTTP request, if the server sent one.
        request_id: Option<RequestId>,
        /// Delay that the server requests.
        retry_after: Option<Duration>,
        /// Whether a retry can help, if the server says so.
        should_retry: Option<bool>,
    },
    /// The server sent an error in the middle of a stream.
    #[error("{kind}: {message}")]
    StreamFailed {
        /// Error type of the API.
        kind: String,
        /// Error message for the user.
        message: String,
        /// ID of the HTTP request, if the server sent one.
        request_id: Option<RequestId>,
    },
    /// The response breaks the protocol.
    #[error("invalid response from {host}: {reason}")]
    BadResponse {
        /// Host and port of the endpoint.
        host: String,
        /// What is invalid.
        reason: String,
        /// ID of the HTTP request, if the server sent one.
        request_id: Option<RequestId>,
    },
    /// The key helper has no key.
    #[error("no API key: {reason}")]
    NoKey {
        /// Reason, for the user.
        reason: String,
    },
    /// The request cannot be encoded or sent.
    #[error("cannot send the request: {reason}")]
    BadRequest {
        /// Reason, for the user.
        reason: String,
    },
}

impl ApiError {
    /// Stable error code, for `--json` output.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Connect { .. } => "api.cannot_connect",
            Self::ConnectionClosed { .. } => "api.dropped",
            Self::Truncated { .. } => "api.cut",
            Self::ResponseTimeout { .. } => "api.late",
            Self::IdleTimeout { .. } => "api.silent",
            Self::Status { .. } => "api.status",
            Self::StreamFailed { .. } => "api.failed",
            Self::BadResponse { .. } => "api.bad_answer",
            Self::NoKey { .. } => "api.no_key",
            Self::BadRequest { .. } => "api.bad_request",
        }
    }

    /// The HTTP status of [`ApiError::Status`].
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Error type of the API, such as `rate_limit_error`.
    pub fn api_type(&self) -> Option<&str> {
        match self {
            Self::Status { kind, .. } => kind.as_deref(),
            Self::StreamFailed { kind, .. } => Some(kind),
            _ => None,
        }
    }

    /// ID of the HTTP request, if the server sent one.
    pub fn request_id(&self) -> Option<&RequestId> {
        match self {
            Self::Status { request_id, .. }
            | Self::StreamFailed { request_id, .. }
            | Self::BadResponse { request_id, .. } => request_id.as_ref(),
            _ => None,
        }
    }

    /// Delay that the server requests.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether the model or the server is overloaded.
    pub fn is_overloaded(&self) -> bool {
        self.status() == Some(529) || self.api_type() == Some("overloaded_error")
    }

    /// Whether the prompt does not fit the context window.
    pub fn is_prompt_too_long(&self) -> bool {
        match self {
            Self::Status { status: 400 | 413, message, .. } => {
                let message = message.to_lowercase();
                // The second message means: it would fit only without a response.
                message.contains("prompt is too long") || message.contains("exceed context limit")
            }
            _ => false,
        }
    }

    /// Whether the account has no credit left, which the API reports as a plain 400.
    pub fn is_out_of_credit(&self) -> bool {
        match self {
            Self::Status { status: 400, message, .. } => message.to_lowercase().contains("credit balance is too low"),
            _ => false,
        }
    }

    /// Whether the network failed, so that there was no complete response.
    pub fn is_connection_error(&self) -> bool {
        matches!(
            self,
            Self::Connect { .. }
                | Self::ConnectionClosed { .. }
                | Self::Truncated { .. }
                | Self::ResponseTimeout { .. }
                | Self::IdleTimeout { .. }
        )
    }

    /// Value of the field `error` in an `api_retry` entry.
    pub fn retry_reason(&self) -> &str {
        if self.is_overloaded() { "overloaded" } else { self.kind_name() }
    }

    /// Value of the field `error` in the assistant entry that shows this error.
    pub fn error_kind(&self) -> AssistantErrorKind {
        AssistantErrorKind::from(self.kind_name())
    }

    fn kind_name(&self) -> &'static str {
        match (self.status(), self.api_type()) {
            _ if matches!(self, Self::NoKey { .. }) => "authentication_failed",
            (Some(400), _) if self.is_out_of_credit() => "billing_error",
            (Some(400 | 413), _) if self.is_prompt_too_long() => "invalid_request",
            (Some(404), Some("not_found_error")) => "model_not_found",
            (_, Some("billing_error")) | (Some(402), _) => "billing_error",
            (_, Some("authentication_error" | "permission_error")) | (Some(401 | 403), _) => "authentication_failed",
            (_, Some("rate_limit_error")) | (Some(429), _) => "rate_limit",
            (_, Some("overloaded_error" | "api_error" | "timeout_error")) | (Some(500..), _) => "server_error",
            // Claude Code uses this word for invalid requests, too.
            _ => "unknown",
        }
    }
}

//! Errors of API calls.

use std::time::Duration;

use quipu_message::RequestId;
use quipu_message::user_assistant::AssistantErrorKind;
use quipu_message::values::ApiErrorType;

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
        /// Error type of the API, if the response has one.
        kind: Option<ApiErrorType>,
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
        kind: ApiErrorType,
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
    /// The key helper has no key, or the API needs one and there is none.
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

    /// Error type of the API; `None` if the server did not name one.
    pub fn api_type(&self) -> Option<&ApiErrorType> {
        match self {
            Self::Status { kind, .. } => kind.as_ref(),
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
        self.status() == Some(529) || self.api_type() == Some(&ApiErrorType::Overloaded)
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
    pub fn retry_reason(&self) -> AssistantErrorKind {
        if self.is_overloaded() { AssistantErrorKind::Overloaded } else { self.error_kind() }
    }

    /// Value of the field `error` in the assistant entry that shows this error.
    pub fn error_kind(&self) -> AssistantErrorKind {
        use ApiErrorType::{Api, Authentication, Billing, NotFound, Overloaded, Permission, RateLimit, Timeout};
        match (self.status(), self.api_type()) {
            _ if matches!(self, Self::NoKey { .. }) => AssistantErrorKind::AuthenticationFailed,
            (Some(400), _) if self.is_out_of_credit() => AssistantErrorKind::Billing,
            (Some(400 | 413), _) if self.is_prompt_too_long() => AssistantErrorKind::InvalidRequest,
            (Some(404), Some(NotFound)) => AssistantErrorKind::ModelNotFound,
            (_, Some(Billing)) | (Some(402), _) => AssistantErrorKind::Billing,
            (_, Some(Authentication | Permission)) | (Some(401 | 403), _) => AssistantErrorKind::AuthenticationFailed,
            (_, Some(RateLimit)) | (Some(429), _) => AssistantErrorKind::RateLimit,
            (_, Some(Overloaded | Api | Timeout)) | (Some(500..), _) => AssistantErrorKind::Server,
            // Claude Code uses this word for invalid requests, too.
            _ => AssistantErrorKind::Unknown,
        }
    }
}

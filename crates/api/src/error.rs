//! Why a call failed.

use std::time::Duration;

use quipu_message::RequestId;
use quipu_message::user_assistant::AssistantErrorKind;

/// Why a call failed. No secret of ours is in it, whatever the server said.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// There is no connection: no such host, refused, no trust.
    #[error("cannot connect to {host}")]
    Connect {
        /// The host.
        host: String,
        /// What the network said.
        #[source]
        source: reqwest::Error,
    },
    /// The connection broke before the answer began.
    #[error("{host} closed the connection before it answered")]
    ConnectionClosed {
        /// The host.
        host: String,
        /// What the network said.
        #[source]
        source: reqwest::Error,
    },
    /// The answer broke off.
    #[error("the answer of {host} broke off: {reason}")]
    Truncated {
        /// The host.
        host: String,
        /// Where.
        reason: String,
    },
    /// The answer did not begin in time.
    #[error("no answer within {} s", after.as_secs_f64())]
    ResponseTimeout {
        /// How long we waited.
        after: Duration,
    },
    /// The answer began and then nothing came for too long.
    #[error("nothing heard for {} s in the middle of an answer", after.as_secs_f64())]
    IdleTimeout {
        /// How long we waited.
        after: Duration,
    },
    /// The server answered with an error status.
    #[error("{status} {message}")]
    Status {
        /// The HTTP status.
        status: u16,
        /// The API's word for it, such as `overloaded_error`.
        kind: Option<String>,
        /// In words.
        message: String,
        /// The body as it came.
        body: String,
        /// The call.
        request_id: Option<RequestId>,
        /// How long the server asks us to wait.
        retry_after: Option<Duration>,
        /// Whether the server says that trying again can help.
        should_retry: Option<bool>,
    },
    /// The server said in the middle of its answer that it cannot go on.
    #[error("{kind}: {message}")]
    StreamFailed {
        /// The API's word for it.
        kind: String,
        /// In words.
        message: String,
        /// The call.
        request_id: Option<RequestId>,
    },
    /// The answer is not one.
    #[error("{host} did not answer as the API does: {reason}")]
    BadResponse {
        /// The host.
        host: String,
        /// What is wrong with it.
        reason: String,
        /// The call.
        request_id: Option<RequestId>,
    },
    /// There is no key to send.
    #[error("there is no key for the API: {reason}")]
    NoKey {
        /// Why.
        reason: String,
    },
    /// The request cannot be sent.
    #[error("the request cannot be sent: {reason}")]
    BadRequest {
        /// Why.
        reason: String,
    },
}

impl ApiError {
    /// A stable name for scripts.
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

    /// The HTTP status, when the server gave an error status.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// The API's word for the failure, such as `rate_limit_error`.
    pub fn api_type(&self) -> Option<&str> {
        match self {
            Self::Status { kind, .. } => kind.as_deref(),
            Self::StreamFailed { kind, .. } => Some(kind),
            _ => None,
        }
    }

    /// The call that failed, when the server named it.
    pub fn request_id(&self) -> Option<&RequestId> {
        match self {
            Self::Status { request_id, .. }
            | Self::StreamFailed { request_id, .. }
            | Self::BadResponse { request_id, .. } => request_id.as_ref(),
            _ => None,
        }
    }

    /// How long the server asks us to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether the server has too much to do.
    pub fn is_overloaded(&self) -> bool {
        self.status() == Some(529) || self.api_type() == Some("overloaded_error")
    }

    /// Whether the conversation is longer than the model can read.
    pub fn is_prompt_too_long(&self) -> bool {
        match self {
            Self::Status { status: 400 | 413, message, .. } => {
                let message = message.to_lowercase();
                // The second is said when it would only fit without an answer.
                message.contains("prompt is too long") || message.contains("exceed context limit")
            }
            _ => false,
        }
    }

    /// Whether the account has no money left, which the API says with a plain 400.
    pub fn is_out_of_credit(&self) -> bool {
        match self {
            Self::Status { status: 400, message, .. } => message.to_lowercase().contains("credit balance is too low"),
            _ => false,
        }
    }

    /// Whether there was no whole answer: the network failed, not the server.
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

    /// The word for the failure on a line that tells of a retry.
    pub fn retry_reason(&self) -> &str {
        if self.is_overloaded() { "overloaded" } else { self.kind_name() }
    }

    /// The kind of failure on the message that shows it to the person.
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
            // What the real program says of a wrong request, too.
            _ => "unknown",
        }
    }
}

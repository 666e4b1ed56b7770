//! The control protocol: requests and responses between a host and an agent.
//!
//! An unknown request keeps its bytes and gets an error response. A permission decision
//! that does not clearly allow the tool call denies it.

use std::borrow::Cow;

use crate::macros::{open_enum, wire};
use crate::{Json, Maybe};

mod host_request;
pub mod permission;
pub mod request;
pub mod response;
pub mod setup;
pub use host_request::HostRequest;
pub use permission::PermissionUpdate;
pub use request::RequestBody;

wire! {
    /// A control request of either side.
    pub struct ControlRequest ["type" = "control_request"] {
        /// Id of the request; its response has the same.
        request_id: req String,
        /// The request itself.
        request: req RequestBody,
    }
}

wire! {
    /// The response to a control request.
    pub struct ControlResponse ["type" = "control_response"] {
        /// The response itself.
        response: req ResponseBody,
    }
}

wire! {
    /// Withdraws a control request that has no response yet.
    pub struct ControlCancelRequest ["type" = "control_cancel_request"] {
        /// Id of the request.
        request_id: req String,
    }
}

open_enum! {
    /// Success or error of a control request.
    pub enum ResponseBody by "subtype" {
        /// The request succeeded.
        "success" => Success(ControlSuccessResponse),
        /// The request failed.
        "error" => Error(ControlErrorResponse),
    }
}

wire! {
    /// A successful response.
    pub struct ControlSuccessResponse ["subtype" = "success"] {
        /// Id of the request.
        request_id: req String,
        /// Content of the response; its type depends on the request.
        response: opt Json,
    }
}

wire! {
    /// An error response.
    pub struct ControlErrorResponse ["subtype" = "error"] {
        /// Id of the request.
        request_id: req String,
        /// Error message.
        error: req String,
        /// Error code.
        error_code: opt String,
    }
}

impl ResponseBody {
    /// The id of the request that this is the response to; `None` if it has none.
    pub fn request_id(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Success(body) => Some(Cow::Borrowed(&body.request_id)),
            Self::Error(body) => Some(Cow::Borrowed(&body.request_id)),
            Self::Unknown(body) => {
                let id = crate::text::find_string_field(body.json().text(), "request_id").ok().flatten()?;
                Some(Cow::Owned(id.to_string()))
            }
        }
    }
}

impl ControlRequest {
    /// Makes a request with the given id.
    pub fn new(request_id: impl Into<String>, request: RequestBody) -> Self {
        Self { request_id: request_id.into(), request, ..Self::default() }
    }

    /// Makes a request from a line whose body cannot be read, so that it can get an error response; `None` if
    /// it has no id.
    pub fn from_unreadable(line: &str) -> Option<Self> {
        let request_id = crate::text::find_string_field(line, "request_id").ok().flatten()?.to_string();
        Some(Self { request_id, ..Self::default() })
    }
}

impl ControlResponse {
    /// Makes a successful response.
    pub fn success(request_id: impl Into<String>, response: Option<Json>) -> Self {
        let body = ControlSuccessResponse {
            request_id: request_id.into(),
            response: response.into(),
            ..ControlSuccessResponse::default()
        };
        Self { response: ResponseBody::Success(Box::new(body)), ..Self::default() }
    }

    /// Makes an error response.
    pub fn error(request_id: impl Into<String>, error: impl Into<String>) -> Self {
        Self::from_failure(request_id.into(), error.into(), Maybe::Absent)
    }

    /// Makes the error response to a request that this version does not know.
    pub fn unsupported(request: &ControlRequest) -> Self {
        let error = format!("unsupported control request: {}", request.request.tag());
        Self::from_failure(request.request_id.clone(), error, Maybe::Value("unsupported_request".to_owned()))
    }

    fn from_failure(request_id: String, error: String, error_code: Maybe<String>) -> Self {
        let body = ControlErrorResponse { request_id, error, error_code, ..ControlErrorResponse::default() };
        Self { response: ResponseBody::Error(Box::new(body)), ..Self::default() }
    }
}

/// The host's answer to `can_use_tool`.
///
/// ```
/// use quipu_message::{Json, control::HostDecision};
/// let decision = |text| HostDecision::from_json(&Json::parse(text).unwrap());
/// assert!(matches!(decision(r#"{"behavior":"allow"}"#), HostDecision::Allow(_)));
/// assert!(matches!(decision(r#"{"behavior":"allow_once_more"}"#), HostDecision::Invalid { .. }));
/// assert!(matches!(decision(r#"{"behavior":"deny","message":"no"}"#), HostDecision::Deny(_)));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum HostDecision {
    /// The tool call is allowed.
    Allow(Allow),
    /// The tool call is denied.
    Deny(Deny),
    /// The response is invalid, so the tool call is denied.
    Invalid {
        /// What is wrong with the response.
        reason: String,
    },
}

wire! {
    /// The tool call is allowed.
    pub struct Allow ["behavior" = "allow"] {
        /// New input for the tool call; absent means the model's own.
        updated_input: opt Json = "updatedInput",
        /// Rule changes to apply.
        updated_permissions: opt Json = "updatedPermissions",
    }
}

wire! {
    /// The tool call is denied.
    pub struct Deny ["behavior" = "deny"] {
        /// Text for the model.
        message: opt String,
        /// Whether the turn ends too.
        interrupt: opt bool,
    }
}

impl HostDecision {
    /// Reads a response. Anything that is not clearly an approval is a denial.
    pub fn from_json(answer: &Json) -> Self {
        let behavior = crate::text::find_string_field(answer.text(), "behavior").ok().flatten();
        let read = match behavior.as_deref() {
            Some("allow") => answer.read().map(Self::Allow),
            Some("deny") => answer.read().map(Self::Deny),
            other => return Self::Invalid { reason: format!("behavior is {other:?}, neither allow nor deny") },
        };
        read.unwrap_or_else(|e| Self::Invalid { reason: e.to_string() })
    }
}

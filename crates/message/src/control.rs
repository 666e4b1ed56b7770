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
    /// One side asks the other.
    pub struct ControlRequest ["type" = "control_request"] {
        /// Joins question and answer; opaque.
        request_id: req String,
        /// The question.
        request: req RequestBody,
    }
}

wire! {
    /// The answer to a control request.
    pub struct ControlResponse ["type" = "control_response"] {
        /// The answer.
        response: req ResponseBody,
    }
}

wire! {
    /// Withdraws a control request that is not answered yet.
    pub struct ControlCancelRequest ["type" = "control_cancel_request"] {
        /// The request.
        request_id: req String,
    }
}

open_enum! {
    /// How a control request was answered.
    pub enum ResponseBody by "subtype" {
        /// Done.
        "success" => Success(ControlSuccessResponse),
        /// Not done.
        "error" => Error(ControlErrorResponse),
    }
}

wire! {
    /// The request was carried out.
    pub struct ControlSuccessResponse ["subtype" = "success"] {
        /// The request.
        request_id: req String,
        /// What it gave; its form depends on the request.
        response: opt Json,
    }
}

wire! {
    /// The request was not carried out.
    pub struct ControlErrorResponse ["subtype" = "error"] {
        /// The request.
        request_id: req String,
        /// Why, in words.
        error: req String,
        /// Why, in one word.
        error_code: opt String,
    }
}

impl ResponseBody {
    /// The request this answers.
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
    /// A request with the given id.
    pub fn new(request_id: impl Into<String>, request: RequestBody) -> Self {
        Self { request_id: request_id.into(), request, ..Self::default() }
    }

    /// A request whose body cannot be read, so that it can be answered all the same;
    /// `None` if it has no id.
    pub fn from_unreadable(line: &str) -> Option<Self> {
        let request_id = crate::text::find_string_field(line, "request_id").ok().flatten()?.to_string();
        Some(Self { request_id, ..Self::default() })
    }
}

impl ControlResponse {
    /// The request was carried out and gave `response`.
    pub fn success(request_id: impl Into<String>, response: Option<Json>) -> Self {
        let body = ControlSuccessResponse {
            request_id: request_id.into(),
            response: response.into(),
            ..ControlSuccessResponse::default()
        };
        Self { response: ResponseBody::Success(Box::new(body)), ..Self::default() }
    }

    /// The request was not carried out.
    pub fn error(request_id: impl Into<String>, error: impl Into<String>) -> Self {
        Self::from_failure(request_id.into(), error.into(), Maybe::Absent)
    }

    /// The answer to a request this build does not know.
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
    /// The tool may run.
    Allow(Allow),
    /// The tool may not run.
    Deny(Deny),
    /// The answer cannot be understood, so the tool may not run.
    Invalid {
        /// What is wrong with the answer.
        reason: String,
    },
}

wire! {
    /// The tool may run.
    pub struct Allow ["behavior" = "allow"] {
        /// The input to run it with; none means the model's own.
        updated_input: opt Json = "updatedInput",
        /// Rules to keep.
        updated_permissions: opt Json = "updatedPermissions",
    }
}

wire! {
    /// The tool may not run.
    pub struct Deny ["behavior" = "deny"] {
        /// Text that the model is given.
        message: opt String,
        /// Whether the turn ends too.
        interrupt: opt bool,
    }
}

impl HostDecision {
    /// Reads an answer; whatever is not clearly an allowance is a refusal.
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

//! Errors of the API: a status, a stable code, a message and a hint.

use std::borrow::Cow;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use quipu_index::IndexError;
use quipu_transcript::{FileError, error_chain};
use serde::Serialize;

use crate::json::Json;

/// An error as the API reports it: `{"error":{"code","message","hint"}}`.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    code: &'static str,
    message: String,
    hint: Cow<'static, str>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), hint: Cow::Borrowed("") }
    }

    pub(crate) fn with_hint(self, hint: impl Into<Cow<'static, str>>) -> Self {
        Self { hint: hint.into(), ..self }
    }

    pub(crate) fn bad_request(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    pub(crate) fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, message)
    }

    pub(crate) fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }

    #[cfg(test)]
    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", message)
    }
}

#[derive(Serialize)]
struct ErrorDocument<'a> {
    error: ErrorFields<'a>,
}

#[derive(Serialize)]
struct ErrorFields<'a> {
    code: &'a str,
    message: &'a str,
    hint: &'a str,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let error = ErrorFields { code: self.code, message: &self.message, hint: &self.hint };
        (self.status, Json::new(&ErrorDocument { error })).into_response()
    }
}

impl From<FileError> for ApiError {
    fn from(error: FileError) -> Self {
        let status = match error.code() {
            "file.not_found" => StatusCode::NOT_FOUND,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.code(), error_chain(&error))
    }
}

impl From<IndexError> for ApiError {
    fn from(error: IndexError) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, error.code(), error_chain(&error))
            .with_hint("the index is built again when the server starts")
    }
}

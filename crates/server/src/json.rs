//! JSON bodies and query parameters.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, Query};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::ApiError;

/// A JSON document, encoded where it was built: on a thread that may block.
#[derive(Debug)]
pub(crate) struct Json(Arc<[u8]>);

impl Json {
    pub(crate) fn new<T: Serialize + ?Sized>(value: &T) -> Self {
        // Fails only for maps whose keys are not text; there are none.
        Self(serde_json::to_vec(value).unwrap_or_default().into())
    }

    /// A document that is encoded already.
    pub(crate) fn encoded(json: Arc<[u8]>) -> Self {
        Self(json)
    }

    /// The encoded document.
    pub(crate) fn bytes(&self) -> Arc<[u8]> {
        Arc::clone(&self.0)
    }
}

impl IntoResponse for Json {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, "application/json")], Body::from(Bytes::from_owner(self.0))).into_response()
    }
}

/// Query parameters. Those that cannot be read are an [`ApiError`].
#[derive(Debug)]
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let read = Query::<T>::try_from_uri(&parts.uri);
        read.map(|Query(params)| Self(params)).map_err(|error| ApiError::bad_request("query", error.body_text()))
    }
}

/// Reads a JSON body.
pub(crate) fn read_body<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(bytes).map_err(|error| ApiError::bad_request("body", error.to_string()))
}

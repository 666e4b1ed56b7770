//! JSON bodies and query parameters.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::StatusCode;
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

/// A JSON body. One that cannot be read or is too long is an [`ApiError`].
#[derive(Debug)]
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let bytes = Bytes::from_request(request, state).await.map_err(|error| {
            let code = if error.status() == StatusCode::PAYLOAD_TOO_LARGE { "body.too_large" } else { "body" };
            ApiError::new(error.status(), code, error.body_text())
        })?;
        let read = serde_json::from_slice(&bytes);
        read.map(Self).map_err(|error| ApiError::bad_request("body", error.to_string()))
    }
}

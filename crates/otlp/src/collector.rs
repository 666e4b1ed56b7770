//! Sends spans to a collector.

use std::fmt;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, StatusCode, Url, redirect};

use crate::encode::{Resource, encode};
use crate::span::Span;

/// How long a collector has to answer one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Path of spans below the address of a collector.
const TRACES_PATH: &str = "v1/traces";

/// Why spans cannot be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CollectorError {
    /// The address is not an http or https URL.
    #[error("the address of the collector is not an http or https URL")]
    Endpoint,
    /// The list of headers cannot be read. It is not repeated here: it may contain a credential.
    #[error("the headers for the collector are not a list of NAME=VALUE separated by commas")]
    Headers,
    /// The collector cannot be reached, or did not answer in time.
    #[error("cannot reach the collector at {address}")]
    Unreachable {
        /// Scheme, host and port.
        address: String,
        /// Reason.
        #[source]
        source: reqwest::Error,
    },
    /// The collector refused the spans.
    #[error("the collector at {address} refused the spans with status {status}")]
    Refused {
        /// Scheme, host and port.
        address: String,
        /// HTTP status.
        status: StatusCode,
    },
}

impl CollectorError {
    /// Stable code of the error for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Endpoint => "otlp.endpoint",
            Self::Headers => "otlp.headers",
            Self::Unreachable { .. } => "otlp.unreachable",
            Self::Refused { .. } => "otlp.refused",
        }
    }
}

/// A collector that takes OTLP over HTTP.
#[derive(Clone)]
pub struct Collector {
    client: Client,
    url: Url,
    headers: HeaderMap,
    resource: Resource,
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers contain credentials.
        f.debug_struct("Collector").field("address", &self.address()).field("resource", &self.resource).finish()
    }
}

impl Collector {
    /// A collector at an address such as `http://localhost:4318`; spans go to `v1/traces` below
    /// it. `headers` has the form of `OTEL_EXPORTER_OTLP_HEADERS`: `NAME=VALUE,NAME=VALUE` with
    /// percent-encoded values. Connects to nothing.
    ///
    /// The collector is contacted directly, not through a proxy, and redirects are not followed.
    pub fn new(endpoint: &str, headers: &str, resource: Resource) -> Result<Self, CollectorError> {
        let mut url = Url::parse(endpoint.trim()).map_err(|_| CollectorError::Endpoint)?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(CollectorError::Endpoint);
        }
        if !url.path().ends_with(TRACES_PATH) {
            let path = format!("{}/{TRACES_PATH}", url.path().trim_end_matches('/'));
            url.set_path(&path);
        }
        let client =
            Client::builder().timeout(REQUEST_TIMEOUT).redirect(redirect::Policy::none()).no_proxy().build().map_err(
                |source| CollectorError::Unreachable { address: address(&url), source: source.without_url() },
            )?;
        Ok(Self { client, headers: parse_headers(headers)?, url, resource })
    }

    /// Sends spans in one request.
    pub async fn send(&self, spans: &[Span]) -> Result<(), CollectorError> {
        let request = self.client.post(self.url.clone()).headers(self.headers.clone());
        let request = request.header(CONTENT_TYPE, "application/x-protobuf").body(encode(&self.resource, spans));
        let response = request
            .send()
            .await
            .map_err(|source| CollectorError::Unreachable { address: self.address(), source: source.without_url() })?;
        let status = response.status();
        if status.is_success() { Ok(()) } else { Err(CollectorError::Refused { address: self.address(), status }) }
    }

    fn address(&self) -> String {
        address(&self.url)
    }
}

/// Scheme, host and port: path and user name may contain a credential.
fn address(url: &Url) -> String {
    url.origin().ascii_serialization()
}

fn parse_headers(text: &str) -> Result<HeaderMap, CollectorError> {
    let mut headers = HeaderMap::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or(CollectorError::Headers)?;
        let value = percent_decode_str(value.trim()).decode_utf8().map_err(|_| CollectorError::Headers)?;
        let name = HeaderName::try_from(name.trim()).map_err(|_| CollectorError::Headers)?;
        let mut value = HeaderValue::try_from(value.as_ref()).map_err(|_| CollectorError::Headers)?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests;

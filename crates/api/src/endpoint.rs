//! The API endpoint: address, credential, proxy, limits.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};

use crate::key_helper::KeyHelper;
use crate::retry::RetryPolicy;
use crate::secret::Secret;

const DEFAULT_BASE_URL: &str = "https://api.anthropic.com";

/// An Anthropic-compatible API and how to reach it.
#[derive(Debug, Clone)]
pub struct Endpoint {
    base_url: Url,
    /// Credential to send; `None` sends none.
    pub credential: Option<Credential>,
    /// Additional headers; they replace ours of the same name.
    pub headers: Vec<(String, Secret)>,
    /// API betas of every request.
    pub betas: Vec<String>,
    /// Value of the header `user-agent`.
    pub user_agent: String,
    /// Proxy to connect through; `None` connects directly.
    pub proxy: Option<Proxy>,
    /// PEM file of certificates to trust in addition to those of the system.
    pub extra_certificates: Option<PathBuf>,
    /// Timeouts and size limits.
    pub limits: Limits,
    /// When failed attempts are repeated.
    pub retry_policy: RetryPolicy,
}

/// How a client authenticates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// Sent as `x-api-key`.
    ApiKey(Secret),
    /// Sent as `authorization: Bearer …`.
    Bearer(Secret),
    /// Key from a callback, sent in both headers.
    Helper(KeyHelper),
}

/// A proxy for requests to the endpoint. Its URL may contain a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// URL of the proxy.
    pub url: Secret,
    /// Hosts to connect to directly, in the form of `NO_PROXY`.
    pub no_proxy: Option<String>,
    /// Whether loopback addresses are reached through the proxy, too.
    pub includes_loopback: bool,
}

/// Timeouts and size limits of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Time to connect.
    pub connect_timeout: Duration,
    /// Time until the response starts; one that is not streamed starts when it is complete.
    pub response_timeout: Duration,
    /// Time between two chunks of a streamed response; servers send pings.
    pub idle_timeout: Duration,
    /// Size limit of a streamed response; a token may take some hundred bytes.
    pub max_response_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            connect_timeout: seconds(30),
            response_timeout: seconds(600),
            idle_timeout: seconds(120),
            max_response_bytes: 128 << 20,
        }
    }
}

/// Why an endpoint is invalid.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// A URL is invalid.
    #[error("invalid {what}: {reason}")]
    Address {
        /// Name of the setting.
        what: &'static str,
        /// Reason, without the URL: it may contain a password.
        reason: String,
    },
    /// A number is invalid.
    #[error("{name} must be a whole number, not {value:?}")]
    Number {
        /// Name of the setting.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// A header is invalid.
    #[error("invalid header {name:?}: expected `Name: value`, one per line")]
    Header {
        /// Name of the header.
        name: String,
    },
    /// The file of additional certificates is invalid.
    #[error("cannot read the certificates in {path}")]
    Certificates {
        /// Path of the file.
        path: String,
        /// Cause of the error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The HTTP client cannot be built, for example because there are no certificates.
    #[error("cannot set up the HTTP client")]
    Http(#[source] reqwest::Error),
}

impl EndpointError {
    /// Stable error code, for `--json` output.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Address { .. } => "endpoint.bad_address",
            Self::Number { .. } => "endpoint.bad_number",
            Self::Header { .. } => "endpoint.bad_header",
            Self::Certificates { .. } => "endpoint.bad_certificates",
            Self::Http(_) => "endpoint.no_http",
        }
    }
}

impl Endpoint {
    /// The endpoint at a base URL, with defaults for everything else.
    pub fn new(base: &str) -> Result<Self, EndpointError> {
        Ok(Self {
            base_url: parse_base_url("the base URL", base)?,
            credential: None,
            headers: Vec::new(),
            betas: Vec::new(),
            user_agent: concat!("quipu/", env!("CARGO_PKG_VERSION")).to_owned(),
            proxy: None,
            extra_certificates: None,
            limits: Limits::default(),
            retry_policy: RetryPolicy::default(),
        })
    }

    /// The endpoint that environment variables describe. `lookup` returns the value of a
    /// variable; empty values count as unset.
    ///
    /// `ANTHROPIC_BASE_URL`, `ANTHROPIC_AUTH_TOKEN` (wins) or `ANTHROPIC_API_KEY`,
    /// `ANTHROPIC_CUSTOM_HEADERS` (one `Name: value` a line), `ANTHROPIC_BETAS` (with
    /// commas), `API_TIMEOUT_MS`, `CLAUDE_CODE_MAX_RETRIES`, `NODE_EXTRA_CA_CERTS`; `HTTPS_PROXY`, `HTTP_PROXY`,
    /// `ALL_PROXY` and `NO_PROXY` in either case; loopback addresses ignore the proxy unless
    /// `QUIPU_PROXY_LOOPBACK` is 1.
    pub fn from_env(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, EndpointError> {
        let set = |name: &str| lookup(name).filter(|value| !value.trim().is_empty());
        let base = set("ANTHROPIC_BASE_URL").unwrap_or_else(|| DEFAULT_BASE_URL.to_owned());
        let mut endpoint =
            Self { base_url: parse_base_url("ANTHROPIC_BASE_URL", &base)?, ..Self::new(DEFAULT_BASE_URL)? };
        let token = set("ANTHROPIC_AUTH_TOKEN").map(|token| Credential::Bearer(token.trim().into()));
        let key = || set("ANTHROPIC_API_KEY").map(|key| Credential::ApiKey(key.trim().into()));
        endpoint.credential = token.or_else(key);
        endpoint.headers = parse_headers(&set("ANTHROPIC_CUSTOM_HEADERS").unwrap_or_default())?;
        let betas = set("ANTHROPIC_BETAS").unwrap_or_default();
        endpoint.betas = betas.split(',').map(str::trim).filter(|beta| !beta.is_empty()).map(str::to_owned).collect();
        if let Some(ms) = parse_number("API_TIMEOUT_MS", &set)? {
            endpoint.limits.response_timeout = Duration::from_millis(ms.into());
        }
        if let Some(retries) = parse_number("CLAUDE_CODE_MAX_RETRIES", &set)? {
            endpoint.retry_policy.max_retries = retries;
        }
        endpoint.extra_certificates = set("NODE_EXTRA_CA_CERTS").map(PathBuf::from);
        endpoint.proxy = proxy_from_env(&endpoint.base_url, &set);
        Ok(endpoint)
    }

    /// Host, and port if there is one, for messages.
    pub fn host(&self) -> String {
        let host = self.base_url.host_str().unwrap_or_default();
        self.base_url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Whether a request without a credential is certain to fail. Other servers, for example a
    /// gateway on this machine, may need none.
    pub(crate) fn needs_credential(&self) -> bool {
        self.base_url.as_str().trim_end_matches('/') == DEFAULT_BASE_URL
    }

    /// Whether the host is a loopback address.
    pub fn is_loopback(&self) -> bool {
        let host = self.base_url.host_str().unwrap_or_default();
        let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        ip.map_or_else(|_| host == "localhost" || host.ends_with(".localhost"), |ip| ip.is_loopback())
    }

    /// URL of a method of the API.
    pub(crate) fn method_url(&self, path: &str, beta: bool) -> Url {
        let mut url = self.base_url.clone();
        url.set_path(&format!("{}{path}", self.base_url.path().trim_end_matches('/')));
        url.set_query(beta.then_some("beta=true"));
        url
    }

    /// The HTTP client for this endpoint.
    pub(crate) fn http_client(&self) -> Result<reqwest::Client, EndpointError> {
        let mut builder = reqwest::Client::builder()
            .no_proxy()
            .connect_timeout(self.limits.connect_timeout)
            .tcp_nodelay(true)
            .redirect(reqwest::redirect::Policy::none());
        let proxy = self.proxy.as_ref().filter(|proxy| proxy.includes_loopback || !self.is_loopback());
        if let Some(proxy) = proxy {
            let bad =
                |e: reqwest::Error| EndpointError::Address { what: "the proxy", reason: e.without_url().to_string() };
            let except = proxy.no_proxy.as_deref().and_then(reqwest::NoProxy::from_string);
            builder = builder.proxy(reqwest::Proxy::all(proxy.url.reveal()).map_err(bad)?.no_proxy(except));
        } else if self.base_url.scheme() == "http" {
            // Plain HTTP needs no certificates; loading them costs time and may fail.
            builder = builder.tls_certs_only([]);
        }
        if let Some(path) =
            self.extra_certificates.as_ref().filter(|_| proxy.is_some() || self.base_url.scheme() == "https")
        {
            let bad = |source| EndpointError::Certificates { path: path.display().to_string(), source };
            let pem = std::fs::read(path).map_err(|error| bad(error.into()))?;
            let certificates = reqwest::Certificate::from_pem_bundle(&pem).map_err(|error| bad(error.into()))?;
            builder = builder.tls_certs_merge(certificates);
        }
        builder.build().map_err(|e| EndpointError::Http(e.without_url()))
    }

    /// A text of the server with our credentials masked.
    pub(crate) fn mask_secrets(&self, text: String) -> String {
        let text = match &self.credential {
            Some(Credential::ApiKey(secret) | Credential::Bearer(secret)) => secret.mask_in(text),
            Some(Credential::Helper(helper)) => helper.mask(text),
            None => text,
        };
        self.headers.iter().fold(text, |text, (_, value)| value.mask_in(text))
    }
}

fn parse_base_url(what: &'static str, text: &str) -> Result<Url, EndpointError> {
    let bad = |reason: &str| EndpointError::Address { what, reason: reason.to_owned() };
    let url = Url::parse(text.trim()).map_err(|e| bad(&e.to_string()))?;
    match () {
        () if !matches!(url.scheme(), "http" | "https") => Err(bad("it must begin with http:// or https://")),
        () if url.query().is_some() || url.fragment().is_some() => Err(bad("it must end with the host or a path")),
        // A password in a URL ends up in logs; a header does not.
        () if !url.username().is_empty() || url.password().is_some() => {
            Err(bad("it holds a name or password; use ANTHROPIC_CUSTOM_HEADERS for that"))
        }
        () => Ok(url),
    }
}

fn parse_headers(text: &str) -> Result<Vec<(String, Secret)>, EndpointError> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let (name, value) = line.split_once(':').map_or((line, ""), |(name, value)| (name.trim(), value.trim()));
            let fits = line.contains(':')
                && HeaderName::from_bytes(name.as_bytes()).is_ok()
                && HeaderValue::from_str(value).is_ok();
            // A line without a colon may be a bare secret: its text is not repeated.
            let shown = if line.contains(':') { name } else { "(no colon)" };
            if fits {
                Ok((name.to_owned(), value.into()))
            } else {
                Err(EndpointError::Header { name: shown.to_owned() })
            }
        })
        .collect()
}

fn parse_number(name: &'static str, set: &impl Fn(&str) -> Option<String>) -> Result<Option<u32>, EndpointError> {
    let Some(value) = set(name) else { return Ok(None) };
    value.trim().parse().map(Some).map_err(|_| EndpointError::Number { name, value })
}

fn proxy_from_env(base: &Url, set: &impl Fn(&str) -> Option<String>) -> Option<Proxy> {
    let either = |name: &str| set(name).or_else(|| set(&name.to_lowercase()));
    let own = if base.scheme() == "https" { "HTTPS_PROXY" } else { "HTTP_PROXY" };
    let url = either(own).or_else(|| either("ALL_PROXY"))?;
    let loopback = set("QUIPU_PROXY_LOOPBACK").is_some_and(|value| value == "1");
    Some(Proxy { url: url.into(), no_proxy: either("NO_PROXY"), includes_loopback: loopback })
}

#[cfg(test)]
mod tests;

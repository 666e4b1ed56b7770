//! Where and as whom to ask.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};

use crate::key_helper::KeyHelper;
use crate::retry::RetryPolicy;
use crate::secret::Secret;

const DEFAULT_BASE_URL: &str = "https://api.anthropic.com";

/// An Anthropic-compatible API: address, credential, headers, limits.
#[derive(Debug, Clone)]
pub struct Endpoint {
    base_url: Url,
    /// As whom to ask; none sends no credential.
    pub credential: Option<Credential>,
    /// Further headers, sent last: they replace our own of the same name.
    pub headers: Vec<(String, Secret)>,
    /// Betas asked for in every request.
    pub betas: Vec<String>,
    /// What the `User-Agent` header says.
    pub user_agent: String,
    /// The way there; none goes straight.
    pub proxy: Option<Proxy>,
    /// A PEM file of certificates that are trusted beside those of the system.
    pub extra_certificates: Option<PathBuf>,
    /// How long to wait for what, and how much is taken.
    pub limits: Limits,
    /// When to try again.
    pub retry_policy: RetryPolicy,
}

/// As whom to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// Sent as `x-api-key`.
    ApiKey(Secret),
    /// Sent as `authorization: Bearer …`.
    Bearer(Secret),
    /// A key that somebody else gives, sent in both ways.
    Helper(KeyHelper),
}

/// A proxy on the way to the endpoint. Its address may hold a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Its address.
    pub url: Secret,
    /// Hosts that are reached without it, as `NO_PROXY` lists them.
    pub no_proxy: Option<String>,
    /// Whether this machine itself is reached through it too.
    pub includes_loopback: bool,
}

/// How long to wait for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For a connection.
    pub connect_timeout: Duration,
    /// For the answer to begin; an answer that is not streamed begins when it is done.
    pub response_timeout: Duration,
    /// Between two pieces of a streamed answer; servers send pings.
    pub idle_timeout: Duration,
    /// The most bytes of a streamed answer: each token may take some hundred.
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

/// Why an endpoint cannot be used as described.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The address is not one.
    #[error("{what} is not an http or https address: {reason}")]
    Address {
        /// Which setting.
        what: &'static str,
        /// Why, without the address: it may hold a password.
        reason: String,
    },
    /// A setting is not a number.
    #[error("{name} must be a whole number, not {value:?}")]
    Number {
        /// The setting.
        name: &'static str,
        /// What it says.
        value: String,
    },
    /// A header cannot be sent.
    #[error("header {name:?} cannot be sent; write `Name: value`, one a line")]
    Header {
        /// Its name.
        name: String,
    },
    /// The file of further certificates cannot be used.
    #[error("cannot read the certificates in {path}")]
    Certificates {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The HTTP client cannot be made, for instance because no certificates were found.
    #[error("cannot set up HTTP")]
    Http(#[source] reqwest::Error),
}

impl EndpointError {
    /// A stable name for scripts.
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
    /// The endpoint at an address, with nothing but defaults.
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

    /// The endpoint that environment variables describe; empty ones count as unset.
    ///
    /// `ANTHROPIC_BASE_URL`, `ANTHROPIC_AUTH_TOKEN` (wins) or `ANTHROPIC_API_KEY`,
    /// `ANTHROPIC_CUSTOM_HEADERS` (one `Name: value` a line), `ANTHROPIC_BETAS` (with
    /// commas), `API_TIMEOUT_MS`, `CLAUDE_CODE_MAX_RETRIES`, `NODE_EXTRA_CA_CERTS`; `HTTPS_PROXY`, `HTTP_PROXY`,
    /// `ALL_PROXY` and `NO_PROXY` in either case, which loopback addresses do not heed
    /// unless `QUIPU_PROXY_LOOPBACK` is 1.
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

    /// Host and port, for messages to people.
    pub fn host(&self) -> String {
        let host = self.base_url.host_str().unwrap_or_default();
        self.base_url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Whether the endpoint is this machine itself.
    pub fn is_loopback(&self) -> bool {
        let host = self.base_url.host_str().unwrap_or_default();
        let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        ip.map_or_else(|_| host == "localhost" || host.ends_with(".localhost"), |ip| ip.is_loopback())
    }

    /// The address of a method of the API.
    pub(crate) fn method_url(&self, path: &str, beta: bool) -> Url {
        let mut url = self.base_url.clone();
        url.set_path(&format!("{}{path}", self.base_url.path().trim_end_matches('/')));
        url.set_query(beta.then_some("beta=true"));
        url
    }

    /// The HTTP client that goes there.
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
            // No certificate will be looked at, so none need be there, nor be loaded.
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

    /// A text of the server without our secrets, should it repeat them.
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
        // A password in an address ends up in logs; a header does not.
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

//! The WebFetch tool: fetches a page of the public web as text.

use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use quipu_message::ToolName;
use quipu_message::tool::WebFetchInput;
use quipu_message::tool::output::WebFetchOutput;
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response};
use serde_json::{Value, json};
use url::Url;

use super::read::format_size;
use super::{into_output, parse_input};
use crate::tool::{
    CallContext, FetchScope, FetchedPage, ScopedResolver, Tool, ToolDefinition, ToolEffect, ToolOutput, Workspace,
    check_url,
};

mod html;
mod proxy;

/// Timeout for one request.
const FETCH_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of a page.
const MAX_PAGE_BYTES: usize = 10 << 20;
/// Maximum length of the text of a page, in characters.
const MAX_PAGE_CHARS: usize = 100_000;
/// Maximum number of redirects.
const MAX_REDIRECTS: usize = 5;
const MAX_URL_BYTES: usize = 2000;

/// The WebFetch tool.
#[derive(Debug, Clone, Copy)]
pub struct WebFetch;

impl Tool for WebFetch {
    fn name(&self) -> ToolName {
        ToolName::WebFetch
    }

    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name(),
            description: "Reads a public web page as text and answers `prompt` about it. Pages behind a login and \
                          private addresses cannot be read. When a page leads to another host you are told, and can \
                          fetch that one."
                .into(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "url": {"type": "string", "description": "The page"},
                    "prompt": {"type": "string", "description": "What to find out"},
                },
                "required": ["url", "prompt"],
                "additionalProperties": false,
            }),
        }
    }

    fn effect(&self, _: &Value) -> ToolEffect {
        ToolEffect::ReadOnly
    }

    fn run<'a>(&'a self, input: Value, workspace: &'a Workspace, call: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            tokio::select! {
                output = run(input, workspace) => into_output(output),
                () = call.cancel.cancelled() => ToolOutput::failure("The fetch was stopped."),
            }
        })
    }
}

async fn run(input: Value, workspace: &Workspace) -> Result<ToolOutput, ToolOutput> {
    let started = Instant::now();
    let input: WebFetchInput = parse_input(input)?;
    let url = parse_url(&input.url)?;
    let page = match workspace.page_cache().get(&url, started) {
        Some(page) => FetchResult::Page(page),
        None => {
            let page = tokio::time::timeout(FETCH_TIMEOUT, fetch(url.clone(), workspace));
            page.await.map_err(|_| ToolOutput::failure(format!("{} did not answer in time.", input.url)))??
        }
    };
    let page = match page {
        FetchResult::Page(page) => {
            workspace.page_cache().insert(url, &page, started);
            page
        }
        FetchResult::OtherHost { status, to } => {
            return Ok(ToolOutput::failure(format!(
                "The page leads to another host ({status}). To go there, fetch this URL: {to}"
            )));
        }
    };
    let prompt = input.prompt.into_option().unwrap_or_default();
    let result = match workspace.summariser() {
        Some(summarise) => summarise(prompt, page.text)
            .await
            .map_err(|e| ToolOutput::failure(format!("The page was read, but no model could look at it: {e}.")))?,
        None => page.text,
    };
    let raw = WebFetchOutput {
        bytes: page.bytes as u64,
        code: u64::from(page.status.as_u16()),
        code_text: page.status.canonical_reason().unwrap_or_default().to_owned(),
        result: result.clone(),
        duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        url: input.url,
        ..WebFetchOutput::default()
    };
    Ok(ToolOutput::new(result, &raw))
}

fn parse_url(text: &str) -> Result<Url, ToolOutput> {
    let url = Url::parse(text).map_err(|e| ToolOutput::tool_use_error(format!("Invalid URL {text:?}: {e}.")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(ToolOutput::tool_use_error("Only http and https can be fetched."));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ToolOutput::tool_use_error("A URL with a name and password in it is not fetched."));
    }
    if text.len() > MAX_URL_BYTES {
        return Err(ToolOutput::tool_use_error("The URL is too long."));
    }
    Ok(url)
}

/// Result of fetching a URL.
enum FetchResult {
    Page(FetchedPage),
    /// The page redirects to another host, which needs its own permission.
    OtherHost {
        status: u16,
        to: Url,
    },
}

/// Fetches a page and follows redirects on the same host. Addresses are checked when the
/// connection is made, so that a name cannot resolve differently between check and use. A
/// proxy resolves names itself: then only the name is checked.
async fn fetch(mut url: Url, workspace: &Workspace) -> Result<FetchResult, ToolOutput> {
    let reach = workspace.fetch_scope();
    for _ in 0..=MAX_REDIRECTS {
        check_url(&url, reach).map_err(|e| ToolOutput::failure(e.to_string()))?;
        let client = build_client(proxy::proxy_for(&url, workspace.env()), reach)
            .map_err(|e| ToolOutput::failure(format!("No connection can be made: {}.", e.without_url())))?;
        let response = client.get(url.clone()).send().await.map_err(|e| fetch_error(&url, &e))?;
        let status = response.status();
        if !status.is_redirection() {
            return read_page(response, &url).await.map(FetchResult::Page);
        }
        let target = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
        let Some(to) = target.and_then(|to| url.join(to).ok()) else {
            return Err(ToolOutput::failure(format!("{url} leads elsewhere without saying where.")));
        };
        let to = parse_url(to.as_str())?;
        if !is_same_host(&url, &to) || (url.host_str() != to.host_str() && workspace.is_host_denied(&to)) {
            return Ok(FetchResult::OtherHost { status: status.as_u16(), to });
        }
        url = to;
    }
    Err(ToolOutput::failure(format!("{url} leads from page to page without end.")))
}

/// Whether `b` is on the same host and port as `a`, apart from `www.`, and keeps TLS.
fn is_same_host(a: &Url, b: &Url) -> bool {
    let host = |url: &Url| url.host_str().map(|host| host.strip_prefix("www.").unwrap_or(host).to_owned());
    let port = |url: &Url| url.port();
    host(a) == host(b) && port(a) == port(b) && (a.scheme() == b.scheme() || b.scheme() == "https")
}

fn build_client(proxy: Option<&str>, reach: FetchScope) -> reqwest::Result<Client> {
    let builder = Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .user_agent(concat!("quipu-agent/", env!("CARGO_PKG_VERSION")))
        .timeout(FETCH_TIMEOUT);
    match proxy {
        // A proxy may have a private address: the user configured it.
        Some(proxy) => builder.proxy(reqwest::Proxy::all(proxy)?).build(),
        None => builder.dns_resolver(ScopedResolver(reach)).build(),
    }
}

fn fetch_error(url: &Url, error: &reqwest::Error) -> ToolOutput {
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        words = error.to_string();
        cause = error.source();
    }
    ToolOutput::failure(format!("{url} cannot be fetched: {words}."))
}

async fn read_page(mut response: Response, url: &Url) -> Result<FetchedPage, ToolOutput> {
    let status = response.status();
    if !status.is_success() {
        return Err(ToolOutput::failure(format!("{url} answered {status}.")));
    }
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("text/plain");
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_text =
        kind.starts_with("text/") || ["json", "xml", "javascript", "yaml"].iter().any(|part| kind.contains(part));
    if !is_text {
        return Err(ToolOutput::failure(format!("{url} is {kind}, which is not text.")));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|e| fetch_error(url, &e))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_PAGE_BYTES {
            let most = format_size(MAX_PAGE_BYTES as u64);
            return Err(ToolOutput::failure(format!("{url} holds more than the {most} that are read.")));
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    let text = if kind.contains("html") { html::html_to_text(&text) } else { text.into_owned() };
    let text = match text.char_indices().nth(MAX_PAGE_CHARS) {
        Some((end, _)) => format!("{}\n\n[The page goes on; this is its start.]", &text[..end]),
        None => text,
    };
    Ok(FetchedPage { status, bytes: bytes.len(), text })
}

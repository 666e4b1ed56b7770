//! WebFetch: a page of the public web, as text.

use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use quipu_message::tool::WebFetchInput;
use quipu_message::tool::output::WebFetchOutput;
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response};
use serde_json::{Value, json};
use url::Url;

use super::read::size;
use super::{input, settle};
use crate::tool::{Call, Definition, Effect, Output, Place, Tool};

mod address;
mod html;
mod pages;
mod proxy;

pub use address::{Reach, Resolver, is_public};
pub(crate) use pages::Pages;

/// How long a page may take.
const TIME: Duration = Duration::from_secs(30);
/// How much of a page is read, in bytes.
const MOST_BYTES: usize = 10 << 20;
/// How much of a page is given on, in characters.
const MOST_TEXT: usize = 100_000;
/// How often a page may lead to another.
const MOST_REDIRECTS: usize = 5;
const LONGEST_URL: usize = 2000;

/// Reads web pages.
#[derive(Debug, Clone, Copy)]
pub struct WebFetch;

impl Tool for WebFetch {
    fn definition(&self) -> Definition {
        Definition {
            name: "WebFetch".into(),
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

    fn effect(&self, _: &Value) -> Effect {
        Effect::Reads
    }

    fn run<'a>(&'a self, call_input: Value, place: &'a Place, call: &'a Call) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            tokio::select! {
                output = run(call_input, place) => settle(output),
                () = call.cancel.cancelled() => Output::failure("The fetch was stopped."),
            }
        })
    }
}

async fn run(call_input: Value, place: &Place) -> Result<Output, Output> {
    let started = Instant::now();
    let wanted: WebFetchInput = input(call_input)?;
    let url = read_url(&wanted.url)?;
    let page = match place.pages().find(&url, started) {
        Some(page) => Fetched::Page(page),
        None => {
            let page = tokio::time::timeout(TIME, fetch(url.clone(), place));
            page.await.map_err(|_| Output::failure(format!("{} did not answer in time.", wanted.url)))??
        }
    };
    let page = match page {
        Fetched::Page(page) => {
            place.pages().keep(url, &page, started);
            page
        }
        Fetched::Elsewhere { status, to } => {
            return Ok(Output::failure(format!(
                "The page leads to another host ({status}). To go there, fetch this URL: {to}"
            )));
        }
    };
    let prompt = wanted.prompt.into_option().unwrap_or_default();
    let result = match place.summarise() {
        Some(summarise) => summarise(prompt, page.text)
            .await
            .map_err(|e| Output::failure(format!("The page was read, but no model could look at it: {e}.")))?,
        None => page.text,
    };
    let raw = WebFetchOutput {
        bytes: page.bytes as u64,
        code: u64::from(page.status.as_u16()),
        code_text: page.status.canonical_reason().unwrap_or_default().to_owned(),
        result: result.clone(),
        duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        url: wanted.url,
        ..WebFetchOutput::default()
    };
    Ok(Output::new(result, &raw))
}

fn read_url(text: &str) -> Result<Url, Output> {
    let url = Url::parse(text).map_err(|e| Output::misuse(format!("Invalid URL {text:?}: {e}.")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Output::misuse("Only http and https can be fetched."));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Output::misuse("A URL with a name and password in it is not fetched."));
    }
    if text.len() > LONGEST_URL {
        return Err(Output::misuse("The URL is too long."));
    }
    Ok(url)
}

/// What fetching gave.
enum Fetched {
    Page(Page),
    /// The page leads to a host that nobody has permitted.
    Elsewhere {
        status: u16,
        to: Url,
    },
}

#[derive(Debug, Clone)]
struct Page {
    status: reqwest::StatusCode,
    bytes: usize,
    text: String,
}

/// Fetches a page, following where it leads on the same host. Every address is looked at
/// when it is connected to, so that a name cannot change between the look and the call. A
/// proxy looks names up by itself: then only the name is looked at.
async fn fetch(mut url: Url, place: &Place) -> Result<Fetched, Output> {
    let reach = place.reach();
    for _ in 0..=MOST_REDIRECTS {
        address::check(&url, reach).map_err(|e| Output::failure(e.to_string()))?;
        let client = client(proxy::of(&url, place.env()), reach)
            .map_err(|e| Output::failure(format!("No connection can be made: {}.", e.without_url())))?;
        let response = client.get(url.clone()).send().await.map_err(|e| failed(&url, &e))?;
        let status = response.status();
        if !status.is_redirection() {
            return read(response, &url).await.map(Fetched::Page);
        }
        let target = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
        let Some(to) = target.and_then(|to| url.join(to).ok()) else {
            return Err(Output::failure(format!("{url} leads elsewhere without saying where.")));
        };
        let to = read_url(to.as_str())?;
        if !same_host(&url, &to) || (url.host_str() != to.host_str() && place.refuses_host(&to)) {
            return Ok(Fetched::Elsewhere { status: status.as_u16(), to });
        }
        url = to;
    }
    Err(Output::failure(format!("{url} leads from page to page without end.")))
}

/// Whether two URLs are on one host, `www.` aside, and neither leaves TLS.
fn same_host(a: &Url, b: &Url) -> bool {
    let host = |url: &Url| url.host_str().map(|host| host.strip_prefix("www.").unwrap_or(host).to_owned());
    let port = |url: &Url| url.port();
    host(a) == host(b) && port(a) == port(b) && (a.scheme() == b.scheme() || b.scheme() == "https")
}

fn client(proxy: Option<&str>, reach: Reach) -> reqwest::Result<Client> {
    let builder = Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .user_agent(concat!("quipu-agent/", env!("CARGO_PKG_VERSION")))
        .timeout(TIME);
    match proxy {
        // The person has named it, wherever it is.
        Some(proxy) => builder.proxy(reqwest::Proxy::all(proxy)?).build(),
        None => builder.dns_resolver(address::Resolver(reach)).build(),
    }
}

fn failed(url: &Url, error: &reqwest::Error) -> Output {
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        words = error.to_string();
        cause = error.source();
    }
    Output::failure(format!("{url} cannot be fetched: {words}."))
}

async fn read(mut response: Response, url: &Url) -> Result<Page, Output> {
    let status = response.status();
    if !status.is_success() {
        return Err(Output::failure(format!("{url} answered {status}.")));
    }
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("text/plain");
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_text =
        kind.starts_with("text/") || ["json", "xml", "javascript", "yaml"].iter().any(|part| kind.contains(part));
    if !is_text {
        return Err(Output::failure(format!("{url} is {kind}, which is not text.")));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|e| failed(url, &e))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MOST_BYTES {
            let most = size(MOST_BYTES as u64);
            return Err(Output::failure(format!("{url} holds more than the {most} that are read.")));
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    let text = if kind.contains("html") { html::text(&text) } else { text.into_owned() };
    let text = match text.char_indices().nth(MOST_TEXT) {
        Some((end, _)) => format!("{}\n\n[The page goes on; this is its start.]", &text[..end]),
        None => text,
    };
    Ok(Page { status, bytes: bytes.len(), text })
}

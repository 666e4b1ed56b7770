//! The reverse proxy: forwards calls untouched and hands copies to the log.
//!
//! It adds nothing of its own: no headers, no retries, no error pages. If the upstream cannot
//! be reached or breaks off, the client's connection breaks off at the same place; if the
//! client leaves, the upstream connection is closed at once.

mod forward;
mod tee;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::log::CaptureLog;
use forward::{Forwarder, OutgoingBody};

/// How long open connections have to end after [`CaptureProxy::shut_down`].
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// How long an unused upstream connection is kept. Shorter than what servers allow, so that
/// few requests meet a connection that is being closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

type UpstreamClient = Client<HttpsConnector<HttpConnector>, OutgoingBody>;

/// Why a proxy cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// The upstream is not a URL that can be forwarded to.
    #[error("`{url}` is not an http or https URL")]
    BadUpstream {
        /// The URL as given.
        url: String,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// Address that was tried.
        address: SocketAddr,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
    /// Certificates of the system cannot be used.
    #[error("cannot set up TLS")]
    Tls(#[source] io::Error),
}

impl ProxyError {
    /// Stable error code, for `--json` output.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadUpstream { .. } => "capture.bad_upstream",
            Self::Listen { .. } => "capture.cannot_listen",
            Self::Tls(_) => "capture.tls",
        }
    }
}

/// A proxy that is running until it is shut down or dropped.
#[derive(Debug)]
pub struct CaptureProxy {
    address: SocketAddr,
    log: Arc<CaptureLog>,
    stop: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

impl CaptureProxy {
    /// Starts a proxy to `upstream`, for example `https://api.anthropic.com`, and records to
    /// `log`. Must be called in a tokio runtime.
    pub async fn start(address: SocketAddr, upstream: &str, log: CaptureLog) -> Result<Self, ProxyError> {
        Self::start_with(client_builder().build(upstream_connector()?), address, upstream, log).await
    }

    async fn start_with(
        client: UpstreamClient,
        address: SocketAddr,
        upstream: &str,
        log: CaptureLog,
    ) -> Result<Self, ProxyError> {
        let upstream = parse_upstream(upstream)?;
        let listen_error = |source| ProxyError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(listen_error)?;
        let address = listener.local_addr().map_err(listen_error)?;
        let log = Arc::new(log);
        let forwarder = Arc::new(Forwarder { client, upstream, log: Arc::clone(&log) });
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(accept(listener, forwarder, stopped));
        Ok(Self { address, log, stop, task })
    }

    /// Address that the proxy listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The value for `ANTHROPIC_BASE_URL`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Log of the proxy.
    pub fn log(&self) -> &CaptureLog {
        &self.log
    }

    /// Accepts no more connections, waits for open calls at most two seconds, and writes the
    /// end of the log.
    pub async fn shut_down(mut self) -> super::LogStats {
        self.stop.send_replace(true);
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, &mut self.task).await.is_err() {
            self.task.abort();
            // Only a panic or the abort itself can be reported here.
            let _ = (&mut self.task).await;
        }
        let stats = self.log.stats();
        match Arc::into_inner(self.log) {
            Some(log) => log.finish(),
            None => stats,
        }
    }
}

async fn accept(listener: TcpListener, forwarder: Arc<Forwarder>, mut stopped: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // An error concerns one connection, or passes when others close.
                let Ok((tcp, _)) = accepted else { tokio::task::yield_now().await; continue };
                // Small frames must not wait for more; without it they only arrive later.
                let _ = tcp.set_nodelay(true);
                connections.spawn(serve(tcp, Arc::clone(&forwarder), stopped.clone()));
            }
            Some(_) = connections.join_next() => {}
            _ = stopped.changed() => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn serve(tcp: tokio::net::TcpStream, forwarder: Arc<Forwarder>, mut stopped: watch::Receiver<bool>) {
    let service = service_fn(move |request| {
        let forwarder = Arc::clone(&forwarder);
        async move { forwarder.forward(request).await }
    });
    let mut server = http1::Builder::new();
    server.preserve_header_case(true).auto_date_header(false).timer(TokioTimer::new());
    let connection = server.serve_connection(TokioIo::new(tcp), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        // Errors of a connection are the client's business, and in the log.
        _ = connection.as_mut() => return,
        _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

fn parse_upstream(url: &str) -> Result<Uri, ProxyError> {
    let bad = || ProxyError::BadUpstream { url: url.to_owned() };
    let uri: Uri = url.trim_end_matches('/').parse().map_err(|_| bad())?;
    let is_http = uri.scheme_str().is_some_and(|scheme| scheme == "http" || scheme == "https");
    if is_http && uri.authority().is_some() && uri.query().is_none() { Ok(uri) } else { Err(bad()) }
}

fn upstream_connector() -> Result<HttpsConnector<HttpConnector>, ProxyError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(rustls::ConfigBuilder::with_platform_verifier)
        .map_err(|error| ProxyError::Tls(io::Error::other(error)))?
        .with_no_client_auth();
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    tcp.enforce_http(false);
    Ok(HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_all_versions().wrap_connector(tcp))
}

fn client_builder() -> hyper_util::client::legacy::Builder {
    let mut builder = Client::builder(TokioExecutor::new());
    // A request is sent again only if not one byte of it was: its connection had been closed.
    builder
        .pool_timer(TokioTimer::new())
        .timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .http1_preserve_header_case(true)
        .http2_adaptive_window(true);
    builder
}

#[cfg(test)]
mod tests;

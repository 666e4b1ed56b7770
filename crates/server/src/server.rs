//! Listens on a loopback address and answers requests.

use std::future::{Future, IntoFuture};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Zoned;
use quipu_conversation::price::Prices;
use tokio::net::TcpListener;

use crate::app::App;
use crate::change_worker;
use crate::chat::ChatAgent;
use crate::index_worker::IndexWorker;
use crate::router::router;
use crate::token::Token;

/// How long requests that are being answered may delay the end.
const MAX_STOP_WAIT: Duration = Duration::from_secs(1);

/// Runs git in a folder that the user trusts, and returns its output.
pub type RunGit = fn(PathBuf, Vec<String>) -> BoxFuture<'static, io::Result<Vec<u8>>>;

/// What a server shows, and where it keeps what it can rebuild.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Config folders of the agent, which have `projects` in them.
    pub claude_dirs: Vec<PathBuf>,
    /// Folder for the index; a temporary one if `None`.
    pub cache_folder: Option<PathBuf>,
    /// Folder for the usage of deleted sessions; it is not kept if `None`.
    pub data_folder: Option<PathBuf>,
    /// File with the settings of the page, beside the user's own prices; they are not kept if `None`.
    pub config_file: Option<PathBuf>,
    /// Config folder that the agent uses by itself, for the command that resumes a session.
    pub usual_config_dir: Option<PathBuf>,
    /// Home folder of the user, in which agents keep which folders are trusted.
    pub home: Option<PathBuf>,
    /// Address of the API that agents use, for captures; the usual one if `None`.
    pub api_url: Option<String>,
    /// Credentials that captures mask.
    pub secrets: Vec<String>,
    /// Runs git in a folder with arguments and returns what it prints.
    pub run_git: RunGit,
    /// Agents that chats can be started with; the first usable one is the default.
    pub agents: Vec<ChatAgent>,
    /// Prices of models.
    pub prices: Prices,
    /// The secret that clients send.
    pub token: Token,
    /// Whether the sessions are the bundled ones.
    pub is_demo: bool,
    /// The current time in the time zone of the user.
    pub now: fn() -> Zoned,
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address can be reached from other machines.
    #[error("{address} is not a loopback address")]
    NotLoopback {
        /// The address as it was given.
        address: SocketAddr,
    },
    /// Another program listens on the address, or it cannot be used.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address as it was given.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl ServerError {
    /// Stable code for scripts, such as `serve.cannot_listen`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotLoopback { .. } => "serve.not_loopback",
            Self::Listen { .. } => "serve.cannot_listen",
        }
    }

    /// Whether another program listens on the address.
    pub fn is_address_in_use(&self) -> bool {
        matches!(self, Self::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse)
    }
}

/// A server that listens but does not answer yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    options: ServerOptions,
}

impl Server {
    /// Listens on a loopback address; port 0 takes a free one. Fails for other addresses, and if
    /// the address cannot be used.
    pub async fn bind(address: SocketAddr, options: ServerOptions) -> Result<Self, ServerError> {
        if !address.ip().is_loopback() {
            return Err(ServerError::NotLoopback { address });
        }
        let listen = async {
            let listener = TcpListener::bind(address).await?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let (listener, own) = listen.await.map_err(|source| ServerError::Listen { address, source })?;
        Ok(Self { listener, address: own, options })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address for a browser, with the token in its fragment, which browsers do not send.
    pub fn url(&self) -> String {
        format!("http://{}/#token={}", self.address, self.options.token.as_str())
    }

    /// Answers requests until `stop` is ready, and then waits for open requests for a moment and for
    /// the agents of chats to exit.
    pub async fn run(self, stop: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
        let Self { listener, address, options } = self;
        let app = Arc::new(App::new(options, address.port())?);
        let worker = IndexWorker::start(&app);
        change_worker::start(&app);
        let stopping = Arc::clone(&app);
        let served = axum::serve(listener, router(Arc::clone(&app))).with_graceful_shutdown(async move {
            stop.await;
            stopping.stop();
        });
        let mut stopped = app.stop_signal();
        let late = async {
            // Fails only if the server is gone.
            let _ = stopped.wait_for(|is_stopping| *is_stopping).await;
            tokio::time::sleep(MAX_STOP_WAIT).await;
        };
        let served = async {
            tokio::select! {
                served = served.into_future() => served,
                () = late => Ok(()),
            }
        };
        let (served, ()) = tokio::join!(served, app.chats.stop_all(app.stop_signal()));
        worker.stop();
        served
    }
}

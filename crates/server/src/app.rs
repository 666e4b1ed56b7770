//! What all requests share.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Zoned;
use quipu_conversation::price::Prices;
use quipu_index::SkeletonStore;
use tempfile::TempDir;
use tokio::sync::{Semaphore, broadcast, watch};

use crate::chat::{ChatAgent, Chats, PageCount};
use crate::documents::Documents;
use crate::error::ApiError;
use crate::event::Event;
use crate::folder_files::FolderFiles;
use crate::index_reader::IndexReader;
use crate::index_state::IndexState;
use crate::labels::Stars;
use crate::live_sessions::LiveSessions;
use crate::open_sessions::OpenSessions;
use crate::server::{RunGit, ServerOptions};
use crate::session_list::SessionList;
use crate::token::Token;

/// Requests that read files or the index at the same time; others wait.
const MAX_BLOCKING_REQUESTS: usize = 6;
/// The same for requests that read a whole session, so that windows never wait for them.
const MAX_LONG_REQUESTS: usize = 2;
/// Events that a slow client may be behind before it has to load everything again.
const EVENT_CAPACITY: usize = 256;

/// The state of a server.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) claude_dirs: Vec<PathBuf>,
    pub(crate) cache_folder: PathBuf,
    pub(crate) data_folder: Option<PathBuf>,
    pub(crate) config_file: Option<PathBuf>,
    pub(crate) usual_config_dir: Option<PathBuf>,
    /// Home folder of the user.
    pub(crate) home: Option<PathBuf>,
    /// Address of the API that agents use; the usual one if `None`.
    pub(crate) api_url: Option<String>,
    /// Credentials that captures mask.
    pub(crate) secrets: Vec<String>,
    /// Runs git in a folder.
    pub(crate) run_git: RunGit,
    /// Files of the folders in which users type.
    pub(crate) files: Arc<FolderFiles>,
    /// Agents that chats can be started with.
    pub(crate) agents: Vec<ChatAgent>,
    pub(crate) prices: Arc<Prices>,
    pub(crate) token: Token,
    pub(crate) port: u16,
    pub(crate) is_demo: bool,
    pub(crate) now: fn() -> Zoned,
    pub(crate) list: SessionList,
    pub(crate) sessions: OpenSessions,
    pub(crate) live: LiveSessions,
    pub(crate) documents: Documents,
    pub(crate) stars: Stars,
    pub(crate) index_reader: IndexReader,
    pub(crate) index: IndexState,
    pub(crate) events: broadcast::Sender<Event>,
    pub(crate) chats: Chats,
    /// Pages that follow events.
    pub(crate) pages: PageCount,
    /// True when the server stops.
    stopping: watch::Sender<bool>,
    blocking: Semaphore,
    long: Semaphore,
    /// The cache, if no other folder can be used; removed at the end.
    _temporary_cache: Option<TempDir>,
}

impl App {
    pub(crate) fn new(options: ServerOptions, port: u16) -> io::Result<Self> {
        let ServerOptions {
            claude_dirs,
            cache_folder,
            data_folder,
            config_file,
            usual_config_dir,
            home,
            api_url,
            secrets,
            run_git,
            agents,
            prices,
            token,
            is_demo,
            now,
        } = options;
        let (cache_folder, temporary) = match cache_folder.filter(is_writable) {
            Some(folder) => (folder, None),
            None => {
                let folder = tempfile::tempdir()?;
                (folder.path().to_owned(), Some(folder))
            }
        };
        Ok(Self {
            list: SessionList::new(&claude_dirs),
            sessions: OpenSessions::new(SkeletonStore::new(&cache_folder)),
            live: LiveSessions::default(),
            documents: Documents::default(),
            stars: Stars::load(data_folder.as_deref()),
            index_reader: IndexReader::default(),
            claude_dirs,
            cache_folder,
            data_folder,
            config_file,
            usual_config_dir,
            home,
            api_url,
            secrets,
            run_git,
            files: Arc::default(),
            agents,
            prices: Arc::new(prices),
            token,
            port,
            is_demo,
            now,
            index: IndexState::default(),
            events: broadcast::Sender::new(EVENT_CAPACITY),
            chats: Chats::default(),
            pages: PageCount::default(),
            stopping: watch::Sender::new(false),
            blocking: Semaphore::new(MAX_BLOCKING_REQUESTS),
            long: Semaphore::new(MAX_LONG_REQUESTS),
            _temporary_cache: temporary,
        })
    }

    /// Runs work that reads files on a thread for it. A few run at a time.
    pub(crate) async fn blocking<T: Send + 'static>(
        self: Arc<Self>,
        work: impl FnOnce(&App) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let app = Arc::clone(&self);
        let _permit = self.blocking.acquire().await;
        run_blocking(move || work(&app)).await
    }

    /// As [`blocking`](Self::blocking), for work that reads a whole session.
    pub(crate) async fn blocking_long<T: Send + 'static>(
        self: Arc<Self>,
        work: impl FnOnce(&App) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let app = Arc::clone(&self);
        let _permit = self.long.acquire().await;
        run_blocking(move || work(&app)).await
    }

    /// Reports a change to all clients.
    pub(crate) fn send(&self, event: Event) {
        // Fails if there are no clients.
        let _ = self.events.send(event);
    }

    /// Ends streams of events, so that the server can stop.
    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Becomes true when the server stops.
    pub(crate) fn stop_signal(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(ApiError::internal(format!("the request failed: {error}"))),
    }
}

fn is_writable(folder: &PathBuf) -> bool {
    std::fs::create_dir_all(folder).is_ok() && tempfile::tempfile_in(folder).is_ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    use jiff::Zoned;
    use quipu_conversation::price::Prices;

    use super::{App, MAX_BLOCKING_REQUESTS};
    use crate::server::ServerOptions;
    use crate::token::Token;

    #[tokio::test]
    async fn requests_that_read_whole_sessions_leave_others_their_threads() {
        let options = ServerOptions {
            claude_dirs: Vec::new(),
            cache_folder: None,
            data_folder: None,
            config_file: None,
            usual_config_dir: None,
            home: None,
            api_url: None,
            secrets: Vec::new(),
            run_git: |_, _| Box::pin(async { Ok(Vec::new()) }),
            agents: Vec::new(),
            prices: Prices::bundled(),
            token: Token::random().unwrap(),
            is_demo: false,
            now: Zoned::now,
        };
        let app = Arc::new(App::new(options, 0).unwrap());
        let (ends, running): (Vec<_>, Vec<_>) = (0..=MAX_BLOCKING_REQUESTS)
            .map(|_| {
                let (end, ended) = channel::<()>();
                let work = Arc::clone(&app).blocking_long(move |_| Ok(ended.recv().is_err()));
                (end, tokio::spawn(work))
            })
            .unzip();
        assert_eq!(app.blocking(|_| Ok(1)).await.unwrap(), 1);
        assert!(running.iter().all(|work| !work.is_finished()));
        drop(ends);
        for work in running {
            assert!(work.await.unwrap().unwrap());
        }
    }
}

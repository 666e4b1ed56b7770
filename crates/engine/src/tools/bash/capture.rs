//! What a command prints: the start and the end in memory, all of it in a file.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;

/// How much is kept of the start, and of the end, in bytes.
pub(super) const KEPT: usize = 160_000;
/// How much is written to the file.
const MOST_SAVED: u64 = 64 << 20;

/// Output as it comes.
#[derive(Debug)]
pub(super) struct Capture {
    kept: Arc<Mutex<Captured>>,
    ended: watch::Receiver<bool>,
}

/// Output so far.
#[derive(Debug, Clone)]
pub(super) struct Captured {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    path: PathBuf,
    file: Option<Arc<File>>,
}

impl Capture {
    /// Reads a pipe to its end, whoever waits for it; `at_once` writes the file from the first byte on.
    pub(super) fn start(mut pipe: Receiver, path: PathBuf, at_once: bool) -> io::Result<Self> {
        let file = if at_once { Some(Arc::new(create(&path)?)) } else { None };
        let captured = Captured { head: Vec::new(), tail: VecDeque::new(), total: 0, path, file };
        let kept = Arc::new(Mutex::new(captured));
        let (end, ended) = watch::channel(false);
        let shared = Arc::clone(&kept);
        tokio::spawn(async move {
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
                lock(&shared).take(&buffer[..count]);
            }
            let _ = end.send(true);
        });
        Ok(Self { kept, ended })
    }

    /// Waits until nobody can write any more.
    pub(super) async fn ended(&self) {
        let _ = self.ended.clone().wait_for(|ended| *ended).await;
    }

    /// All of it goes to the file, whatever has come already.
    pub(super) fn keep(&self) {
        lock(&self.kept).keep();
    }

    /// What has come so far.
    pub(super) fn so_far(&self) -> Captured {
        lock(&self.kept).clone()
    }
}

fn lock(kept: &Mutex<Captured>) -> std::sync::MutexGuard<'_, Captured> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that only the person may read.
fn create(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

impl Captured {
    fn take(&mut self, bytes: &[u8]) {
        let room = KEPT - self.head.len();
        if bytes.len() > room {
            self.keep();
        }
        self.save(bytes);
        let (start, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(start);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(KEPT);
        self.tail.drain(..over);
        self.total += bytes.len() as u64;
    }

    fn keep(&mut self) {
        if self.file.is_none() {
            // A file that cannot be made leaves what is in memory.
            self.file = create(&self.path).ok().map(Arc::new);
            self.save(&self.head);
        }
    }

    fn save(&self, bytes: &[u8]) {
        if let Some(file) = self.file.as_deref().filter(|_| self.total < MOST_SAVED) {
            let mut file = file;
            let _ = file.write_all(bytes);
        }
    }

    /// How much there was, in bytes.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Where all of it is.
    pub(super) fn saved(&self) -> &Path {
        &self.path
    }

    /// All of it, when it is short enough; otherwise it is in the file.
    pub(super) fn all(&self, most: usize) -> Option<String> {
        let text = tidy(&self.head);
        if self.tail.is_empty() && text.chars().count() <= most {
            return Some(text);
        }
        if self.file.is_none() {
            let _ = create(&self.path).and_then(|mut file| file.write_all(&self.head));
        }
        None
    }

    /// The first characters.
    pub(super) fn start(&self, most: usize) -> String {
        tidy(&self.head).chars().take(most).collect()
    }

    /// The last characters, for those who watch.
    pub(super) fn end(&self, most: usize) -> String {
        let (a, b) = self.tail.as_slices();
        let text = tidy(&[&self.head, a, b].concat());
        let skip = text.chars().count().saturating_sub(most);
        text.chars().skip(skip).collect()
    }

    /// All of it, or its start and its end with a note between.
    pub(super) fn head_and_tail(&self, most: usize) -> String {
        let (a, b) = self.tail.as_slices();
        let text = tidy(&[&self.head, a, b].concat());
        let count = text.chars().count();
        let gap = self.total.saturating_sub((self.head.len() + self.tail.len()) as u64);
        if count <= most && gap == 0 {
            return text;
        }
        let half = most / 2;
        let start: String = text.chars().take(half).collect();
        let end: String = text.chars().skip(count - half.min(count)).collect();
        let left_out = (count as u64).saturating_sub(2 * half as u64) + gap;
        format!("{start}\n\n... [{left_out} characters left out] ...\n\n{end}")
    }
}

/// Output as text, without empty lines around it.
fn tidy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_start_matches(['\n', '\r']).trim_end().to_owned()
}

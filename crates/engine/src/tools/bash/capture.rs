//! What a command prints: the start and the end in memory, all of it in a file.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;

/// How much is kept of the start, and of the end, in bytes.
pub(super) const MAX_KEPT_BYTES: usize = 160_000;
/// How much is written to the file.
const MAX_SAVED_BYTES: u64 = 64 << 20;

/// Output as it comes.
#[derive(Debug)]
pub(super) struct OutputCapture {
    output: Arc<Mutex<CapturedOutput>>,
    ended: watch::Receiver<bool>,
}

/// Output so far.
#[derive(Debug, Clone)]
pub(super) struct CapturedOutput {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total_bytes: u64,
    path: PathBuf,
    file: Option<Arc<File>>,
}

impl OutputCapture {
    /// Reads a pipe to its end, whoever waits for it; `at_once` writes the file from the first byte on.
    pub(super) fn start(mut pipe: Receiver, path: PathBuf, at_once: bool) -> io::Result<Self> {
        let file = if at_once { Some(Arc::new(create_private_file(&path)?)) } else { None };
        let captured = CapturedOutput { head: Vec::new(), tail: VecDeque::new(), total_bytes: 0, path, file };
        let kept = Arc::new(Mutex::new(captured));
        let (end, ended) = watch::channel(false);
        let shared = Arc::clone(&kept);
        tokio::spawn(async move {
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
                lock(&shared).push(&buffer[..count]);
            }
            let _ = end.send(true);
        });
        Ok(Self { output: kept, ended })
    }

    /// Waits until nobody can write any more.
    pub(super) async fn wait_for_end(&self) {
        let _ = self.ended.clone().wait_for(|ended| *ended).await;
    }

    /// All of it goes to the file, whatever has come already.
    pub(super) fn save_to_file(&self) {
        lock(&self.output).save_to_file();
    }

    /// What has come so far.
    pub(super) fn snapshot(&self) -> CapturedOutput {
        lock(&self.output).clone()
    }
}

fn lock(kept: &Mutex<CapturedOutput>) -> MutexGuard<'_, CapturedOutput> {
    kept.lock()
}

/// A file that only the person may read.
fn create_private_file(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

impl CapturedOutput {
    fn push(&mut self, bytes: &[u8]) {
        let room = MAX_KEPT_BYTES - self.head.len();
        if bytes.len() > room {
            self.save_to_file();
        }
        self.write_to_file(bytes);
        let (start, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(start);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(MAX_KEPT_BYTES);
        self.tail.drain(..over);
        self.total_bytes += bytes.len() as u64;
    }

    fn save_to_file(&mut self) {
        if self.file.is_none() {
            // A file that cannot be made leaves what is in memory.
            self.file = create_private_file(&self.path).ok().map(Arc::new);
            self.write_to_file(&self.head);
        }
    }

    fn write_to_file(&self, bytes: &[u8]) {
        if let Some(file) = self.file.as_deref().filter(|_| self.total_bytes < MAX_SAVED_BYTES) {
            let mut file = file;
            let _ = file.write_all(bytes);
        }
    }

    /// How much there was, in bytes.
    pub(super) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Where all of it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// All of it, when it is short enough; otherwise it is in the file.
    pub(super) fn full_text(&self, most: usize) -> Option<String> {
        let text = to_trimmed_text(&self.head);
        if self.tail.is_empty() && text.chars().count() <= most {
            return Some(text);
        }
        if self.file.is_none() {
            let _ = create_private_file(&self.path).and_then(|mut file| file.write_all(&self.head));
        }
        None
    }

    /// The first characters.
    pub(super) fn head_text(&self, most: usize) -> String {
        to_trimmed_text(&self.head).chars().take(most).collect()
    }

    /// The last characters, for those who watch.
    pub(super) fn tail_text(&self, most: usize) -> String {
        let (a, b) = self.tail.as_slices();
        let text = to_trimmed_text(&[&self.head, a, b].concat());
        let skip = text.chars().count().saturating_sub(most);
        text.chars().skip(skip).collect()
    }

    /// All of it, or its start and its end with a note between.
    pub(super) fn head_and_tail_text(&self, most: usize) -> String {
        let (a, b) = self.tail.as_slices();
        let text = to_trimmed_text(&[&self.head, a, b].concat());
        let count = text.chars().count();
        let gap = self.total_bytes.saturating_sub((self.head.len() + self.tail.len()) as u64);
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
fn to_trimmed_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_start_matches(['\n', '\r']).trim_end().to_owned()
}

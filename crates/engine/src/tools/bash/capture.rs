//! Capture of command output: start and end in memory, all of it in a file.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;

use crate::private_file;

/// Bytes output in memory of the start, and as many of the end.
pub(super) const MAX_KEPT_BYTES: usize = 160_000;
/// Maximum size of the file.
const MAX_SAVED_BYTES: u64 = 64 << 20;

/// Reads output in a background task.
#[derive(Debug)]
pub(super) struct OutputCapture {
    output: Arc<Mutex<CapturedOutput>>,
    ended: watch::Receiver<bool>,
}

/// The output captured so far.
#[derive(Debug, Clone)]
pub(super) struct CapturedOutput {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total_bytes: u64,
    path: PathBuf,
    file: Option<Arc<File>>,
}

impl OutputCapture {
    /// Starts reading a pipe to its end. With `at_once` the file is written from the first byte.
    pub(super) fn start(mut pipe: Receiver, path: PathBuf, at_once: bool) -> io::Result<Self> {
        let file = if at_once { Some(Arc::new(create_private_file(&path)?)) } else { None };
        let captured = CapturedOutput { head: Vec::new(), tail: VecDeque::new(), total_bytes: 0, path, file };
        let output = Arc::new(Mutex::new(captured));
        let (end, ended) = watch::channel(false);
        let shared = Arc::clone(&output);
        tokio::spawn(async move {
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
                lock(&shared).push(&buffer[..count]);
            }
            let _ = end.send(true);
        });
        Ok(Self { output, ended })
    }

    /// Waits until all writers have closed the pipe.
    pub(super) async fn wait_for_end(&self) {
        let _ = self.ended.clone().wait_for(|ended| *ended).await;
    }

    /// Writes the output so far, and everything that follows, to the file.
    pub(super) fn save_to_file(&self) {
        lock(&self.output).save_to_file();
    }

    /// Returns a copy of the output so far.
    pub(super) fn snapshot(&self) -> CapturedOutput {
        lock(&self.output).clone()
    }
}

fn lock(output: &Mutex<CapturedOutput>) -> MutexGuard<'_, CapturedOutput> {
    output.lock()
}

/// Creates a file that only the user can read; fails if it exists.
fn create_private_file(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

impl CapturedOutput {
    fn push(&mut self, bytes: &[u8]) {
        let remaining = MAX_KEPT_BYTES - self.head.len();
        if bytes.len() > remaining {
            self.save_to_file();
        }
        self.write_to_file(bytes);
        let (start, rest) = bytes.split_at(remaining.min(bytes.len()));
        self.head.extend_from_slice(start);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(MAX_KEPT_BYTES);
        self.tail.drain(..over);
        self.total_bytes += bytes.len() as u64;
    }

    fn save_to_file(&mut self) {
        if self.file.is_none() {
            // If the file cannot be created, only the part in memory is available.
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

    /// Returns the total size of the output, in bytes.
    pub(super) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Returns the whole output if it has at max_chars `max_chars` characters. Otherwise makes sure it is
    /// in the file and returns `None`.
    pub(super) fn full_text(&self, max_chars: usize) -> Option<String> {
        let text = to_trimmed_text(&self.head);
        if self.tail.is_empty() && text.chars().count() <= max_chars {
            return Some(text);
        }
        if self.file.is_none() {
            let _ = create_private_file(&self.path).and_then(|mut file| file.write_all(&self.head));
        }
        None
    }

    /// Returns the path of the file with the whole output.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Moves the file with the whole output to `<folder>/<id>.txt` and returns its path. If that
    /// fails, the file stays where it is.
    pub(super) fn move_to(&self, folder: &Path, id: &str) -> PathBuf {
        let to = folder.join(format!("{id}.txt"));
        let moved = private_file::create_folder(folder).and_then(|()| {
            // The folders may be on different file systems.
            fs::rename(&self.path, &to).or_else(|_| {
                fs::copy(&self.path, &to)?;
                fs::remove_file(&self.path)
            })
        });
        if moved.is_ok() { to } else { self.path.clone() }
    }

    /// Returns the first `max_chars` characters.
    pub(super) fn head_text(&self, max_chars: usize) -> String {
        to_trimmed_text(&self.head).chars().take(max_chars).collect()
    }

    /// Returns the last `max_chars` characters.
    pub(super) fn tail_text(&self, max_chars: usize) -> String {
        let (a, b) = self.tail.as_slices();
        let text = to_trimmed_text(&[&self.head, a, b].concat());
        let skip = text.chars().count().saturating_sub(max_chars);
        text.chars().skip(skip).collect()
    }

    /// Returns the whole output, or its start and end with a note in between.
    pub(super) fn head_and_tail_text(&self, max_chars: usize) -> String {
        let (a, b) = self.tail.as_slices();
        let text = to_trimmed_text(&[&self.head, a, b].concat());
        let count = text.chars().count();
        let gap = self.total_bytes.saturating_sub((self.head.len() + self.tail.len()) as u64);
        if count <= max_chars && gap == 0 {
            return text;
        }
        let half = max_chars / 2;
        let start: String = text.chars().take(half).collect();
        let end: String = text.chars().skip(count - half.min(count)).collect();
        let left_out = (count as u64).saturating_sub(2 * half as u64) + gap;
        format!("{start}\n\n... [{left_out} characters left out] ...\n\n{end}")
    }
}

/// Decodes output and trims empty lines around it.
fn to_trimmed_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_start_matches(['\n', '\r']).trim_end().to_owned()
}

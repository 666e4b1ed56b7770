//! Keeps the skeletons of large session files, so that a part of a long session is shown at once.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use quipu_conversation::Skeleton;
use quipu_conversation::usage::stable_hash;
use quipu_transcript::{FileError, FileSkeleton};

use crate::catalogue::hash_tail;
use crate::store::open_private;

/// Files of which fewer bytes are new are read again instead; that takes a few milliseconds.
const MIN_NEW_BYTES: u64 = 8 << 20;
/// Bytes that are stored with one hash.
const BLOCK_BYTES: usize = 1 << 20;

/// Stored skeletons in the cache folder, one file for each session file. They may be deleted at any
/// time, and those that were not written for thirty days are deleted with unused indexes.
#[derive(Debug)]
pub struct SkeletonStore {
    folder: PathBuf,
}

impl SkeletonStore {
    /// Keeps skeletons in this folder, which need not exist yet.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// The skeleton of a session file. Only lines that were written since it was stored are read;
    /// all of them if the file was cut, replaced or rewritten. Fails if the file cannot be opened.
    ///
    /// A skeleton that cannot be stored is no error: the file is read again the next time.
    pub fn read(&self, path: &Path) -> Result<FileSkeleton, FileError> {
        let mut file = self.load(path).unwrap_or_default();
        let stored = file.offset;
        file.read_on(path)?;
        if file.offset - stored >= MIN_NEW_BYTES
            && file.skeleton.is_storable()
            && let Err(error) = self.store(path, &file)
        {
            tracing::debug!(target: "quipu::index", path = %path.display(), %error, "cannot store a skeleton");
        }
        Ok(file)
    }

    /// The stored skeleton; `None` if there is none or the bytes it was made of have changed.
    fn load(&self, path: &Path) -> Option<FileSkeleton> {
        let mut input = BlockReader::new(BufReader::new(File::open(self.stored_path(path)).ok()?));
        let mut numbers = [0; 3];
        for number in &mut numbers {
            let mut bytes = [0; 8];
            input.read_exact(&mut bytes).ok()?;
            *number = u64::from_le_bytes(bytes);
        }
        let [offset, lines, fingerprint] = numbers;
        if fingerprint != file_fingerprint(path, offset).ok()? {
            return None;
        }
        Some(FileSkeleton::from_stored(Skeleton::read_stored(&mut input)?, offset, lines))
    }

    fn store(&self, path: &Path, file: &FileSkeleton) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let stored_path = self.stored_path(path);
        // Another command may store the same file; each writes its own and renames it.
        let temporary = stored_path.with_extension(format!("{}.tmp", std::process::id()));
        let write = || {
            let mut out = BlockWriter::new(BufWriter::new(open_private(&temporary)?));
            for number in [file.offset, file.lines, file_fingerprint(path, file.offset)?] {
                out.write_all(&number.to_le_bytes())?;
            }
            file.skeleton.store(&mut out)?;
            out.flush()?;
            fs::rename(&temporary, &stored_path)
        };
        write().inspect_err(|_| _ = fs::remove_file(&temporary))
    }

    fn stored_path(&self, path: &Path) -> PathBuf {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        self.folder.join(format!("index-skeleton-{:016x}", stable_hash(path.as_os_str().as_encoded_bytes())))
    }
}

/// Identifies a file and its bytes up to an offset: by inode and by the bytes at both ends. Fails
/// if the file is shorter.
fn file_fingerprint(path: &Path, offset: u64) -> io::Result<u64> {
    let mut file = File::open(path)?;
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&file.metadata()?);
    #[cfg(not(unix))]
    let inode = 0;
    let start = hash_tail(&mut file, offset.min(64))?;
    Ok(stable_hash(&[inode, start, hash_tail(&mut file, offset)?].map(u64::to_le_bytes).concat()))
}

/// Writes blocks with their length and hash.
struct BlockWriter<W> {
    out: W,
    block: Vec<u8>,
}

impl<W: Write> BlockWriter<W> {
    fn new(out: W) -> Self {
        Self { out, block: Vec::with_capacity(BLOCK_BYTES) }
    }

    fn write_block(&mut self) -> io::Result<()> {
        self.out.write_all(&(self.block.len() as u64).to_le_bytes())?;
        self.out.write_all(&stable_hash(&self.block).to_le_bytes())?;
        self.out.write_all(&self.block)?;
        self.block.clear();
        Ok(())
    }
}

impl<W: Write> Write for BlockWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.block.len() >= BLOCK_BYTES {
            self.write_block()?;
        }
        let part = &bytes[..bytes.len().min(BLOCK_BYTES - self.block.len())];
        self.block.extend_from_slice(part);
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_block()?;
        self.out.flush()
    }
}

/// Reads what a [`BlockWriter`] wrote. A damaged block is an error.
struct BlockReader<R> {
    input: R,
    block: Vec<u8>,
    /// Number of bytes of the block that were read.
    read: usize,
}

impl<R: Read> BlockReader<R> {
    fn new(input: R) -> Self {
        Self { input, block: Vec::new(), read: 0 }
    }

    fn read_block(&mut self) -> io::Result<()> {
        let mut number = || {
            let mut bytes = [0; 8];
            self.input.read_exact(&mut bytes).map(|()| u64::from_le_bytes(bytes))
        };
        let (length, hash) = (number()?, number()?);
        let length = usize::try_from(length).ok().filter(|length| (1..=BLOCK_BYTES).contains(length));
        self.block.resize(length.ok_or(io::ErrorKind::InvalidData)?, 0);
        self.input.read_exact(&mut self.block)?;
        self.read = 0;
        if stable_hash(&self.block) == hash { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
    }
}

impl<R: Read> Read for BlockReader<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.read == self.block.len() {
            self.read_block()?;
        }
        let length = bytes.len().min(self.block.len() - self.read);
        bytes[..length].copy_from_slice(&self.block[self.read..self.read + length]);
        self.read += length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use quipu_conversation::UiOptions;
    use quipu_transcript::SessionSkeleton;

    use super::*;

    fn line(n: usize) -> String {
        let text = "x".repeat(4000);
        format!(r#"{{"type":"user","uuid":"u{n}","message":{{"role":"user","content":"{n} {text}"}}}}"#) + "\n"
    }

    /// A session file that is large enough to be stored.
    fn large_file(folder: &Path) -> PathBuf {
        let path = folder.join("s.jsonl");
        fs::write(&path, (0..3000).map(line).collect::<String>()).unwrap();
        path
    }

    fn stored_files(folder: &Path) -> Vec<PathBuf> {
        fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn a_stored_skeleton_is_continued_when_the_file_grows() {
        let (sessions, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (path, store) = (large_file(sessions.path()), SkeletonStore::new(cache.path()));
        let first = store.read(&path).unwrap();
        assert_eq!((first.lines, stored_files(cache.path()).len()), (3000, 1));
        let stored = store.load(&path).unwrap();
        assert_eq!((stored.lines, stored.offset), (3000, first.offset));
        let last_items = |session: SessionSkeleton| session.view().tail(5, UiOptions::default(), |_| ());
        let from_store = SessionSkeleton::open_with(&path, |path| store.read(path)).unwrap();
        assert_eq!(last_items(from_store), last_items(SessionSkeleton::open(&path).unwrap()));

        OpenOptions::new().append(true).open(&path).unwrap().write_all(line(3000).as_bytes()).unwrap();
        assert_eq!(store.read(&path).unwrap().lines, 3001);
        assert_eq!(store.load(&path).unwrap().lines, 3000, "too little is new");
    }

    #[test]
    fn a_file_that_was_cut_replaced_or_rewritten_is_read_again() {
        let (sessions, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (path, store) = (large_file(sessions.path()), SkeletonStore::new(cache.path()));
        let original = fs::read(&path).unwrap();
        store.read(&path).unwrap();
        fs::write(&path, &original[..original.len() / 2]).unwrap();
        assert!(store.load(&path).is_none(), "cut");
        fs::write(&path, &original).unwrap();
        assert!(store.load(&path).is_some());
        let mut rewritten = original.clone();
        let last = rewritten.len() - 20;
        rewritten[last] = b'y';
        fs::write(&path, &rewritten).unwrap();
        assert!(store.load(&path).is_none(), "rewritten");
        let other = path.with_extension("other");
        fs::write(&other, &original).unwrap();
        fs::rename(&other, &path).unwrap();
        #[cfg(unix)]
        assert!(store.load(&path).is_none(), "replaced");
        assert_eq!(store.read(&path).unwrap().lines, 3000);
    }

    #[test]
    fn a_damaged_skeleton_is_not_used() {
        let (sessions, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (path, store) = (large_file(sessions.path()), SkeletonStore::new(cache.path()));
        store.read(&path).unwrap();
        let stored = stored_files(cache.path()).remove(0);
        let bytes = fs::read(&stored).unwrap();
        for at in (0..bytes.len()).step_by(bytes.len() / 50) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            fs::write(&stored, damaged).unwrap();
            assert!(store.load(&path).is_none(), "{at}");
        }
        fs::write(&stored, &bytes[..bytes.len() / 2]).unwrap();
        assert!(store.load(&path).is_none());
        fs::write(&stored, &bytes).unwrap();
        assert!(store.load(&path).is_some());
    }

    #[test]
    fn small_files_are_not_stored() {
        let (sessions, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = sessions.path().join("s.jsonl");
        fs::write(&path, line(1)).unwrap();
        assert_eq!(SkeletonStore::new(cache.path()).read(&path).unwrap().lines, 1);
        assert!(stored_files(cache.path()).is_empty());
    }
}

//! The token that a client sends with each request, so that other accounts of the machine cannot
//! read sessions.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Bytes of a new token.
const TOKEN_BYTES: usize = 32;

/// The secret of a server. It is not part of debug output.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Reads the token of a file, or creates the file, with mode 0600, in a folder that need not
    /// exist yet. A file that others may read is replaced. Fails if it cannot be written.
    pub fn load_or_create(path: &Path) -> io::Result<Self> {
        if let Some(token) = read_private(path) {
            return Ok(Self(token));
        }
        let token = Self::random()?;
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        // A new file that is renamed: another command may create the token at the same time.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(token.0.as_bytes())?;
        file.persist(path)?;
        Ok(read_private(path).map_or(token, Self))
    }

    /// A new token from the random numbers of the operating system.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The token, to be shown to the user.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares in a time that depends only on the length, so that a token cannot be guessed byte by
    /// byte.
    pub(crate) fn matches(&self, other: &str) -> bool {
        let (own, other) = (self.0.as_bytes(), other.as_bytes());
        let difference = own.iter().zip(other).fold(0, |difference, (a, b)| difference | (a ^ b));
        own.len() == other.len() && std::hint::black_box(difference) == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// The token of a file; `None` if there is none, or if others may read the file.
fn read_private(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        if file.metadata().ok()?.mode() & 0o077 != 0 {
            return None;
        }
    }
    let text = io::read_to_string(file).ok()?;
    let is_token = text.len() == 2 * TOKEN_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_token.then_some(text)
}

//! Keeps credentials out of capture files.
//!
//! Headers that hold a credential are stored as a keyed hash, so that a reader can see that
//! two calls used the same one. The credentials themselves are remembered in memory, and
//! wherever one of them occurs in a URL, header or body it is overwritten with `*`, which
//! keeps the length.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::credentials::is_credential_header;

/// Shorter texts are not masked in bodies: they would hit ordinary words.
const MIN_SECRET_BYTES: usize = 8;

/// Most credentials that are remembered; tokens are renewed in long runs.
const MAX_SECRETS: usize = 64;

/// Credentials seen so far, and the key of their hashes.
#[derive(Debug, Default)]
pub(super) struct Secrets {
    values: VecDeque<Vec<u8>>,
    /// Random in each run, so that a hash cannot be looked up.
    hasher: RandomState,
}

impl Secrets {
    /// Remembers a credential, so that it is masked wherever it occurs.
    pub(super) fn add(&mut self, value: &[u8]) {
        if value.len() < MIN_SECRET_BYTES || self.values.iter().any(|known| known == value) {
            return;
        }
        // Longer ones first: a shorter one may be a part of them.
        let place = self.values.partition_point(|known| known.len() >= value.len());
        self.values.insert(place, value.to_vec());
        if self.values.len() > MAX_SECRETS {
            self.values.pop_back();
        }
    }

    /// Remembers the credentials among headers.
    pub(super) fn learn(&mut self, headers: &HeaderMap) {
        for (name, value) in headers.iter().filter(|(name, _)| is_credential(name)) {
            for part in credential_parts(name, value) {
                self.add(part);
            }
        }
    }

    /// Value of a header as it is stored: a hash of a credential, other values masked.
    pub(super) fn stored_value(&self, name: &HeaderName, value: &HeaderValue) -> Vec<u8> {
        if is_credential(name) {
            let mut hasher = self.hasher.build_hasher();
            hasher.write(value.as_bytes());
            format!("hash:{:016x}", hasher.finish()).into_bytes()
        } else {
            let mut text = value.as_bytes().to_vec();
            self.mask(&mut text);
            text
        }
    }

    /// The text with every credential overwritten. Copies it only if there is one.
    pub(super) fn masked(&self, text: Bytes) -> Bytes {
        if self.values.iter().any(|secret| memchr::memmem::find(&text, secret).is_some()) {
            let mut text = text.to_vec();
            self.mask(&mut text);
            text.into()
        } else {
            text
        }
    }

    /// Overwrites every credential in a text.
    pub(super) fn mask(&self, text: &mut [u8]) {
        for secret in &self.values {
            let mut from = 0;
            while let Some(found) = memchr::memmem::find(&text[from..], secret) {
                let start = from + found;
                text[start..start + secret.len()].fill(b'*');
                from = start + secret.len();
            }
        }
    }

    /// Number of bytes at the end of a text that may be the start of a credential.
    fn partial_suffix(&self, text: &[u8]) -> usize {
        let longest = |secret: &Vec<u8>| {
            let most = text.len().min(secret.len() - 1);
            (1..=most).rev().find(|length| text.ends_with(&secret[..*length])).unwrap_or(0)
        };
        self.values.iter().map(longest).max().unwrap_or(0)
    }
}

/// Masks a stream whose pieces may end in the middle of a credential.
#[derive(Debug, Default)]
pub(super) struct StreamMasker {
    held_back: Vec<u8>,
}

impl StreamMasker {
    /// Returns the bytes that can be stored; the rest is held back until the next call.
    pub(super) fn push(&mut self, bytes: Bytes, secrets: &Secrets) -> Bytes {
        if self.held_back.is_empty() && secrets.partial_suffix(&bytes) == 0 {
            return secrets.masked(bytes);
        }
        let mut text = std::mem::take(&mut self.held_back);
        text.extend_from_slice(&bytes);
        secrets.mask(&mut text);
        self.held_back = text.split_off(text.len() - secrets.partial_suffix(&text));
        text.into()
    }

    /// The bytes held back at the end of the stream.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held_back)
    }
}

fn is_credential(name: &HeaderName) -> bool {
    is_credential_header(name.as_str())
}

/// The parts of a header value that are secret: the words of `Bearer TOKEN`, the values of cookies.
fn credential_parts<'a>(name: &HeaderName, value: &'a HeaderValue) -> Vec<&'a [u8]> {
    let bytes = value.as_bytes();
    let cookie_value = |pair: &'a [u8]| pair.iter().position(|byte| *byte == b'=').map(|at| &pair[at + 1..]);
    match name.as_str() {
        "cookie" => bytes.split(|byte| *byte == b';').filter_map(cookie_value).collect(),
        "set-cookie" => bytes.split(|byte| *byte == b';').take(1).filter_map(cookie_value).collect(),
        _ => bytes.split(u8::is_ascii_whitespace).collect(),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, HeaderName, HeaderValue};

    use super::{Secrets, StreamMasker};

    const KEY: &str = "sk-ant-api03-secret-secret";

    fn secrets() -> Secrets {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", HeaderValue::from_static("Bearer sk-ant-api03-secret-secret"));
        let mut secrets = Secrets::default();
        secrets.learn(&headers);
        secrets
    }

    #[test]
    fn credentials_become_hashes_and_other_headers_stay() {
        let secrets = secrets();
        let stored = |name: &'static str, value: &'static str| {
            let value = secrets.stored_value(&HeaderName::from_static(name), &HeaderValue::from_static(value));
            String::from_utf8(value).unwrap()
        };
        for name in ["x-api-key", "authorization", "proxy-authorization", "cookie", "x-goog-api-key", "x-auth-token"] {
            let hash = stored(name, "some value");
            assert!(hash.starts_with("hash:") && hash.len() == 21, "{name}: {hash}");
        }
        assert_eq!(stored("x-api-key", "a"), stored("authorization", "a"));
        assert_ne!(stored("x-api-key", "a"), stored("x-api-key", "b"));
        for name in ["anthropic-ratelimit-tokens-remaining", "x-claude-code-session-id", "anthropic-beta"] {
            assert_eq!(stored(name, "80000"), "80000");
        }
        assert_eq!(
            stored("x-note", "the key is sk-ant-api03-secret-secret."),
            format!("the key is {}.", "*".repeat(26))
        );
    }

    #[test]
    fn a_credential_is_masked_however_a_stream_is_split() {
        let secrets = secrets();
        let text = format!("sk-ant-{KEY} s {KEY}{KEY} sk-ant-api03-sec");
        let masked = text.replace(KEY, &"*".repeat(KEY.len()));
        for size in 1..=text.len() {
            let (mut masker, mut stored) = (StreamMasker::default(), Vec::new());
            for piece in text.as_bytes().chunks(size) {
                stored.extend_from_slice(&masker.push(Bytes::copy_from_slice(piece), &secrets));
            }
            stored.extend(masker.finish());
            assert_eq!(String::from_utf8(stored).unwrap(), masked, "pieces of {size}");
        }
    }
}

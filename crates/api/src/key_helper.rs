//! API keys from a callback, reused until they expire.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::error::ApiError;
use crate::secret::Secret;

/// Returns a key, or why there is none.
type FetchKey = dyn Fn() -> Pin<Box<dyn Future<Output = Result<String, String>> + Send>> + Send + Sync;

/// Gets API keys from a callback and reuses each until it expires or the API rejects it.
/// Clones share the key.
#[derive(Clone)]
pub struct KeyHelper {
    fetch: Arc<FetchKey>,
    ttl: Duration,
    cached: Arc<Mutex<Option<CachedKey>>>,
}

struct CachedKey {
    key: Secret,
    /// When the key was fetched; `None` if the API rejected it.
    fetched_at: Option<Instant>,
}

impl KeyHelper {
    /// A helper whose keys are reused for `ttl`. `fetch` returns a key, or why there is none;
    /// that text is shown and must not contain secrets.
    pub fn new(
        ttl: Duration,
        fetch: impl Fn() -> Pin<Box<dyn Future<Output = Result<String, String>> + Send>> + Send + Sync + 'static,
    ) -> Self {
        Self { fetch: Arc::new(fetch), ttl, cached: Arc::default() }
    }

    /// The cached key, or a new one if it has expired or was rejected.
    pub(crate) async fn key(&self) -> Result<Secret, ApiError> {
        let usable = |cached: &&CachedKey| cached.fetched_at.is_some_and(|at| at.elapsed() < self.ttl);
        if let Some(cached) = self.cached.lock().as_ref().filter(usable) {
            return Ok(cached.key.clone());
        }
        let key = (self.fetch)().await.map_err(|reason| ApiError::NoKey { reason })?;
        let key = Secret::from(key.trim());
        *self.cached.lock() = Some(CachedKey { key: key.clone(), fetched_at: Some(Instant::now()) });
        Ok(key)
    }

    /// Marks the key as rejected, so that the next call fetches another.
    pub(crate) fn refuse(&self) {
        if let Some(cached) = self.cached.lock().as_mut() {
            cached.fetched_at = None;
        }
    }

    /// The text with the key masked.
    pub(crate) fn mask(&self, text: String) -> String {
        match self.cached.lock().as_ref() {
            Some(cached) => cached.key.mask_in(text),
            None => text,
        }
    }
}

impl fmt::Debug for KeyHelper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyHelper").field("ttl", &self.ttl).finish_non_exhaustive()
    }
}

impl PartialEq for KeyHelper {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.cached, &other.cached)
    }
}

impl Eq for KeyHelper {}

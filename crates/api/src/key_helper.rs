//! Keys that somebody else gives, and that expire.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::error::ApiError;
use crate::secret::Secret;

/// Gives a key, or says why there is none.
type Ask = dyn Fn() -> Pin<Box<dyn Future<Output = Result<String, String>> + Send>> + Send + Sync;

/// Gives keys, each used until it is old or refused. Clones share the key.
#[derive(Clone)]
pub struct KeyHelper {
    ask: Arc<Ask>,
    ttl: Duration,
    known: Arc<Mutex<Option<Known>>>,
}

struct Known {
    key: Secret,
    /// When it was given; `None` if the API refused it.
    given: Option<Instant>,
}

impl KeyHelper {
    /// A helper whose keys are used for `ttl`. `ask` gives a key, or says why there is none, in
    /// words that hold no secret.
    pub fn new(
        ttl: Duration,
        ask: impl Fn() -> Pin<Box<dyn Future<Output = Result<String, String>> + Send>> + Send + Sync + 'static,
    ) -> Self {
        Self { ask: Arc::new(ask), ttl, known: Arc::default() }
    }

    /// The key to send; asks for one if there is none that can be used.
    pub(crate) async fn key(&self) -> Result<Secret, ApiError> {
        let usable = |known: &&Known| known.given.is_some_and(|given| given.elapsed() < self.ttl);
        if let Some(known) = self.known.lock().as_ref().filter(usable) {
            return Ok(known.key.clone());
        }
        let key = (self.ask)().await.map_err(|reason| ApiError::NoKey { reason })?;
        let key = Secret::from(key.trim());
        *self.known.lock() = Some(Known { key: key.clone(), given: Some(Instant::now()) });
        Ok(key)
    }

    /// The API refused the key: the next call asks for another.
    pub(crate) fn refuse(&self) {
        if let Some(known) = self.known.lock().as_mut() {
            known.given = None;
        }
    }

    /// A text without the key.
    pub(crate) fn mask(&self, text: String) -> String {
        match self.known.lock().as_ref() {
            Some(known) => known.key.mask_in(text),
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
        Arc::ptr_eq(&self.known, &other.known)
    }
}

impl Eq for KeyHelper {}

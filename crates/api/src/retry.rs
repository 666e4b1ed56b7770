//! When to try again, and how long to wait before.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use crate::error::ApiError;

/// When to try again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    /// How often, after the first try.
    pub retries: u32,
    /// How long to wait before the first retry; each further one waits twice as long.
    pub first: Duration,
    /// The longest wait of our own choosing.
    pub longest: Duration,
    /// By which part a wait may be longer, so that many clients do not come at once.
    pub jitter: f64,
    /// The longest wait the server may ask for; beyond it the call fails.
    pub patience: Duration,
    /// How many overloads in a row make another model take over, when there is one.
    pub overloads: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            retries: 10,
            first: Duration::from_millis(500),
            longest: Duration::from_secs(32),
            jitter: 0.25,
            patience: Duration::from_secs(600),
            overloads: 3,
        }
    }
}

impl Policy {
    /// How long to wait before retry number `attempt`, counted from 1; none when
    /// trying again is of no use.
    pub(crate) fn wait(&self, error: &ApiError, attempt: u32, random: f64) -> Option<Duration> {
        if attempt > self.retries || !self.may_help(error, attempt) {
            return None;
        }
        if let Some(asked) = error.retry_after() {
            return (asked <= self.patience).then_some(asked);
        }
        let doubled = self.first.saturating_mul(1 << (attempt - 1).min(20)).min(self.longest);
        Some(doubled.mul_f64(1.0 + self.jitter * random.clamp(0.0, 1.0)))
    }

    fn may_help(&self, error: &ApiError, attempt: u32) -> bool {
        match error {
            ApiError::Connect { .. } | ApiError::Dropped { .. } | ApiError::Cut { .. } => true,
            ApiError::Late { .. } | ApiError::Silent { .. } => true,
            ApiError::Failed { kind, .. } => {
                matches!(kind.as_str(), "overloaded_error" | "rate_limit_error" | "api_error" | "timeout_error")
            }
            ApiError::Status { should_retry: Some(should), .. } => *should,
            // A refused key is tried once more: it may be changing just now.
            ApiError::Status { status: 401, .. } => attempt == 1,
            ApiError::Status { status, .. } => matches!(status, 408 | 409 | 429 | 500..),
            ApiError::BadAnswer { .. } | ApiError::BadRequest { .. } | ApiError::NoKey { .. } => false,
        }
    }
}

/// Time and chance, passed in so that tests need not wait.
pub trait Pace: Send + Sync + fmt::Debug {
    /// Waits.
    fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;
    /// A number from 0 to 1.
    fn random(&self) -> f64;
    /// The time of day, for servers that name a time instead of a wait.
    fn now(&self) -> SystemTime;
}

/// The real time, and chance.
#[derive(Debug, Clone, Copy, Default)]
pub struct WallClock;

impl Pace for WallClock {
    fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(time))
    }

    fn random(&self) -> f64 {
        // Every `RandomState` has keys of its own: chance enough for jitter.
        f64::from(RandomState::new().hash_one(0) as u32) / f64::from(u32::MAX)
    }

    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// How long a server asks us to wait: milliseconds, seconds or a date.
pub(crate) fn retry_after<'a>(header: impl Fn(&str) -> Option<&'a str>, now: SystemTime) -> Option<Duration> {
    let seconds = |text: &str| text.trim().parse().ok().and_then(|n: f64| Duration::try_from_secs_f64(n).ok());
    if let Some(wait) = header("retry-after-ms").and_then(seconds) {
        return Some(wait / 1000);
    }
    let text = header("retry-after")?;
    seconds(text).or_else(|| {
        let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
        Some(SystemTime::from(date).duration_since(now).unwrap_or_default())
    })
}

#[cfg(test)]
mod tests;

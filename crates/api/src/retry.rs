//! When to try again, and how long to wait before.

use std::fmt;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use crate::error::ApiError;

/// When to try again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// How often, after the first try.
    pub max_retries: u32,
    /// How long to wait before the first retry; each further one waits twice as long.
    pub initial_backoff: Duration,
    /// The longest wait of our own choosing.
    pub max_backoff: Duration,
    /// By which part a wait may be longer, so that many clients do not come at once.
    pub jitter: f64,
    /// The longest wait the server may ask for; beyond it the call fails.
    pub max_retry_after: Duration,
    /// How many overloads in a row make another model take over, when there is one.
    pub overloads_before_fallback: u32,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 10,
            initial_backoff: Duration::from_millis(500),
            max_backoff: Duration::from_secs(32),
            jitter: 0.25,
            max_retry_after: Duration::from_secs(600),
            overloads_before_fallback: 3,
        }
    }
}

impl RetryPolicy {
    /// How long to wait before retry number `attempt`, counted from 1; none when
    /// trying again is of no use.
    pub(crate) fn retry_delay(&self, error: &ApiError, attempt: u32, random: f64) -> Option<Duration> {
        if attempt > self.max_retries || !self.is_retryable(error, attempt) {
            return None;
        }
        if let Some(asked) = error.retry_after() {
            return (asked <= self.max_retry_after).then_some(asked);
        }
        let doubled = self.initial_backoff.saturating_mul(1 << (attempt - 1).min(20)).min(self.max_backoff);
        Some(doubled.mul_f64(1.0 + self.jitter * random.clamp(0.0, 1.0)))
    }

    fn is_retryable(&self, error: &ApiError, attempt: u32) -> bool {
        match error {
            ApiError::Connect { .. } | ApiError::ConnectionClosed { .. } | ApiError::Truncated { .. } => true,
            ApiError::ResponseTimeout { .. } | ApiError::IdleTimeout { .. } => true,
            ApiError::StreamFailed { kind, .. } => {
                matches!(kind.as_str(), "overloaded_error" | "rate_limit_error" | "api_error" | "timeout_error")
            }
            ApiError::Status { should_retry: Some(should), .. } => *should,
            // A refused key is tried once more: it may be changing just now.
            ApiError::Status { status: 401, .. } => attempt == 1,
            ApiError::Status { status, .. } => matches!(status, 408 | 409 | 429 | 500..),
            ApiError::BadResponse { .. } | ApiError::BadRequest { .. } | ApiError::NoKey { .. } => false,
        }
    }
}

/// Time and chance, passed in so that tests need not wait.
pub trait RetryClock: Send + Sync + fmt::Debug {
    /// Waits.
    fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;
    /// A number from 0 to 1.
    fn random(&self) -> f64;
    /// The time of day, for servers that name a time instead of a wait.
    fn now(&self) -> SystemTime;
}

/// The real time, and chance.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl RetryClock for SystemClock {
    fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(time))
    }

    fn random(&self) -> f64 {
        fastrand::f64()
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

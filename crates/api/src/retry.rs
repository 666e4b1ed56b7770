//! When a failed attempt is repeated, and after which delay.

use std::fmt;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use quipu_message::values::ApiErrorType;

use crate::error::ApiError;

/// When and how often a failed attempt is repeated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// Number of retries after the first attempt.
    pub max_retries: u32,
    /// Delay before the first retry; it doubles with each further one.
    pub initial_backoff: Duration,
    /// Longest delay, unless the server asks for another.
    pub max_backoff: Duration,
    /// Largest random addition to a delay, as a fraction of it, so that clients do not all
    /// retry at the same time.
    pub jitter: f64,
    /// Longest delay the server may ask for; the call fails if it asks for more.
    pub max_retry_after: Duration,
    /// Overload errors in a row after which the next fallback model is used.
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
    /// Delay before retry number `attempt`, from 1; `None` if there should be no retry.
    /// `random` is from 0 to 1.
    pub(crate) fn retry_delay(&self, error: &ApiError, attempt: u32, random: f64) -> Option<Duration> {
        if attempt > self.max_retries || !self.is_retryable(error, attempt) {
            return None;
        }
        if let Some(requested_delay) = error.retry_after() {
            return (requested_delay <= self.max_retry_after).then_some(requested_delay);
        }
        let doubled = self.initial_backoff.saturating_mul(1 << (attempt - 1).min(20)).min(self.max_backoff);
        Some(doubled.mul_f64(1.0 + self.jitter * random.clamp(0.0, 1.0)))
    }

    fn is_retryable(&self, error: &ApiError, attempt: u32) -> bool {
        match error {
            ApiError::Connect { .. } | ApiError::ConnectionClosed { .. } | ApiError::Truncated { .. } => true,
            ApiError::ResponseTimeout { .. } | ApiError::IdleTimeout { .. } => true,
            ApiError::StreamFailed { kind, .. } => {
                use ApiErrorType::{Api, Overloaded, RateLimit, Timeout};
                matches!(kind, Overloaded | RateLimit | Api | Timeout)
            }
            ApiError::Status { should_retry: Some(should), .. } => *should,
            // A rejected key is sent once more: it may be being replaced.
            ApiError::Status { status: 401, .. } => attempt == 1,
            ApiError::Status { status, .. } => matches!(status, 408 | 409 | 429 | 500..),
            ApiError::BadResponse { .. } | ApiError::BadRequest { .. } | ApiError::NoKey { .. } => false,
        }
    }
}

/// Source of time and randomness for retries; tests replace it to avoid waiting.
pub trait RetryClock: Send + Sync + fmt::Debug {
    /// Completes after `time`.
    fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;
    /// A random number from 0 to 1.
    fn random(&self) -> f64;
    /// The current time, for servers that send a date in `retry-after`.
    fn now(&self) -> SystemTime;
}

/// The clock of the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl RetryClock for SystemClock {
    fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(time))
    }

    fn random(&self) -> f64 {
        fastrand::f64()
    }

    #[expect(clippy::disallowed_methods, reason = "the clock that tests replace")]
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// Delay that response headers ask for, in milliseconds, seconds or as a date; `None` if they
/// do not.
pub(crate) fn retry_after<'a>(header: impl Fn(&str) -> Option<&'a str>, now: SystemTime) -> Option<Duration> {
    let seconds = |text: &str| text.trim().parse().ok().and_then(|n: f64| Duration::try_from_secs_f64(n).ok());
    if let Some(delay) = header("retry-after-ms").and_then(seconds) {
        return Some(delay / 1000);
    }
    let text = header("retry-after")?;
    seconds(text).or_else(|| {
        let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
        Some(SystemTime::from(date).duration_since(now).unwrap_or_default())
    })
}

#[cfg(test)]
mod tests;

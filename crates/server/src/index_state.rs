//! Whether the index is complete, and when it has to be brought up to date.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

/// When the index has to be brought up to date, and whether it is.
#[derive(Debug, Default)]
pub(crate) struct IndexState {
    is_ready: AtomicBool,
    wants_texts: AtomicBool,
    has_texts: AtomicBool,
    is_wanted: Mutex<bool>,
    wanted: Condvar,
}

impl IndexState {
    /// Whether all sessions that existed at the start are in the index.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed)
    }

    pub(crate) fn set_ready(&self) {
        self.is_ready.store(true, Ordering::Relaxed);
    }

    /// Makes the worker add the texts of all sessions, for searches, now and with each refresh. It
    /// takes seconds for each gigabyte, so it waits for the first search.
    pub(crate) fn request_texts(&self) {
        if !self.wants_texts.swap(true, Ordering::Relaxed) {
            self.request_refresh();
        }
    }

    pub(crate) fn wants_texts(&self) -> bool {
        self.wants_texts.load(Ordering::Relaxed)
    }

    /// Whether the texts of all sessions that existed at the last refresh can be searched.
    pub(crate) fn has_texts(&self) -> bool {
        self.has_texts.load(Ordering::Relaxed)
    }

    pub(crate) fn set_has_texts(&self) {
        self.has_texts.store(true, Ordering::Relaxed);
    }

    /// Makes the worker refresh the index soon.
    pub(crate) fn request_refresh(&self) {
        *self.is_wanted.lock() = true;
        self.wanted.notify_all();
    }

    /// Waits until a refresh is requested, and at least until `earliest`, or until the server stops.
    pub(crate) fn wait_for_request(&self, earliest: Instant, is_stopping: impl Fn() -> bool) {
        let mut is_wanted = self.is_wanted.lock();
        while !*is_wanted && !is_stopping() {
            self.wanted.wait(&mut is_wanted);
        }
        while !is_stopping() && !self.wanted.wait_until(&mut is_wanted, earliest).timed_out() {}
        *is_wanted = false;
    }
}

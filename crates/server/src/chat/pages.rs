//! How many pages are connected.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// Number of pages that follow the events of this server.
#[derive(Debug, Clone)]
pub(crate) struct PageCount(Arc<watch::Sender<usize>>);

impl Default for PageCount {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl PageCount {
    /// Counts a page until the returned value is dropped.
    pub(crate) fn add(&self) -> PageGuard {
        self.0.send_modify(|count| *count += 1);
        PageGuard(self.clone())
    }

    pub(crate) fn current(&self) -> usize {
        *self.0.borrow()
    }

    /// Returns when no page has been connected for some time without a break.
    pub(crate) async fn absent_for(&self, time: Duration) {
        let mut count = self.0.subscribe();
        loop {
            // Both fail only if the sender is gone, which `self` holds.
            let _ = count.wait_for(|count| *count == 0).await;
            let returned = count.wait_for(|count| *count > 0);
            if tokio::time::timeout(time, returned).await.is_err() {
                return;
            }
        }
    }
}

/// Counts one page.
#[derive(Debug)]
pub(crate) struct PageGuard(PageCount);

impl Drop for PageGuard {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn absence_begins_when_the_last_page_leaves() {
        let pages = PageCount::default();
        let (first, second) = (pages.add(), pages.add());
        let absent = tokio::spawn({
            let pages = pages.clone();
            async move {
                pages.absent_for(Duration::from_millis(1)).await;
                pages.current()
            }
        });
        for guard in [first, second] {
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert!(!absent.is_finished());
            drop(guard);
        }
        assert_eq!(absent.await.unwrap(), 0);
    }
}

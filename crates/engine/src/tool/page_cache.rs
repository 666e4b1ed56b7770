//! Cache of fetched web pages.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use url::Url;

/// Time for which a cached page is used.
const PAGE_TTL: Duration = Duration::from_secs(15 * 60);
/// Maximum number of cached pages.
const MAX_PAGES: usize = 50;

/// A page that was fetched, converted to text.
#[derive(Debug, Clone)]
pub(crate) struct FetchedPage {
    /// HTTP status of the response.
    pub(crate) status: reqwest::StatusCode,
    /// Size of the body before conversion, in bytes.
    pub(crate) bytes: usize,
    /// The body as text or Markdown.
    pub(crate) text: String,
}

/// Recently fetched pages, so that a second question about a page sends no request.
#[derive(Debug, Default)]
pub(crate) struct PageCache {
    pages: Mutex<HashMap<Url, (Instant, FetchedPage)>>,
}

impl PageCache {
    /// Returns a page fetched less than [`PAGE_TTL`] ago.
    pub(crate) fn get(&self, url: &Url, now: Instant) -> Option<FetchedPage> {
        let kept = self.lock();
        let (read, page) = kept.get(url)?;
        is_fresh(*read, now).then(|| page.clone())
    }

    /// Adds a page unless it is cached already: its age counts from the first fetch.
    pub(crate) fn insert(&self, url: Url, page: &FetchedPage, now: Instant) {
        let mut kept = self.lock();
        kept.retain(|_, (read, _)| is_fresh(*read, now));
        if kept.len() < MAX_PAGES {
            kept.entry(url).or_insert_with(|| (now, page.clone()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Url, (Instant, FetchedPage)>> {
        self.pages.lock()
    }
}

fn is_fresh(read: Instant, now: Instant) -> bool {
    now.duration_since(read) < PAGE_TTL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_cached_for_a_quarter_of_an_hour() {
        let (pages, read) = (PageCache::default(), Instant::now());
        let url = Url::parse("https://example.com/").unwrap();
        let page = FetchedPage { status: reqwest::StatusCode::OK, bytes: 2, text: "hi".to_owned() };
        pages.insert(url.clone(), &page, read);
        let later = read + PAGE_TTL - Duration::from_secs(1);
        // Inserting it again does not reset its age.
        pages.insert(url.clone(), &page, later);
        assert_eq!(pages.get(&url, later).map(|page| page.text).as_deref(), Some("hi"));
        assert!(pages.get(&url, read + PAGE_TTL).is_none());
    }
}

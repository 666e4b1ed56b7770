//! Pages that were read a short while ago.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use url::Url;

/// How long a page is as good as new.
const PAGE_TTL: Duration = Duration::from_secs(15 * 60);
/// How many pages are kept.
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

/// Pages that were read a short while ago, so that another question about one asks nobody.
#[derive(Debug, Default)]
pub(crate) struct PageCache {
    pages: Mutex<HashMap<Url, (Instant, FetchedPage)>>,
}

impl PageCache {
    /// A page that is still fresh.
    pub(crate) fn get(&self, url: &Url, now: Instant) -> Option<FetchedPage> {
        let kept = self.lock();
        let (read, page) = kept.get(url)?;
        is_fresh(*read, now).then(|| page.clone())
    }

    /// Keeps a page, from when it was first read.
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
    fn a_page_is_fresh_for_a_quarter_of_an_hour() {
        let (pages, read) = (PageCache::default(), Instant::now());
        let url = Url::parse("https://example.com/").unwrap();
        let page = FetchedPage { status: reqwest::StatusCode::OK, bytes: 2, text: "hi".to_owned() };
        pages.insert(url.clone(), &page, read);
        let later = read + PAGE_TTL - Duration::from_secs(1);
        // Reading it again does not make it younger.
        pages.insert(url.clone(), &page, later);
        assert_eq!(pages.get(&url, later).map(|page| page.text).as_deref(), Some("hi"));
        assert!(pages.get(&url, read + PAGE_TTL).is_none());
    }
}

//! Pages that were read a short while ago.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use url::Url;

use super::Page;

/// How long a page is as good as new.
const FRESH: Duration = Duration::from_secs(15 * 60);
/// How many pages are kept.
const MOST: usize = 50;

/// Pages that were read a short while ago, so that another question about one asks nobody.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    kept: Mutex<HashMap<Url, (Instant, Page)>>,
}

impl Pages {
    /// A page that is still fresh.
    pub(super) fn find(&self, url: &Url, now: Instant) -> Option<Page> {
        let kept = self.lock();
        let (read, page) = kept.get(url)?;
        is_fresh(*read, now).then(|| page.clone())
    }

    /// Keeps a page, from when it was first read.
    pub(super) fn keep(&self, url: Url, page: &Page, now: Instant) {
        let mut kept = self.lock();
        kept.retain(|_, (read, _)| is_fresh(*read, now));
        if kept.len() < MOST {
            kept.entry(url).or_insert_with(|| (now, page.clone()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Url, (Instant, Page)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_fresh(read: Instant, now: Instant) -> bool {
    now.duration_since(read) < FRESH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_fresh_for_a_quarter_of_an_hour() {
        let (pages, read) = (Pages::default(), Instant::now());
        let url = Url::parse("https://example.com/").unwrap();
        let page = Page { status: reqwest::StatusCode::OK, bytes: 2, text: "hi".to_owned() };
        pages.keep(url.clone(), &page, read);
        let later = read + FRESH - Duration::from_secs(1);
        // Reading it again does not make it younger.
        pages.keep(url.clone(), &page, later);
        assert_eq!(pages.find(&url, later).map(|page| page.text).as_deref(), Some("hi"));
        assert!(pages.find(&url, read + FRESH).is_none());
    }
}

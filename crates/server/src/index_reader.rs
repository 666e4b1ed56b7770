//! The connection to the index that requests use. The worker that refreshes it has its own.

use parking_lot::Mutex;
use quipu_index::{Catalogue, IndexError};

use crate::app::App;
use crate::error::ApiError;
use crate::index_worker::open_catalogue;

/// Opened with the first request, and again after an error.
#[derive(Debug, Default)]
pub(crate) struct IndexReader(Mutex<Option<Catalogue>>);

impl App {
    /// Calls `read` with the index as far as it is up to date.
    pub(crate) fn with_index<T>(&self, read: impl FnOnce(&Catalogue) -> Result<T, IndexError>) -> Result<T, ApiError> {
        let mut reader = self.index_reader.0.lock();
        let catalogue = match reader.take() {
            Some(catalogue) => catalogue,
            None => open_catalogue(self)?,
        };
        let result = read(&catalogue)?;
        *reader = Some(catalogue);
        Ok(result)
    }
}

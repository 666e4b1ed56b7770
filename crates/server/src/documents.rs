//! JSON documents that take long to compute, kept until the session changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;

use crate::app::App;
use crate::error::ApiError;
use crate::json::Json;

/// Documents that are kept at most.
const MAX_DOCUMENTS: usize = 16;
/// Bytes of all documents together.
const MAX_BYTES: usize = 12 << 20;

/// The documents that were asked for last.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    /// The one used last is the last one.
    kept: Mutex<Vec<Document>>,
}

#[derive(Debug)]
struct Document {
    path: PathBuf,
    /// Name of the path under the session, such as `explain`.
    name: &'static str,
    version: String,
    json: Arc<[u8]>,
}

impl Documents {
    fn find(&self, path: &Path, name: &str, version: &str) -> Option<Json> {
        let mut kept = self.kept.lock();
        let index = kept.iter().position(|other| other.path == path && other.name == name)?;
        let document = kept.remove(index);
        let json = (document.version == version).then(|| Json::encoded(Arc::clone(&document.json)))?;
        kept.push(document);
        Some(json)
    }

    fn keep(&self, document: Document) {
        let mut kept = self.kept.lock();
        kept.push(document);
        let mut bytes: usize = kept.iter().map(|document| document.json.len()).sum();
        while kept.len() > MAX_DOCUMENTS || bytes > MAX_BYTES && kept.len() > 1 {
            bytes -= kept.remove(0).json.len();
        }
    }
}

impl App {
    /// A document about a session: the one that was computed for the same version of its files, or
    /// what `compute` returns for its path.
    pub(crate) fn session_document<T: Serialize>(
        &self,
        key: &str,
        name: &'static str,
        compute: impl FnOnce(&Path) -> Result<T, ApiError>,
    ) -> Result<Json, ApiError> {
        let path = self.list.resolve(key)?;
        let version = self.sessions.with(&path, |session| session.version())?;
        if let Some(json) = self.documents.find(&path, name, &version) {
            return Ok(json);
        }
        let json = Json::new(&compute(&path)?);
        self.documents.keep(Document { path, name, version, json: json.bytes() });
        Ok(json)
    }
}

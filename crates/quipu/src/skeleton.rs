//! Opens sessions of any length without holding them.

use std::path::Path;

use anyhow::Result;
use quipu_index::SkeletonStore;
use quipu_transcript::{FileSkeleton, SessionSkeleton};

use crate::catalogue::cache_folder;

/// Opens a session without reading it whole; large files are read once and then only where they
/// have grown.
pub(crate) fn open_skeleton(path: &Path) -> Result<SessionSkeleton> {
    let store = cache_folder().map(|folder| SkeletonStore::new(&folder));
    Ok(SessionSkeleton::open_with(path, |path| {
        store.as_ref().map_or_else(|| FileSkeleton::read(path), |s| s.read(path))
    })?)
}

//! How the calls of a chat are captured.

use quipu_trace::capture::CaptureFolder;

#[cfg_attr(not(feature = "capture"), path = "capture/unavailable.rs")]
mod running;

pub(super) use running::RunningCapture;

/// Where a capture is written and where its calls go.
#[derive(Debug, Clone)]
#[cfg_attr(not(feature = "capture"), expect(dead_code, reason = "nothing is captured"))]
pub(super) struct CaptureOptions {
    pub(super) folder: CaptureFolder,
    /// Address of the API; the usual one if `None`.
    pub(super) api_url: Option<String>,
    /// Credentials that are masked.
    pub(super) secrets: Vec<String>,
}

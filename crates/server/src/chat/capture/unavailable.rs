//! In place of the capture proxy in a program without HTTP client and TLS.

use std::convert::Infallible;

use jiff::Timestamp;
use quipu_trace::capture::CaptureFolder;

use super::view::ChatCapture;

#[derive(Debug, Clone)]
pub(super) struct CaptureOptions {
    pub(super) folder: CaptureFolder,
    pub(super) api_url: Option<String>,
    pub(super) secrets: Vec<String>,
}

/// There is none.
#[derive(Debug)]
pub(super) struct RunningCapture(Infallible);

impl RunningCapture {
    pub(super) async fn start(_: &CaptureOptions, _: Timestamp) -> Result<Self, String> {
        Err("this program was built without captures".to_owned())
    }

    pub(super) fn url(&self) -> String {
        match self.0 {}
    }

    pub(super) fn view(&self) -> ChatCapture {
        match self.0 {}
    }

    pub(super) async fn finish(self) {
        match self.0 {}
    }
}

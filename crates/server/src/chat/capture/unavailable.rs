//! In place of the capture proxy in a program without HTTP client and TLS.

use std::convert::Infallible;

use jiff::Timestamp;

use super::CaptureOptions;
use crate::chat::view::ChatCapture;

/// There is none.
#[derive(Debug)]
pub(in crate::chat) struct RunningCapture(Infallible);

impl RunningCapture {
    pub(in crate::chat) async fn start(_: &CaptureOptions, _: Timestamp) -> Result<Self, String> {
        Err("this program was built without captures".to_owned())
    }

    pub(in crate::chat) fn url(&self) -> String {
        match self.0 {}
    }

    pub(in crate::chat) fn view(&self) -> ChatCapture {
        match self.0 {}
    }

    pub(in crate::chat) async fn finish(self) {
        match self.0 {}
    }
}

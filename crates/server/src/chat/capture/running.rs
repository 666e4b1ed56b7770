//! The capture proxy between an agent and the API.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};
use quipu_trace::capture::{CaptureLog, CaptureProxy, DEFAULT_UPSTREAM, LogOptions, MAX_FOLDER_BYTES};
use quipu_transcript::error_chain;

use super::CaptureOptions;
use crate::chat::view::ChatCapture;

/// Captures that may have been started in the same second.
const MAX_NAMES: i64 = 60;

/// A proxy that records the calls of one chat.
#[derive(Debug)]
pub(in crate::chat) struct RunningCapture {
    proxy: CaptureProxy,
    path: PathBuf,
}

impl RunningCapture {
    /// Starts a proxy on a free port. Fails if the capture cannot be written.
    pub(in crate::chat) async fn start(options: &CaptureOptions, now: Timestamp) -> Result<Self, String> {
        options.folder.prune(MAX_FOLDER_BYTES);
        let upstream = options.api_url.as_deref().filter(|url| !url.is_empty()).unwrap_or(DEFAULT_UPSTREAM);
        let (path, log) = create_log(options, upstream, now)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let proxy = CaptureProxy::start(address, upstream, log).await;
        let proxy = proxy.map_err(|error| format!("cannot capture calls: {}", error_chain(&error)))?;
        Ok(Self { proxy, path })
    }

    /// The address that the agent uses.
    pub(in crate::chat) fn url(&self) -> String {
        self.proxy.url()
    }

    pub(in crate::chat) fn view(&self) -> ChatCapture {
        ChatCapture { path: self.path.display().to_string(), calls: self.proxy.log().stats().calls }
    }

    /// Writes what is left.
    pub(in crate::chat) async fn finish(self) {
        self.proxy.shut_down().await;
    }
}

/// Creates the file. Its name is the time; another chat may have taken the same one.
fn create_log(options: &CaptureOptions, upstream: &str, now: Timestamp) -> Result<(PathBuf, CaptureLog), String> {
    for seconds in 0..MAX_NAMES {
        let time = now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(now);
        let names = options.folder.new_capture(time).map_err(|error| format!("cannot capture calls: {error}"))?;
        let (path, session_list) = names;
        let log = CaptureLog::create(
            &path,
            &LogOptions {
                upstream: upstream.to_owned(),
                max_bytes: Some(MAX_FOLDER_BYTES),
                secrets: options.secrets.clone(),
                session_list: Some(session_list),
            },
        );
        match log {
            Ok(log) => return Ok((path, log)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(format!("cannot write the capture {}: {error}", path.display())),
        }
    }
    Err("cannot capture calls: no name is free".to_owned())
}

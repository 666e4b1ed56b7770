//! Captures API calls: a reverse proxy, the file it writes, and the reader of that file.
//!
//! ```text
//!   client ⇄ proxy ⇄ upstream
//!              │ copies
//!           CaptureLog ── queue ── writer thread ── capture file ── CaptureReader
//! ```
//!
//! The format of the file is described in `docs/capture.md`.

#[cfg_attr(not(feature = "proxy"), allow(dead_code, reason = "only the proxy writes"))]
mod bases;
#[cfg_attr(not(feature = "proxy"), allow(dead_code, reason = "only the proxy writes"))]
mod delta;
#[cfg_attr(not(feature = "proxy"), allow(dead_code, reason = "only the proxy writes"))]
mod folder;
pub(crate) mod import;
#[cfg(feature = "proxy")]
mod log;
#[cfg(feature = "proxy")]
mod mask;
#[cfg(feature = "proxy")]
mod proxy;
mod reader;
#[cfg_attr(not(feature = "proxy"), allow(dead_code, reason = "only the proxy writes"))]
mod record;
#[cfg(feature = "proxy")]
mod writer;

/// Where calls go unless another address is named.
pub const DEFAULT_UPSTREAM: &str = "https://api.anthropic.com";

pub use folder::{CaptureFolder, MAX_FOLDER_BYTES, Pruned};
#[cfg(feature = "proxy")]
pub use log::{CaptureLog, LogOptions, LogStats};
#[cfg(feature = "proxy")]
pub use proxy::{CaptureProxy, ProxyError};
pub use reader::{CaptureItem, CaptureReader, CapturedCall, Head};

//! Writes traces for other tools: HTTP archives, and spans of OpenTelemetry.

mod har;
mod spans;

pub use har::write_har;
pub use spans::{ExportedSpans, export_spans};

//! Folder of raw bodies that Claude Code writes if `OTEL_LOG_RAW_API_BODIES` is `file:<folder>`:
//! `<uuid>.request.json` and `<request id>.response.json`.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::Timestamp;
use quipu_message::line::replace_lone_surrogates;
use quipu_message::request_view::RequestView;

use super::fields::response_of;
use super::{CaptureFormat, ImportError};
use crate::builder::TraceBuilder;
use crate::raw_call::RawCall;

/// A file of the folder.
struct BodyFile {
    path: PathBuf,
    /// Part of the name before `.request.json` or `.response.json`.
    id: String,
    is_request: bool,
    modified: SystemTime,
}

/// A request that waits for its response.
struct OpenRequest {
    file: BodyFile,
    text: String,
    model: String,
}

/// Imports the calls of a folder in the order in which the files were written.
///
/// Names do not tell which response belongs to which request. A response is given to the
/// earliest request before it that has no response yet and names the same model.
pub(super) fn import(folder: &Path, builder: &mut TraceBuilder) -> Result<(), ImportError> {
    let files = list_files(folder).map_err(|source| ImportError::Read { path: folder.to_owned(), source })?;
    if files.is_empty() {
        return Err(ImportError::UnknownFormat { path: folder.to_owned() });
    }
    builder.start_source(folder, CaptureFormat::RawBodies);
    let mut open: VecDeque<OpenRequest> = VecDeque::new();
    for (file, number) in files.into_iter().zip(1..) {
        let text = match fs::read_to_string(&file.path) {
            Ok(text) => replace_lone_surrogates(&text).into_owned(),
            Err(error) => {
                builder.push_problem(number, format!("{}: {error}", file.path.display()));
                continue;
            }
        };
        if file.is_request {
            let model = model_of(&text);
            open.push_back(OpenRequest { file, text, model });
            continue;
        }
        let model = model_of(&text);
        let found = open.iter().position(|request| model.is_empty() || request.model == model);
        push_call(found.and_then(|i| open.remove(i)), Some((&file, &text)), number, builder);
    }
    for request in open {
        push_call(Some(request), None, 0, builder);
    }
    Ok(())
}

/// Model of a request or of the message in a response; empty if there is none.
fn model_of(text: &str) -> String {
    RequestView::read(text).ok().and_then(|view| view.model).unwrap_or_default().into_owned()
}

fn push_call(request: Option<OpenRequest>, response: Option<(&BodyFile, &str)>, line: u64, builder: &mut TraceBuilder) {
    let mut call = RawCall { url: "/v1/messages".into(), line, ..RawCall::default() };
    if let Some(request) = request {
        call.started_at = Timestamp::try_from(request.file.modified).ok();
        call.source_id = request.file.id.into();
        call.request_body = request.text.into();
    } else {
        builder.push_problem(line, "a response without a request");
    }
    if let Some((file, text)) = response {
        call.ended_at = Timestamp::try_from(file.modified).ok();
        call.response_headers.push(("request-id".into(), file.id.clone().into()));
        call.response = response_of(text.into());
    }
    builder.push(&call);
}

/// The bodies in a folder, the earliest first.
fn list_files(folder: &Path) -> io::Result<Vec<BodyFile>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let (request, response) = (name.strip_suffix(".request.json"), name.strip_suffix(".response.json"));
        let Some(id) = request.or(response) else { continue };
        let modified = fs::metadata(&path)?.modified()?;
        files.push(BodyFile { id: id.to_owned(), is_request: request.is_some(), modified, path });
    }
    // Requests come first among files of the same time.
    files.sort_by(|a, b| (a.modified, !a.is_request, &a.id).cmp(&(b.modified, !b.is_request, &b.id)));
    Ok(files)
}

//! The page: files that are compiled into the program.

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use rust_embed::RustEmbed;

/// The built page; empty if it was not built before the program.
#[derive(RustEmbed)]
#[folder = "dist"]
struct Page;

/// Shown if the program has no page. The API works all the same.
const NO_PAGE: &str = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>quipu</title>\n\
    <h1>quipu</h1>\n<p>This program was built without its page. In the repository, run</p>\n\
    <pre>make web\ncargo build</pre>\n<p>and start <code>quipu serve</code> again. It needs Node 20 or newer.</p>\n\
    <p>The HTTP API works without the page: <code>/api/openapi.json</code> describes it.</p>\n";

/// A file of the page. Paths without an extension are views of the page.
pub(crate) async fn serve_file(uri: Uri) -> Response {
    let path = uri.path().trim_start_matches('/');
    let is_view = !path.rsplit('/').next().is_some_and(|name| name.contains('.'));
    let path = if is_view { "index.html" } else { path };
    let Some(file) = Page::get(path) else {
        return match is_view {
            true => ([(CONTENT_TYPE, "text/html; charset=utf-8")], NO_PAGE).into_response(),
            false => {
                (StatusCode::NOT_FOUND, [(CONTENT_TYPE, "text/plain; charset=utf-8")], "no such file\n").into_response()
            }
        };
    };
    // The names of built files have a hash of their content.
    let lifetime = if path.starts_with("assets/") { "public, max-age=31536000, immutable" } else { "no-cache" };
    ([(CONTENT_TYPE, content_type(path)), (CACHE_CONTROL, lifetime)], Body::from(file.data)).into_response()
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "wasm" => "application/wasm",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

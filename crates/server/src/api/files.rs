//! `/api/files` and `/api/context`: what a user can attach to a message.

use std::sync::Arc;

use axum::extract::State;
use quipu_files::{FileKind, FileMatch, SymbolMatch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::chat::{find_folder, is_trusted};
use crate::error::ApiError;
use crate::json::{Json, Params};

/// Matches of one response unless `limit` names another number.
const DEFAULT_LIMIT: usize = 30;
/// Matches of one response at most.
const MAX_LIMIT: usize = 200;
/// Symbols among them at most, unless there are few files.
const MAX_SYMBOLS: usize = 10;
/// Longest text of git that is returned; the rest is cut off.
const MAX_CONTEXT_BYTES: usize = 256 << 10;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct FileParams {
    /// The folder, as an absolute path.
    cwd: String,
    /// Some characters of the path or of the name of a symbol, in order.
    #[serde(default)]
    q: String,
    limit: Option<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FoundFiles {
    /// The best match first.
    matches: Vec<FoundFile>,
    /// Whether all files and symbols of the folder were searched.
    is_complete: bool,
}

/// A file, folder or symbol.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FoundFile {
    kind: FoundKind,
    /// Path relative to the folder, with `/`.
    path: String,
    /// Last part of the path, or name of the symbol.
    name: String,
    /// Line of the symbol.
    line: Option<u64>,
    /// Kind of the symbol, such as `FUNCTION`.
    symbol_kind: Option<String>,
    /// Number of files in the folder.
    file_count: Option<usize>,
    /// Characters that matched: of the path, or of the name of a symbol.
    positions: Vec<u32>,
}

#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FoundKind {
    File,
    Folder,
    Symbol,
}

pub(crate) async fn files(State(app): State<Arc<App>>, Params(params): Params<FileParams>) -> Result<Json, ApiError> {
    app.blocking(move |app| {
        let list = app.files.list(&find_folder(&params.cwd)?);
        let limit = params.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        let mut matches: Vec<FoundFile> =
            list.files.find(&params.q, limit).into_iter().map(|found| file_match(found, &list.files)).collect();
        let symbols = list.symbols();
        let found = symbols.map(|symbols| symbols.find(&params.q, limit.min(MAX_SYMBOLS))).unwrap_or_default();
        matches.truncate(limit - found.len());
        matches.extend(found.into_iter().map(symbol_match));
        let is_complete = list.files.is_complete() && symbols.is_some_and(quipu_files::SymbolList::is_complete);
        Ok(Json::new(&FoundFiles { matches, is_complete }))
    })
    .await
}

fn file_match(found: FileMatch, files: &quipu_files::FileList) -> FoundFile {
    let is_folder = found.kind == FileKind::Folder;
    FoundFile {
        kind: if is_folder { FoundKind::Folder } else { FoundKind::File },
        name: found.path.rsplit('/').next().unwrap_or_default().to_owned(),
        line: None,
        symbol_kind: None,
        file_count: is_folder.then(|| files.count_files_in(&found.path)),
        positions: found.positions,
        path: found.path,
    }
}

fn symbol_match(found: SymbolMatch) -> FoundFile {
    FoundFile {
        kind: FoundKind::Symbol,
        path: found.path,
        name: found.name,
        line: Some(found.line),
        symbol_kind: Some(found.kind.as_str().to_owned()),
        file_count: None,
        positions: found.positions,
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ContextParams {
    /// The folder, as an absolute path; it must be trusted, because git runs in it.
    cwd: String,
    kind: ContextSource,
    /// The commit, for `git_commit`.
    arg: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ContextSource {
    /// Changes since the last commit.
    GitDiff,
    /// Message and changes of a commit.
    GitCommit,
}

/// A text to attach to a message.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ContextText {
    label: String,
    text: String,
    /// Whether the end of the text was cut off.
    is_cut: bool,
}

pub(crate) async fn context(
    State(app): State<Arc<App>>,
    Params(params): Params<ContextParams>,
) -> Result<Json, ApiError> {
    let cwd = params.cwd.clone();
    let folder = Arc::clone(&app)
        .blocking(move |app| {
            let folder = find_folder(&cwd)?;
            // Settings of a repository can name programs that git runs.
            match is_trusted(app, &folder)? {
                true => Ok(folder),
                false => Err(ApiError::conflict("folder.not_trusted", format!("{cwd} is not trusted yet"))
                    .with_hint("start a chat in it first")),
            }
        })
        .await?;
    let (label, args) = params.git_arguments()?;
    let output = (app.run_git)(folder, args).await.map_err(|error| {
        ApiError::bad_request("git.failed", error.to_string()).with_hint("the folder must be in a git repository")
    })?;
    let end = output.len().min(MAX_CONTEXT_BYTES);
    let text = String::from_utf8_lossy(&output[..end]).into_owned();
    Ok(Json::new(&ContextText { label, text, is_cut: end < output.len() }))
}

impl ContextParams {
    /// Label of the text, and the arguments of git that print it.
    fn git_arguments(&self) -> Result<(String, Vec<String>), ApiError> {
        let plain = ["--no-ext-diff", "--no-textconv", "--no-color"];
        let (label, words) = match self.kind {
            ContextSource::GitDiff => ("git diff".to_owned(), ["diff", "HEAD"].map(str::to_owned)),
            ContextSource::GitCommit => {
                let commit =
                    self.arg.as_deref().map(str::trim).filter(|commit| is_revision(commit)).ok_or_else(|| {
                        ApiError::bad_request("git.commit", "this is not the name of a commit")
                            .with_hint("use a hash, a branch, a tag or HEAD~1")
                    })?;
                (format!("git commit {commit}"), ["show".to_owned(), commit.to_owned()])
            }
        };
        Ok((label, words.into_iter().chain(plain.map(str::to_owned)).chain(["--".to_owned()]).collect()))
    }
}

/// Whether a text can only be read as a revision: no option, no range, no path.
fn is_revision(text: &str) -> bool {
    let is_allowed = |c: char| c.is_alphanumeric() || "._/~^@{}+-".contains(c);
    !text.is_empty() && !text.starts_with('-') && !text.contains("..") && text.chars().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_commits_are_passed_to_git() {
        for commit in ["HEAD", "HEAD~2^", "a1b2c3", "v1.0", "origin/main", "main@{1}", "名字"] {
            assert!(is_revision(commit), "{commit}");
        }
        for other in ["", "-p", "--output=/tmp/x", "a b", "a..b", "HEAD:secret", "$(id)", "a\nb", ":/x", "a;b"] {
            assert!(!is_revision(other), "{other}");
        }
        let params =
            |arg: &str| ContextParams { cwd: String::new(), kind: ContextSource::GitCommit, arg: Some(arg.to_owned()) };
        let (label, args) = params(" HEAD ").git_arguments().unwrap();
        assert_eq!(label, "git commit HEAD");
        assert_eq!(args, ["show", "HEAD", "--no-ext-diff", "--no-textconv", "--no-color", "--"]);
        assert!(params("--upload-pack=x").git_arguments().is_err());
    }
}

//! `quipu secrets`

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use quipu_render::find_secrets_in_line;
use quipu_transcript::{FileError, LineReader, RawLine, error_chain, find};
use serde::Serialize;

use crate::args::SecretsArgs;
use crate::claude_dirs::{claude_dirs, no_sessions_error};
use crate::error::{print_note, print_warning, print_warnings};
use crate::format;
use crate::global::GlobalArgs;
use crate::output::Output;
use crate::parallel;
use crate::sessions;
use crate::table::{Column, Table};

/// A credential in a transcript, in the shape of `quipu secrets --json`, without its value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Finding {
    kind: &'static str,
    session_id: String,
    path: PathBuf,
    /// Line number, counted from 1.
    line: u64,
    /// First four characters, or fewer of a short value.
    prefix: String,
    /// Length of the value in characters.
    length: usize,
}

/// A file to search and the id of its session.
struct SearchedFile {
    session_id: String,
    path: PathBuf,
}

pub(crate) fn run(args: &SecretsArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let (sources, mut is_complete) = files_to_search(args, global)?;
    let mut findings = Vec::new();
    for (found, error) in parallel::map_files(&sources, "searching", global, search_file) {
        findings.extend(found);
        if let Some(error) = error {
            print_warning(&error_chain(&error));
            is_complete = false;
        }
    }
    findings.sort();
    if global.json {
        output.print_json(&findings)?;
    } else {
        if !findings.is_empty() {
            output.print_text(&findings_table(&findings, output))?;
        }
        print_note(global, &summary(&findings, sources.len()));
    }
    // A file that could not be searched may contain a credential.
    Ok(if findings.is_empty() && is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Files of the named sessions, or of all; the flag is false if a folder could not be read.
fn files_to_search(args: &SecretsArgs, global: &GlobalArgs) -> Result<(Vec<SearchedFile>, bool)> {
    let mut sources = Vec::new();
    if !args.sessions.is_empty() {
        for name in &args.sessions {
            let path = sessions::resolve_session(name, global)?;
            let session_id = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let subagents = find::list_subagents(&path).into_iter().chain(find::list_legacy_subagents(&path));
            let files = subagents.map(|file| file.path).chain(stored_results(&path));
            let source = |path| SearchedFile { session_id: session_id.clone(), path };
            let files: Vec<SearchedFile> = files.map(source).collect();
            sources.push(source(path));
            sources.extend(files);
        }
        return Ok((sources, true));
    }
    let dirs = claude_dirs(global);
    let (projects, mut errors) = find::list_project_folders(&dirs);
    let (session_files, more) = find::list_session_files(&projects, &());
    errors.extend(more);
    print_warnings(&errors);
    for session in session_files {
        let own = session.folder.join(format!("{}.jsonl", session.id));
        let files = session.files.iter().map(|file| file.path.clone()).chain(stored_results(&own));
        sources.extend(files.map(|path| SearchedFile { session_id: session.id.to_string(), path }));
    }
    if sources.is_empty() {
        return Err(no_sessions_error(global));
    }
    Ok((sources, errors.is_empty()))
}

/// Files with long tool results, which the agent keeps outside the transcript.
fn stored_results(session: &Path) -> Vec<PathBuf> {
    let listed = std::fs::read_dir(session.with_extension("").join("tool-results"));
    let mut files: Vec<PathBuf> = listed.into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    files
}

/// Searches one file. After an error the findings so far are returned with it.
fn search_file(source: &SearchedFile) -> (Vec<Finding>, Option<FileError>) {
    let mut findings = Vec::new();
    let error = search_lines(source, &mut findings).err();
    (findings, error)
}

fn search_lines(source: &SearchedFile, findings: &mut Vec<Finding>) -> Result<(), FileError> {
    let path = &source.path;
    let file = File::open(path).map_err(|source| FileError::Open { path: path.clone(), source })?;
    let mut lines = LineReader::new(file);
    loop {
        let offset = lines.offset();
        let raw_line = lines.next().map_err(|source| FileError::Read { path: path.clone(), offset, source })?;
        match raw_line {
            None => return Ok(()),
            Some(RawLine::TooLong { number, len, .. }) => {
                print_warning(&format!("line {number} of {} has {len} bytes and was not searched", path.display()));
            }
            Some(RawLine::Line { number, bytes, .. }) => {
                // A value often occurs twice in a line: in the message and in the tool output.
                let mut seen = HashSet::new();
                find_secrets_in_line(&String::from_utf8_lossy(bytes), &mut |kind, value| {
                    if seen.insert(value.to_owned()) {
                        let (prefix, length) = prefix_and_length(value);
                        let (session_id, path) = (source.session_id.clone(), path.clone());
                        findings.push(Finding { kind, session_id, path, line: number, prefix, length });
                    }
                });
            }
        }
    }
}

/// First four characters of a value, at most half of it, and its length in characters.
fn prefix_and_length(value: &str) -> (String, usize) {
    let length = value.chars().count();
    (value.chars().take(4.min(length / 2)).collect(), length)
}

/// One row for each value in a session, with the first line that contains it.
fn findings_table(findings: &[Finding], output: &Output) -> String {
    let mut rows: BTreeMap<(&str, &str, &str, usize), Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        let key = (finding.kind, finding.session_id.as_str(), finding.prefix.as_str(), finding.length);
        rows.entry(key).or_default().push(finding);
    }
    let [kind, prefix, session, place] = ["kind", "begins with", "session", "place"].map(Column::text);
    let [length, lines] = ["length", "lines"].map(Column::number);
    let mut table = Table::new([kind, prefix, length.drop_rank(3), lines.drop_rank(2), session.drop_rank(1), place]);
    for ((kind, session, prefix, length), places) in rows {
        let (first, short) = (places[0], session.get(..8).unwrap_or(session));
        let file = first.path.file_stem().unwrap_or_default().to_string_lossy();
        let file = if file == session { short.to_owned() } else { file.into_owned() };
        let cells = [kind, &format!("{prefix}…"), &length.to_string(), &places.len().to_string(), short];
        table.push_row(cells.map(str::to_owned).into_iter().chain([format!("{file}:{}", first.line)]));
    }
    table.render(output)
}

fn summary(findings: &[Finding], files: usize) -> String {
    if findings.is_empty() {
        return format!("no secrets found in {}", format::count(files, "file"));
    }
    let sessions: HashSet<&str> = findings.iter().map(|finding| finding.session_id.as_str()).collect();
    let (found, sessions) = (format::count(findings.len(), "finding"), format::count(sessions.len(), "session"));
    format!("{found} in {sessions}; replace credentials that others may have read")
}

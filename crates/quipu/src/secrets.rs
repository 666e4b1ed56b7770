//! `quipu secrets`

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use quipu_render::{clean, secrets_in_line};
use quipu_transcript::{FileError, Lines, Piece, find};
use serde::Serialize;

use crate::args::{Global, SecretsArgs};
use crate::error::{Failure, warn};
use crate::output::Output;
use crate::parallel;
use crate::sessions::{self, claude_dirs};

/// A credential in a transcript, in the shape of `quipu secrets --json`. The value
/// itself is not kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Finding {
    kind: &'static str,
    session_id: String,
    path: PathBuf,
    /// Counted from 1.
    line: u64,
    /// The first four characters; fewer of a short value.
    prefix: String,
    /// In characters.
    length: usize,
}

/// A file to search, and the session it belongs to.
struct Source {
    session_id: String,
    path: PathBuf,
}

pub(crate) fn run(args: &SecretsArgs, global: &Global, output: &Output) -> Result<ExitCode> {
    let (sources, mut is_complete) = sources(args, global)?;
    let searched = parallel::each(&sources, "searching", global, search);
    let mut findings = Vec::new();
    for result in searched {
        let (found, error) = result;
        findings.extend(found);
        if let Some(error) = error {
            warn(&error);
            is_complete = false;
        }
    }
    findings.sort();
    if global.json {
        output.json(&findings)?;
    } else {
        output.text(&table(&findings))?;
        if !global.quiet {
            summarise(&findings, sources.len());
        }
    }
    // A file that could not be searched may hold one.
    Ok(if findings.is_empty() && is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The files of the sessions that are named, or of all; and whether every folder could
/// be read.
fn sources(args: &SecretsArgs, global: &Global) -> Result<(Vec<Source>, bool)> {
    let mut sources = Vec::new();
    if !args.sessions.is_empty() {
        for name in &args.sessions {
            let path = sessions::find(name, global)?;
            let session_id = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let subagents = find::subagents(&path).into_iter().chain(find::subagents_beside(&path));
            let files = subagents.map(|file| file.path).chain(stored_results(&path));
            let source = |path| Source { session_id: session_id.clone(), path };
            let files: Vec<Source> = files.map(source).collect();
            sources.push(source(path));
            sources.extend(files);
        }
        return Ok((sources, true));
    }
    let dirs = claude_dirs(global);
    let (projects, mut errors) = find::projects(&dirs);
    let (histories, more) = find::histories(&projects, &());
    errors.extend(more);
    errors.iter().for_each(|error| warn(error));
    for history in histories {
        let own = history.folder.join(format!("{}.jsonl", history.id));
        let files = history.files.iter().map(|file| file.path.clone()).chain(stored_results(&own));
        sources.extend(files.map(|path| Source { session_id: history.id.to_string(), path }));
    }
    if sources.is_empty() {
        let looked = dirs.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(", ");
        let hint = "name sessions or files, or set the folder with --claude-dir";
        return Err(Failure::error("sessions.none", format!("no sessions found under {looked}"), hint));
    }
    Ok((sources, errors.is_empty()))
}

/// Long tool results that the agent keeps in files of their own.
fn stored_results(session: &Path) -> Vec<PathBuf> {
    let listed = std::fs::read_dir(session.with_extension("").join("tool-results"));
    let mut files: Vec<PathBuf> = listed.into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    files
}

/// Searches one file. An error ends the search of it; what was found until then counts.
fn search(source: &Source) -> (Vec<Finding>, Option<FileError>) {
    let mut findings = Vec::new();
    let error = search_lines(source, &mut findings).err();
    (findings, error)
}

fn search_lines(source: &Source, findings: &mut Vec<Finding>) -> Result<(), FileError> {
    let path = &source.path;
    let file = File::open(path).map_err(|source| FileError::Open { path: path.clone(), source })?;
    let mut lines = Lines::new(file);
    loop {
        let offset = lines.offset();
        let piece = lines.next().map_err(|source| FileError::Read { path: path.clone(), offset, source })?;
        match piece {
            None => return Ok(()),
            Some(Piece::TooLong { number, len, .. }) => {
                warn(&format!("line {number} of {} has {len} bytes and was not searched", path.display()));
            }
            Some(Piece::Line { number, bytes, .. }) => {
                // A value often occurs twice in a line: for the model and for the program.
                let mut seen = HashSet::new();
                secrets_in_line(&String::from_utf8_lossy(bytes), &mut |kind, value| {
                    if seen.insert(value.to_owned()) {
                        let (prefix, length) = described(value);
                        let (session_id, path) = (source.session_id.clone(), path.clone());
                        findings.push(Finding { kind, session_id, path, line: number, prefix, length });
                    }
                });
            }
        }
    }
}

/// The first four characters of a value, at most half of it, and its length.
fn described(value: &str) -> (String, usize) {
    let length = value.chars().count();
    (value.chars().take(4.min(length / 2)).collect(), length)
}

/// One row for each value, with the places that hold it.
fn table(findings: &[Finding]) -> String {
    let mut rows: BTreeMap<(&str, &str, &str, usize), Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        let key = (finding.kind, finding.session_id.as_str(), finding.prefix.as_str(), finding.length);
        rows.entry(key).or_default().push(finding);
    }
    let widest = rows.keys().map(|(kind, ..)| kind.len()).max().unwrap_or_default();
    let mut text = String::new();
    for ((kind, session, prefix, length), places) in rows {
        let first = places[0];
        let name = first.path.file_stem().unwrap_or_default().to_string_lossy();
        let is_own = name == session;
        let short = session.get(..8).filter(|_| is_own).unwrap_or(&name);
        let more = if places.len() > 1 { format!(" and {} more", places.len() - 1) } else { String::new() };
        let value = format!("{}…", clean(prefix));
        text.push_str(&format!(
            "{kind:widest$}  {value:<5}  {length:>4} characters  {}:{}{more}\n",
            clean(short),
            first.line
        ));
    }
    text
}

fn summarise(findings: &[Finding], files: usize) {
    let mut stderr = anstream::stderr().lock();
    let count = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    let _ = if findings.is_empty() {
        writeln!(stderr, "no secrets found in {}", count(files, "file", "files"))
    } else {
        let sessions: HashSet<&str> = findings.iter().map(|finding| finding.session_id.as_str()).collect();
        let sessions = count(sessions.len(), "session", "sessions");
        let findings = count(findings.len(), "finding", "findings");
        writeln!(stderr, "{findings} in {sessions}; replace credentials that others may have read")
    };
}

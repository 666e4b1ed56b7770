//! `quipu check`

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use quipu_render::sanitize;
use quipu_transcript::{Check, CheckReport, Entries, Problem, error_chain, find, repair};

use crate::args::CheckArgs;
use crate::claude_dirs::{claude_dirs, no_sessions_error};
use crate::error::Failure;
use crate::format::{count, thousands};
use crate::global::GlobalArgs;
use crate::output::Output;
use crate::parallel;

pub(crate) fn run(args: &CheckArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let check = Check { roundtrip: args.roundtrip };
    let mut total = CheckReport::default();
    let sources = files_to_check(args, global, &mut total)?;
    if args.repair {
        return repair_files(&sources, global, output);
    }
    for report in parallel::map_files(&sources, "checking", global, |path| check_file(path, check)) {
        total.merge(report);
    }
    if global.json {
        output.print_json(&total)?;
    } else {
        output.print_text(&summary(&total, args, global, output))?;
    }
    let any = total.problems.len() as u64 + total.problems_not_listed > 0;
    let failed = total.roundtrip_failures > 0 || args.strict && any;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Files to check, in order; `-` is standard input. Folders that cannot be read are added to
/// `total` as problems.
fn files_to_check(args: &CheckArgs, global: &GlobalArgs, total: &mut CheckReport) -> Result<Vec<PathBuf>> {
    let mut paths = args.paths.clone();
    if paths.is_empty() {
        let dirs = claude_dirs(global);
        paths.extend(dirs.iter().map(|dir| dir.join("projects")).filter(|dir| dir.is_dir()));
        if paths.is_empty() {
            return Err(no_sessions_error(global));
        }
    }
    let mut sources = Vec::new();
    for path in paths {
        if path == Path::new("-") {
            sources.push(path);
            continue;
        }
        if !path.exists() {
            let hint = "give files, folders, or `-` for standard input";
            return Err(Failure::error("file.not_found", format!("no such file or folder: {}", path.display()), hint));
        }
        let (files, errors) = if path.is_dir() { find::list_jsonl_files(&path) } else { (vec![path], Vec::new()) };
        sources.extend(files);
        for error in errors {
            let (kind, message) = (error.problem_kind(), error_chain(&error));
            total.add_problem(Problem { kind, path: String::new(), line: 0, offset: 0, message });
        }
    }
    Ok(sources)
}

fn check_file(path: &Path, check: Check) -> CheckReport {
    if path == Path::new("-") {
        return check.run(Entries::new(io::stdin().lock(), "-"), "-");
    }
    let name = path.display().to_string();
    match Entries::open(path) {
        Ok(entries) => check.run(entries, &name),
        Err(error) => {
            let mut report = CheckReport { files: 1, ..CheckReport::default() };
            let message = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            report.add_problem(Problem { kind: error.problem_kind(), path: name, line: 0, offset: 0, message });
            report
        }
    }
}

/// Repairs the files, each with a backup, and prints every change.
fn repair_files(sources: &[PathBuf], global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    if sources.iter().any(|path| path == Path::new("-")) {
        return Err(Failure::error("repair.stdin", "standard input cannot be repaired", "name files or folders"));
    }
    let mut repairs = Vec::new();
    for path in sources {
        repairs.extend(repair(path)?);
    }
    if global.json {
        output.print_json(&repairs)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for done in &repairs {
        let _ = writeln!(
            text,
            "{} (as it was: {})",
            sanitize(&done.path.display().to_string()),
            sanitize(&done.backup.display().to_string())
        );
        for change in &done.changes {
            let _ = writeln!(text, "  line {}: {}, {}", change.line, change.kind.code(), change.action);
        }
    }
    let _ = writeln!(text, "{} looked at, {} repaired", count(sources.len(), "file"), repairs.len());
    output.print_text(&text)?;
    Ok(ExitCode::SUCCESS)
}

const MAX_PROBLEMS_SHOWN: usize = 30;

fn summary(report: &CheckReport, args: &CheckArgs, global: &GlobalArgs, output: &Output) -> String {
    let paint = |style: Style| if output.color { style } else { Style::new() };
    let (bold, dim) = (paint(Style::new().bold()), paint(Style::new().dimmed()));
    let (red, green) = (paint(AnsiColor::Red.on_default()), paint(AnsiColor::Green.on_default()));
    let mut text = String::new();
    if !global.quiet {
        let width = report.kinds.keys().map(String::len).max().unwrap_or_default();
        let mut kinds: Vec<_> = report.kinds.iter().collect();
        kinds.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        for (kind, n) in kinds {
            let _ = writeln!(text, "  {:width$}  {:>9}", sanitize(kind), thousands(*n));
        }
        let max_problems = if global.verbose { usize::MAX } else { MAX_PROBLEMS_SHOWN };
        if !report.problems.is_empty() {
            let _ = writeln!(text, "\n{bold}problems{bold:#}");
        }
        for problem in report.problems.iter().take(max_problems) {
            let place = match problem.line {
                0 => sanitize(&problem.path).into_owned(),
                line => format!("{}:{line} (byte {})", sanitize(&problem.path), problem.offset),
            };
            let _ = writeln!(text, "  {dim}{place}{dim:#} {}: {}", problem.kind.code(), sanitize(&problem.message));
        }
        let hidden = report.problems.len().saturating_sub(max_problems) as u64 + report.problems_not_listed;
        if hidden > 0 {
            let _ = writeln!(text, "  {dim}… and {} more (-v lists up to 1,000, --json too){dim:#}", thousands(hidden));
        }
        text.push('\n');
    }
    let _ = writeln!(
        text,
        "{bold}{}{bold:#}, {bold}{}{bold:#}, {}",
        count(report.files as usize, "file"),
        count(report.lines as usize, "line"),
        format_bytes(report.bytes)
    );
    let _ = writeln!(
        text,
        "{}, {}, {}, {} foreign, {} malformed",
        count(report.unknown as usize, "unknown line"),
        count(report.unknown_blocks as usize, "unknown block"),
        count(report.unknown_attachments as usize, "unknown attachment"),
        thousands(report.foreign),
        thousands(report.malformed)
    );
    if report.proven_messages + report.unproven_messages > 0 {
        let all = report.proven_messages + report.unproven_messages;
        let _ = writeln!(
            text,
            "{} of {} sent to the API proven by hash",
            thousands(report.proven_messages),
            count(all as usize, "message")
        );
    }
    if args.roundtrip {
        let _ = match report.roundtrip_failures {
            0 => writeln!(text, "{green}every line comes back as it went in{green:#}"),
            n => writeln!(text, "{red}not coming back as they went in: {}{red:#}", count(n as usize, "line")),
        };
    }
    text
}

fn format_bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

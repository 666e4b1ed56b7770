//! Checks files: counts their lines by type and reports problems.

use std::collections::BTreeMap;
use std::io::Read;

use quipu_conversation::{Problem, ProblemKind, RequestLog};
use quipu_message::line::replace_lone_surrogates;
use quipu_message::{Line, is_same_json};
use serde::Serialize;

use crate::read::{Entries, LocatedEntry};

mod links;

use links::LinkChecker;

/// Most problems that a report lists; the counts are always complete.
const MAX_LISTED_PROBLEMS: usize = 1000;

/// What to check besides reading every line.
#[derive(Debug, Clone, Copy, Default)]
pub struct Check {
    /// Whether to check that each entry serialises to the JSON it was read from.
    pub roundtrip: bool,
}

/// Result of checking one or more files, in the shape of `quipu check --json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// Number of files read.
    pub files: u64,
    /// Number of lines in the files.
    pub lines: u64,
    /// Number of bytes in the files.
    pub bytes: u64,
    /// Number of lines by type, or by type and subtype.
    pub kinds: BTreeMap<String, u64>,
    /// Lines whose type or subtype this build has no model for.
    pub unknown: u64,
    /// Content blocks of types that this build has no model for.
    pub unknown_blocks: u64,
    /// Attachments of types that this build has no model for.
    pub unknown_attachments: u64,
    /// JSON lines without a string `type`.
    pub foreign: u64,
    /// Lines that are not JSON, and known types with a bad body.
    pub malformed: u64,
    /// Lines whose entry does not serialise to the JSON it was read from.
    pub roundtrip_failures: u64,
    /// Messages of recorded API calls whose content is confirmed by its hash.
    pub proven_messages: u64,
    /// Messages of recorded API calls whose content is in no line of the file.
    pub unproven_messages: u64,
    /// Problems with file, line and offset; at most 1,000.
    pub problems: Vec<Problem>,
    /// Number of problems beyond those in [`problems`](Self::problems).
    pub problems_not_listed: u64,
}

impl CheckReport {
    /// Adds a problem to the list, or only counts it when the list is full.
    pub fn add_problem(&mut self, problem: Problem) {
        if self.problems.len() < MAX_LISTED_PROBLEMS {
            self.problems.push(problem);
        } else {
            self.problems_not_listed += 1;
        }
    }

    /// Adds the counts and problems of another report.
    pub fn merge(&mut self, other: Self) {
        self.files += other.files;
        self.lines += other.lines;
        self.bytes += other.bytes;
        self.unknown += other.unknown;
        self.unknown_blocks += other.unknown_blocks;
        self.unknown_attachments += other.unknown_attachments;
        self.foreign += other.foreign;
        self.malformed += other.malformed;
        self.roundtrip_failures += other.roundtrip_failures;
        self.proven_messages += other.proven_messages;
        self.unproven_messages += other.unproven_messages;
        self.problems_not_listed += other.problems_not_listed;
        for (kind, n) in other.kinds {
            *self.kinds.entry(kind).or_default() += n;
        }
        other.problems.into_iter().for_each(|problem| self.add_problem(problem));
    }
}

impl Check {
    /// Reads one source to its end. `path` is the name that problems give it.
    pub fn run<R: Read>(self, mut entries: Entries<R>, path: &str) -> CheckReport {
        let mut report = CheckReport { files: 1, ..CheckReport::default() };
        let mut log = RequestLog::default();
        let mut links = LinkChecker::default();
        for read in entries.by_ref() {
            match read {
                Err(problem) => report.count_problem(problem),
                Ok(located) => {
                    self.check_entry(&located, path, &mut report);
                    log.push(located.line, &located.entry);
                    links.push(&located);
                }
            }
        }
        report.bytes = entries.bytes_read();
        report.add_proof(log, path);
        for (position, kind, message) in links.into_problems() {
            report.add_problem(Problem {
                kind,
                path: path.to_owned(),
                line: position.line,
                offset: position.offset,
                message,
            });
        }
        report
    }

    fn check_entry(self, located: &LocatedEntry, path: &str, report: &mut CheckReport) {
        let LocatedEntry { line, offset, text, entry } = located;
        let note = |report: &mut CheckReport, problem, message| {
            report.add_problem(Problem { kind: problem, path: path.to_owned(), line: *line, offset: *offset, message });
        };
        report.lines += 1;
        let kind = entry.kind();
        if !entry.is_known_kind() {
            report.unknown += 1;
            note(report, ProblemKind::UnknownEntry, format!("entry of unknown type `{kind}`; kept as it is"));
        }
        let blocks = entry.count_unknown_blocks() as u64;
        if blocks > 0 {
            report.unknown_blocks += blocks;
            note(
                report,
                ProblemKind::UnknownBlock,
                match blocks {
                    1 => "1 block of an unknown type; kept as it is".to_owned(),
                    n => format!("{n} blocks of unknown types; kept as they are"),
                },
            );
        }
        if let Some(kind) = entry.unknown_attachment() {
            report.unknown_attachments += 1;
            note(report, ProblemKind::UnknownAttachment, format!("attachment of unknown type `{kind}`; kept as it is"));
        }
        if self.roundtrip {
            // A file may end between the two bytes of a line end.
            let kept = Line::parse(text).is_ok_and(|line| line.as_str() == text.trim_end_matches('\r'));
            let back =
                serde_json::to_string(entry).ok().map(|back| is_same_json(&replace_lone_surrogates(text), &back));
            match back {
                Some(Some(true)) if kept => {}
                Some(None) if kept => {
                    let message = "cannot be compared field by field: it nests too deep or holds a number too large";
                    note(report, ProblemKind::NotCompared, message.to_owned());
                }
                _ => {
                    report.roundtrip_failures += 1;
                    note(report, ProblemKind::RoundTrip, format!("{kind} does not come back as it went in"));
                }
            }
        }
        *report.kinds.entry(kind).or_default() += 1;
    }
}

impl CheckReport {
    /// Counts and lists a problem with a line or with the file as a whole.
    fn count_problem(&mut self, problem: Problem) {
        self.lines += u64::from(problem.kind.is_line());
        self.foreign += u64::from(problem.kind == ProblemKind::Foreign);
        self.malformed += u64::from(problem.kind.is_malformed());
        self.add_problem(problem);
    }

    fn add_proof(&mut self, log: RequestLog, path: &str) {
        if log.is_empty() {
            return;
        }
        let proof = log.verify();
        self.proven_messages += (proof.stored + proof.rebuilt) as u64;
        self.unproven_messages += proof.missing.len() as u64;
        let problems = [
            (ProblemKind::UnprovenRequest, "names a message that neither a line nor the entries give", proof.missing),
            (ProblemKind::WrongHash, "stores a message under a hash that is not its own", proof.mismatched),
        ];
        for (kind, message, places) in problems {
            for (line, hash) in places {
                let message = format!("{message}: {}", hash.get(..12).unwrap_or(&hash));
                self.add_problem(Problem { kind, path: path.to_owned(), line, offset: 0, message });
            }
        }
    }
}

//! Checks how the entries of a file refer to each other: parents, UUIDs that are used twice,
//! tool results and their calls, and timestamps.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use quipu_conversation::{ProblemKind, circles, parse_timestamp};
use quipu_message::{Content, Entry, Envelope, Json, Maybe, ToolUseId, Uuid};

use crate::read::LocatedEntry;

/// Number of a line, counted from 1, and its offset in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinePosition {
    pub(super) line: u64,
    pub(super) offset: u64,
}

/// A problem: its position, its kind and its description.
pub(super) type LinkProblem = (LinePosition, ProblemKind, String);

/// Collects the ids of a file; the entries themselves are not kept.
#[derive(Default)]
pub(super) struct LinkChecker {
    /// First line with each UUID, with the hash of its content and its parent.
    first_by_uuid: HashMap<Uuid, FirstOccurrence>,
    parent_refs: Vec<(LinePosition, Uuid)>,
    tool_calls: HashMap<ToolUseId, (u64, u64)>,
    tool_results: Vec<(LinePosition, ToolUseId)>,
    problems: Vec<LinkProblem>,
}

struct FirstOccurrence {
    position: LinePosition,
    content_hash: u64,
    parent: Option<Uuid>,
}

impl LinkChecker {
    /// Adds one entry. Entries must come in the order of the file.
    pub(super) fn push(&mut self, located: &LocatedEntry) {
        let position = LinePosition { line: located.line, offset: located.offset };
        let entry = &located.entry;
        let Some(envelope) = entry.envelope() else { return };
        self.check_ids(position, entry, envelope);
        self.check_tool_calls(position, entry);
        self.check_timestamp(position, entry, envelope);
    }

    /// Returns the problems in the order of the file.
    pub(super) fn into_problems(mut self) -> Vec<LinkProblem> {
        for (position, parent) in &self.parent_refs {
            if !self.first_by_uuid.contains_key(parent) {
                let message = format!("its parent {parent} is not in the file");
                self.problems.push((*position, ProblemKind::NoParent, message));
            }
        }
        self.check_cycles();
        for (position, call) in &self.tool_results {
            if !self.tool_calls.contains_key(call) {
                let message = format!("result of the tool call {call}, which is not in the file");
                self.problems.push((*position, ProblemKind::NoToolCall, message));
            }
        }
        self.problems.sort_by_key(|(position, ..)| position.line);
        self.problems
    }

    fn check_ids(&mut self, position: LinePosition, entry: &Entry, envelope: &Envelope) {
        let parent = envelope.parent_uuid.get();
        self.parent_refs.extend(parent.map(|parent| (position, parent.clone())));
        let Some(uuid) = envelope.uuid.get() else { return };
        let content = content_hash(entry);
        match self.first_by_uuid.get(uuid) {
            Some(first) if first.content_hash != content => {
                let message =
                    format!("its id {uuid} is that of line {}, which says something else", first.position.line);
                self.problems.push((position, ProblemKind::ReusedId, message));
            }
            Some(_) => {}
            None => {
                self.first_by_uuid
                    .insert(uuid.clone(), FirstOccurrence { position, content_hash: content, parent: parent.cloned() });
            }
        }
    }

    /// Reports each cycle of parents once, at its first line.
    fn check_cycles(&mut self) {
        let mut lines: Vec<(&Uuid, &FirstOccurrence)> = self.first_by_uuid.iter().collect();
        lines.sort_by_key(|(_, known)| known.position.line);
        let positions: HashMap<&Uuid, usize> = (0..).zip(&lines).map(|(at, (uuid, _))| (*uuid, at)).collect();
        let parent = |known: &FirstOccurrence| positions.get(known.parent.as_ref()?).copied();
        let parents: Vec<Option<usize>> = lines.iter().map(|(_, known)| parent(known)).collect();
        for cycle in circles(&parents) {
            if let Some(&first) = cycle.iter().min() {
                let message = format!("{} lines name each other as parents in a circle", cycle.len());
                self.problems.push((lines[first].1.position, ProblemKind::ParentCircle, message));
            }
        }
    }

    fn check_tool_calls(&mut self, position: LinePosition, entry: &Entry) {
        let blocks = match entry {
            Entry::User(line) => line.message.content.blocks(),
            Entry::Assistant(line) => line.message.content.blocks(),
            _ => return,
        };
        for block in blocks {
            if let Some(call) = block.tool_call() {
                let arguments = hash_value(&(call.name, call.input.map(|input| input.text())));
                let (first, known) = *self.tool_calls.entry(call.id.clone()).or_insert((position.line, arguments));
                if first != position.line && known != arguments {
                    let message = format!("tool call {} is another one than that of line {first}", call.id);
                    self.problems.push((position, ProblemKind::DuplicateToolCall, message));
                }
            }
            // A subagent's file may hold results of its parent's calls.
            let is_sidechain = entry.envelope().is_some_and(|e| e.is_sidechain.is_true());
            if let Some(call) = block.result_tool_use_id().filter(|_| !is_sidechain) {
                self.tool_results.push((position, call.clone()));
            }
        }
    }

    /// Checks the timestamp. Stream messages have none; entries of a file that are part of the
    /// chain must have one.
    fn check_timestamp(&mut self, position: LinePosition, entry: &Entry, envelope: &Envelope) {
        let is_chained = envelope.parent_uuid != Maybe::Absent && envelope.uuid.is_value();
        match envelope.timestamp.text() {
            Some(time) if parse_timestamp(time).is_none() => {
                self.problems.push((position, ProblemKind::BadTimestamp, format!("cannot read its time `{time}`")));
            }
            None if is_chained && entry.is_known_kind() => {
                self.problems.push((position, ProblemKind::NoTimestamp, "has no time".to_owned()));
            }
            _ => {}
        }
    }
}

/// Hash of the message of a line, without the envelope.
fn content_hash(entry: &Entry) -> u64 {
    let message = match entry {
        Entry::User(line) => &line.message,
        Entry::Assistant(line) => &line.message,
        other => return hash_value(&other.kind()),
    };
    // A string and one text block say the same.
    match &message.content {
        Content::Text(text) => hash_value(&Some(text.as_str())),
        Content::Blocks(blocks) if blocks.len() == 1 && blocks[0].text().is_some() => hash_value(&blocks[0].text()),
        content => hash_value(&Json::from_serialize(content).text()),
    }
}

fn hash_value(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

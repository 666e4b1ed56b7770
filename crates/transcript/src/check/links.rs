//! What entries say of each other: parents, ids used twice, results and their calls,
//! and the times that order them.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use quipu_conversation::{circles, moment};
use quipu_message::{Content, Entry, Envelope, Json, Maybe, ToolUseId, Uuid};

use crate::read::Located;

/// Where a line stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) line: u64,
    pub(super) offset: u64,
}

/// A problem: its place, its code and what is wrong.
pub(super) type Found = (Place, &'static str, String);

/// Collects the ids of a file, and no more of its entries.
#[derive(Default)]
pub(super) struct Links {
    /// Each id with its first line, that line's content and its parent.
    known: HashMap<Uuid, Known>,
    named: Vec<(Place, Uuid)>,
    calls: HashMap<ToolUseId, (u64, u64)>,
    results: Vec<(Place, ToolUseId)>,
    found: Vec<Found>,
}

struct Known {
    place: Place,
    content: u64,
    parent: Option<Uuid>,
}

impl Links {
    /// Takes one entry, in the order of the file.
    pub(super) fn push(&mut self, located: &Located) {
        let place = Place { line: located.line, offset: located.offset };
        let entry = &located.entry;
        let Some(envelope) = entry.envelope() else { return };
        self.ids(place, entry, envelope);
        self.tools(place, entry);
        self.time(place, entry, envelope);
    }

    /// What is wrong, in the order of the file.
    pub(super) fn problems(mut self) -> Vec<Found> {
        for (place, parent) in &self.named {
            if !self.known.contains_key(parent) {
                let message = format!("its parent {parent} is not in the file");
                self.found.push((*place, "tree.no_parent", message));
            }
        }
        self.circles();
        for (place, call) in &self.results {
            if !self.calls.contains_key(call) {
                let message = format!("result of the tool call {call}, which is not in the file");
                self.found.push((*place, "tool.no_call", message));
            }
        }
        self.found.sort_by_key(|(place, ..)| place.line);
        self.found
    }

    fn ids(&mut self, place: Place, entry: &Entry, envelope: &Envelope) {
        let parent = envelope.parent_uuid.get();
        self.named.extend(parent.map(|parent| (place, parent.clone())));
        let Some(uuid) = envelope.uuid.get() else { return };
        let content = content(entry);
        match self.known.get(uuid) {
            Some(first) if first.content != content => {
                let message = format!("its id {uuid} is that of line {}, which says something else", first.place.line);
                self.found.push((place, "id.reused", message));
            }
            Some(_) => {}
            None => {
                self.known.insert(uuid.clone(), Known { place, content, parent: parent.cloned() });
            }
        }
    }

    /// Each circle once, at its first line.
    fn circles(&mut self) {
        let mut lines: Vec<(&Uuid, &Known)> = self.known.iter().collect();
        lines.sort_by_key(|(_, known)| known.place.line);
        let positions: HashMap<&Uuid, usize> = (0..).zip(&lines).map(|(at, (uuid, _))| (*uuid, at)).collect();
        let parent = |known: &Known| positions.get(known.parent.as_ref()?).copied();
        let parents: Vec<Option<usize>> = lines.iter().map(|(_, known)| parent(known)).collect();
        for circle in circles(&parents) {
            if let Some(&first) = circle.iter().min() {
                let message = format!("{} lines name each other as parents in a circle", circle.len());
                self.found.push((lines[first].1.place, "tree.circle", message));
            }
        }
    }

    fn tools(&mut self, place: Place, entry: &Entry) {
        let blocks = match entry {
            Entry::User(line) => line.message.content.blocks(),
            Entry::Assistant(line) => line.message.content.blocks(),
            _ => return,
        };
        for block in blocks {
            if let Some(call) = block.tool_call() {
                let arguments = hash(&(call.name, call.input.map(|input| input.text())));
                let (first, known) = *self.calls.entry(call.id.clone()).or_insert((place.line, arguments));
                if first != place.line && known != arguments {
                    let message = format!("tool call {} is another one than that of line {first}", call.id);
                    self.found.push((place, "tool.duplicate_call", message));
                }
            }
            // A subagent's file may hold results of its parent's calls.
            let is_side = entry.envelope().is_some_and(|e| e.is_sidechain.is_true());
            if let Some(call) = block.outcome_of().filter(|_| !is_side) {
                self.results.push((place, call.clone()));
            }
        }
    }

    /// The stream leaves times out; lines of a file that are part of the chain have them.
    fn time(&mut self, place: Place, entry: &Entry, envelope: &Envelope) {
        let is_chained = envelope.parent_uuid != Maybe::Absent && envelope.uuid.is_value();
        match envelope.timestamp.text() {
            Some(time) if moment(time).is_none() => {
                self.found.push((place, "time.unreadable", format!("cannot read its time `{time}`")));
            }
            None if is_chained && entry.is_modelled() => {
                self.found.push((place, "time.missing", "has no time".to_owned()));
            }
            _ => {}
        }
    }
}

/// A number for what a line says, apart from who wrote it where and when.
fn content(entry: &Entry) -> u64 {
    let message = match entry {
        Entry::User(line) => &line.message,
        Entry::Assistant(line) => &line.message,
        other => return hash(&other.kind()),
    };
    // A string and one text block say the same.
    match &message.content {
        Content::Text(text) => hash(&Some(text.as_str())),
        Content::Blocks(blocks) if blocks.len() == 1 && blocks[0].text().is_some() => hash(&blocks[0].text()),
        content => hash(&Json::of(content).text()),
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

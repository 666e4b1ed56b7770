//! An entry in 56 bytes.

use std::borrow::Cow;
use std::io::{self, Read, Write};

use quipu_message::Entry;
use quipu_message::progress::{ProgressData, ProgressKind};

use super::EntryReader;
use super::stored::take;
use crate::conversation::flatten_system;
use crate::id_key::IdKey;
use crate::node::{EntryNode, Facts, Node, NodeKind, Place, PromptKind, ToolLink, ToolRole};

/// Place, links and flags of an entry.
#[derive(Debug, Clone)]
pub(crate) struct CompactNode {
    /// Offset of the line, shifted by [`FLAG_BITS`], and flags.
    offset_and_flags: u64,
    length: u32,
    line: u32,
    uuid: Option<IdKey>,
    parent: Option<IdKey>,
    message: Option<IdKey>,
    tools: ToolLinks,
}

/// Most entries name no tool call or one.
#[derive(Debug, Clone)]
enum ToolLinks {
    None,
    One(ToolLink),
    // A box of a vector is smaller than a boxed slice.
    #[allow(clippy::box_collection, reason = "keeps a node at 56 bytes")]
    Many(Box<Vec<ToolLink>>),
}

const FLAG_BITS: u32 = 16;
const IS_ROOT: u64 = 1 << 3;
const HAS_SEVERAL_BLOCKS: u64 = 1 << 4;
const IS_INCOMPLETE: u64 = 1 << 5;
const IS_RESPONSE: u64 = 1 << 6;
const IS_PROMPT: u64 = 1 << 7;
const IS_LOCAL_COMMAND: u64 = 1 << 8;
/// The kind is in the lowest three bits, the nesting in the highest four.
const KIND_MASK: u64 = 7;
const NESTING_SHIFT: u32 = 12;

const KINDS: [NodeKind; 8] = [
    NodeKind::User,
    NodeKind::Assistant,
    NodeKind::System,
    NodeKind::CompactBoundary,
    NodeKind::Attachment,
    NodeKind::Progress,
    NodeKind::Summary,
    NodeKind::Other,
];

const TOOL_ROLES: [ToolRole; 5] =
    [ToolRole::Call, ToolRole::ServerCall, ToolRole::Result, ToolRole::ServerResult, ToolRole::Hook];

impl CompactNode {
    pub(super) fn new(place: Place, facts: Facts, prompt: PromptKind, tools: Vec<ToolLink>) -> Self {
        let Facts { kind, uuid, parent, is_root, message, has_several_blocks, is_incomplete, is_response } = facts;
        let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
        let flags = kind as u64
            | flag(is_root, IS_ROOT)
            | flag(has_several_blocks, HAS_SEVERAL_BLOCKS)
            | flag(is_incomplete, IS_INCOMPLETE)
            | flag(is_response, IS_RESPONSE)
            | flag(prompt != PromptKind::None, IS_PROMPT)
            | flag(prompt == PromptKind::LocalCommand, IS_LOCAL_COMMAND)
            | u64::from(place.nesting) << NESTING_SHIFT;
        let tools = match &tools[..] {
            [] => ToolLinks::None,
            [link] => ToolLinks::One(*link),
            _ => ToolLinks::Many(Box::new(tools)),
        };
        Self {
            offset_and_flags: place.offset << FLAG_BITS | flags,
            length: place.length,
            line: u32::try_from(place.line).unwrap_or(u32::MAX),
            uuid,
            parent,
            message,
            tools,
        }
    }

    pub(super) fn uuid(&self) -> Option<IdKey> {
        self.uuid
    }

    /// Writes the node in a form that [`read`](Self::read) understands.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.offset_and_flags.to_le_bytes())?;
        out.write_all(&self.length.to_le_bytes())?;
        out.write_all(&self.line.to_le_bytes())?;
        for id in [self.uuid, self.parent, self.message] {
            out.write_all(&id.map_or(0, IdKey::number).to_le_bytes())?;
        }
        let mut links = Vec::new();
        self.visit_tools(|link| links.push(link));
        out.write_all(&(links.len() as u32).to_le_bytes())?;
        for link in links {
            out.write_all(&[link.role as u8])?;
            out.write_all(&link.call.number().to_le_bytes())?;
        }
        Ok(())
    }

    /// Reads a node; `None` if there is none.
    pub(super) fn read(input: &mut impl Read) -> Option<Self> {
        let offset_and_flags = u64::from_le_bytes(take(input)?);
        let [length, line] = [u32::from_le_bytes(take(input)?), u32::from_le_bytes(take(input)?)];
        let mut key = || Some(IdKey::from_number(u64::from_le_bytes(take(input)?)));
        let (uuid, parent, message) = (key()?, key()?, key()?);
        let count = u32::from_le_bytes(take(input)?);
        let mut link = || {
            let [role] = take(input)?;
            let role = *TOOL_ROLES.get(usize::from(role))?;
            Some(ToolLink { role, call: IdKey::from_number(u64::from_le_bytes(take(input)?))? })
        };
        let tools = match count {
            0 => ToolLinks::None,
            1 => ToolLinks::One(link()?),
            _ => ToolLinks::Many(Box::new((0..count).map(|_| link()).collect::<Option<_>>()?)),
        };
        Some(Self { offset_and_flags, length, line, uuid, parent, message, tools })
    }

    /// Offset of the first byte of its line in the file.
    pub(super) fn offset(&self) -> u64 {
        self.offset_and_flags >> FLAG_BITS
    }

    fn has(&self, flag: u64) -> bool {
        self.offset_and_flags & flag != 0
    }
}

impl EntryNode for CompactNode {
    type Reader = dyn EntryReader;

    fn from_entry(place: Place, entry: Entry) -> Self {
        let node = Node { line: place.line, entry };
        let mut tools = Vec::new();
        node.visit_tools(|link| tools.push(link));
        Self::new(place, node.facts(), node.prompt_kind(), tools)
    }

    fn line(&self) -> u64 {
        self.line.into()
    }

    fn facts(&self) -> Facts {
        Facts {
            kind: KINDS[(self.offset_and_flags & KIND_MASK) as usize],
            uuid: self.uuid,
            parent: self.parent,
            is_root: self.has(IS_ROOT),
            message: self.message,
            has_several_blocks: self.has(HAS_SEVERAL_BLOCKS),
            is_incomplete: self.has(IS_INCOMPLETE),
            is_response: self.has(IS_RESPONSE),
        }
    }

    fn prompt_kind(&self) -> PromptKind {
        match (self.has(IS_PROMPT), self.has(IS_LOCAL_COMMAND)) {
            (_, true) => PromptKind::LocalCommand,
            (true, false) => PromptKind::Prompt,
            (false, false) => PromptKind::None,
        }
    }

    fn visit_tools(&self, mut visit: impl FnMut(ToolLink)) {
        match &self.tools {
            ToolLinks::None => {}
            ToolLinks::One(link) => visit(*link),
            ToolLinks::Many(links) => links.iter().for_each(|link| visit(*link)),
        }
    }

    fn load<'a>(&'a self, reader: &'a Self::Reader, file: u32) -> Option<Cow<'a, Node>> {
        let text = reader.read(file, self.offset(), self.length)?;
        let mut entry = Entry::read(&text).ok()?;
        let nesting = (self.offset_and_flags & ((1 << FLAG_BITS) - 1)) >> NESTING_SHIFT;
        for _ in 0..nesting {
            entry = repeated_entry(&entry)?;
        }
        Some(Cow::Owned(Node { line: self.line(), entry: flatten_system(entry) }))
    }
}

/// The entry of a subagent that a `progress` entry repeats.
fn repeated_entry(entry: &Entry) -> Option<Entry> {
    let Entry::Progress(progress) = entry else { return None };
    let ProgressData::Tagged(ProgressKind::Agent(data)) = &progress.data else { return None };
    Entry::read(data.message.get()?.text()).ok()
}

#[cfg(test)]
mod tests;

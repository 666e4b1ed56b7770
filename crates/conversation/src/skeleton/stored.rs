//! A skeleton as bytes, so that a long file is read only once.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use quipu_message::{AgentId, SessionId, ToolUseId, Uuid};

use super::Skeleton;
use super::compact_node::CompactNode;
use crate::conversation::Conversation;
use crate::id_key::IdKey;
use crate::problem::{Problem, ProblemKind};
use crate::sidechain::SidechainKey;

/// Changes whenever the format, or what the facts of an entry mean, changes.
const FORMAT_VERSION: u64 = 1;

impl Skeleton {
    /// Whether the skeleton can be stored. Not while a message is being streamed, because its parts
    /// would be lost.
    pub fn is_storable(&self) -> bool {
        fn is_storable(conversation: &Conversation<CompactNode>) -> bool {
            conversation.partial_message.is_none() && conversation.sidechains.values().all(is_storable)
        }
        is_storable(&self.conversation)
    }

    /// Writes the skeleton in a form that [`read_stored`](Self::read_stored) reads. Does not protect
    /// it against damage.
    pub fn store(&self, out: &mut impl Write) -> io::Result<()> {
        let mut out = Writer(out);
        out.number(FORMAT_VERSION)?;
        out.conversation(&self.conversation)
    }

    /// Reads a skeleton that [`store`](Self::store) wrote; `None` if it is of another version or
    /// cannot be read.
    pub fn read_stored(input: &mut impl Read) -> Option<Self> {
        let mut input = Reader(input);
        let conversation = (input.number()? == FORMAT_VERSION).then(|| input.conversation())??;
        Some(Self { conversation })
    }
}

struct Writer<'a, W>(&'a mut W);

impl<W: Write> Writer<'_, W> {
    fn number(&mut self, number: u64) -> io::Result<()> {
        self.0.write_all(&number.to_le_bytes())
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        self.number(text.len() as u64)?;
        self.0.write_all(text.as_bytes())
    }

    fn optional_text(&mut self, text: Option<&str>) -> io::Result<()> {
        self.number(text.is_some().into())?;
        text.map_or(Ok(()), |text| self.text(text))
    }

    fn conversation(&mut self, conversation: &Conversation<CompactNode>) -> io::Result<()> {
        self.number(conversation.nodes.len() as u64)?;
        conversation.nodes.iter().try_for_each(|node| node.write(self.0))?;
        self.number(conversation.tombstoned.len() as u64)?;
        let mut tombstoned: Vec<IdKey> = conversation.tombstoned.iter().copied().collect();
        tombstoned.sort_unstable();
        tombstoned.into_iter().try_for_each(|uuid| self.number(uuid.number()))?;
        self.number(conversation.sidechains.len() as u64)?;
        for (key, sidechain) in &conversation.sidechains {
            let (kind, id) = match key {
                SidechainKey::ToolCall(id) => (0, id.as_str()),
                SidechainKey::Agent(id) => (1, id.as_str()),
                SidechainKey::Root(id) => (2, id.as_str()),
            };
            self.number(kind)?;
            self.text(id)?;
            self.conversation(sidechain)?;
        }
        let index_by_key: BTreeMap<_, u64> = conversation.sidechains.keys().zip(0..).collect();
        let mut sidechain_by_line: Vec<_> = conversation.sidechain_by_line.iter().collect();
        sidechain_by_line.sort_unstable();
        self.number(sidechain_by_line.len() as u64)?;
        for (uuid, key) in sidechain_by_line {
            self.number(uuid.number())?;
            self.number(index_by_key.get(key).copied().unwrap_or_default())?;
        }
        let mut agent_by_call: Vec<_> = conversation.agent_by_call.iter().collect();
        agent_by_call.sort_unstable();
        self.number(agent_by_call.len() as u64)?;
        for (call, agent) in agent_by_call {
            self.text(call.as_str())?;
            self.text(agent.as_str())?;
        }
        self.number(conversation.problems.len() as u64)?;
        for problem in &conversation.problems {
            self.text(problem.kind.code())?;
            self.text(&problem.path)?;
            self.number(problem.line)?;
            self.number(problem.offset)?;
            self.text(&problem.message)?;
        }
        self.optional_text(conversation.session_id.as_ref().map(SessionId::as_str))?;
        self.optional_text(conversation.custom_title.as_deref())?;
        self.optional_text(conversation.ai_title.as_deref())?;
        self.number(conversation.depth as u64)
    }
}

struct Reader<'a, R>(&'a mut R);

impl<R: Read> Reader<'_, R> {
    fn number(&mut self) -> Option<u64> {
        take(self.0).map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Option<String> {
        let length = self.number()?;
        let mut text = String::new();
        self.0.take(length).read_to_string(&mut text).ok()?;
        (text.len() as u64 == length).then_some(text)
    }

    fn optional_text(&mut self) -> Option<Option<String>> {
        if self.number()? == 0 { Some(None) } else { self.text().map(Some) }
    }

    fn key(&mut self) -> Option<IdKey> {
        IdKey::from_number(self.number()?)
    }

    fn conversation(&mut self) -> Option<Conversation<CompactNode>> {
        let mut conversation = Conversation::default();
        for i in 0..u32::try_from(self.number()?).ok()? {
            let node = CompactNode::read(self.0)?;
            conversation.by_uuid.extend(node.uuid().map(|uuid| (uuid, i)));
            conversation.nodes.push(node);
        }
        for _ in 0..self.number()? {
            conversation.tombstoned.insert(self.key()?);
        }
        for _ in 0..self.number()? {
            let (kind, id) = (self.number()?, self.text()?);
            let key = match kind {
                0 => SidechainKey::ToolCall(ToolUseId::from(id)),
                1 => SidechainKey::Agent(AgentId::from(id)),
                2 => SidechainKey::Root(Uuid::from(id)),
                _ => return None,
            };
            conversation.sidechains.insert(key, self.conversation()?);
        }
        let keys: Vec<SidechainKey> = conversation.sidechains.keys().cloned().collect();
        for _ in 0..self.number()? {
            let (uuid, index) = (self.key()?, usize::try_from(self.number()?).ok()?);
            conversation.sidechain_by_line.insert(uuid, keys.get(index)?.clone());
        }
        for _ in 0..self.number()? {
            let (call, agent) = (self.text()?.into(), self.text()?.into());
            conversation.agent_by_call.insert(call, agent);
        }
        for _ in 0..self.number()? {
            let kind = ProblemKind::from_code(&self.text()?)?;
            let (path, line, offset, message) = (self.text()?, self.number()?, self.number()?, self.text()?);
            conversation.problems.push(Problem { kind, path, line, offset, message });
        }
        conversation.session_id = self.optional_text()?.map(SessionId::from);
        conversation.custom_title = self.optional_text()?;
        conversation.ai_title = self.optional_text()?;
        conversation.depth = usize::try_from(self.number()?).ok()?;
        Some(conversation)
    }
}

/// Reads the next bytes; `None` if there are fewer.
pub(super) fn take<const N: usize>(input: &mut impl Read) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

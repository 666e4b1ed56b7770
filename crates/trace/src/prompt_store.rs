//! Texts of requests, each kept once.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use quipu_message::added_context::AddedContext;
use quipu_message::request_view::{MessageParts, PromptPart};
use quipu_message::values::CacheLifetime;
use quipu_message::{Message, Role};

/// Id of a text in a [`PromptStore`]. Equal ids are equal texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextId(u32);

/// Id of a message in a [`PromptStore`]. Two ids may differ only in their cache breakpoints;
/// compare [`PromptMessage::cache_hash`] or [`PromptMessage::history_hash`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageKey(u32);

/// A part of a prompt in one request: its text, and whether a cached prefix ends there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PartKey {
    /// Text of the part without `cache_control`.
    pub text: TextId,
    /// Cache lifetime, if a cached prefix ends here.
    pub breakpoint: Option<Breakpoint>,
}

/// Cache lifetime of a breakpoint that the rules know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Breakpoint {
    /// Five minutes, also for lifetimes this build does not know.
    FiveMinutes,
    /// One hour, at a higher price.
    OneHour,
}

/// What is known of a part's text; equal texts share it.
#[derive(Debug, Clone)]
pub struct BlockPart {
    /// Compact JSON without `cache_control`.
    pub text: Arc<str>,
    /// Type of the block, for example `text`; `tool` for a tool definition.
    pub kind: String,
    /// Name of the tool that the block calls or the definition describes.
    pub tool_name: Option<String>,
    /// Id of the tool call that the block makes or answers.
    pub tool_use_id: Option<String>,
    /// What the text is about, if the program added it to the prompt by itself.
    pub context: Option<AddedContext>,
    /// Images in the block, also those in a tool result.
    pub images: u32,
    /// Whether the block is a document with citations.
    pub has_citations: bool,
    /// Estimated share of the prompt, in bytes of text: an encoded image counts as much as
    /// text of its usual number of tokens.
    pub weight: u64,
    /// Hash that ignores the order of keys.
    canonical_hash: u64,
}

/// One message of a request.
#[derive(Debug, Clone)]
pub struct PromptMessage {
    /// Role as sent.
    pub role: Role,
    /// Content blocks in order.
    pub blocks: Vec<PartKey>,
    /// Equal for messages that are the same to the prompt cache: breakpoints are ignored,
    /// and a string equals one text block.
    pub cache_hash: u64,
    /// Equal for messages that are the same step of a conversation: thinking blocks and the
    /// order of keys are ignored too.
    pub history_hash: u64,
    /// Fields other than role and content, as JSON; empty if there are none.
    pub extra: String,
    /// Bytes of the message's blocks as JSON.
    pub bytes: u64,
}

/// Weight of one image: about 1,500 tokens of four bytes.
const IMAGE_WEIGHT: u64 = 6_000;

/// Texts and messages of all requests of a trace, each kept once.
#[derive(Debug, Default)]
pub struct PromptStore {
    parts: Vec<BlockPart>,
    text_ids: HashMap<Arc<str>, TextId>,
    messages: Vec<PromptMessage>,
    message_ids: HashMap<Box<str>, MessageKey>,
    part_ids: HashMap<Box<str>, PartKey>,
    /// Messages that differ from another one only in a breakpoint: the other one, the block
    /// and its breakpoint; without a block and a breakpoint, the message without any.
    breakpoint_variants: HashMap<(MessageKey, Option<(usize, Breakpoint)>), MessageKey>,
}

impl PromptStore {
    /// The part with this id.
    pub fn part(&self, id: TextId) -> &BlockPart {
        &self.parts[id.0 as usize]
    }

    /// The text with this id.
    pub fn text(&self, id: TextId) -> &str {
        &self.part(id).text
    }

    /// The text of a `text` block; `None` for other kinds.
    pub fn plain_text(&self, id: TextId) -> Option<String> {
        let part = self.part(id);
        (part.kind == "text").then(|| PromptPart::read_block(&part.text).ok()?.plain_text()).flatten()
    }

    /// The message with this id.
    pub fn message(&self, key: MessageKey) -> &PromptMessage {
        &self.messages[key.0 as usize]
    }

    /// Bytes of all distinct texts.
    pub fn text_bytes(&self) -> usize {
        self.parts.iter().map(|part| part.text.len()).sum()
    }

    /// Adds any text.
    pub fn add_text(&mut self, text: &str) -> TextId {
        if let Some(id) = self.text_ids.get(text) {
            return *id;
        }
        let part = PromptPart { text: text.to_owned(), ..PromptPart::default() };
        self.add_part(part).text
    }

    /// Adds a raw message of a request. It is read only if its text is new.
    pub fn add_message(&mut self, raw: &str) -> Result<MessageKey, serde_json::Error> {
        if let Some(key) = self.message_ids.get(raw) {
            return Ok(*key);
        }
        let key = self.add_message_parts(MessageParts::read(raw)?);
        self.message_ids.insert(raw.into(), key);
        Ok(key)
    }

    /// Adds a message that is known to be new, for callers that read each message once.
    pub(crate) fn add_new_message(&mut self, message: &Message) -> Result<MessageKey, serde_json::Error> {
        MessageParts::read(&serde_json::to_string(message)?).map(|parts| self.add_message_parts(parts))
    }

    /// The same message with a breakpoint at one of its blocks; the message itself if it has no
    /// such block.
    pub(crate) fn with_breakpoint(&mut self, key: MessageKey, block: usize, breakpoint: Breakpoint) -> MessageKey {
        if self.message(key).blocks.len() <= block {
            return key;
        }
        self.breakpoint_variant(key, Some((block, breakpoint)))
    }

    /// The same message without breakpoints.
    pub(crate) fn without_breakpoints(&mut self, key: MessageKey) -> MessageKey {
        if self.message(key).blocks.iter().all(|block| block.breakpoint.is_none()) {
            return key;
        }
        self.breakpoint_variant(key, None)
    }

    fn breakpoint_variant(&mut self, key: MessageKey, change: Option<(usize, Breakpoint)>) -> MessageKey {
        if let Some(variant) = self.breakpoint_variants.get(&(key, change)) {
            return *variant;
        }
        let mut message = self.message(key).clone();
        match change {
            Some((block, breakpoint)) => message.blocks[block].breakpoint = Some(breakpoint),
            None => message.blocks.iter_mut().for_each(|block| block.breakpoint = None),
        }
        let variant = MessageKey(self.messages.len() as u32);
        self.messages.push(message);
        self.breakpoint_variants.insert((key, change), variant);
        variant
    }

    /// Adds a raw tool definition of a request. It is read only if its text is new.
    pub fn add_tool(&mut self, raw: &str) -> Result<PartKey, serde_json::Error> {
        if let Some(key) = self.part_ids.get(raw) {
            return Ok(*key);
        }
        let key = self.add_part(PromptPart::read_tool(raw)?);
        self.part_ids.insert(raw.into(), key);
        Ok(key)
    }

    /// Adds one block.
    pub fn add_part(&mut self, part: PromptPart) -> PartKey {
        let breakpoint = part.breakpoint.as_ref().map(Breakpoint::from);
        if let Some(id) = self.text_ids.get(part.text.as_str()) {
            return PartKey { text: *id, breakpoint };
        }
        let canonical_hash = hash_of(&part.canonical_json());
        let context = part.plain_text().and_then(|text| AddedContext::from_text(&text));
        let text: Arc<str> = part.text.into();
        let id = TextId(self.parts.len() as u32);
        self.text_ids.insert(Arc::clone(&text), id);
        let PromptPart { kind, tool_name, tool_use_id, images, has_citations, encoded_bytes, .. } = part;
        let weight = (text.len() as u64).saturating_sub(encoded_bytes)
            + if encoded_bytes > 0 { IMAGE_WEIGHT.min(encoded_bytes) * u64::from(images.max(1)) } else { 0 };
        self.parts.push(BlockPart {
            text,
            kind,
            tool_name,
            tool_use_id,
            context,
            images,
            has_citations,
            weight,
            canonical_hash,
        });
        PartKey { text: id, breakpoint }
    }

    fn add_message_parts(&mut self, message: MessageParts) -> MessageKey {
        let (mut cache, mut history) = (DefaultHasher::new(), DefaultHasher::new());
        for hasher in [&mut cache, &mut history] {
            (message.role.as_str(), &message.extra).hash(hasher);
        }
        let mut bytes = message.extra.len() as u64;
        let blocks: Vec<PartKey> = message
            .blocks
            .into_iter()
            .map(|block| {
                let is_thinking = block.is_thinking();
                let key = self.add_part(block);
                let part = self.part(key.text);
                bytes += part.text.len() as u64;
                key.text.hash(&mut cache);
                if !is_thinking {
                    part.canonical_hash.hash(&mut history);
                }
                key
            })
            .collect();
        let key = MessageKey(self.messages.len() as u32);
        let (cache_hash, history_hash) = (cache.finish(), history.finish());
        self.messages.push(PromptMessage {
            role: message.role,
            blocks,
            cache_hash,
            history_hash,
            extra: message.extra,
            bytes,
        });
        key
    }
}

impl From<&CacheLifetime> for Breakpoint {
    fn from(lifetime: &CacheLifetime) -> Self {
        if *lifetime == CacheLifetime::OneHour { Self::OneHour } else { Self::FiveMinutes }
    }
}

fn hash_of(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

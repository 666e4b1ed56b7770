//! The blocks of a scripted reply.

use std::fmt;

use quipu_message::{Block, Json, Maybe, RedactedThinking, Thinking, ToolUse};
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor, value::MapAccessDeserializer};
use serde_json::Value;

/// The blocks of a reply: one or several.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReplyBlocks(pub(crate) Vec<ReplyBlock>);

/// One block of a reply; a tool call gets its id when the reply is sent.
#[derive(Debug, Clone)]
pub(crate) enum ReplyBlock {
    Block(Block),
    ToolCall { name: String, input: Value },
}

impl ReplyBlock {
    /// Makes the block; a tool call without an id gets the next one.
    pub(crate) fn to_block(&self, id: impl FnOnce() -> String) -> Block {
        match self {
            Self::Block(block) => block.clone(),
            Self::ToolCall { name, input } => tool_use_block(id(), name, input),
        }
    }
}

fn tool_use_block(id: String, name: &str, input: &Value) -> Block {
    let (id, input) = (id.as_str().into(), Json::from_serialize(input));
    Block::ToolUse(Box::new(ToolUse { id, name: name.into(), input, ..ToolUse::default() }))
}

/// A block as written in a script.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedBlock {
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    redacted_thinking: Option<String>,
    tool: Option<String>,
    input: Option<Value>,
    id: Option<String>,
    block: Option<Value>,
}

impl ScriptedBlock {
    fn into_reply_block(self) -> Result<ReplyBlock, String> {
        let given = [&self.text, &self.thinking, &self.redacted_thinking, &self.tool];
        let kinds = given.iter().filter(|kind| kind.is_some()).count() + usize::from(self.block.is_some());
        if kinds != 1 {
            return Err(
                "a piece of a reply has exactly one of text, thinking, redacted_thinking, tool and block".into()
            );
        }
        if self.tool.is_none() && (self.input.is_some() || self.id.is_some()) {
            return Err("input and id belong to a tool".into());
        }
        if self.thinking.is_none() && self.signature.is_some() {
            return Err("signature belongs to thinking".into());
        }
        if let Some(thinking) = self.thinking {
            // A real server checks the signature; the mock server does not.
            let signature = Maybe::Value(self.signature.unwrap_or_else(|| "c2NyaXB0ZWQ=".to_owned()));
            let block = Thinking { thinking, signature, ..Thinking::default() };
            return Ok(ReplyBlock::Block(Block::Thinking(Box::new(block))));
        }
        if let Some(data) = self.redacted_thinking {
            let block = RedactedThinking { data: Maybe::Value(data), ..RedactedThinking::default() };
            return Ok(ReplyBlock::Block(Block::RedactedThinking(Box::new(block))));
        }
        if let Some(name) = self.tool {
            let input = self.input.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
            if !input.is_object() {
                return Err(format!("the input of {name} must be a mapping"));
            }
            return Ok(match self.id {
                Some(id) => ReplyBlock::Block(tool_use_block(id, &name, &input)),
                None => ReplyBlock::ToolCall { name, input },
            });
        }
        match self.block {
            Some(raw) => Json::from_serialize(&raw).read().map(ReplyBlock::Block).map_err(|e| format!("block: {e}")),
            None => Ok(ReplyBlock::Block(Block::new_text(self.text.unwrap_or_default()))),
        }
    }
}

impl<'de> Deserialize<'de> for ReplyBlocks {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct OneOrMore;
        impl<'de> Visitor<'de> for OneOrMore {
            type Value = ReplyBlocks;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a piece such as {tool: Read, input: {…}}, or a list of them")
            }
            fn visit_str<E>(self, text: &str) -> Result<ReplyBlocks, E> {
                Ok(ReplyBlocks(vec![ReplyBlock::Block(Block::new_text(text))]))
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<ReplyBlocks, A::Error> {
                let written = ScriptedBlock::deserialize(MapAccessDeserializer::new(map))?;
                Ok(ReplyBlocks(vec![written.into_reply_block().map_err(de::Error::custom)?]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<ReplyBlocks, A::Error> {
                let mut all = Vec::new();
                while let Some(ReplyBlocks(some)) = seq.next_element()? {
                    all.extend(some);
                }
                Ok(ReplyBlocks(all))
            }
        }
        d.deserialize_any(OneOrMore)
    }
}

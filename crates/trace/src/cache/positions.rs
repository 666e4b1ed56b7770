//! Cacheable positions of a request, in the order in which the server reads them.

use std::hash::{DefaultHasher, Hash, Hasher};

use quipu_conversation::Tokens;
use quipu_message::tool::ServerTool;

use super::parameters::CacheParameters;
use crate::call::{Call, RequestParts};
use crate::prompt_store::{Breakpoint, PartKey, PromptStore, TextId};

/// Where a position is in a request. Earlier positions are smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// Tool definition with this index.
    Tool(usize),
    /// System block with this index, the billing line not counted.
    System(usize),
    /// Content block of a message.
    Block {
        /// Index of the message.
        message: usize,
        /// Index of the block in the message.
        block: usize,
    },
}

impl Place {
    /// The place as a path into the request's JSON, with the name of the tool it defines.
    pub(super) fn describe(self, request: &RequestParts, prompts: &PromptStore) -> String {
        match self {
            Self::Tool(index) => {
                let tool = request.tools.get(index).and_then(|tool| prompts.part(tool.text).tool_name.as_deref());
                tool.map_or_else(|| format!("tools[{index}]"), |name| format!("tools[{index}] {name}"))
            }
            Self::System(index) => format!("system[{}]", index + usize::from(request.billing_line.is_some())),
            Self::Block { message, block } => format!("messages[{message}].content[{block}]"),
        }
    }
}

/// One cacheable position: a tool definition, a system block or a content block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position {
    pub(super) place: Place,
    pub(super) text: TextId,
    pub(super) breakpoint: Option<Breakpoint>,
    /// Hash of everything up to here that the cache compares.
    pub(super) prefix: u64,
    /// Tokens up to here, this position included. An estimate unless a response counted them.
    pub(super) tokens: u64,
}

/// A request as the prompt cache sees it.
#[derive(Debug, Clone, Default)]
pub(super) struct Prompt {
    pub(super) positions: Vec<Position>,
    /// Tokens of the whole prompt.
    pub(super) total: u64,
}

impl Prompt {
    /// The positions of a call's request with `tools` as its tools; token counts are zero.
    pub(super) fn read(call: &Call, request: &RequestParts, tools: &[PartKey], prompts: &PromptStore) -> Self {
        let mut chain = PrefixChain::default();
        chain.mix(&(call.identity.account, &request.model));
        let mut positions = Vec::with_capacity(tools.len() + request.system.len() + request.messages.len());
        let mut push = |chain: &PrefixChain, place, part: &PartKey| {
            let PartKey { text, breakpoint } = *part;
            positions.push(Position { place, text, breakpoint, prefix: chain.0, tokens: 0 });
        };
        // Web search is no part of the cached tools: it changes the system prompt.
        let is_web_search = |tool: &&PartKey| is_web_search(prompts, tool.text);
        for (index, tool) in tools.iter().enumerate() {
            if !is_web_search(&tool) {
                chain.mix(&tool.text);
            }
            push(&chain, Place::Tool(index), tool);
        }
        tools.iter().filter(is_web_search).for_each(|tool| chain.mix(&tool.text));
        let facts = MessageFacts::of(request, prompts);
        let CacheParameters { speed, format, thinking, effort, tool_choice } = CacheParameters::of(request, prompts);
        chain.mix(&(speed, format, facts.has_citations));
        for (index, block) in request.system.iter().enumerate() {
            chain.mix(&block.text);
            push(&chain, Place::System(index), block);
        }
        chain.mix(&(thinking, effort, tool_choice, facts.images > 0));
        for (message, key) in request.messages.iter().enumerate() {
            let content = prompts.message(*key);
            for (block, part) in content.blocks.iter().enumerate() {
                chain.mix(&(content.role.as_str(), &content.extra, part.text));
                push(&chain, Place::Block { message, block }, part);
            }
        }
        let mut prompt = Self { positions, total: 0 };
        if let (Some(automatic), Some(last)) = (request.automatic_breakpoint, prompt.positions.last_mut()) {
            last.breakpoint.get_or_insert(automatic);
        }
        prompt.assume_breakpoint(call);
        prompt
    }

    /// Requests that were derived from session files have no breakpoints. They had one at
    /// the end if the response counted cached tokens.
    fn assume_breakpoint(&mut self, call: &Call) {
        let tokens = call.response.tokens.unwrap_or_default();
        let used_cache = tokens.cache_read + tokens.cache_write() > 0;
        if call.is_reconstructed && used_cache && self.last_breakpoint().is_none() {
            let lifetime = if tokens.cache_write_1h > 0 { Breakpoint::OneHour } else { Breakpoint::FiveMinutes };
            if let Some(last) = self.positions.last_mut() {
                last.breakpoint = Some(lifetime);
            }
        }
    }

    /// Index of the last breakpoint; `None` if the request has none.
    pub(super) fn last_breakpoint(&self) -> Option<usize> {
        self.positions.iter().rposition(|position| position.breakpoint.is_some())
    }

    /// Prompt tokens by price, if the request reads the prefix up to `hit` and writes the rest
    /// up to its last breakpoint. Prefixes shorter than `minimum` are not cached.
    pub(super) fn tokens_by_price(&self, hit: Option<usize>, minimum: u64) -> Tokens {
        let read = self.tokens_at(hit);
        let first = hit.map_or(0, |hit| hit + 1);
        let written = self.positions[first..].iter().filter(|position| position.tokens >= minimum);
        let written = written.filter_map(|position| Some((position.breakpoint?, position.tokens - read)));
        let (mut all, mut one_hour) = (0, 0);
        for (lifetime, tokens) in written {
            all = tokens;
            if lifetime == Breakpoint::OneHour {
                one_hour = tokens;
            }
        }
        Tokens {
            input: self.total.saturating_sub(read + all),
            cache_write_5m: all - one_hour,
            cache_write_1h: one_hour,
            cache_read: read,
            output: 0,
        }
    }

    /// Tokens up to and including the position with this index; 0 for `None`.
    pub(super) fn tokens_at(&self, index: Option<usize>) -> u64 {
        index.map_or(0, |index| self.positions[index].tokens)
    }
}

/// What the messages of a request contain that changes how their prefix is cached.
pub(super) struct MessageFacts {
    pub(super) images: u32,
    pub(super) has_citations: bool,
}

impl MessageFacts {
    pub(super) fn of(request: &RequestParts, prompts: &PromptStore) -> Self {
        let mut facts = Self { images: 0, has_citations: false };
        for block in request.messages.iter().flat_map(|key| &prompts.message(*key).blocks) {
            let part = prompts.part(block.text);
            facts.images += part.images;
            facts.has_citations |= part.has_citations;
        }
        facts
    }
}

/// Whether a tool is the server's web search.
pub(super) fn is_web_search(prompts: &PromptStore, tool: TextId) -> bool {
    ServerTool::from_type(&prompts.part(tool).kind) == Some(ServerTool::WebSearch)
}

/// Hash of a growing prefix.
#[derive(Default)]
struct PrefixChain(u64);

impl PrefixChain {
    fn mix(&mut self, value: &impl Hash) {
        let mut hasher = DefaultHasher::new();
        (self.0, value).hash(&mut hasher);
        self.0 = hasher.finish();
    }
}

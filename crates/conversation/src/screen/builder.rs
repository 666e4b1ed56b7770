//! Builds items from entries in their order.

use std::collections::{HashMap, HashSet};

use quipu_message::synthetic::NO_RESPONSE_REQUESTED;
use quipu_message::tagged_text::{command_output, typed_text};
use quipu_message::user_assistant::{Assistant, User};
use quipu_message::{Block, Content, Entry, Message, ToolCall, ToolUseId, Uuid};

use super::hooks::{self, HooksByCall};
use super::{ItemKind, ScreenItem, SubagentCard, UiOptions, block, empty_item, item_for_node, notice};
use crate::conversation::{Conversation, MAX_SUBAGENT_DEPTH};
use crate::node::{EntryNode, Node};
use crate::tool_results::{PairedResult, ToolResults};
use crate::user_text::{UserText, classify_user_text};

/// Builds the items of a list of entries.
pub(super) struct ScreenBuilder<'a, N: EntryNode> {
    conversation: &'a Conversation<N>,
    reader: &'a N::Reader,
    results: ToolResults<'a>,
    tool_calls: HashSet<&'a ToolUseId>,
    hooks: HooksByCall<'a>,
    /// Sidechains of old files by their first prompt.
    sidechains_by_prompt: HashMap<String, &'a Conversation<N>>,
    /// Whether an entry had several blocks; from then on the UUIDs of items are derived.
    pub(super) has_split_message: bool,
    options: UiOptions,
    depth: usize,
    pub(super) items: Vec<ScreenItem>,
    /// Number of hidden items that were left out.
    pub(super) left_out: usize,
}

impl<'a, N: EntryNode> ScreenBuilder<'a, N> {
    /// Creates a builder for `nodes`. `partial_blocks` are those of the message that is being
    /// streamed; they may hold results of tool calls in `nodes`.
    pub(super) fn new(
        conversation: &'a Conversation<N>,
        nodes: &[&'a Node],
        partial_blocks: &'a [Block],
        options: UiOptions,
        depth: usize,
        reader: &'a N::Reader,
    ) -> Self {
        let mut calls: HashSet<&ToolUseId> = HashSet::with_capacity(nodes.len() / 2);
        calls.extend(nodes.iter().flat_map(|node| node.blocks()).filter_map(|block| Some(block.tool_call()?.id)));
        Self {
            conversation,
            reader,
            results: ToolResults::new(nodes.iter().copied()).with_blocks(partial_blocks),
            hooks: HooksByCall::new(nodes, &calls),
            tool_calls: calls,
            sidechains_by_prompt: conversation.sidechains_by_prompt(reader),
            has_split_message: false,
            options,
            depth,
            items: Vec::with_capacity(nodes.len()),
            left_out: 0,
        }
    }

    /// Adds the items of one entry.
    pub(super) fn push_node(&mut self, node: &'a Node) {
        match &node.entry {
            Entry::User(user) => self.push_user(node, user),
            Entry::Assistant(assistant) => self.push_assistant(node, assistant),
            Entry::Progress(_) | Entry::Attachment(_) if self.hooks.is_shown_with_call(node) => {}
            Entry::Progress(_) => self.items.extend(hooks::hook_item(node)),
            _ => {
                let item = notice::notice_item(node);
                self.push_visible(item);
            }
        }
    }

    /// Adds the blocks of a streamed message that no complete entry holds yet.
    /// `complete_blocks` is the number of entries that hold one.
    pub(super) fn push_partial_message(&mut self, message: &Message, complete_blocks: usize) {
        let line = Assistant { message: message.clone(), ..Assistant::default() };
        for block in message.content.clone().into_blocks().into_iter().skip(complete_blocks) {
            let item =
                ScreenItem { model: line.message.model.text().map(str::to_owned), ..empty_item(ItemKind::Assistant) };
            match &block {
                Block::Text(text) => self.push_assistant_text(&text.text, &line, item),
                block => self.items.extend(block::request_block_item(block, &self.results, item)),
            }
        }
    }

    /// Adds an item, unless it is hidden and hidden items are left out.
    fn push_item(&mut self, item: ScreenItem) {
        self.push_visible(Some(item));
    }

    fn push_visible(&mut self, item: Option<ScreenItem>) {
        match item {
            Some(item) if item.hidden && !self.options.include_hidden => self.left_out += 1,
            item => self.items.extend(item),
        }
    }

    fn push_user(&mut self, node: &'a Node, user: &'a User) {
        let ids = self.item_ids(node, user.message.content.blocks().len());
        if user.is_compact_summary.is_true() {
            let text = user.message.content.to_text();
            self.push_item(ScreenItem { text: Some(text), ..ids.new_item(node, ItemKind::Summary, 0) });
            return;
        }
        let is_meta = user.is_meta.is_true() || user.is_visible_in_transcript_only.is_true();
        match &user.message.content {
            Content::Text(text) => self.push_user_text(text, user, is_meta, ids.new_item(node, ItemKind::User, 0)),
            Content::Other(json) => {
                let text = Some(json.text().to_owned());
                self.push_item(ScreenItem { text, hidden: is_meta, ..ids.new_item(node, ItemKind::Unknown, 0) });
            }
            Content::Blocks(blocks) => {
                for (i, block) in blocks.iter().enumerate() {
                    let item = ids.new_item(node, ItemKind::User, i);
                    match block {
                        Block::Text(text) => self.push_user_text(&text.text, user, is_meta, item),
                        block => self.push_other_block(block, node, ScreenItem { hidden: is_meta, ..item }),
                    }
                }
            }
        }
    }

    fn push_user_text(&mut self, text: &str, user: &User, is_meta: bool, item: ScreenItem) {
        let hidden = ScreenItem { kind: ItemKind::System, text: Some(text.to_owned()), hidden: true, ..item.clone() };
        match classify_user_text(text) {
            _ if is_meta => self.push_item(hidden),
            UserText::Hidden if text.trim().is_empty() => {}
            UserText::Hidden => self.push_item(hidden),
            UserText::Notice(text) => self.push_item(ScreenItem { kind: ItemKind::System, text: Some(text), ..item }),
            UserText::Prompt { text, mut contexts } => {
                if let Some(structured) = user.contexts.get().filter(|list| !list.is_empty()) {
                    contexts = structured.clone();
                }
                // Typed by the user, unless the program generated it.
                let kind = if user.is_synthetic.is_true() { ItemKind::System } else { item.kind };
                self.push_item(ScreenItem { kind, text: Some(text), contexts, ..item });
            }
        }
    }

    fn push_assistant(&mut self, node: &'a Node, line: &'a Assistant) {
        let ids = self.item_ids(node, line.message.content.blocks().len());
        let hidden = line.is_meta.is_true();
        let model = line.message.model.text().map(str::to_owned);
        let item = |i| ScreenItem { hidden, model: model.clone(), ..ids.new_item(node, ItemKind::Assistant, i) };
        match &line.message.content {
            Content::Text(text) => self.push_assistant_text(text, line, item(0)),
            Content::Other(json) => {
                self.push_item(ScreenItem { kind: ItemKind::Unknown, text: Some(json.text().to_owned()), ..item(0) });
            }
            Content::Blocks(blocks) => {
                for (i, block) in blocks.iter().enumerate() {
                    match block {
                        Block::Text(text) => self.push_assistant_text(&text.text, line, item(i)),
                        block => self.push_other_block(block, node, item(i)),
                    }
                }
            }
        }
    }

    fn push_assistant_text(&mut self, text: &str, line: &Assistant, item: ScreenItem) {
        if text.trim().is_empty() {
            return;
        }
        let is_error = line.is_api_error();
        let hidden = item.hidden || text == NO_RESPONSE_REQUESTED;
        // Streams represent the output of a local command as a response of the model.
        let local = line.local_command_source.is_value();
        // Old files store the output of a local command as a response of the model.
        let printed = command_output(text).filter(|_| typed_text(text).trim().is_empty());
        let (kind, text) = match (classify_user_text(text), printed) {
            (_, Some(printed)) => {
                (ItemKind::System, printed.stdout.or(printed.stderr).unwrap_or_default().trim().to_owned())
            }
            (UserText::Notice(text), None) if !hidden => (ItemKind::System, text),
            _ if local => (ItemKind::System, text.to_owned()),
            _ => (item.kind, text.to_owned()),
        };
        self.push_item(ScreenItem { kind, text: Some(text), is_error, hidden, ..item });
    }

    /// Adds a tool call with its hooks and result, a result without its call, or another block.
    fn push_other_block(&mut self, block: &'a Block, node: &'a Node, item: ScreenItem) {
        if let Some(call) = block.tool_call() {
            let (before, after) = self.hooks.items_for_call(call.id);
            self.items.extend(before);
            let card = self.tool_card(call, block);
            self.push_item(ScreenItem { kind: ItemKind::Tool, tool: Some(card), ..item });
            self.items.extend(after);
        } else if let Some(call) = block.result_tool_use_id() {
            if !self.tool_calls.contains(call) {
                let paired = PairedResult { block, output: node.tool_output(), timestamp: node.timestamp() };
                let card = block::tool_card(block::unnamed_tool_call(call), Some(&paired));
                self.push_item(ScreenItem { kind: ItemKind::Tool, tool: Some(card), ..item });
            }
        } else {
            let item = block::other_block_item(block, item);
            self.push_visible(item);
        }
    }

    fn tool_card(&self, call: ToolCall<'_>, block: &Block) -> super::ToolCard {
        let sidechain = block.tool_use().filter(|_| self.depth < MAX_SUBAGENT_DEPTH).and_then(|call| {
            let by_prompt = || self.sidechains_by_prompt.get(&Conversation::subagent_prompt(call)?).copied();
            self.conversation.subagent_conversation(&call.id).or_else(by_prompt)
        });
        let items = |sidechain: &Conversation<N>| match self.options.leave_out_subagents {
            true => Vec::new(),
            false => sidechain.screen(self.options, self.depth + 1, self.reader).items,
        };
        let subagent = sidechain.map(|sidechain| SubagentCard {
            agent_id: self.conversation.agent_for_call(call.id).cloned(),
            entries: sidechain.shown().paths(self.reader).path.len(),
            items: items(sidechain),
        });
        super::ToolCard { subagent, ..block::tool_card(call, self.results.get(call.id)) }
    }

    /// The UUIDs of the items of an entry.
    fn item_ids(&mut self, node: &Node, blocks: usize) -> ItemIds {
        self.has_split_message |= blocks > 1;
        let uuid = node.uuid().cloned();
        let derive = self.has_split_message && !(blocks <= 1 && uuid.as_ref().is_some_and(Uuid::is_child));
        ItemIds { uuid, is_derived: derive }
    }
}

struct ItemIds {
    uuid: Option<Uuid>,
    is_derived: bool,
}

impl ItemIds {
    fn new_item(&self, node: &Node, kind: ItemKind, index: usize) -> ScreenItem {
        let uuid = if self.is_derived { self.uuid.as_ref().map(|uuid| uuid.child(index)) } else { self.uuid.clone() };
        let derived_from = self.uuid.clone().filter(|_| self.is_derived);
        ScreenItem { uuid, derived_from, ..item_for_node(node, kind) }
    }
}

//! Items of entries, one after another.

use std::collections::{HashMap, HashSet};

use quipu_message::local_command::{output, typed};
use quipu_message::synthetic::NO_RESPONSE_REQUESTED;
use quipu_message::turn::{Assistant, User};
use quipu_message::{Block, Content, Entry, Message, ToolCall, ToolUseId, Uuid};

use super::hooks::{self, Hooks};
use super::{Kind, ScreenItem, Subagent, UiOptions, blank, block, notice, plain};
use crate::conversation::{Conversation, DEEPEST, Node};
use crate::pair::{Answer, Results};
use crate::person::{Said, said};

/// The items so far, and what must be known of all entries to make the next.
pub(super) struct Screen<'a> {
    talk: &'a Conversation,
    results: Results<'a>,
    calls: HashSet<&'a ToolUseId>,
    hooks: Hooks<'a>,
    /// Old side conversations by the words they began with.
    asked: HashMap<String, &'a Conversation>,
    /// Whether a message has been split: from then on ids are derived.
    split: bool,
    options: UiOptions,
    depth: usize,
    pub(super) items: Vec<ScreenItem>,
    /// How many hidden items are left out.
    pub(super) left_out: usize,
}

impl<'a> Screen<'a> {
    /// Nothing yet. `writing` are the blocks of the answer that is being written: they may hold
    /// results of calls that are in `nodes`.
    pub(super) fn new(
        talk: &'a Conversation,
        nodes: &[&'a Node],
        writing: &'a [Block],
        options: UiOptions,
        depth: usize,
    ) -> Self {
        let mut calls: HashSet<&ToolUseId> = HashSet::with_capacity(nodes.len() / 2);
        calls.extend(nodes.iter().flat_map(|node| node.blocks()).filter_map(|block| Some(block.tool_call()?.id)));
        Self {
            talk,
            results: Results::new(nodes.iter().copied()).with_blocks(writing),
            hooks: Hooks::new(nodes, &calls),
            calls,
            asked: talk.sides_asked(),
            split: false,
            options,
            depth,
            items: Vec::with_capacity(nodes.len()),
            left_out: 0,
        }
    }

    /// Adds the items of one entry.
    pub(super) fn node(&mut self, node: &'a Node) {
        match &node.entry {
            Entry::User(user) => self.user(node, user),
            Entry::Assistant(assistant) => self.assistant(node, assistant),
            Entry::Progress(_) | Entry::Attachment(_) if self.hooks.is_shown_with_call(node) => {}
            Entry::Progress(_) => self.items.extend(hooks::item(node)),
            _ => {
                let item = notice::item(node);
                self.extend(item);
            }
        }
    }

    /// What the stream is writing and no whole line has brought yet.
    pub(super) fn unfinished(&mut self, message: &Message, path: &[&'a Node]) {
        let written = path.iter().filter(|n| n.message_id().is_some() && n.message_id() == message.id.text()).count();
        let line = Assistant { message: message.clone(), ..Assistant::default() };
        for block in message.content.clone().into_blocks().into_iter().skip(written) {
            let item = ScreenItem { model: line.message.model.text().map(str::to_owned), ..blank(Kind::Assistant) };
            match &block {
                Block::Text(text) => self.words(&text.text, &line, item),
                block => self.items.extend(block::of_request(block, &self.results, item)),
            }
        }
    }

    /// Adds an item; one that is hidden only where hidden ones are wanted.
    fn push(&mut self, item: ScreenItem) {
        self.extend(Some(item));
    }

    fn extend(&mut self, item: Option<ScreenItem>) {
        match item {
            Some(item) if item.hidden && !self.options.hidden => self.left_out += 1,
            item => self.items.extend(item),
        }
    }

    fn user(&mut self, node: &'a Node, user: &'a User) {
        let ids = self.ids(node, user.message.content.blocks().len());
        if user.is_compact_summary.is_true() {
            let text = user.message.content.to_text();
            self.push(ScreenItem { text: Some(text), ..ids.item(node, Kind::Summary, 0) });
            return;
        }
        let is_meta = user.is_meta.is_true() || user.is_visible_in_transcript_only.is_true();
        match &user.message.content {
            Content::Text(text) => self.said(text, user, is_meta, ids.item(node, Kind::User, 0)),
            Content::Other(json) => {
                let text = Some(json.text().to_owned());
                self.push(ScreenItem { text, hidden: is_meta, ..ids.item(node, Kind::Unknown, 0) });
            }
            Content::Blocks(blocks) => {
                for (i, block) in blocks.iter().enumerate() {
                    let item = ids.item(node, Kind::User, i);
                    match block {
                        Block::Text(text) => self.said(&text.text, user, is_meta, item),
                        block => self.tool_or_other(block, node, ScreenItem { hidden: is_meta, ..item }),
                    }
                }
            }
        }
    }

    fn said(&mut self, text: &str, user: &User, is_meta: bool, item: ScreenItem) {
        let hidden = ScreenItem { kind: Kind::System, text: Some(text.to_owned()), hidden: true, ..item.clone() };
        match said(text) {
            _ if is_meta => self.push(hidden),
            Said::Hidden if text.trim().is_empty() => {}
            Said::Hidden => self.push(hidden),
            Said::Notice(text) => self.push(ScreenItem { kind: Kind::System, text: Some(text), ..item }),
            Said::Prompt { text, mut contexts } => {
                if let Some(structured) = user.contexts.get().filter(|list| !list.is_empty()) {
                    contexts = structured.clone();
                }
                // The user's own words, unless the program spoke for them.
                let kind = if user.is_synthetic.is_true() { Kind::System } else { item.kind };
                self.push(ScreenItem { kind, text: Some(text), contexts, ..item });
            }
        }
    }

    fn assistant(&mut self, node: &'a Node, line: &'a Assistant) {
        let ids = self.ids(node, line.message.content.blocks().len());
        let hidden = line.is_meta.is_true();
        let model = line.message.model.text().map(str::to_owned);
        let item = |i| ScreenItem { hidden, model: model.clone(), ..ids.item(node, Kind::Assistant, i) };
        match &line.message.content {
            Content::Text(text) => self.words(text, line, item(0)),
            Content::Other(json) => {
                self.push(ScreenItem { kind: Kind::Unknown, text: Some(json.text().to_owned()), ..item(0) });
            }
            Content::Blocks(blocks) => {
                for (i, block) in blocks.iter().enumerate() {
                    match block {
                        Block::Text(text) => self.words(&text.text, line, item(i)),
                        block => self.tool_or_other(block, node, item(i)),
                    }
                }
            }
        }
    }

    fn words(&mut self, text: &str, line: &Assistant, item: ScreenItem) {
        if text.trim().is_empty() {
            return;
        }
        let is_error = line.is_api_error();
        let hidden = item.hidden || text == NO_RESPONSE_REQUESTED;
        // The stream carries a local command's output as if the model had said it.
        let local = line.local_command_source.is_value();
        // Old files confirm a local command in the model's name.
        let printed = output(text).filter(|_| typed(text).trim().is_empty());
        let (kind, text) = match (said(text), printed) {
            (_, Some(printed)) => {
                (Kind::System, printed.stdout.or(printed.stderr).unwrap_or_default().trim().to_owned())
            }
            (Said::Notice(text), None) if !hidden => (Kind::System, text),
            _ if local => (Kind::System, text.to_owned()),
            _ => (item.kind, text.to_owned()),
        };
        self.push(ScreenItem { kind, text: Some(text), is_error, hidden, ..item });
    }

    /// A tool call with its hooks and result, a result without its call, or a block that
    /// is neither.
    fn tool_or_other(&mut self, block: &'a Block, node: &'a Node, item: ScreenItem) {
        if let Some(call) = block.tool_call() {
            let (before, after) = self.hooks.of(call.id);
            self.items.extend(before);
            let card = self.card(call, block);
            self.push(ScreenItem { kind: Kind::Tool, tool: Some(card), ..item });
            self.items.extend(after);
        } else if let Some(call) = block.outcome_of() {
            if !self.calls.contains(call) {
                let answer = Answer { block, output: node.tool_output() };
                let card = block::card(block::nameless(call), Some(&answer));
                self.push(ScreenItem { kind: Kind::Tool, tool: Some(card), ..item });
            }
        } else {
            let item = block::other(block, item);
            self.extend(item);
        }
    }

    fn card(&self, call: ToolCall<'_>, block: &Block) -> super::ToolCard {
        let side = block.tool_use().filter(|_| self.depth < DEEPEST).and_then(|call| {
            let asked = || self.asked.get(&Conversation::asked(call)?).copied();
            self.talk.side_of(&call.id).or_else(asked)
        });
        let subagent = side.map(|talk| Subagent {
            agent_id: self.talk.agent_of(call.id).cloned(),
            items: talk.screen(self.options, self.depth + 1).items,
        });
        super::ToolCard { subagent, ..block::card(call, self.results.get(call.id)) }
    }

    /// The ids of a line's items.
    fn ids(&mut self, node: &Node, blocks: usize) -> Ids {
        self.split |= blocks > 1;
        let uuid = node.uuid().cloned();
        let derive = self.split && !(blocks <= 1 && uuid.as_ref().is_some_and(Uuid::is_child));
        Ids { uuid, derive }
    }
}

struct Ids {
    uuid: Option<Uuid>,
    derive: bool,
}

impl Ids {
    fn item(&self, node: &Node, kind: Kind, index: usize) -> ScreenItem {
        let uuid = if self.derive { self.uuid.as_ref().map(|uuid| uuid.child(index)) } else { self.uuid.clone() };
        let derived_from = self.uuid.clone().filter(|_| self.derive);
        ScreenItem { uuid, derived_from, ..plain(node, kind) }
    }
}

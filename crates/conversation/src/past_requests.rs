//! The API calls of a transcript without a request log, derived from its responses.

use std::borrow::Cow;
use std::collections::HashSet;

use quipu_message::{Block, Message, Role};

use crate::conversation::Conversation;
use crate::for_api::{context_at, context_starts, for_api};
use crate::id_key::IdKey;
use crate::node::{EntryNode, Facts, Node, NodeKind};
use crate::skeleton::SkeletonView;
use crate::tree::{NodeList, Tree};

/// Branches beside the active path that are looked at. A path costs as much as the session,
/// and a damaged file may have a branch for every line.
const MAX_BRANCHES: usize = 200;

/// Messages between which a block of a response is looked for. It is nearly always in the
/// next one.
const MAX_SEARCHED_MESSAGES: usize = 16;

/// A part of a conversation between two compactions, and the API calls in it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PastRequests {
    /// Messages that would continue the conversation at the end of the part.
    pub messages: Vec<Message>,
    /// API calls whose requests are the first of these messages, in order.
    pub calls: Vec<PastCall>,
}

/// An API call that the entries of its response show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastCall {
    /// Id of the message in the response.
    pub message_id: String,
    /// Number of messages that were sent.
    pub sent: usize,
    /// Time of the entry before the response, as the file has it.
    pub previous_time: Option<String>,
}

impl Conversation {
    /// The API calls of the conversation and of its subagents, with the messages that
    /// `for_api` gives for each.
    ///
    /// The program may have sent other messages, for example reminders that it did not
    /// record. Each part is converted once, so that the cost follows the size of the session.
    pub fn past_requests(&self) -> Vec<PastRequests> {
        let mut found = Vec::new();
        PastRequestFinder { seen: HashSet::new(), visit: |part| found.push(part) }.add_conversation(self, &());
        found
    }
}

impl SkeletonView<'_> {
    /// Calls `visit` with what [`Conversation::past_requests`] returns, one part at a time: no more
    /// than the entries of a part are held.
    pub fn visit_past_requests(&self, visit: impl FnMut(PastRequests)) {
        let (conversation, reader) = self.parts();
        PastRequestFinder { seen: HashSet::new(), visit }.add_conversation(conversation, reader);
    }
}

struct PastRequestFinder<F> {
    /// Ids of the messages that were found.
    seen: HashSet<IdKey>,
    visit: F,
}

impl<F: FnMut(PastRequests)> PastRequestFinder<F> {
    fn add_conversation<N: EntryNode>(&mut self, conversation: &Conversation<N>, reader: &N::Reader) {
        let nodes = conversation.shown().effective_nodes(reader);
        let tree = Tree::new(&nodes);
        if let Some(leaf) = tree.leaf() {
            let path = tree.path(&nodes, leaf);
            self.add_path(&nodes, &path);
            let branches = tree.branches(&nodes, &path);
            let mut paths = 0;
            for &leaf in branches.iter().flatten().rev() {
                let Some(message) = self.new_call(nodes.facts(leaf)).filter(|_| paths < MAX_BRANCHES) else { continue };
                self.add_path(&nodes, &tree.path(&nodes, leaf));
                self.seen.insert(message);
                paths += 1;
            }
        }
        for sidechain in conversation.sidechains() {
            self.add_conversation(sidechain, reader);
        }
    }

    /// Visits the parts of a path that have calls which no earlier path had.
    fn add_path<N: EntryNode>(&mut self, nodes: &NodeList<'_, N>, path: &[u32]) {
        let nodes = nodes.part(path);
        let len = path.len() as u32;
        let ends: Vec<u32> = context_starts(&nodes, len).filter(|&start| start > 0).chain([len]).collect();
        for end in ends {
            let context = context_at(&nodes, end);
            if context.iter().any(|&i| self.new_call(nodes.facts(i)).is_some()) {
                let part = self.part_of(&nodes, &context);
                if !part.calls.is_empty() {
                    (self.visit)(part);
                }
            }
        }
    }

    fn part_of<N: EntryNode>(&mut self, nodes: &NodeList<'_, N>, context: &[u32]) -> PastRequests {
        // There are many entries of progress, and nothing of them is sent.
        let is_progress = |i: u32| nodes.facts(i).kind == NodeKind::Progress;
        let loaded: Vec<Option<Cow<'_, Node>>> =
            context.iter().map(|&i| if is_progress(i) { None } else { nodes.load(i) }).collect();
        let sent: Vec<&Node> = loaded.iter().flatten().map(|node| &**node).collect();
        let mut part = PastRequests { messages: for_api(&sent), calls: Vec::new() };
        let mut next = 0;
        let (mut previous_time, mut last_progress) = (None, None);
        for (&i, node) in context.iter().zip(&loaded) {
            let Some(node) = node else {
                last_progress = is_progress(i).then_some(i).or(last_progress);
                continue;
            };
            if let (Some(key), Some(id)) = (self.new_call(nodes.facts(i)), node.message_id()) {
                self.seen.insert(key);
                if node.assistant().is_some_and(|line| !line.is_api_error()) {
                    let sent = find_response(&part.messages, next, node.blocks());
                    let progress = last_progress.and_then(|i| nodes.load(i));
                    let time = progress.and_then(|node| node.timestamp().map(str::to_owned));
                    let previous_time = time.or_else(|| previous_time.take());
                    part.calls.push(PastCall { message_id: id.to_owned(), sent, previous_time });
                    next = sent + 1;
                }
            }
            if let Some(time) = node.timestamp() {
                (previous_time, last_progress) = (Some(time.to_owned()), None);
            }
        }
        part
    }

    /// The id of a message from the API that was not seen yet.
    fn new_call(&self, facts: Facts) -> Option<IdKey> {
        facts.message.filter(|message| !self.seen.contains(message))
    }
}

/// Position of the message that holds a block of a response; of the next response if no
/// message near holds one.
fn find_response(messages: &[Message], next: usize, blocks: &[Block]) -> usize {
    let responses = || (next..messages.len()).filter(|&i| messages[i].role == Role::Assistant);
    let has_block = |i: &usize| blocks.iter().any(|block| messages[*i].content.blocks().contains(block));
    let found = responses().take(MAX_SEARCHED_MESSAGES).find(has_block);
    found.or_else(|| responses().next()).unwrap_or(messages.len())
}

//! The API calls of a transcript without a request log, derived from its responses.

use std::collections::HashSet;

use quipu_message::{Block, Message, Role};

use crate::conversation::Conversation;
use crate::for_api::{context_starts, for_api, since_compaction};
use crate::node::Node;

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
        let mut finder = PastRequestFinder::default();
        finder.add_conversation(self);
        finder.found
    }
}

#[derive(Default)]
struct PastRequestFinder {
    found: Vec<PastRequests>,
    seen: HashSet<String>,
}

impl PastRequestFinder {
    fn add_conversation(&mut self, conversation: &Conversation) {
        self.add_path(&conversation.path());
        for _ in 0..MAX_BRANCHES {
            let branches = conversation.branches();
            let mut nodes = branches.iter().flat_map(|branch| &branch.nodes).rev();
            let Some(leaf) = nodes.find(|node| self.new_call(node).is_some()).and_then(|node| node.uuid()) else {
                break;
            };
            let Some(path) = conversation.path_to(leaf) else { break };
            let before = self.seen.len();
            self.add_path(&path);
            if self.seen.len() == before {
                break;
            }
        }
        for sidechain in conversation.sidechains() {
            self.add_conversation(sidechain);
        }
    }

    /// Adds the parts of a path that have calls which no earlier path had.
    fn add_path(&mut self, path: &[&Node]) {
        let ends: Vec<usize> = context_starts(path).filter(|&start| start > 0).chain([path.len()]).collect();
        for end in ends {
            let nodes = since_compaction(&path[..end]);
            if nodes.iter().any(|node| self.new_call(node).is_some()) {
                let part = self.part_of(&nodes);
                self.found.push(part);
            }
        }
    }

    fn part_of(&mut self, nodes: &[&Node]) -> PastRequests {
        let mut part = PastRequests { messages: for_api(nodes), calls: Vec::new() };
        let mut next = 0;
        let mut previous_time = None;
        for node in nodes {
            if let Some(id) = self.new_call(node) {
                let sent = find_response(&part.messages, next, node.blocks());
                self.seen.insert(id.to_owned());
                part.calls.push(PastCall { message_id: id.to_owned(), sent, previous_time: previous_time.take() });
                next = sent + 1;
            }
            previous_time = node.timestamp().map(str::to_owned).or(previous_time);
        }
        part
    }

    /// The id of a message from the API that was not seen yet.
    fn new_call<'n>(&self, node: &'n Node) -> Option<&'n str> {
        node.assistant().filter(|line| !line.is_api_error())?;
        node.message_id().filter(|id| !self.seen.contains(*id))
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

//! Rebuilds the requests that a transcript names.

use std::collections::HashMap;

use quipu_message::bookkeeping::ApiRequest;
use quipu_message::{Json, Message, Role};

use super::{MessagePlace, RequestLog};

/// The requests of a transcript, in the order of the file. Each message is held once,
/// however many requests repeat it.
#[derive(Debug, Default)]
pub struct RebuiltRequests {
    /// The requests, each with the hashes of its last messages.
    pub requests: Vec<LoggedRequest>,
    /// Distinct messages of all requests.
    pub messages: Vec<Message>,
    /// Stored messages, system prompts and tools with a wrong hash: line and hash.
    pub mismatched: Vec<(u64, String)>,
    shapes: HashMap<String, Json>,
}

/// One request of the log.
#[derive(Debug)]
pub struct LoggedRequest {
    /// Line of the `api-request` entry.
    pub line: u64,
    /// The entry as the file has it.
    pub entry: ApiRequest,
    /// Position of the request that this one extends; `None` if it is not in the file.
    base: Option<usize>,
    /// Positions of its last messages; `None` for one that is neither stored nor can be
    /// rebuilt.
    tail: Vec<Option<usize>>,
}

impl LoggedRequest {
    /// Number of messages that the request repeats from the one that it extends.
    fn keep(&self) -> usize {
        self.entry.keep.get().map_or(0, |keep| usize::try_from(*keep).unwrap_or(usize::MAX))
    }
}

impl RequestLog {
    /// Rebuilds the requests. Messages are found only if the log keeps them.
    pub fn rebuild(mut self) -> RebuiltRequests {
        self.add_responses();
        let mut messages = Vec::new();
        let mut positions: HashMap<String, Option<usize>> = HashMap::new();
        let mut by_id: HashMap<String, usize> = HashMap::new();
        let mut requests = Vec::with_capacity(self.requests.len());
        for (line, entry) in std::mem::take(&mut self.requests) {
            let mut position = |hash: &String| {
                *positions.entry(hash.clone()).or_insert_with(|| {
                    messages.push(self.take_message(hash)?);
                    Some(messages.len() - 1)
                })
            };
            let tail = entry.tail.iter().map(&mut position).collect();
            let base = entry.base.get().and_then(|id| by_id.get(id).copied());
            by_id.insert(entry.id.clone(), requests.len());
            requests.push(LoggedRequest { line, entry, base, tail });
        }
        RebuiltRequests { requests, messages, mismatched: self.mismatched, shapes: self.shapes }
    }

    /// The message with a hash; `None` if it is not in the transcript.
    fn take_message(&mut self, hash: &str) -> Option<Message> {
        match self.messages.remove(hash)? {
            MessagePlace::Stored(message) => message.map(|message| *message),
            MessagePlace::User(blocks) => {
                let blocks = self.user_blocks.get(blocks)?.to_vec();
                Some(Message::new(Role::User, blocks))
            }
            MessagePlace::Response(id) => Some(Message::new(Role::Assistant, self.responses.remove(&id)?)),
        }
    }
}

impl RebuiltRequests {
    /// System prompt and tools of a request, as JSON; `None` if they are not in the file.
    pub fn system_and_tools(&self, request: &LoggedRequest) -> Option<&Json> {
        self.shapes.get(request.entry.shape_hash.text()?)
    }

    /// Positions of all messages of a request in [`messages`](Self::messages), in order;
    /// `None` for one that is not in the transcript.
    pub fn messages_of(&self, request: &LoggedRequest) -> Vec<Option<usize>> {
        let mut reversed: Vec<Option<usize>> = request.tail.iter().rev().copied().collect();
        let (mut missing, mut base) = (request.keep(), request.base);
        // The messages before the tail are those of the request that this one extends. It is
        // earlier in the file, so that the walk ends.
        while missing > 0 {
            let Some(earlier) = base.and_then(|i| self.requests.get(i)) else { break };
            let from_tail = missing.saturating_sub(earlier.keep()).min(earlier.tail.len());
            reversed.extend(earlier.tail[..from_tail].iter().rev().copied());
            missing = missing.min(earlier.keep());
            base = earlier.base;
        }
        // A damaged file may give any number; one gap is enough to show it.
        reversed.extend((missing > 0).then_some(None));
        reversed.reverse();
        reversed
    }
}

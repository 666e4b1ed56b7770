//! Which calls belong together: sessions, branches and turns.
//!
//! Each request carries the whole history, so a call continues the call whose history is the
//! longest prefix of its own. Histories are compared by hash in a prefix tree, so the time is
//! linear in the number of messages in all requests.

mod history;
mod placement;
mod turns;

use std::fmt;

use crate::call::Call;
use crate::trace::Trace;

pub use self::turns::TurnCalls;

/// Sessions of a trace, and the branch of each call.
#[derive(Debug, Default)]
pub struct Structure {
    /// Sessions in the order of their first calls.
    pub sessions: Vec<SessionCalls>,
    /// Branches of all sessions; [`Branch::index`] is the position here.
    pub branches: Vec<Branch>,
    /// For each call of the trace its branch; `None` for calls that ask for no message.
    pub branch_of: Vec<Option<usize>>,
    /// For each call the call before it.
    previous: Vec<Option<usize>>,
}

/// The calls of one session.
#[derive(Debug, Clone, Default)]
pub struct SessionCalls {
    /// Id of the session; `None` for calls that name none.
    pub session_id: Option<String>,
    /// Positions of its branches in [`Structure::branches`], in the order of their first calls.
    pub branches: Vec<usize>,
    /// Turns in the order of their first calls.
    pub turns: Vec<TurnCalls>,
}

/// Calls that share a history, each continuing the one before it.
#[derive(Debug, Clone)]
pub struct Branch {
    /// Position in [`Structure::branches`].
    pub index: usize,
    /// Name in output, for example `main-1`; unique in a trace.
    pub id: String,
    /// What started the branch.
    pub kind: BranchKind,
    /// Branch that it forked from; `None` if it forked from none.
    pub parent: Option<usize>,
    /// Last call of the parent branch before the fork.
    pub forked_at: Option<usize>,
    /// Why the branch exists.
    pub reason: ForkReason,
    /// Agent that made the calls; set for subagents of newer clients.
    pub agent_id: Option<String>,
    /// Positions of its calls in [`Trace::calls`], in order of time.
    pub calls: Vec<usize>,
}

/// What started a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum BranchKind {
    /// The user's conversation.
    Main,
    /// The conversation of a subagent.
    Subagent,
    /// A call for another purpose than the conversation: a title, a search, a suggestion.
    Side,
    /// The call that summarises the conversation, and the conversation that continues from
    /// the summary.
    Compaction,
    /// The conversation after the user went back to an earlier message.
    Rewind,
    /// A new conversation in the same session.
    Reset,
    /// Attempts that failed and were sent again.
    Retry,
}

impl BranchKind {
    /// Word in output, for example `main`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Subagent => "subagent",
            Self::Side => "side",
            Self::Compaction => "compaction",
            Self::Rewind => "rewind",
            Self::Reset => "reset",
            Self::Retry => "retry",
        }
    }
}

/// Why a branch exists.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForkReason {
    /// First conversation of its session.
    FirstCall,
    /// Continues the history of another session.
    ContinuesSession(String),
    /// A subagent, named by a header or by the prompt of the tool call that started it.
    Subagent {
        /// Id of the tool call that started it; `None` if it was not found.
        tool_use_id: Option<String>,
    },
    /// A request whose response must follow a JSON schema, such as a title.
    JsonOutput,
    /// A web search, which the server runs in a call of its own.
    WebSearch,
    /// A request with tools of the server only.
    ServerTools,
    /// A request for one token, which tests whether the API can be reached.
    Probe,
    /// A request without tools in a session that has tools.
    NoTools,
    /// A copy of the conversation with one more instruction that writes no cache entry for
    /// it, such as a prompt suggestion.
    ForkedPrompt,
    /// The history was replaced by a summary.
    Compacted,
    /// The history went back to an earlier call.
    WentBack,
    /// The history starts from nothing.
    NewHistory,
    /// The attempt failed; with its status, or `None` if the response broke off.
    Failed(Option<u16>),
    /// The same request was sent again though its response was complete.
    SentAgain,
}

impl fmt::Display for ForkReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FirstCall => f.write_str("first call of the session"),
            Self::ContinuesSession(id) => write!(f, "continues session {id}"),
            Self::Subagent { tool_use_id: Some(id) } => write!(f, "subagent of tool call {id}"),
            Self::Subagent { tool_use_id: None } => f.write_str("subagent"),
            Self::JsonOutput => f.write_str("structured output, such as a title"),
            Self::WebSearch => f.write_str("web search"),
            Self::ServerTools => f.write_str("tools of the server only"),
            Self::Probe => f.write_str("test of the connection"),
            Self::NoTools => f.write_str("request without tools"),
            Self::ForkedPrompt => f.write_str("instruction on a copy of the conversation, such as a prompt suggestion"),
            Self::Compacted => f.write_str("history replaced by a summary"),
            Self::WentBack => f.write_str("history went back to an earlier message"),
            Self::NewHistory => f.write_str("history starts over"),
            Self::Failed(Some(status)) => write!(f, "failed with status {status} and sent again"),
            Self::Failed(None) => f.write_str("response broke off and the request was sent again"),
            Self::SentAgain => f.write_str("sent again though the response was complete"),
        }
    }
}

impl Structure {
    /// Finds the sessions, branches and turns of a trace.
    pub fn new(trace: &Trace) -> Self {
        let mut structure = placement::place_calls(trace);
        turns::add_turns(trace, &mut structure);
        structure.link_calls();
        structure
    }

    /// The call before this one in its branch, or the call at which the branch forked; `None`
    /// for the first call of a session.
    pub fn previous_call(&self, call: &Call) -> Option<usize> {
        self.previous.get(call.index).copied().flatten()
    }

    fn link_calls(&mut self) {
        self.previous = vec![None; self.branch_of.len()];
        for branch in &self.branches {
            let mut previous = branch.forked_at;
            for call in &branch.calls {
                self.previous[*call] = previous.replace(*call);
            }
        }
    }
}

//! What clients see of a chat.

use quipu_message::Json;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// A chat: an agent process and the session it works in.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Chat {
    /// Id of the chat, for `/api/chats/{id}`.
    pub(crate) id: String,
    /// Key of the session, for `/api/sessions/{key}`. Its file exists after the first message.
    pub(crate) key: String,
    pub(crate) session_id: String,
    /// Folder that the agent works in.
    pub(crate) cwd: String,
    /// Name of the agent, or its path.
    pub(crate) agent: String,
    /// Version of the agent; `None` until it has started.
    pub(crate) agent_version: Option<String>,
    /// Model; `None` until the agent has reported it.
    pub(crate) model: Option<String>,
    pub(crate) permission_mode: String,
    pub(crate) state: ChatPhase,
    /// Why it ended; `None` while the agent runs.
    pub(crate) ended: Option<ChatEnd>,
    /// When the chat was started, as ISO 8601.
    pub(crate) started_at: String,
    /// When the running turn was started; `None` if none is running.
    pub(crate) turn_started_at: Option<String>,
    /// Cost in US dollars, as the agent counts it. During a turn, what is known so far.
    pub(crate) cost_usd: f64,
    pub(crate) tokens: ChatTokens,
    /// Messages that the agent has not begun to work on.
    pub(crate) queued: Vec<QueuedMessage>,
    /// What the user has to decide.
    pub(crate) prompts: Vec<Prompt>,
    /// Slash commands of the agent.
    pub(crate) commands: Vec<ChatCommand>,
    pub(crate) models: Vec<ChatModel>,
    /// Permission modes that can be set.
    pub(crate) modes: Vec<String>,
    /// Task list of the model.
    pub(crate) todos: Vec<ChatTodo>,
    /// UUID of the last entry that is still part of the conversation, after a rewind and until the
    /// next message; the session file still shows what follows it.
    pub(crate) rewound_to: Option<String>,
    /// Where the API calls of the chat are captured; `None` if they are not.
    pub(crate) capture: Option<ChatCapture>,
}

/// What an agent is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChatPhase {
    /// The agent program is being started.
    #[default]
    Starting,
    Idle,
    Running,
    /// It writes a summary that replaces the conversation so far.
    Compacting,
    Ended,
}

/// Why a chat ended.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChatEnd {
    pub(crate) reason: EndReason,
    /// A sentence for the user.
    pub(crate) message: String,
    /// Last lines that the agent wrote to stderr.
    pub(crate) stderr: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EndReason {
    /// The user ended it.
    Stopped,
    /// It was not used for some time.
    Idle,
    /// The server stopped.
    ServerStopped,
    /// The agent exited without an error.
    Exited,
    /// The agent could not be started.
    StartFailed,
    /// The agent failed or was killed.
    Failed,
}

#[derive(Debug, Clone, Copy, Default, Serialize, JsonSchema)]
pub(crate) struct ChatTokens {
    /// Tokens sent, including those read from the prompt cache.
    pub(crate) input: u64,
    pub(crate) output: u64,
}

/// A message that the agent has not begun to work on.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct QueuedMessage {
    pub(crate) uuid: String,
    pub(crate) text: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChatCommand {
    /// Name without the slash.
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) argument_hint: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChatModel {
    /// Name to set.
    pub(crate) value: String,
    pub(crate) display_name: String,
    pub(crate) description: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChatTodo {
    pub(crate) content: String,
    /// `pending`, `in_progress` or `completed`.
    pub(crate) status: String,
    /// The task in the present continuous.
    pub(crate) active_form: Option<String>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ChatCapture {
    /// Path of the capture file.
    pub(crate) path: String,
    /// Calls that were captured so far.
    pub(crate) calls: u64,
}

/// Something the user has to decide.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Prompt {
    pub(crate) id: String,
    pub(crate) kind: PromptKind,
    pub(crate) tool_name: String,
    pub(crate) tool_use_id: Option<String>,
    /// Arguments of the tool call; for `elicitation`, the JSON schema of the answer.
    #[schemars(with = "Value")]
    pub(crate) input: Json,
    /// What the call does, or what is asked.
    pub(crate) description: Option<String>,
    /// Why the user is asked.
    pub(crate) reason: Option<String>,
    /// Changes of permissions that an approval may include, by index.
    pub(crate) suggestions: Vec<Suggestion>,
    /// Path that needs permission.
    pub(crate) blocked_path: Option<String>,
    /// When the agent asked, as ISO 8601.
    pub(crate) since: String,
    /// Subagent that made the call; `None` for the main agent.
    pub(crate) agent_id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PromptKind {
    /// A tool call needs permission.
    Permission,
    /// The model asks questions; the reply has `answers`.
    Question,
    /// A plan needs approval.
    Plan,
    /// An MCP server asks for input.
    Elicitation,
}

/// A change of permissions that the agent suggests.
#[derive(Debug, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Suggestion {
    /// A short text, such as ``always allow `git status` ``.
    pub(crate) label: String,
    /// Rules to add, such as `Bash(git status:*)`.
    pub(crate) rules: Vec<String>,
    /// `allow`, `deny` or `ask`, for rules.
    pub(crate) behavior: Option<String>,
    /// Permission mode to set.
    pub(crate) mode: Option<String>,
    /// Folders to add.
    pub(crate) directories: Vec<String>,
    /// Where it is kept: `session`, `localSettings`, `projectSettings`, `userSettings`.
    pub(crate) destination: Option<String>,
}

/// A block of a response that is being streamed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct PartialBlock {
    /// Id of the API message; items of the session have it, too.
    pub(crate) message_id: String,
    /// Index of the block in the message.
    pub(crate) index: usize,
    pub(crate) kind: PartialKind,
    /// Text so far; for a tool call, the JSON of its input so far.
    pub(crate) text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_use_id: Option<String>,
    /// Tool call of the subagent that writes it; `None` for the main agent.
    pub(crate) agent: Option<String>,
    pub(crate) is_complete: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PartialKind {
    Text,
    Thinking,
    ToolUse,
}

/// A message for the user that is not part of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Note {
    pub(crate) level: NoteLevel,
    pub(crate) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NoteLevel {
    Info,
    Warning,
    Error,
}

/// One line of `/api/chats/{id}/events`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ChatEvent<'a> {
    /// Everything; always the first line.
    Snapshot {
        chat: &'a Chat,
        partial: Vec<&'a PartialBlock>,
        notes: Vec<&'a Note>,
    },
    /// Anything of the chat changed.
    Chat {
        chat: &'a Chat,
    },
    BlockStart {
        block: &'a PartialBlock,
    },
    /// Text to append to a block.
    Delta {
        message_id: &'a str,
        index: usize,
        text: &'a str,
    },
    BlockEnd {
        message_id: &'a str,
        index: usize,
    },
    /// All blocks are complete; the session file has them or will have them in a moment.
    MessageEnd {
        message_id: &'a str,
    },
    /// The message is not part of the conversation: remove its blocks.
    Withdrawn {
        message_id: &'a str,
    },
    ToolProgress {
        tool_use_id: &'a str,
        elapsed_ms: u64,
        text: Option<&'a str>,
    },
    Note {
        #[serde(flatten)]
        note: &'a Note,
    },
    /// The connection is open.
    Ping,
}

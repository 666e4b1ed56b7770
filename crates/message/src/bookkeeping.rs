//! Lines in session files that are not part of the conversation.

use std::collections::BTreeMap;

use serde_json::Number;

use crate::macros::wire;
use crate::usage::ModelUsage;
use crate::values::{QueueAction, QueueReason, RequestShape};
use crate::{AgentId, Envelope, Json, Message, SessionId, ToolName, ToolUseId, Uuid};

wire! {
    /// A title, or the summary of a compacted session. In the old layout it is line 1 of the new
    /// file and `leaf_uuid` refers to the old one.
    pub struct Summary ["type" = "summary"] with envelope: Envelope {
        /// Text of the title or summary.
        summary: req String,
        /// UUID of the last entry that is summarised.
        leaf_uuid: opt Uuid = "leafUuid",
        /// Whether `/compact` wrote it; otherwise it is a title.
        is_compact_summary: opt bool = "isCompactSummary",
    }
}

wire! {
    /// A change of the queue of prompts that wait for the running turn.
    pub struct QueueOperation ["type" = "queue-operation"] {
        /// What happened.
        operation: req QueueAction,
        /// Time of writing, as ISO 8601 text.
        timestamp: opt String,
        /// Session the entry belongs to.
        session_id: opt SessionId = "sessionId",
        /// Content of the prompt.
        content: opt Json,
        /// Why the prompt left the queue.
        reason: opt QueueReason,
        /// UUID of the prompt that left the queue.
        command_uuid: opt Uuid = "commandUuid",
        /// Id of the delivery to the running turn; the `queued_command` attachment has the same.
        delivery_id: opt String = "deliveryId",
    }
}

wire! {
    /// The last prompt, and the entry from which the session is resumed.
    pub struct LastPrompt ["type" = "last-prompt"] {
        /// Text of the prompt.
        last_prompt: opt String = "lastPrompt",
        /// UUID of the entry to resume from.
        leaf_uuid: opt Uuid = "leafUuid",
        /// Session the entry belongs to.
        session_id: opt SessionId = "sessionId",
    }
}

/// Bookkeeping lines that carry one string.
macro_rules! single_string_entries {
    ($( $(#[$meta:meta])* $name:ident $tag:literal { $field:ident = $key:literal } ),+ $(,)?) => { $(
        wire! {
            $(#[$meta])*
            pub struct $name ["type" = $tag] {
                /// The word itself.
                $field: req String = $key,
                /// Session the entry belongs to.
                session_id: opt SessionId = "sessionId",
            }
        }
    )+ };
}

single_string_entries! {
    /// Title written by the model.
    AiTitle "ai-title" { title = "aiTitle" },
    /// Title given by the user.
    CustomTitle "custom-title" { title = "customTitle" },
    /// Display name of the agent.
    AgentName "agent-name" { name = "agentName" },
    /// Interface mode of the session, for example `normal`.
    ModeEntry "mode" { mode = "mode" },
    /// Permission mode from this point on.
    PermissionModeEntry "permission-mode" { mode = "permissionMode" },
    /// Tag given by the user.
    Tag "tag" { tag = "tag" },
    /// Name of the agent that the session runs as (`--agent`).
    AgentSetting "agent-setting" { agent = "agentSetting" },
    /// Meaning not established; seen empty.
    AtisLatch "atis-latch" { atis = "atis" },
}

wire! {
    /// State of the tracked files before a prompt, for rewinding.
    pub struct FileHistorySnapshot ["type" = "file-history-snapshot"] {
        /// UUID of the prompt.
        message_id: opt Uuid = "messageId",
        /// Backups of the files; a [`FileSnapshot`].
        snapshot: req Json,
        /// Whether it updates an earlier snapshot of the same prompt.
        is_snapshot_update: opt bool = "isSnapshotUpdate",
    }
}

wire! {
    /// Backup of one file before a tool changed it.
    pub struct FileHistoryDelta ["type" = "file-history-delta"] {
        /// UUID of the entry with the tool call.
        message_id: opt Uuid = "messageId",
        /// UUID of the prompt whose snapshot it extends.
        snapshot_message_id: opt Uuid = "snapshotMessageId",
        /// Path of the file.
        tracking_path: opt String = "trackingPath",
        /// Where the backup is; a [`FileBackup`].
        backup: req Json,
        /// Time of writing, as ISO 8601 text.
        timestamp: opt String,
    }
}

wire! {
    /// Tools called in the session so far.
    pub struct ToolsUsed ["type" = "tools-used"] {
        /// Names of the tools.
        tools: req Vec<ToolName>,
        /// Session the entry belongs to.
        session_id: opt SessionId = "sessionId",
    }
}

wire! {
    /// Cost of the session so far.
    pub struct CostState ["type" = "cost-state"] {
        /// Session the entry belongs to.
        session_id: opt SessionId = "sessionId",
        /// Cost in US dollars.
        total_cost_usd: opt Number = "totalCostUSD",
        /// Milliseconds spent in API calls.
        total_api_duration: opt Number = "totalAPIDuration",
        /// Milliseconds spent in tools.
        total_tool_duration: opt Number = "totalToolDuration",
        /// Duration of the session in milliseconds.
        total_duration: opt Number = "totalDuration",
        /// Lines of code added by tools.
        total_lines_added: opt u64 = "totalLinesAdded",
        /// Lines of code removed by tools.
        total_lines_removed: opt u64 = "totalLinesRemoved",
        /// Usage by model.
        model_usage: opt BTreeMap<String, ModelUsage> = "modelUsage",
        /// Whether a model had no known price.
        has_unknown_model_cost: opt bool = "hasUnknownModelCost",
    }
}

wire! {
    /// A pull request opened in the session.
    pub struct PrLink ["type" = "pr-link"] {
        /// Session the entry belongs to.
        session_id: opt SessionId = "sessionId",
        /// Number of the pull request.
        number: opt u64 = "prNumber",
        /// Address of the pull request.
        url: opt String = "prUrl",
        /// Repository as `owner/name`.
        repository: opt String = "prRepository",
        /// Time of writing, as ISO 8601 text.
        timestamp: opt String,
    }
}

wire! {
    /// The Git worktree that the session works in (`--worktree`).
    pub struct WorktreeState ["type" = "worktree-state"] {
        /// The worktree; `null` once the session has left it.
        worktree: req Option<WorktreeSession> = "worktreeSession",
        /// Session that the entry belongs to.
        session_id: opt SessionId = "sessionId",
    }
}

wire! {
    /// The worktree inside a `worktree-state` entry.
    pub struct WorktreeSession {
        /// Working folder of the session before it entered the worktree.
        original_cwd: opt String = "originalCwd",
        /// Folder the program was started in.
        pre_enter_original_cwd: opt String = "preEnterOriginalCwd",
        /// Path of the worktree.
        path: opt String = "worktreePath",
        /// Name of the worktree.
        name: opt String = "worktreeName",
        /// Branch that the worktree has checked out.
        branch: opt String = "worktreeBranch",
        /// Branch that the original folder had checked out.
        original_branch: opt String = "originalBranch",
        /// Commit that the worktree was made from.
        original_head_commit: opt String = "originalHeadCommit",
        /// Session the entry belongs to.
        session_id: opt SessionId = "sessionId",
    }
}

wire! {
    /// A subagent's [`SubagentMeta`] as an entry, in `transcript_mirror` entries: a host's store
    /// has no `.meta.json` files.
    pub struct AgentMetadata ["type" = "agent_metadata"] {
        /// Type of the subagent, for example `general-purpose`.
        agent_type: opt String = "agentType",
        /// Task of the subagent in a few words.
        description: opt String,
        /// Id of the tool call that started the subagent.
        tool_use_id: opt ToolUseId = "toolUseId",
        /// Subagent that started this one; absent if the main agent did.
        parent_agent_id: opt AgentId = "parentAgentId",
        /// Nesting depth: 1 for a subagent of the main agent.
        spawn_depth: opt u64 = "spawnDepth",
        /// Whether the agent type is built into the program.
        is_built_in: opt bool = "isBuiltIn",
        /// Whether the subagent has ended.
        finished: opt bool,
        /// Whether the subagent is waited for.
        request_shape: opt RequestShape = "requestShape",
        /// Whether the session has no user to ask.
        request_non_interactive: opt bool = "requestNonInteractive",
        /// Model that the effort level was chosen for.
        picked_effort_model: opt String = "pickedEffortModel",
    }
}

wire! {
    /// System prompt and tools of API calls, stored once by hash.
    pub struct ApiRequestShape ["type" = "api-request-shape"] {
        /// Session the entry belongs to.
        session_id: opt SessionId = "sessionId",
        /// Id of the subagent; absent in the main session.
        agent_id: opt AgentId = "agentId",
        /// Hash that `api-request` entries refer to.
        shape_hash: req String = "shapeHash",
        /// System prompt and tools.
        shape: req Json,
        /// Time of writing, as ISO 8601 text.
        timestamp: opt String,
        /// Version of the program that wrote the entry.
        version: opt String,
    }
}

wire! {
    /// A message of API calls that no other entry of the session holds.
    pub struct ApiRequestBlob ["type" = "api-request-blob"] {
        /// Session the entry belongs to.
        session_id: opt SessionId = "sessionId",
        /// Id of the subagent; absent in the main session.
        agent_id: opt AgentId = "agentId",
        /// Hash that `api-request` entries refer to.
        hash: req String,
        /// The message as sent.
        message: req Message,
    }
}

wire! {
    /// One API call, as the difference to an earlier one.
    pub struct ApiRequest ["type" = "api-request"] {
        /// Session the entry belongs to.
        session_id: opt SessionId = "sessionId",
        /// Id of the subagent; absent in the main session.
        agent_id: opt AgentId = "agentId",
        /// Id of the call; `requestRef` of assistant entries refers to it.
        id: req String,
        /// Time of writing, as ISO 8601 text.
        timestamp: opt String,
        /// Version of the program that wrote the entry.
        version: opt String,
        /// Purpose of the call, for example `sdk` or `agent:builtin:general-purpose`.
        query_source: opt String = "querySource",
        /// Hash of its system prompt and tools.
        shape_hash: opt String = "shapeHash",
        /// Model, limits, thinking and other parameters.
        params: opt Json,
        /// Id of the call this one extends.
        base: opt String,
        /// Number of messages kept from that call.
        keep: opt u64,
        /// Hashes of the messages that follow.
        tail: req Vec<String>,
        /// Positions of the cache breakpoints.
        cache_control: opt Json = "cacheControl",
        /// Hash of the whole request.
        request_digest: opt String = "requestDigest",
    }
}

wire! {
    /// Contents of `agent-<id>.meta.json`, the file next to a subagent's transcript.
    pub struct SubagentMeta {
        /// Type of the subagent, for example `general-purpose`.
        agent_type: opt String = "agentType",
        /// Task of the subagent in a few words.
        description: opt String,
        /// Id of the tool call that started the subagent.
        tool_use_id: opt ToolUseId = "toolUseId",
        /// Subagent that started this one; absent if the main agent did.
        parent_agent_id: opt AgentId = "parentAgentId",
        /// Nesting depth: 1 for a subagent of the main agent.
        spawn_depth: opt u64 = "spawnDepth",
        /// Whether the agent type is built into the program.
        is_built_in: opt bool = "isBuiltIn",
        /// Path of the git worktree that the subagent works in; absent if it has none.
        worktree_path: opt String = "worktreePath",
        /// Whether the worktree was made for the subagent.
        spawned_with_worktree: opt bool = "spawnedWithWorktree",
        /// Branch of the worktree.
        worktree_branch: opt String = "worktreeBranch",
        /// Whether the subagent has ended.
        finished: opt bool,
    }
}

wire! {
    /// Snapshot inside a `file-history-snapshot` entry.
    pub struct FileSnapshot {
        /// UUID of the prompt.
        message_id: opt Uuid = "messageId",
        /// Backups of all files tracked by then, by path.
        tracked_file_backups: req BTreeMap<String, FileBackup> = "trackedFileBackups",
        /// Time of writing, as ISO 8601 text.
        timestamp: opt String,
    }
}

wire! {
    /// Backup of a file before a change.
    pub struct FileBackup {
        /// Name under `file-history/<session>/`; `null` if the file did not exist.
        backup_file_name: req Option<String> = "backupFileName",
        /// Number of the backup of this file, from 1.
        version: opt u64,
        /// Time of the backup, as ISO 8601 text.
        backup_time: opt String = "backupTime",
        /// Folder of the file with links resolved.
        real_parent_dir: opt String = "realParentDir",
    }
}

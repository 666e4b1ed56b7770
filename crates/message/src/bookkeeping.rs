//! Lines in session files that are not part of the conversation.

use std::collections::BTreeMap;

use serde_json::Number;

use crate::macros::wire;
use crate::usage::ModelUsage;
use crate::values::{QueueAction, QueueReason};
use crate::{AgentId, Envelope, Json, Message, SessionId, ToolUseId, Uuid};

wire! {
    /// A title or the summary of a compacted session. In the old layout it is
    /// line 1 of the new file and `leaf_uuid` links it to the old one.
    pub struct Summary ["type" = "summary"] with envelope: Envelope {
        /// The words.
        summary: req String,
        /// The last line of what is summed up.
        leaf_uuid: opt Uuid = "leafUuid",
        /// Written by `/compact`, not merely a title.
        is_compact_summary: opt bool = "isCompactSummary",
    }
}

wire! {
    /// What waits to be said: a prompt queued while a turn runs.
    pub struct QueueOperation ["type" = "queue-operation"] {
        /// `enqueue`, `dequeue`, `remove` or `popAll`.
        operation: req QueueAction,
        /// When.
        timestamp: opt String,
        /// The session.
        session_id: opt SessionId = "sessionId",
        /// The queued words.
        content: opt Json,
        /// Why it left the queue.
        reason: opt QueueReason,
        /// UUID of the prompt that left the queue.
        command_uuid: opt Uuid = "commandUuid",
        /// Names the delivery to the running turn; the `queued_command` has the same.
        delivery_id: opt String = "deliveryId",
    }
}

wire! {
    /// The last prompt and the line a resume goes on from.
    pub struct LastPrompt ["type" = "last-prompt"] {
        /// The prompt.
        last_prompt: opt String = "lastPrompt",
        /// The line.
        leaf_uuid: opt Uuid = "leafUuid",
        /// The session.
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
                /// The session.
                session_id: opt SessionId = "sessionId",
            }
        }
    )+ };
}

single_string_entries! {
    /// A title the model made up.
    AiTitle "ai-title" { title = "aiTitle" },
    /// A title the person gave.
    CustomTitle "custom-title" { title = "customTitle" },
    /// The name the agent goes by.
    AgentName "agent-name" { name = "agentName" },
    /// The mode when the session was taken up again.
    ModeEntry "mode" { mode = "mode" },
    /// The permission mode at that point.
    PermissionModeEntry "permission-mode" { mode = "permissionMode" },
    /// A label the person gave.
    Tag "tag" { tag = "tag" },
    /// Name of the agent that the session runs as (`--agent`).
    AgentSetting "agent-setting" { agent = "agentSetting" },
    /// Meaning not established; seen empty.
    AtisLatch "atis-latch" { atis = "atis" },
}

wire! {
    /// The files as they were before a prompt, for rewinding.
    pub struct FileHistorySnapshot ["type" = "file-history-snapshot"] {
        /// The prompt.
        message_id: opt Uuid = "messageId",
        /// The files.
        snapshot: req Json,
        /// Whether it amends an earlier snapshot.
        is_snapshot_update: opt bool = "isSnapshotUpdate",
    }
}

wire! {
    /// One file as it was before a tool changed it.
    pub struct FileHistoryDelta ["type" = "file-history-delta"] {
        /// The line that changed it.
        message_id: opt Uuid = "messageId",
        /// The snapshot it belongs to.
        snapshot_message_id: opt Uuid = "snapshotMessageId",
        /// The file.
        tracking_path: opt String = "trackingPath",
        /// Where its copy is; `null` inside means the file did not exist.
        backup: req Json,
        /// When.
        timestamp: opt String,
    }
}

wire! {
    /// The tools used so far.
    pub struct ToolsUsed ["type" = "tools-used"] {
        /// Their names.
        tools: req Vec<String>,
        /// The session.
        session_id: opt SessionId = "sessionId",
    }
}

wire! {
    /// What the session has cost so far.
    pub struct CostState ["type" = "cost-state"] {
        /// The session.
        session_id: opt SessionId = "sessionId",
        /// Dollars.
        total_cost_usd: opt Number = "totalCostUSD",
        /// Time spent in calls.
        total_api_duration: opt Number = "totalAPIDuration",
        /// Time spent in tools.
        total_tool_duration: opt Number = "totalToolDuration",
        /// Time in all.
        total_duration: opt Number = "totalDuration",
        /// Lines of code added.
        total_lines_added: opt u64 = "totalLinesAdded",
        /// Lines of code removed.
        total_lines_removed: opt u64 = "totalLinesRemoved",
        /// By model.
        model_usage: opt BTreeMap<String, ModelUsage> = "modelUsage",
        /// Whether some model had no price.
        has_unknown_model_cost: opt bool = "hasUnknownModelCost",
    }
}

wire! {
    /// A pull request made in the session.
    pub struct PrLink ["type" = "pr-link"] {
        /// The session.
        session_id: opt SessionId = "sessionId",
        /// Its number.
        number: opt u64 = "prNumber",
        /// Its address.
        url: opt String = "prUrl",
        /// Its repository.
        repository: opt String = "prRepository",
        /// When.
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
        /// Session that made the worktree.
        session_id: opt SessionId = "sessionId",
    }
}

wire! {
    /// A subagent's [`SubagentMeta`] as an entry of its own, in `transcript_mirror` lines:
    /// a host's store has no `.meta.json` file beside a transcript.
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
        /// How the subagent runs: `foreground` or `background`.
        request_shape: opt String = "requestShape",
        /// Whether the session has no user to ask.
        request_non_interactive: opt bool = "requestNonInteractive",
        /// Model that the effort level was chosen for.
        picked_effort_model: opt String = "pickedEffortModel",
    }
}

wire! {
    /// System prompt and tools of API calls, stored once by hash.
    pub struct ApiRequestShape ["type" = "api-request-shape"] {
        /// The session.
        session_id: opt SessionId = "sessionId",
        /// The subagent.
        agent_id: opt AgentId = "agentId",
        /// Names the shape.
        shape_hash: req String = "shapeHash",
        /// System prompt and tools.
        shape: req Json,
        /// When.
        timestamp: opt String,
        /// The program's version.
        version: opt String,
    }
}

wire! {
    /// One message of API calls that the session's own lines do not hold.
    pub struct ApiRequestBlob ["type" = "api-request-blob"] {
        /// The session.
        session_id: opt SessionId = "sessionId",
        /// The subagent.
        agent_id: opt AgentId = "agentId",
        /// Names the message.
        hash: req String,
        /// The message.
        message: req Message,
    }
}

wire! {
    /// One API call, as the change from an earlier one.
    pub struct ApiRequest ["type" = "api-request"] {
        /// The session.
        session_id: opt SessionId = "sessionId",
        /// The subagent.
        agent_id: opt AgentId = "agentId",
        /// Names the call; `requestRef` of the answer points here.
        id: req String,
        /// When.
        timestamp: opt String,
        /// The program's version.
        version: opt String,
        /// What the call is for.
        query_source: opt String = "querySource",
        /// Its system prompt and tools.
        shape_hash: opt String = "shapeHash",
        /// Model, limits, thinking and the like.
        params: opt Json,
        /// The call this one continues.
        base: opt String,
        /// How many messages it keeps of that call.
        keep: opt u64,
        /// The messages that follow, by hash.
        tail: req Vec<String>,
        /// Where the cache marks stand.
        cache_control: opt Json = "cacheControl",
        /// The hash of the whole request.
        request_digest: opt String = "requestDigest",
    }
}

wire! {
    /// The file beside a subagent's lines: `agent-<id>.meta.json`.
    pub struct SubagentMeta {
        /// Which subagent.
        agent_type: opt String = "agentType",
        /// What it was asked, in a few words.
        description: opt String,
        /// The call it worked for.
        tool_use_id: opt ToolUseId = "toolUseId",
        /// The subagent that set it to work, when it was one.
        parent_agent_id: opt AgentId = "parentAgentId",
        /// How deep it is nested.
        spawn_depth: opt u64 = "spawnDepth",
        /// Whether it is part of the program.
        is_built_in: opt bool = "isBuiltIn",
        /// Whether it has ended.
        finished: opt bool,
    }
}

wire! {
    /// The snapshot inside a `file-history-snapshot` line.
    pub struct FileSnapshot {
        /// The prompt.
        message_id: opt Uuid = "messageId",
        /// The copies of all files known by then.
        tracked_file_backups: req BTreeMap<String, FileBackup> = "trackedFileBackups",
        /// When.
        timestamp: opt String,
    }
}

wire! {
    /// The copy of a file before a change.
    pub struct FileBackup {
        /// Its name under `file-history/<session>/`; `null` when there was no file.
        backup_file_name: req Option<String> = "backupFileName",
        /// Which copy of the file it is.
        version: opt u64,
        /// When it was made.
        backup_time: opt String = "backupTime",
        /// The folder the file is really in.
        real_parent_dir: opt String = "realParentDir",
    }
}

//! Fields that most entries share: camelCase in files, snake_case on the stream.

use crate::macros::embedded_fields;
use crate::{AgentId, SessionId, ToolUseId, Uuid};

embedded_fields! {
    /// Fields that most entries share.
    ///
    /// Files have `sessionId` and link entries by `parentUuid`; the stream has `session_id` and, for subagents,
    /// the id of the tool call that started them.
    pub struct Envelope {
        /// UUID of the parent entry in the conversation; `null` starts a tree.
        parent_uuid: Uuid = "parentUuid",
        /// UUID of the entry before a compaction boundary, which has no parent.
        logical_parent_uuid: Uuid = "logicalParentUuid" | "logical_parent_uuid",
        /// Whether a subagent wrote the entry.
        is_sidechain: bool = "isSidechain",
        /// `external` for users outside of the vendor.
        user_type: String = "userType",
        /// How the agent was started: `cli`, `sdk-cli`, `sdk-py` …
        entrypoint: String,
        /// Working directory.
        cwd: String,
        /// Session the entry belongs to.
        session_id: SessionId = "sessionId" | "session_id",
        /// Version of the program that wrote the entry.
        version: String,
        /// Current Git branch; `HEAD` outside of Git in newer versions.
        git_branch: String = "gitBranch",
        /// Readable name of the session.
        slug: String,
        /// Subagent that wrote the entry; absent for the main agent.
        agent_id: AgentId = "agentId" | "agent_id",
        /// UUID of the entry itself.
        uuid: Uuid,
        /// Time of writing, as ISO 8601 text; some programs write milliseconds since 1970, which
        /// are kept as digits.
        timestamp: String or number,
        /// Whether the entry is hidden from the user; used where the type has no such field of its
        /// own.
        is_meta: bool = "isMeta",
        /// Id of the tool call that started the subagent (stream).
        parent_tool_use_id: ToolUseId,
        /// Type of the subagent (stream).
        subagent_type: String,
        /// Task of the subagent in a few words (stream).
        task_description: String,
    }
}

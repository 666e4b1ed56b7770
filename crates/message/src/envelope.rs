//! What stands around a payload: camelCase in files, snake_case on the stream.

use crate::macros::embedded_fields;
use crate::{AgentId, SessionId, ToolUseId, Uuid};

embedded_fields! {
    /// The fields that most lines share.
    ///
    /// Files say `sessionId` and chain lines by `parentUuid`; the stream says
    /// `session_id` and names the tool call a subagent works for.
    pub struct Envelope {
        /// The line before this one in the conversation; `null` starts a tree.
        parent_uuid: Uuid = "parentUuid",
        /// The line before a compaction boundary, which has no parent.
        logical_parent_uuid: Uuid = "logicalParentUuid" | "logical_parent_uuid",
        /// Whether a subagent said it.
        is_sidechain: bool = "isSidechain",
        /// `external` for people outside the vendor.
        user_type: String = "userType",
        /// What started the program: `cli`, `sdk-cli`, `sdk-py` …
        entrypoint: String,
        /// The working directory.
        cwd: String,
        /// The session.
        session_id: SessionId = "sessionId" | "session_id",
        /// The version of the program that wrote the line.
        version: String,
        /// The git branch; `HEAD` outside git in newer versions.
        git_branch: String = "gitBranch",
        /// A readable name of the session.
        slug: String,
        /// The subagent that said it.
        agent_id: AgentId = "agentId" | "agent_id",
        /// The line's own id.
        uuid: Uuid,
        /// When, as ISO 8601 text; some programs write milliseconds since 1970, which
        /// are kept as digits.
        timestamp: String or number,
        /// Meant for the model, hidden from the user; where the type has no such field
        /// of its own.
        is_meta: bool = "isMeta",
        /// The tool call whose subagent said it (stream).
        parent_tool_use_id: ToolUseId,
        /// The subagent's type (stream).
        subagent_type: String,
        /// What the subagent was asked (stream).
        task_description: String,
    }
}

//! The context of an agent: one conversation with the model, the main agent's or a subagent's.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use quipu_message::hook::HookInputBase;
use quipu_message::system::{System, stream_only};
use quipu_message::user_assistant::{Assistant, ToolResultMeta, User};
use quipu_message::{
    AgentId, Block, Content, Entry, Envelope, Extra, Json, Maybe, Message, Spelling, ToolName, ToolUseId, Uuid,
};
use quipu_otlp::SpanPlace;
use quipu_transcript::AppendError;
use tokio_util::sync::CancellationToken;

use crate::clock::{new_id, now};
use crate::conversation_log::{ConversationLog, PendingWrite};
use crate::session::Session;
use crate::tool::{Tool, Workspace};

/// How long an interrupted turn waits for its transcript to be written.
const INTERRUPTED_WRITE_TIMEOUT: Duration = Duration::from_millis(250);

/// Which agent of a session it is.
#[derive(Debug, Clone)]
pub(crate) enum AgentKind {
    /// The agent that answers the user.
    Main,
    /// A subagent, which works for a tool call.
    Subagent(SubagentIdentity),
}

/// Names a running subagent.
#[derive(Debug, Clone)]
pub(crate) struct SubagentIdentity {
    /// Id of the tool call it works for.
    pub(crate) tool_use_id: ToolUseId,
    /// Id of the subagent.
    pub(crate) id: AgentId,
    /// Name of its definition.
    pub(crate) agent_type: String,
    /// Whether that definition is built in.
    pub(crate) is_builtin: bool,
    /// The task in a few words.
    pub(crate) description: String,
    /// Id of this run of the subagent.
    pub(crate) run_id: String,
    /// Whether it runs in the background.
    pub(crate) in_background: BackgroundFlag,
}

/// Whether a subagent runs in the background; hosts may change that while it runs.
pub(crate) type BackgroundFlag = Arc<std::sync::atomic::AtomicBool>;

impl SubagentIdentity {
    /// Whether it runs in the background now.
    pub(crate) fn is_in_background(&self) -> bool {
        self.in_background.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// Everything that a turn of an agent needs: the conversation, the tools, the model.
pub(crate) struct AgentContext<'a> {
    pub(crate) session: &'a Arc<Session>,
    pub(crate) kind: AgentKind,
    pub(crate) log: &'a Mutex<ConversationLog>,
    pub(crate) workspace: &'a Workspace,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    /// The system prompt, in parts.
    pub(crate) system_prompt: Vec<String>,
    pub(crate) model: String,
    pub(crate) max_turns: Option<u64>,
    /// The tool that takes the final answer; `None` if no schema was given.
    pub(crate) structured_output: Option<Arc<crate::structured_output::StructuredOutputTool>>,
    /// Interrupts the turn.
    pub(crate) cancel: CancellationToken,
    /// UUID that the host gave the prompt.
    pub(crate) prompt_uuid: Option<Uuid>,
    /// Ids of the tool calls whose permission request is open.
    pub(crate) awaiting_permission: Mutex<Vec<ToolUseId>>,
    /// The span of the turn; `None` if no spans are sent.
    pub(crate) span: Option<SpanPlace>,
}

impl AgentContext<'_> {
    /// Whether this is the main agent.
    pub(crate) fn is_main(&self) -> bool {
        matches!(self.kind, AgentKind::Main)
    }

    /// The subagent; `None` for the main agent.
    pub(crate) fn subagent(&self) -> Option<&SubagentIdentity> {
        match &self.kind {
            AgentKind::Main => None,
            AgentKind::Subagent(subagent) => Some(subagent),
        }
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, ConversationLog> {
        self.log.lock()
    }

    /// The tool of this name; `None` if the agent does not have it.
    pub(crate) fn find_tool(&self, name: &ToolName) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.name().is_same_tool(name))
    }

    /// The envelope of a stream line of this agent; new ids and times where none are given.
    pub(crate) fn stream_envelope(&self, uuid: Option<Uuid>, timestamp: Option<String>) -> Envelope {
        let mut envelope = self.session.output.timestamped_envelope();
        if let Some(uuid) = uuid {
            envelope.uuid = Maybe::Value(uuid);
        }
        if let Some(timestamp) = timestamp {
            envelope.timestamp = Maybe::Value(timestamp);
        }
        if let Some(subagent) = self.subagent() {
            envelope.parent_tool_use_id = Maybe::Value(subagent.tool_use_id.clone());
            envelope.agent_id = Maybe::Value(subagent.id.clone());
            envelope.subagent_type = Maybe::Value(subagent.agent_type.clone());
            envelope.task_description = Maybe::Value(subagent.description.clone());
        }
        envelope
    }

    /// Emits a block of an answer. Of a subagent, hosts get tool calls only, unless they asked for all.
    pub(crate) fn emit_block(&self, line: &Assistant) {
        let Some(block) = line.message.content.blocks().first() else { return };
        if let Some(subagent) = self.subagent() {
            let all = self.session.agent_config().forward_subagent_text;
            let said = match block {
                Block::ToolUse(_) => true,
                // No tool result will carry the text of a background subagent.
                Block::Text(_) => all || subagent.is_in_background(),
                _ => all,
            };
            if !said {
                return;
            }
        }
        let progress = |aside: bool| {
            if let (Some(subagent), Some(call)) =
                (self.subagent().filter(|subagent| subagent.is_in_background() == aside), block.tool_use())
            {
                self.emit_task_progress(subagent, &call.name);
            }
        };
        progress(false);
        let assistant = Assistant {
            message: line.message.clone(),
            request_id: line.request_id.clone(),
            aborted: line.is_aborted_mid_stream.clone(),
            tool_use_meta: self.session.mcp.tool_use_meta(block).into(),
            user_message_uuid: self.prompt_uuid.clone().into(),
            envelope: self.stream_envelope(line.envelope.uuid.get().cloned(), line.envelope.timestamp.get().cloned()),
            extra: Extra::with_spelling(Spelling::STREAM),
            ..Assistant::default()
        };
        self.session.output.emit(Entry::Assistant(Box::new(assistant)));
        progress(true);
    }

    /// Emits which tool a subagent uses.
    fn emit_task_progress(&self, subagent: &SubagentIdentity, tool: &ToolName) {
        let mut envelope = self.session.output.envelope();
        envelope.subagent_type = Maybe::Value(subagent.agent_type.clone());
        self.session.emit_system(System::TaskProgress(Box::new(stream_only::TaskProgress {
            task_id: Maybe::Value(subagent.id.clone()),
            run_id: Maybe::Value(subagent.run_id.clone()),
            tool_use_id: Maybe::Value(subagent.tool_use_id.clone()),
            description: Maybe::Value(format!("Using {tool}")),
            last_tool_name: Maybe::Value(tool.clone()),
            envelope,
            ..stream_only::TaskProgress::default()
        })));
    }

    /// Emits a `user` entry in the form of the stream.
    pub(crate) fn emit_user_entry(&self, user: &User, meta: Option<ToolResultMeta>) {
        let content = match &user.message.content {
            Content::Text(text) if user.is_meta.is_true() => Content::Blocks(vec![Block::new_text(text)]),
            other => other.clone(),
        };
        let result = if self.is_main() { user.tool_use_result.clone() } else { Maybe::Absent };
        let line = User {
            message: Message { content, ..user.message.clone() },
            tool_use_result: result,
            tool_result_meta: meta.map(|meta| Json::from_serialize(&[meta])).into(),
            is_synthetic: user.is_meta.clone(),
            envelope: self.stream_envelope(user.envelope.uuid.get().cloned(), user.envelope.timestamp.get().cloned()),
            extra: Extra::with_spelling(Spelling::STREAM),
            ..User::default()
        };
        self.session.output.emit(Entry::User(Box::new(line)));
    }

    /// Records entries and returns when they are written, or soon after the turn is interrupted.
    pub(crate) async fn record(&self, entries: Vec<Entry>) -> Result<(), AppendError> {
        let recorded = self.log().record(entries)?;
        self.wait_until_written(recorded).await
    }

    /// Returns when the entries are written, or soon after the turn is interrupted. They are then
    /// still written in the background.
    pub(crate) async fn wait_until_written(&self, recorded: PendingWrite) -> Result<(), AppendError> {
        let interrupted = async {
            self.cancel.cancelled().await;
            tokio::time::sleep(INTERRUPTED_WRITE_TIMEOUT).await;
        };
        tokio::select! {
            written = recorded.wait() => written,
            () = interrupted => Ok(()),
        }
    }

    /// Records a `user` entry and emits it.
    pub(crate) async fn add_user_entry(&self, mut user: User, meta: Option<ToolResultMeta>) -> Result<(), AppendError> {
        user.prompt_id = self.session.prompt_id();
        if !self.is_main() {
            user.tool_use_result = Maybe::Absent;
        }
        self.record(vec![Entry::User(Box::new(user.clone()))]).await?;
        self.emit_user_entry(&user, meta);
        Ok(())
    }

    /// Records a `system` entry under a new id.
    pub(crate) async fn record_system(&self, mut line: System) -> Result<(), AppendError> {
        if let Some(envelope) = line.envelope_mut() {
            (envelope.uuid, envelope.timestamp) = (Maybe::Value(new_id()), Maybe::Value(now()));
        }
        self.record(vec![Entry::System(Box::new(line))]).await
    }

    /// Emits a prompt back to the host, under the UUID it is recorded with.
    pub(crate) fn emit_replay(&self, user: &User) {
        let mut line = User {
            is_replay: Maybe::Value(true),
            contexts: user.contexts.clone(),
            envelope: self.stream_envelope(user.envelope.uuid.get().cloned(), user.envelope.timestamp.get().cloned()),
            message: user.message.clone(),
            ..User::default()
        };
        line.extra = Extra::with_spelling(Spelling::STREAM);
        self.session.output.emit(Entry::User(Box::new(line)));
    }

    /// The fields that every hook input of this agent has.
    pub(crate) fn hook_base(&self) -> HookInputBase {
        let subagent = self.subagent();
        HookInputBase {
            agent_id: subagent.map(|subagent| subagent.id.clone()).into(),
            agent_type: subagent.map(|subagent| subagent.agent_type.clone()).into(),
            cwd: Maybe::Value(self.workspace.cwd().display().to_string()),
            ..self.session.hook_base()
        }
    }
}

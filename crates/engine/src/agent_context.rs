//! A talk: one conversation with the model, the session's own or a subagent's.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use quipu_message::hook::HookInputBase;
use quipu_message::system::{System, stream_only};
use quipu_message::user_assistant::{Assistant, ToolResultMeta, User};
use quipu_message::{AgentId, Block, Content, Entry, Envelope, Extra, Json, Maybe, Message, Spelling, ToolUseId, Uuid};
use quipu_transcript::AppendError;
use tokio_util::sync::CancellationToken;

use crate::clock::{new_id, now};
use crate::conversation_log::{ConversationLog, PendingWrite};
use crate::session::Session;
use crate::tool::{Tool, Workspace};

/// How long an interrupted turn waits for the session file.
const INTERRUPTED_WRITE_TIMEOUT: Duration = Duration::from_millis(250);

/// Whose talk it is.
#[derive(Debug, Clone)]
pub(crate) enum AgentKind {
    /// The session's own.
    Main,
    /// A subagent's.
    Subagent(SubagentIdentity),
}

/// A subagent at work.
#[derive(Debug, Clone)]
pub(crate) struct SubagentIdentity {
    /// The call it works for.
    pub(crate) tool_use_id: ToolUseId,
    /// The subagent.
    pub(crate) id: AgentId,
    /// Which kind.
    pub(crate) agent_type: String,
    /// Whether that kind is part of the program.
    pub(crate) is_builtin: bool,
    /// What it does, in a few words.
    pub(crate) description: String,
    /// Names this run of it.
    pub(crate) run_id: String,
    /// Whether it works in the background.
    pub(crate) in_background: BackgroundFlag,
}

/// Whether a subagent works in the background; that may change while it works.
pub(crate) type BackgroundFlag = Arc<std::sync::atomic::AtomicBool>;

impl SubagentIdentity {
    /// Whether it works in the background now.
    pub(crate) fn is_in_background(&self) -> bool {
        self.in_background.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// A talk, as one turn sees it.
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
    /// The form of the answer, when one was asked for.
    pub(crate) structured_output: Option<Arc<crate::structured_output::StructuredOutputTool>>,
    /// Breaks the turn off.
    pub(crate) cancel: CancellationToken,
    /// The prompt's id, when the host gave one.
    pub(crate) prompt_uuid: Option<Uuid>,
    /// Calls whose permission is being asked just now.
    pub(crate) awaiting_permission: Mutex<Vec<ToolUseId>>,
}

impl AgentContext<'_> {
    /// Whether it is the session's own.
    pub(crate) fn is_main(&self) -> bool {
        matches!(self.kind, AgentKind::Main)
    }

    /// The subagent, when it is one's.
    pub(crate) fn subagent(&self) -> Option<&SubagentIdentity> {
        match &self.kind {
            AgentKind::Main => None,
            AgentKind::Subagent(sub) => Some(sub),
        }
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, ConversationLog> {
        self.log.lock()
    }

    /// The tool of a name.
    pub(crate) fn find_tool(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        // The tool has two names.
        let name = if name == "Task" { "Agent" } else { name };
        self.tools.iter().find(|tool| tool.definition().name == name)
    }

    /// The envelope of a live line of this talk.
    pub(crate) fn stream_envelope(&self, uuid: Option<Uuid>, timestamp: Option<String>) -> Envelope {
        let mut envelope = self.session.output.timestamped_envelope();
        if let Some(uuid) = uuid {
            envelope.uuid = Maybe::Value(uuid);
        }
        if let Some(timestamp) = timestamp {
            envelope.timestamp = Maybe::Value(timestamp);
        }
        if let Some(sub) = self.subagent() {
            envelope.parent_tool_use_id = Maybe::Value(sub.tool_use_id.clone());
            envelope.agent_id = Maybe::Value(sub.id.clone());
            envelope.subagent_type = Maybe::Value(sub.agent_type.clone());
            envelope.task_description = Maybe::Value(sub.description.clone());
        }
        envelope
    }

    /// Says a block of an answer, as the stream has it.
    pub(crate) fn emit_block(&self, line: &Assistant) {
        let Some(block) = line.message.content.blocks().first() else { return };
        if let Some(sub) = self.subagent() {
            let all = self.session.agent_config().forward_subagent_text;
            let said = match block {
                Block::ToolUse(_) => true,
                // Nobody waits for the words of one in the background.
                Block::Text(_) => all || sub.is_in_background(),
                _ => all,
            };
            if !said {
                return;
            }
        }
        let progress = |aside: bool| {
            if let (Some(sub), Some(call)) =
                (self.subagent().filter(|sub| sub.is_in_background() == aside), block.tool_use())
            {
                self.emit_task_progress(sub, &call.name);
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

    /// Says which tool a subagent uses.
    fn emit_task_progress(&self, sub: &SubagentIdentity, tool: &str) {
        let mut envelope = self.session.output.envelope();
        envelope.subagent_type = Maybe::Value(sub.agent_type.clone());
        self.session.emit_system(System::TaskProgress(Box::new(stream_only::TaskProgress {
            task_id: Maybe::Value(sub.id.clone()),
            run_id: Maybe::Value(sub.run_id.clone()),
            tool_use_id: Maybe::Value(sub.tool_use_id.clone()),
            description: Maybe::Value(format!("Using {tool}")),
            last_tool_name: Maybe::Value(tool.to_owned()),
            envelope,
            ..stream_only::TaskProgress::default()
        })));
    }

    /// Says a `user` line as the stream has it.
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

    /// Records entries and returns when they are written; an interrupted turn does not wait
    /// long for that.
    pub(crate) async fn record(&self, entries: Vec<Entry>) -> Result<(), AppendError> {
        let recorded = self.log().record(entries)?;
        self.wait_until_written(recorded).await
    }

    /// Returns when it is written, or soon after the turn is interrupted: what is recorded
    /// is written all the same, as soon as it can be.
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

    /// Records a `user` line and says it.
    pub(crate) async fn add_user_entry(&self, mut user: User, meta: Option<ToolResultMeta>) -> Result<(), AppendError> {
        user.prompt_id = self.session.prompt_id();
        if !self.is_main() {
            user.tool_use_result = Maybe::Absent;
        }
        self.record(vec![Entry::User(Box::new(user.clone()))]).await?;
        self.emit_user_entry(&user, meta);
        Ok(())
    }

    /// Records a `system` line.
    pub(crate) async fn record_system(&self, mut line: System) -> Result<(), AppendError> {
        if let Some(envelope) = line.envelope_mut() {
            (envelope.uuid, envelope.timestamp) = (Maybe::Value(new_id()), Maybe::Value(now()));
        }
        self.record(vec![Entry::System(Box::new(line))]).await
    }

    /// Echoes a prompt, under the id it is recorded with.
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

    /// What every hook of this talk is told.
    pub(crate) fn hook_base(&self) -> HookInputBase {
        let sub = self.subagent();
        HookInputBase {
            agent_id: sub.map(|sub| sub.id.clone()).into(),
            agent_type: sub.map(|sub| sub.agent_type.clone()).into(),
            ..self.session.hook_base()
        }
    }
}

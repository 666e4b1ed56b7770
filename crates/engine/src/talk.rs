//! A talk: one conversation with the model, the session's own or a subagent's.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quipu_message::attachment::{Attachment, AttachmentLine, Rendered};
use quipu_message::system::{System, live};
use quipu_message::turn::{Assistant, ResultMeta, User};
use quipu_message::{AgentId, Block, Content, Entry, Envelope, Extra, Json, Maybe, Message, Spelling, ToolUseId, Uuid};
use quipu_transcript::AppendError;
use tokio_util::sync::CancellationToken;

use crate::clock::{fresh, now};
use crate::log::{Log, Recorded};
use crate::session::Session;
use crate::tool::{Place, Tool};

/// How long an interrupted turn waits for the session file.
const INTERRUPTED_WAIT: Duration = Duration::from_millis(250);

/// Whose talk it is.
#[derive(Debug, Clone)]
pub(crate) enum Voice {
    /// The session's own.
    Main,
    /// A subagent's.
    Sub(Sub),
}

/// A subagent at work.
#[derive(Debug, Clone)]
pub(crate) struct Sub {
    /// The call it works for.
    pub(crate) call: ToolUseId,
    /// The subagent.
    pub(crate) id: AgentId,
    /// Which kind.
    pub(crate) kind: String,
    /// Whether that kind is part of the program.
    pub(crate) builtin: bool,
    /// What it does, in a few words.
    pub(crate) description: String,
    /// Names this run of it.
    pub(crate) run: String,
    /// Whether it works in the background.
    pub(crate) aside: Aside,
}

/// Whether a subagent works in the background; that may change while it works.
pub(crate) type Aside = Arc<std::sync::atomic::AtomicBool>;

impl Sub {
    /// Whether it works in the background now.
    pub(crate) fn is_aside(&self) -> bool {
        self.aside.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// A talk, as one turn sees it.
pub(crate) struct Talk<'a> {
    pub(crate) session: &'a Arc<Session>,
    pub(crate) voice: Voice,
    pub(crate) log: &'a Mutex<Log>,
    pub(crate) place: &'a Place,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    /// The system prompt, in parts.
    pub(crate) system: Vec<String>,
    pub(crate) model: String,
    pub(crate) max_turns: Option<u64>,
    /// The form of the answer, when one was asked for.
    pub(crate) structured: Option<Arc<crate::structured::Structured>>,
    /// Breaks the turn off.
    pub(crate) cancel: CancellationToken,
    /// The prompt's id, when the host gave one.
    pub(crate) prompt: Option<Uuid>,
    /// Calls whose permission is being asked just now.
    pub(crate) asking: Mutex<Vec<ToolUseId>>,
}

impl Talk<'_> {
    /// Whether it is the session's own.
    pub(crate) fn is_main(&self) -> bool {
        matches!(self.voice, Voice::Main)
    }

    /// The subagent, when it is one's.
    pub(crate) fn sub(&self) -> Option<&Sub> {
        match &self.voice {
            Voice::Main => None,
            Voice::Sub(sub) => Some(sub),
        }
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tool of a name.
    pub(crate) fn tool(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        // The tool has two names.
        let name = if name == "Task" { "Agent" } else { name };
        self.tools.iter().find(|tool| tool.definition().name == name)
    }

    /// The envelope of a live line of this talk.
    pub(crate) fn envelope(&self, uuid: Option<Uuid>, timestamp: Option<String>) -> Envelope {
        let mut envelope = self.session.output.stamped();
        if let Some(uuid) = uuid {
            envelope.uuid = Maybe::Value(uuid);
        }
        if let Some(timestamp) = timestamp {
            envelope.timestamp = Maybe::Value(timestamp);
        }
        if let Some(sub) = self.sub() {
            envelope.parent_tool_use_id = Maybe::Value(sub.call.clone());
            envelope.agent_id = Maybe::Value(sub.id.clone());
            envelope.subagent_type = Maybe::Value(sub.kind.clone());
            envelope.task_description = Maybe::Value(sub.description.clone());
        }
        envelope
    }

    /// Says a block of an answer, as the stream has it.
    pub(crate) fn say_block(&self, line: &Assistant) {
        let Some(block) = line.message.content.blocks().first() else { return };
        if let Some(sub) = self.sub() {
            let all = self.session.state().subagent_text;
            let said = match block {
                Block::ToolUse(_) => true,
                // Nobody waits for the words of one in the background.
                Block::Text(_) => all || sub.is_aside(),
                _ => all,
            };
            if !said {
                return;
            }
        }
        let progress = |aside: bool| {
            if let (Some(sub), Some(call)) = (self.sub().filter(|sub| sub.is_aside() == aside), block.tool_use()) {
                self.say_progress(sub, &call.name);
            }
        };
        progress(false);
        let assistant = Assistant {
            message: line.message.clone(),
            request_id: line.request_id.clone(),
            aborted: line.is_aborted_mid_stream.clone(),
            tool_use_meta: self.session.mcp.shown(block).into(),
            user_message_uuid: self.prompt.clone().into(),
            envelope: self.envelope(line.envelope.uuid.get().cloned(), line.envelope.timestamp.get().cloned()),
            extra: Extra::spelled(Spelling::STREAM),
            ..Assistant::default()
        };
        self.session.output.say(Entry::Assistant(Box::new(assistant)));
        progress(true);
    }

    /// Says which tool a subagent uses.
    fn say_progress(&self, sub: &Sub, tool: &str) {
        let mut envelope = self.session.output.envelope();
        envelope.subagent_type = Maybe::Value(sub.kind.clone());
        self.session.say(System::TaskProgress(Box::new(live::TaskProgress {
            task_id: Maybe::Value(sub.id.clone()),
            run_id: Maybe::Value(sub.run.clone()),
            tool_use_id: Maybe::Value(sub.call.clone()),
            description: Maybe::Value(format!("Using {tool}")),
            last_tool_name: Maybe::Value(tool.to_owned()),
            envelope,
            ..live::TaskProgress::default()
        })));
    }

    /// Says a `user` line as the stream has it.
    pub(crate) fn say_user(&self, user: &User, meta: Option<ResultMeta>) {
        let content = match &user.message.content {
            Content::Text(text) if user.is_meta.is_true() => Content::Blocks(vec![Block::new_text(text)]),
            other => other.clone(),
        };
        let result = if self.is_main() { user.tool_use_result.clone() } else { Maybe::Absent };
        let line = User {
            message: Message { content, ..user.message.clone() },
            tool_use_result: result,
            tool_result_meta: meta.map(|meta| Json::of(&[meta])).into(),
            is_synthetic: user.is_meta.clone(),
            envelope: self.envelope(user.envelope.uuid.get().cloned(), user.envelope.timestamp.get().cloned()),
            extra: Extra::spelled(Spelling::STREAM),
            ..User::default()
        };
        self.session.output.say(Entry::User(Box::new(line)));
    }

    /// Records entries and returns when they are written; an interrupted turn does not wait
    /// long for that.
    pub(crate) async fn record(&self, entries: Vec<Entry>) -> Result<(), AppendError> {
        let recorded = self.log().record(entries)?;
        self.written(recorded).await
    }

    /// Returns when it is written, or soon after the turn is interrupted: what is recorded
    /// is written all the same, as soon as it can be.
    pub(crate) async fn written(&self, recorded: Recorded) -> Result<(), AppendError> {
        let interrupted = async {
            self.cancel.cancelled().await;
            tokio::time::sleep(INTERRUPTED_WAIT).await;
        };
        tokio::select! {
            written = recorded.written() => written,
            () = interrupted => Ok(()),
        }
    }

    /// Records a `user` line and says it.
    pub(crate) async fn user(&self, mut user: User, meta: Option<ResultMeta>) -> Result<(), AppendError> {
        user.prompt_id = self.session.prompt_id();
        if !self.is_main() {
            user.tool_use_result = Maybe::Absent;
        }
        self.record(vec![Entry::User(Box::new(user.clone()))]).await?;
        self.say_user(&user, meta);
        Ok(())
    }
}

/// An attachment with an id and the time.
pub(crate) fn stamped_attachment(attachment: Attachment) -> AttachmentLine {
    let envelope = Envelope { uuid: Maybe::Value(fresh()), timestamp: Maybe::Value(now()), ..Envelope::default() };
    AttachmentLine { attachment, envelope, ..AttachmentLine::default() }
}

/// An attachment that the model is told of, in the person's voice.
pub(crate) fn told(attachment: Attachment, texts: Vec<String>) -> Entry {
    let piece = |text| Rendered { content: Maybe::Value(Content::Text(text)), ..Rendered::default() };
    let line = AttachmentLine {
        rendered: Maybe::Value(texts.into_iter().map(piece).collect()),
        rendered_role: Maybe::Value("user".to_owned()),
        ..stamped_attachment(attachment)
    };
    Entry::Attachment(Box::new(line))
}

//! Subagents: agents with a conversation and a transcript of their own that work for one tool call.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use quipu_message::bookkeeping::{AgentMetadata, SubagentMeta, WorktreeSession};
use quipu_message::hook::{HookInputBase, SubagentStart};
use quipu_message::system::{System, stream_only};
use quipu_message::tool::{AgentInput, AgentOutput, TaskPatch, TaskUsage};
use quipu_message::values::{RequestShape, TaskState, TaskType};
use quipu_message::{AgentId, Block, Content, Entry, Json, Maybe, ToolName, TranscriptMirror, factory};
use quipu_otlp::SpanPlace;
use quipu_transcript::{AppendError, Durability, EnvelopeDefaults};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::agent_context::{AgentContext, AgentKind, BackgroundFlag, SubagentIdentity};
use crate::announce;
use crate::clock::{Clock, new_id, new_run_id, now_millis};
use crate::conversation_log::ConversationLog;
use crate::definitions::{AgentDefinition, AgentOrigin};
use crate::git;
use crate::path::resolve_without_links;
use crate::permission::apply_rules;
use crate::private_file;
use crate::session::Session;
use crate::telemetry::subagent_place;
use crate::tool::{CallContext, DEFAULT_SUBAGENT, Tool, ToolDefinition, ToolEffect, ToolOutput, Workspace};
use crate::tool::{Task, TaskKind, TaskStatus};
use crate::turn;
use crate::turn_state::{TurnEnd, TurnState};
use crate::usage::context_tokens;

mod isolation;

/// The Agent tool, which runs subagents.
pub(crate) struct AgentTool {
    session: Arc<Session>,
    /// Nesting depth of the agent that has the tool; 0 for the main agent.
    depth: u64,
    select_tools: SelectTools,
}

/// Chooses the tools of a subagent at a nesting depth. Passed in, because the Agent tool is itself
/// among the tools that are chosen.
pub(crate) type SelectTools = fn(&Arc<Session>, &AgentDefinition, u64) -> Vec<Arc<dyn Tool>>;

/// A run of a subagent.
struct SubagentRun {
    session: Arc<Session>,
    agent: AgentDefinition,
    input: AgentInput,
    info: SubagentIdentity,
    /// Nesting depth of the subagent.
    depth: u64,
    select_tools: SelectTools,
    workspace: Workspace,
    /// The git worktree that it works in; `None` if it works in the session's folder.
    worktree: Option<WorktreeSession>,
    cancel: CancellationToken,
    started_at: Instant,
    /// Its span; `None` if no spans are sent.
    span: Option<SpanPlace>,
}

impl AgentTool {
    pub(crate) fn new(session: &Arc<Session>, depth: u64, select_tools: SelectTools) -> Self {
        Self { session: Arc::clone(session), depth, select_tools }
    }

    /// The definition of a subagent, read from its file again; files that are new since the session
    /// began are found too. `None` if there is none of this name.
    fn find_agent(&self, name: &str) -> Option<AgentDefinition> {
        let found = self.session.reload_agent(name);
        found.or_else(|| {
            self.session.reload_definitions();
            self.session.definitions().agents.get(name).cloned()
        })
    }
}

impl Tool for AgentTool {
    fn name(&self) -> ToolName {
        ToolName::Agent
    }

    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name(),
            description: "Sets a subagent to work on one task and returns its report. It sees nothing of this \
                          conversation, so the prompt must say all it needs to know. Which subagents there are, \
                          and what for, is told in the conversation."
                .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "description": { "type": "string", "description": "The task in three to five words" },
                    "prompt": { "type": "string", "description": "The whole task" },
                    "subagent_type": { "type": "string", "description": "Which subagent; general-purpose when left out" },
                    "model": { "type": "string", "description": "Another model than the subagent's own" },
                    "run_in_background": { "type": "boolean", "description": "Go on without waiting: its report comes when it is done" },
                    "isolation": { "type": "string", "enum": ["worktree"], "description": "worktree: it works in a git worktree of its own, which is removed if it changes nothing there" },
                },
                "required": ["description", "prompt"],
            }),
        }
    }

    fn effect(&self, _input: &Value) -> ToolEffect {
        // Its tool calls have permissions and an order of their own.
        ToolEffect::Independent
    }

    fn run<'a>(&'a self, input: Value, place: &'a Workspace, call: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let input: AgentInput = match Json::from(input).read() {
                Ok(input) => input,
                Err(error) => return ToolOutput::tool_use_error(format!("InputValidationError: {error}")),
            };
            let kind = input.subagent_type.text().unwrap_or(DEFAULT_SUBAGENT);
            let agent = self.find_agent(kind);
            let Some(agent) = agent else {
                let names: Vec<String> = self.session.definitions().agents.keys().cloned().collect();
                return ToolOutput::failure(format!("There is no subagent {kind}; there are {}", names.join(", ")));
            };
            let id = AgentId::from(format!("a{}", &new_id().as_str().replace('-', "")[..16]));
            let worktree = match self.create_worktree(&agent, &input, &id).await {
                Ok(worktree) => worktree,
                Err(reason) => return ToolOutput::failure(format!("The subagent was not started: {reason}.")),
            };
            let run = SubagentRun::new(self, agent, input, id, worktree, place, call);
            if run.input.run_in_background.get().copied().unwrap_or(run.agent.is_background) {
                let output = run.run_in_background(call);
                // It reports its start before the result of the call, unless it waits for a free place.
                tokio::task::yield_now().await;
                return output;
            }
            run.run_or_background(call).await
        })
    }
}

impl SubagentRun {
    fn new(
        tool: &AgentTool,
        agent: AgentDefinition,
        input: AgentInput,
        id: AgentId,
        worktree: Option<(WorktreeSession, PathBuf)>,
        place: &Workspace,
        call: &CallContext,
    ) -> Self {
        let subagent = SubagentIdentity {
            tool_use_id: call.tool_use_id.clone(),
            id,
            agent_type: agent.name.clone(),
            is_builtin: agent.origin == AgentOrigin::Builtin,
            description: input.description.text().unwrap_or_default().to_owned(),
            run_id: new_run_id(),
            in_background: Arc::default(),
        };
        let span = call.span.map(|tool| subagent_place(tool, &subagent.run_id));
        let session = Arc::clone(&tool.session);
        let workspace = match &worktree {
            Some((_, folder)) => {
                let workspace = place.for_worktree(folder);
                session.permissions.read(|_, rules| apply_rules(rules, &session.workspace));
                workspace
            }
            None => place.for_subagent(),
        };
        Self {
            session,
            agent,
            input,
            info: subagent,
            depth: tool.depth + 1,
            select_tools: tool.select_tools,
            workspace,
            worktree: worktree.map(|(worktree, _)| worktree),
            cancel: CancellationToken::new(),
            started_at: Instant::now(),
            span,
        }
    }

    /// Runs while the tool call waits. If the host moves the call to the background, it continues there.
    async fn run_or_background(self, call: &CallContext) -> ToolOutput {
        let (launch, cancel) = (self.background_launch(call), self.cancel.clone());
        let mut work = Box::pin(self.run());
        tokio::select! {
            biased;
            output = &mut work => output,
            () = call.cancel.cancelled() => {
                cancel.cancel();
                work.await
            }
            () = call.move_to_background.cancelled() => launch.start(work),
        }
    }

    /// Runs in the background from the start.
    fn run_in_background(self, call: &CallContext) -> ToolOutput {
        self.background_launch(call).start(Box::pin(self.run()))
    }

    /// What is needed to move it to the background.
    fn background_launch(&self, call: &CallContext) -> BackgroundLaunch {
        let kind = TaskKind::Subagent(self.agent.name.clone());
        let mut task = Task::new(
            self.info.id.to_string(),
            kind,
            self.info.description.clone(),
            self.report_file(),
            call.tool_use_id.clone(),
        );
        (task.run_id, task.cancel) = (self.info.run_id.clone(), self.cancel.clone());
        BackgroundLaunch {
            session: Arc::clone(&self.session),
            task,
            in_background: Arc::clone(&self.info.in_background),
            prompt: self.input.prompt.clone(),
        }
    }

    async fn run(self) -> ToolOutput {
        let session = &self.session;
        // Waits for a free slot; a subagent that is stopped meanwhile makes no API call.
        let _turn = tokio::select! {
            turn = session.subagent_slots.acquire() => turn.ok(),
            () = self.cancel.cancelled() => None,
        };
        let log = Mutex::new(self.open_log());
        let inherited = session.model_choice.model();
        let chosen = session.request_env.subagent_model.clone();
        let chosen = chosen.or_else(|| self.input.model.text().map(str::to_owned));
        let name = chosen.or_else(|| self.agent.own_model().map(str::to_owned)).filter(|name| name != "inherit");
        let model = name.map_or(inherited, |name| session.models.resolve(&name));
        let ctx = AgentContext {
            tools: (self.select_tools)(session, &self.agent, self.depth),
            system_prompt: vec![self.agent.prompt.clone()],
            model,
            max_turns: self.agent.max_turns,
            kind: AgentKind::Subagent(self.info.clone()),
            log: &log,
            workspace: &self.workspace,
            structured_output: None,
            cancel: self.cancel.clone(),
            prompt_uuid: None,
            awaiting_permission: Mutex::default(),
            span: self.span,
            session,
        };
        self.emit_started();
        let base = HookInputBase { permission_mode: Maybe::Absent, ..ctx.hook_base() };
        let input = SubagentStart { base, ..SubagentStart::default() };
        let hooks = session.run_hooks(input, Some(&self.agent.name), None, &ctx.cancel);
        if let (_, Err(error)) = tokio::join!(hooks, self.record_start(&ctx)) {
            return ToolOutput::failure(error.to_string());
        }
        let mut turn = TurnState::new();
        let end = turn::run(&ctx, &mut turn).await;
        let used = turn.last_usage().map(context_tokens).unwrap_or_default();
        let worktree_note = self.leave_worktree().await;
        let report = final_report(&end);
        let report = report.map(|text| text + &worktree_note).map_err(|text| text + &worktree_note);
        // The transcript is complete before the tool call returns.
        let flushed = ctx.log().flush();
        let closed = ctx.wait_until_written(flushed).await.and_then(|()| self.write_metadata(true));
        let status = match report {
            _ if self.cancel.is_cancelled() => TaskStatus::Killed,
            Ok(_) => TaskStatus::Exited(0),
            Err(_) => TaskStatus::Exited(1),
        };
        self.emit_ended(status, report.as_ref().unwrap_or_else(|text| text), used, &turn);
        match (report, closed) {
            (Err(text), _) => ToolOutput::failure(text),
            (Ok(_), Err(error)) => ToolOutput::failure(error.to_string()),
            (Ok(text), Ok(())) => self.completed_output(text, &ctx.model, used, &turn),
        }
    }
}

/// A subagent that is moved to the background.
struct BackgroundLaunch {
    session: Arc<Session>,
    task: Task,
    in_background: BackgroundFlag,
    prompt: String,
}

impl BackgroundLaunch {
    fn start(self, work: BoxFuture<'static, ToolOutput>) -> ToolOutput {
        let Self { session, task, in_background, prompt } = self;
        in_background.store(true, Ordering::Relaxed);
        session.queue.expect_subagent(&task.id);
        let (file, stop) = (task.output_path.clone(), task.cancel.clone());
        let raw = AgentOutput {
            agent_id: Maybe::Value(AgentId::from(task.id.as_str())),
            status: Maybe::Value(TaskState::AsyncLaunched),
            is_async: Maybe::Value(true),
            description: Maybe::Value(task.description.clone()),
            prompt: Maybe::Value(prompt),
            output_file: Maybe::Value(file.display().to_string()),
            ..AgentOutput::default()
        };
        let text = format!(
            "The subagent works in the background as task {}. Its report comes by itself when it is done; TaskOutput \
             waits for it, TaskStop ends it.",
            task.id
        );
        session.workspace.tasks().spawn(task, async move {
            let output = work.await;
            let text = output.content.to_text();
            // The report is in the task notification too.
            let _ = private_file::write_file(&file, text.as_bytes());
            let status = match output.is_error {
                _ if stop.is_cancelled() => TaskStatus::Killed,
                true => TaskStatus::Exited(1),
                false => TaskStatus::Exited(0),
            };
            (status, text)
        });
        ToolOutput::new(vec![Block::new_text(text)], &raw)
    }
}

/// The report of a subagent, or why there is none.
fn final_report(end: &TurnEnd) -> Result<String, String> {
    match end {
        TurnEnd::Answered(text) | TurnEnd::StoppedByHook(text) if !text.is_empty() => Ok(text.clone()),
        TurnEnd::Answered(_) | TurnEnd::StoppedByHook(_) => Ok("(the subagent returned no text)".to_owned()),
        TurnEnd::StructuredOutput(answer) => Ok(answer.text().to_owned()),
        TurnEnd::Failed(failure) => Err(failure.text.clone()),
        TurnEnd::MaxTurns(max) => Err(format!("The subagent did not finish within {max} calls")),
        TurnEnd::BudgetExceeded(_) => Err("The budget was used up while the subagent worked".to_owned()),
        TurnEnd::InterruptedStreaming | TurnEnd::InterruptedTools => Err("The subagent was interrupted".to_owned()),
        TurnEnd::NoStructuredOutput => Err("The subagent gave no answer in the form asked for".to_owned()),
        TurnEnd::WriteFailed(error) => Err(error.to_string()),
    }
}

impl SubagentRun {
    fn open_log(&self) -> ConversationLog {
        let main = self.session.log();
        let path = self.transcript_path(main.path());
        let mut facts = EnvelopeDefaults { agent_id: Some(self.info.id.clone()), ..main.envelope_defaults().clone() };
        if self.worktree.is_some() {
            facts.cwd = self.workspace.root().display().to_string();
            facts.git_branch = git::git_branch(self.workspace.root());
        }
        // Without a path it is not kept.
        let persists = path.is_some() && !self.session.options.no_persistence;
        let mut log = ConversationLog::new(path.unwrap_or_default(), facts, Durability::default(), persists);
        if self.session.options.session_mirror {
            log.set_mirror(self.session.output.clone());
        }
        log
    }

    /// Path of the transcript, beside that of the session; `None` if a link there leads elsewhere, which a
    /// command may have made if the session's folders contain the session file.
    fn transcript_path(&self, main: &Path) -> Option<PathBuf> {
        let name = Path::new(main.file_stem()?).join("subagents").join(format!("agent-{}.jsonl", self.info.id));
        resolve_without_links(main.parent()?, &name)
    }

    async fn record_start(&self, ctx: &AgentContext<'_>) -> Result<(), AppendError> {
        let mut user = factory::user(self.input.prompt.as_str(), &mut Clock);
        user.prompt_id = self.session.prompt_id();
        let mut entries = vec![Entry::User(Box::new(user.clone()))];
        let files = self.session.instructions();
        entries.extend(announce::due_attachments(ctx));
        entries.extend(announce::instructions_attachment(&files));
        entries.extend(announce::date_attachment(ctx));
        self.write_metadata(false)?;
        let recorded = ctx.log().record(entries)?;
        user.message.content = Content::Blocks(vec![Block::new_text(&self.input.prompt)]);
        // The tool call shows the prompt of a background subagent already.
        if !self.info.is_in_background() {
            ctx.emit_user_entry(&user, None);
        }
        ctx.wait_until_written(recorded).await
    }

    /// Writes the metadata file next to the transcript of the subagent. Hosts that mirror the session
    /// get the same as an entry.
    fn write_metadata(&self, finished: bool) -> Result<(), AppendError> {
        if self.session.options.no_persistence {
            return Ok(());
        }
        let Some(transcript) = self.transcript_path(self.session.log().path()) else { return Ok(()) };
        if self.session.options.session_mirror {
            self.session.output.emit(self.metadata_mirror_entry(&transcript, finished));
        }
        let path = transcript.with_extension("meta.json");
        let meta = SubagentMeta {
            agent_type: Maybe::Value(self.agent.name.clone()),
            description: Maybe::Value(self.info.description.clone()),
            tool_use_id: Maybe::Value(self.info.tool_use_id.clone()),
            spawn_depth: Maybe::Value(self.depth),
            is_built_in: Maybe::Value(self.agent.origin == AgentOrigin::Builtin),
            worktree_path: self.worktree.as_ref().map_or(Maybe::Absent, |worktree| worktree.path.clone()),
            spawned_with_worktree: self.worktree.is_some().then_some(true).into(),
            worktree_branch: self.worktree.as_ref().map_or(Maybe::Absent, |worktree| worktree.branch.clone()),
            finished: finished.then_some(true).into(),
            ..SubagentMeta::default()
        };
        let written = private_file::write_file(&path, Json::from_serialize(&meta).text().as_bytes());
        written.map_err(|source| AppendError::Create { path, source })
    }

    fn metadata_mirror_entry(&self, transcript: &Path, finished: bool) -> Entry {
        let shape = if self.info.is_in_background() { RequestShape::Background } else { RequestShape::Foreground };
        let meta = AgentMetadata {
            agent_type: Maybe::Value(self.agent.name.clone()),
            is_built_in: Maybe::Value(self.agent.origin == AgentOrigin::Builtin),
            description: Maybe::Value(self.info.description.clone()),
            tool_use_id: Maybe::Value(self.info.tool_use_id.clone()),
            finished: finished.then_some(true).into(),
            spawn_depth: Maybe::Value(self.depth),
            request_shape: Maybe::Value(shape),
            ..AgentMetadata::default()
        };
        Entry::TranscriptMirror(Box::new(TranscriptMirror {
            file_path: Maybe::Value(transcript.display().to_string()),
            entries: vec![Entry::AgentMetadata(Box::new(meta))],
            ..TranscriptMirror::default()
        }))
    }

    fn emit_started(&self) {
        let mut envelope = self.session.output.envelope();
        envelope.subagent_type = Maybe::Value(self.info.agent_type.clone());
        self.session.emit_system(System::TaskStarted(Box::new(stream_only::TaskStarted {
            task_id: Maybe::Value(self.info.id.clone()),
            run_id: Maybe::Value(self.info.run_id.clone()),
            tool_use_id: Maybe::Value(self.info.tool_use_id.clone()),
            description: Maybe::Value(self.info.description.clone()),
            task_type: Maybe::Value(TaskType::LocalAgent),
            is_backgrounded: Maybe::Value(self.info.is_in_background()),
            prompt: Maybe::Value(self.input.prompt.clone()),
            spawn_depth: Maybe::Value(self.depth),
            envelope,
            ..stream_only::TaskStarted::default()
        })));
    }

    /// Path of the report for hosts; empty for a foreground subagent.
    fn output_file(&self) -> String {
        if self.info.is_in_background() { self.report_file().display().to_string() } else { String::new() }
    }

    fn report_file(&self) -> PathBuf {
        self.workspace.output_folder().join(format!("{}.output", self.info.id))
    }

    fn emit_ended(&self, status: TaskStatus, summary: &str, used: u64, turn: &TurnState) {
        let patch =
            TaskPatch { status: status.wire_state(), end_time: Maybe::Value(now_millis()), ..TaskPatch::default() };
        self.session.emit_system(System::TaskUpdated(Box::new(stream_only::TaskUpdated {
            task_id: Maybe::Value(self.info.id.clone()),
            run_id: Maybe::Value(self.info.run_id.clone()),
            patch: Maybe::Value(Json::from_serialize(&patch)),
            envelope: self.session.output.envelope(),
            ..stream_only::TaskUpdated::default()
        })));
        let usage = TaskUsage {
            total_tokens: used,
            tool_uses: turn.tool_calls,
            duration_ms: u64::try_from(self.started_at.elapsed().as_millis()).unwrap_or(u64::MAX),
            ..TaskUsage::default()
        };
        self.session.emit_system(System::TaskNotification(Box::new(stream_only::TaskNotification {
            task_id: Maybe::Value(self.info.id.clone()),
            run_id: Maybe::Value(self.info.run_id.clone()),
            tool_use_id: Maybe::Value(self.info.tool_use_id.clone()),
            status: Maybe::Value(status.notified_state()),
            output_file: Maybe::Value(self.output_file()),
            summary: Maybe::Value(summary.to_owned()),
            usage: Maybe::Value(Json::from_serialize(&usage)),
            envelope: self.session.output.envelope(),
            ..stream_only::TaskNotification::default()
        })));
    }

    fn completed_output(&self, text: String, model: &str, used: u64, turn: &TurnState) -> ToolOutput {
        let blocks = vec![Block::new_text(text)];
        let raw = AgentOutput {
            agent_id: Maybe::Value(self.info.id.clone()),
            status: Maybe::Value(TaskState::Completed),
            prompt: Maybe::Value(self.input.prompt.clone()),
            agent_type: Maybe::Value(self.agent.name.clone()),
            content: Maybe::Value(Json::from_serialize(&blocks)),
            resolved_model: Maybe::Value(model.to_owned()),
            total_duration_ms: Maybe::Value(u64::try_from(self.started_at.elapsed().as_millis()).unwrap_or(u64::MAX)),
            total_tokens: Maybe::Value(used),
            total_tool_use_count: Maybe::Value(turn.tool_calls),
            usage: turn.last_usage().cloned().into(),
            ..AgentOutput::default()
        };
        ToolOutput::new(blocks, &raw)
    }
}

//! Subagents: a talk of their own, in a file of their own, for one call.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures_util::future::BoxFuture;
use quipu_message::bookkeeping::{AgentMetadata, SubagentMeta};
use quipu_message::hook::{HookBase, SubagentStart};
use quipu_message::stream::TranscriptMirror;
use quipu_message::system::{System, live};
use quipu_message::tool::{AgentInput, AgentOutput, TaskPatch, TaskUsage};
use quipu_message::{AgentId, Block, Content, Entry, Json, Maybe, factory};
use quipu_transcript::{AppendError, Durability, Facts};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::announce;
use crate::catalog::{self, Agent, Origin};
use crate::clock::{Clock, fresh, millis, run_id};
use crate::ledger::filled;
use crate::log::Log;
use crate::private;
use crate::prompt;
use crate::session::Session;
use crate::talk::{Aside, Sub, Talk, Voice};
use crate::tool::{Call, Definition, Effect, Output, Place, Tool};
use crate::tools::tasks::{Kind, Status, Task};
use crate::turn::{self, Count, End};

/// Sets a subagent to work.
pub(crate) struct AgentTool {
    session: Arc<Session>,
    /// How deep the one who asks is nested.
    depth: u64,
}

/// A subagent at work.
struct Job {
    session: Arc<Session>,
    agent: Agent,
    asked: AgentInput,
    sub: Sub,
    /// How deep it is nested.
    depth: u64,
    place: Place,
    cancel: CancellationToken,
    began: Instant,
}

impl AgentTool {
    pub(crate) fn new(session: &Arc<Session>, depth: u64) -> Self {
        Self { session: Arc::clone(session), depth }
    }

    /// The subagent of a name, as its file is now. One whose file came since the session began is
    /// found, too; `None` if there is none.
    fn agent(&self, name: &str) -> Option<Agent> {
        let found = self.session.state().catalog.current_agent(name);
        found.or_else(|| {
            catalog::reload(&self.session);
            self.session.state().catalog.agents.get(name).cloned()
        })
    }
}

impl Tool for AgentTool {
    fn definition(&self) -> Definition {
        Definition {
            name: "Agent".to_owned(),
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
                },
                "required": ["description", "prompt"],
            }),
        }
    }

    fn effect(&self, _input: &Value) -> Effect {
        // Its own calls are judged and take turns by themselves.
        Effect::Apart
    }

    fn run<'a>(&'a self, input: Value, place: &'a Place, call: &'a Call) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let asked: AgentInput = match Json::from(input).read() {
                Ok(asked) => asked,
                Err(error) => return Output::misuse(format!("InputValidationError: {error}")),
            };
            let kind = asked.subagent_type.text().unwrap_or("general-purpose");
            let agent = self.agent(kind);
            let Some(agent) = agent else {
                let names: Vec<String> = self.session.state().catalog.agents.keys().cloned().collect();
                return Output::failure(format!("There is no subagent {kind}; there are {}", names.join(", ")));
            };
            let job = Job::new(&self.session, agent, asked, self.depth + 1, place, call);
            if job.asked.run_in_background.is_true() {
                return job.go_on(call);
            }
            job.run_or_move(call).await
        })
    }
}

impl Job {
    fn new(session: &Arc<Session>, agent: Agent, asked: AgentInput, depth: u64, place: &Place, call: &Call) -> Self {
        let sub = Sub {
            call: call.id.clone(),
            id: AgentId::from(format!("a{}", &fresh().as_str().replace('-', "")[..16])),
            kind: agent.name.clone(),
            builtin: agent.origin == Origin::Builtin,
            description: asked.description.text().unwrap_or_default().to_owned(),
            run: run_id(),
            aside: Arc::default(),
        };
        let (session, place) = (Arc::clone(session), place.for_subagent());
        Self { session, agent, asked, sub, depth, place, cancel: CancellationToken::new(), began: Instant::now() }
    }

    /// Works while the call waits; when the host wishes, it goes on in the background.
    async fn run_or_move(self, call: &Call) -> Output {
        let (launch, cancel) = (self.launch(call), self.cancel.clone());
        let mut work = Box::pin(self.run());
        tokio::select! {
            biased;
            output = &mut work => output,
            () = call.cancel.cancelled() => {
                cancel.cancel();
                work.await
            }
            () = call.aside.cancelled() => launch.begin(work),
        }
    }

    /// Works in the background from the start.
    fn go_on(self, call: &Call) -> Output {
        self.launch(call).begin(Box::pin(self.run()))
    }

    /// What is needed to let it work in the background.
    fn launch(&self, call: &Call) -> Launch {
        let kind = Kind::Subagent(self.agent.name.clone());
        let mut task =
            Task::new(self.sub.id.to_string(), kind, self.sub.description.clone(), self.report_file(), call.id.clone());
        (task.run, task.stop) = (self.sub.run.clone(), self.cancel.clone());
        Launch {
            session: Arc::clone(&self.session),
            task,
            aside: Arc::clone(&self.sub.aside),
            prompt: self.asked.prompt.clone(),
        }
    }

    async fn run(self) -> Output {
        let session = &self.session;
        // The others wait for their turn; one that is stopped meanwhile makes no call.
        let _turn = tokio::select! {
            turn = session.subagents.acquire() => turn.ok(),
            () = self.cancel.cancelled() => None,
        };
        let log = Mutex::new(self.log());
        let inherited = session.state().model.clone();
        let chosen = session.request_env.subagent_model.clone();
        let chosen = chosen.or_else(|| self.asked.model.text().map(str::to_owned));
        let name = chosen.or_else(|| self.agent.own_model().map(str::to_owned)).filter(|name| name != "inherit");
        let model = name.map_or(inherited, |name| session.models.resolve(&name));
        let talk = Talk {
            tools: crate::toolbox::for_sub(session, &self.agent, self.depth),
            system: vec![self.agent.prompt.clone()],
            model,
            max_turns: None,
            voice: Voice::Sub(self.sub.clone()),
            log: &log,
            place: &self.place,
            structured: None,
            cancel: self.cancel.clone(),
            prompt: None,
            asking: Mutex::default(),
            session,
        };
        self.say_started();
        let base = HookBase { permission_mode: Maybe::Absent, ..talk.hook_base() };
        let input = SubagentStart { base, ..SubagentStart::default() };
        let hooks = session.hook(input, Some(&self.agent.name), None, &talk.cancel);
        if let (_, Err(error)) = tokio::join!(hooks, self.begin(&talk)) {
            return Output::failure(error.to_string());
        }
        let mut count = Count::new();
        let end = turn::run(&talk, &mut count).await;
        let used = count.last_usage().map(filled).unwrap_or_default();
        let report = report(&end);
        // The file is whole before the call is answered.
        let flushed = talk.log().flush();
        let closed = talk.written(flushed).await.and_then(|()| self.write_meta(true));
        let status = match report {
            _ if self.cancel.is_cancelled() => Status::Killed,
            Ok(_) => Status::Ended(0),
            Err(_) => Status::Ended(1),
        };
        self.say_ended(status, report.as_ref().unwrap_or_else(|text| text), used, &count);
        match (report, closed) {
            (Err(text), _) => Output::failure(text),
            (Ok(_), Err(error)) => Output::failure(error.to_string()),
            (Ok(text), Ok(())) => self.answered(text, &talk.model, used, &count),
        }
    }
}

/// A subagent that goes to the background.
struct Launch {
    session: Arc<Session>,
    task: Task,
    aside: Aside,
    prompt: String,
}

impl Launch {
    fn begin(self, work: BoxFuture<'static, Output>) -> Output {
        let Self { session, task, aside, prompt } = self;
        aside.store(true, Ordering::Relaxed);
        session.queue.expect(&task.id);
        let (file, stop) = (task.file.clone(), task.stop.clone());
        let raw = AgentOutput {
            agent_id: Maybe::Value(AgentId::from(task.id.as_str())),
            status: Maybe::Value("async_launched".to_owned()),
            is_async: Maybe::Value(true),
            description: Maybe::Value(task.description.clone()),
            prompt: Maybe::Value(prompt),
            output_file: Maybe::Value(file.display().to_string()),
            ..AgentOutput::default()
        };
        let words = format!(
            "The subagent works in the background as task {}. Its report comes by itself when it is done; TaskOutput \
             waits for it, TaskStop ends it.",
            task.id
        );
        session.place.tasks().begin(task, async move {
            let output = work.await;
            let text = output.content.to_text();
            // Who reads it finds the report in the notice, too.
            let _ = private::write(&file, text.as_bytes());
            let status = match output.is_error {
                _ if stop.is_cancelled() => Status::Killed,
                true => Status::Ended(1),
                false => Status::Ended(0),
            };
            (status, text)
        });
        Output::new(vec![Block::new_text(words)], &raw)
    }
}

/// What the subagent says in the end, or why it says nothing.
fn report(end: &End) -> Result<String, String> {
    match end {
        End::Answered(text) | End::Stopped(text) if !text.is_empty() => Ok(text.clone()),
        End::Answered(_) | End::Stopped(_) => Ok("(the subagent said nothing)".to_owned()),
        End::Formed(answer) => Ok(answer.text().to_owned()),
        End::Failed(failure) => Err(failure.text.clone()),
        End::MaxTurns(max) => Err(format!("The subagent did not finish within {max} calls")),
        End::Budget(_) => Err("The budget was used up while the subagent worked".to_owned()),
        End::BrokenStreaming | End::BrokenTools => Err("The subagent was interrupted".to_owned()),
        End::NoForm => Err("The subagent gave no answer in the form asked for".to_owned()),
        End::NoFile(error) => Err(error.to_string()),
    }
}

impl Job {
    fn log(&self) -> Log {
        let main = self.session.log();
        let path = main.path().with_extension("").join("subagents").join(format!("agent-{}.jsonl", self.sub.id));
        let facts = Facts { agent_id: Some(self.sub.id.clone()), ..main.facts().clone() };
        let mut log = Log::new(path, facts, Durability::default(), !self.session.options.no_persistence);
        if self.session.options.session_mirror {
            log.mirror(self.session.output.clone());
        }
        log
    }

    async fn begin(&self, talk: &Talk<'_>) -> Result<(), AppendError> {
        let mut user = factory::user(self.asked.prompt.as_str(), &mut Clock);
        user.prompt_id = self.session.prompt_id();
        let mut entries = vec![Entry::User(Box::new(user.clone()))];
        let files = self.session.instructions();
        entries.extend(announce::due(talk));
        entries.extend(prompt::instructions(&files));
        entries.extend(announce::date(talk));
        self.write_meta(false)?;
        let recorded = talk.log().record(entries)?;
        user.message.content = Content::Blocks(vec![Block::new_text(&self.asked.prompt)]);
        // Whoever set it to work in the background has read its prompt in the call.
        if !self.sub.is_aside() {
            talk.say_user(&user, None);
        }
        talk.written(recorded).await
    }

    /// Writes the file beside the subagent's lines. Hosts that mirror the session have no such file:
    /// they are told the same as an entry.
    fn write_meta(&self, finished: bool) -> Result<(), AppendError> {
        if self.session.options.no_persistence {
            return Ok(());
        }
        let transcript = self.log().path().to_owned();
        if self.session.options.session_mirror {
            self.session.output.say(self.mirrored_meta(&transcript, finished));
        }
        let path = transcript.with_extension("meta.json");
        let meta = SubagentMeta {
            agent_type: Maybe::Value(self.agent.name.clone()),
            description: Maybe::Value(self.sub.description.clone()),
            tool_use_id: Maybe::Value(self.sub.call.clone()),
            spawn_depth: Maybe::Value(self.depth),
            is_built_in: Maybe::Value(self.agent.origin == Origin::Builtin),
            finished: finished.then_some(true).into(),
            ..SubagentMeta::default()
        };
        let written = private::write(&path, Json::of(&meta).text().as_bytes());
        written.map_err(|source| AppendError::Create { path, source })
    }

    fn mirrored_meta(&self, transcript: &Path, finished: bool) -> Entry {
        let shape = if self.sub.is_aside() { "background" } else { "foreground" };
        let meta = AgentMetadata {
            agent_type: Maybe::Value(self.agent.name.clone()),
            is_built_in: Maybe::Value(self.agent.origin == Origin::Builtin),
            description: Maybe::Value(self.sub.description.clone()),
            tool_use_id: Maybe::Value(self.sub.call.clone()),
            finished: finished.then_some(true).into(),
            spawn_depth: Maybe::Value(self.depth),
            request_shape: Maybe::Value(shape.to_owned()),
            ..AgentMetadata::default()
        };
        Entry::TranscriptMirror(Box::new(TranscriptMirror {
            file_path: Maybe::Value(transcript.display().to_string()),
            entries: vec![Entry::AgentMetadata(Box::new(meta))],
            ..TranscriptMirror::default()
        }))
    }

    fn say_started(&self) {
        let mut envelope = self.session.output.envelope();
        envelope.subagent_type = Maybe::Value(self.sub.kind.clone());
        self.session.say(System::TaskStarted(Box::new(live::TaskStarted {
            task_id: Maybe::Value(self.sub.id.clone()),
            run_id: Maybe::Value(self.sub.run.clone()),
            tool_use_id: Maybe::Value(self.sub.call.clone()),
            description: Maybe::Value(self.sub.description.clone()),
            task_type: Maybe::Value("local_agent".to_owned()),
            is_backgrounded: Maybe::Value(self.sub.is_aside()),
            prompt: Maybe::Value(self.asked.prompt.clone()),
            spawn_depth: Maybe::Value(self.depth),
            envelope,
            ..live::TaskStarted::default()
        })));
    }

    /// Where the report is, when somebody looks for it.
    fn output_file(&self) -> String {
        if self.sub.is_aside() { self.report_file().display().to_string() } else { String::new() }
    }

    fn report_file(&self) -> PathBuf {
        self.place.outputs().join(format!("{}.output", self.sub.id))
    }

    fn say_ended(&self, status: Status, summary: &str, used: u64, count: &Count) {
        let patch =
            TaskPatch { status: status.as_str().to_owned(), end_time: Maybe::Value(millis()), ..TaskPatch::default() };
        self.session.say(System::TaskUpdated(Box::new(live::TaskUpdated {
            task_id: Maybe::Value(self.sub.id.clone()),
            run_id: Maybe::Value(self.sub.run.clone()),
            patch: Maybe::Value(Json::of(&patch)),
            envelope: self.session.output.envelope(),
            ..live::TaskUpdated::default()
        })));
        let usage = TaskUsage {
            total_tokens: used,
            tool_uses: count.tool_uses,
            duration_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            ..TaskUsage::default()
        };
        self.session.say(System::TaskNotification(Box::new(live::TaskNotification {
            task_id: Maybe::Value(self.sub.id.clone()),
            run_id: Maybe::Value(self.sub.run.clone()),
            tool_use_id: Maybe::Value(self.sub.call.clone()),
            status: Maybe::Value(status.in_notice().to_owned()),
            output_file: Maybe::Value(self.output_file()),
            summary: Maybe::Value(summary.to_owned()),
            usage: Maybe::Value(Json::of(&usage)),
            envelope: self.session.output.envelope(),
            ..live::TaskNotification::default()
        })));
    }

    fn answered(&self, text: String, model: &str, used: u64, count: &Count) -> Output {
        let blocks = vec![Block::new_text(text)];
        let raw = AgentOutput {
            agent_id: Maybe::Value(self.sub.id.clone()),
            status: Maybe::Value("completed".to_owned()),
            prompt: Maybe::Value(self.asked.prompt.clone()),
            agent_type: Maybe::Value(self.agent.name.clone()),
            content: Maybe::Value(Json::of(&blocks)),
            resolved_model: Maybe::Value(model.to_owned()),
            total_duration_ms: Maybe::Value(u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)),
            total_tokens: Maybe::Value(used),
            total_tool_use_count: Maybe::Value(count.tool_uses),
            usage: count.last_usage().cloned().into(),
            ..AgentOutput::default()
        };
        Output::new(blocks, &raw)
    }
}

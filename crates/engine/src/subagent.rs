//! Subagents: a talk of their own, in a file of their own, for one call.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures_util::future::BoxFuture;
use quipu_message::bookkeeping::SubagentMeta;
use quipu_message::hook::{HookBase, SubagentStart};
use quipu_message::system::{System, live};
use quipu_message::tool::{AgentInput, AgentOutput, TaskPatch, TaskUsage};
use quipu_message::{AgentId, Block, Content, Entry, Json, Maybe, factory};
use quipu_transcript::{AppendError, Durability, Facts};
use serde_json::{Value, json};

use crate::catalog::Agent;
use crate::clock::{Clock, fresh, millis};
use crate::ledger::filled;
use crate::log::Log;
use crate::memory;
use crate::prompt;
use crate::session::Session;
use crate::talk::{Sub, Talk, Voice};
use crate::tool::{Call, Definition, Effect, Output, Place, Tool};
use crate::turn::{self, Count, End};

/// Sets a subagent to work.
pub(crate) struct AgentTool {
    session: Arc<Session>,
    /// How deep the one who asks is nested.
    depth: u64,
}

/// A subagent at work.
struct Task<'a> {
    session: &'a Arc<Session>,
    sub: Sub,
    began: Instant,
}

impl AgentTool {
    pub(crate) fn new(session: &Arc<Session>, depth: u64) -> Self {
        Self { session: Arc::clone(session), depth }
    }
}

impl Tool for AgentTool {
    fn definition(&self) -> Definition {
        let state = self.session.state();
        let agents: Vec<String> =
            state.catalog.agents.values().map(|agent| format!("- {}: {}", agent.name, agent.description)).collect();
        Definition {
            name: "Agent".to_owned(),
            description: format!(
                "Sets a subagent to work on one task and returns its report. It sees nothing of this conversation, so \
                 the prompt must say all it needs to know. Subagents:\n{}",
                agents.join("\n")
            ),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "description": { "type": "string", "description": "The task in three to five words" },
                    "prompt": { "type": "string", "description": "The whole task" },
                    "subagent_type": { "type": "string", "description": "Which subagent; general-purpose when left out" },
                    "model": { "type": "string", "description": "Another model than the subagent's own" },
                    "run_in_background": { "type": "boolean", "description": "Taken, but the call waits all the same" },
                },
                "required": ["description", "prompt"],
            }),
        }
    }

    fn effect(&self, _input: &Value) -> Effect {
        // Its own calls are judged and take turns by themselves.
        Effect::Reads
    }

    fn run<'a>(&'a self, input: Value, place: &'a Place, call: &'a Call) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let asked: AgentInput = match Json::from(input.clone()).read() {
                Ok(asked) => asked,
                Err(error) => return Output::misuse(format!("InputValidationError: {error}")),
            };
            let kind = asked.subagent_type.text().unwrap_or("general-purpose");
            let agent = self.session.state().catalog.agents.get(kind).cloned();
            let Some(agent) = agent else {
                let names: Vec<String> = self.session.state().catalog.agents.keys().cloned().collect();
                return Output::failure(format!("There is no subagent {kind}; there are {}", names.join(", ")));
            };
            let chosen = input["model"].as_str().map(str::to_owned);
            self.work(agent, asked, chosen, place, call).await
        })
    }
}

impl AgentTool {
    async fn work(
        &self,
        agent: Agent,
        asked: AgentInput,
        chosen: Option<String>,
        place: &Place,
        call: &Call,
    ) -> Output {
        let id = AgentId::from(format!("a{}", &fresh().as_str().replace('-', "")[..16]));
        let sub = Sub {
            call: call.id.clone(),
            id,
            kind: agent.name.clone(),
            description: asked.description.into_option().unwrap_or_default(),
            run: format!("{:x}-{}", millis(), &fresh().as_str()[..8]),
        };
        let session = &self.session;
        let task = Task { session, sub: sub.clone(), began: Instant::now() };
        let log = Mutex::new(task.log());
        let own = place.for_subagent();
        let inherited = session.state().model.clone();
        let name = chosen.or(agent.model.clone()).filter(|name| name != "inherit");
        let model = name.map_or(inherited, |name| session.models.resolve(&name));
        let talk = Talk {
            tools: crate::toolbox::for_sub(session, &agent, self.depth + 1),
            system: vec![agent.prompt.clone(), prompt::surroundings(session, &model)],
            model,
            max_turns: None,
            voice: Voice::Sub(sub.clone()),
            log: &log,
            place: &own,
            structured: None,
            cancel: call.cancel.clone(),
            prompt: None,
            asking: Mutex::default(),
            session,
        };
        task.say_started(&asked.prompt, self.depth + 1);
        let base = HookBase { permission_mode: Maybe::Absent, ..talk.hook_base() };
        let input = SubagentStart { base, ..SubagentStart::default() };
        let hooks = session.hook(input, Some(&agent.name), None, &talk.cancel);
        let begun = async { task.begin(&talk, &agent, &asked.prompt, self.depth + 1) };
        if let (_, Err(error)) = tokio::join!(hooks, begun) {
            return Output::failure(error.to_string());
        }
        let mut count = Count::new();
        let end = turn::run(&talk, &mut count).await;
        let used = count.last_usage().map(filled).unwrap_or_default();
        let report = report(&end);
        let status = if report.is_ok() { "completed" } else { "failed" };
        task.say_ended(status, report.as_ref().unwrap_or_else(|text| text), used, &count);
        // The file is whole before the call is answered.
        let closed = talk.log().flush().and_then(|()| task.write_meta(&agent, self.depth + 1, true));
        match (report, closed) {
            (Err(text), _) => Output::failure(text),
            (Ok(_), Err(error)) => Output::failure(error.to_string()),
            (Ok(text), Ok(())) => task.answered(text, &agent, &asked.prompt, &talk.model, used, &count),
        }
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

impl Task<'_> {
    fn log(&self) -> Log {
        let main = self.session.log();
        let path = main.path().with_extension("").join("subagents").join(format!("agent-{}.jsonl", self.sub.id));
        let facts = Facts { agent_id: Some(self.sub.id.clone()), ..main.facts().clone() };
        Log::new(path, facts, Durability::default(), !self.session.options.no_persistence)
    }

    fn begin(&self, talk: &Talk<'_>, agent: &Agent, asked: &str, depth: u64) -> Result<(), AppendError> {
        let mut user = factory::user(asked, &mut Clock);
        user.prompt_id = self.session.prompt_id();
        let mut entries = vec![Entry::User(Box::new(user.clone()))];
        let files = memory::find(&self.session.config, self.session.place.root(), &self.session.sources);
        entries.extend(prompt::instructions(&files));
        talk.log().record(entries)?;
        user.message.content = Content::Blocks(vec![Block::new_text(asked)]);
        talk.say_user(&user, None);
        self.write_meta(agent, depth, false)
    }

    /// Writes the file beside the subagent's lines.
    fn write_meta(&self, agent: &Agent, depth: u64, finished: bool) -> Result<(), AppendError> {
        if self.session.options.no_persistence {
            return Ok(());
        }
        let path = self.log().path().with_extension("meta.json");
        let meta = SubagentMeta {
            agent_type: Maybe::Value(agent.name.clone()),
            description: Maybe::Value(self.sub.description.clone()),
            tool_use_id: Maybe::Value(self.sub.call.clone()),
            spawn_depth: Maybe::Value(depth),
            is_built_in: Maybe::Value(agent.builtin),
            finished: finished.then_some(true).into(),
            ..SubagentMeta::default()
        };
        std::fs::write(&path, Json::of(&meta).text()).map_err(|source| AppendError::Create { path, source })
    }

    fn say_started(&self, prompt: &str, depth: u64) {
        let mut envelope = self.session.output.envelope();
        envelope.subagent_type = Maybe::Value(self.sub.kind.clone());
        self.session.say(System::TaskStarted(Box::new(live::TaskStarted {
            task_id: Maybe::Value(self.sub.id.clone()),
            run_id: Maybe::Value(self.sub.run.clone()),
            tool_use_id: Maybe::Value(self.sub.call.clone()),
            description: Maybe::Value(self.sub.description.clone()),
            task_type: Maybe::Value("local_agent".to_owned()),
            is_backgrounded: Maybe::Value(false),
            prompt: Maybe::Value(prompt.to_owned()),
            spawn_depth: Maybe::Value(depth),
            envelope,
            ..live::TaskStarted::default()
        })));
    }

    fn say_ended(&self, status: &str, summary: &str, used: u64, count: &Count) {
        let patch = TaskPatch { status: status.to_owned(), end_time: Maybe::Value(millis()), ..TaskPatch::default() };
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
            status: Maybe::Value(status.to_owned()),
            output_file: Maybe::Value(String::new()),
            summary: Maybe::Value(summary.to_owned()),
            usage: Maybe::Value(Json::of(&usage)),
            envelope: self.session.output.envelope(),
            ..live::TaskNotification::default()
        })));
    }

    fn answered(&self, text: String, agent: &Agent, prompt: &str, model: &str, used: u64, count: &Count) -> Output {
        let blocks = vec![Block::new_text(text)];
        let raw = AgentOutput {
            agent_id: Maybe::Value(self.sub.id.clone()),
            status: Maybe::Value("completed".to_owned()),
            prompt: Maybe::Value(prompt.to_owned()),
            agent_type: Maybe::Value(agent.name.clone()),
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

//! Carrying requests of the host out.

use std::sync::Arc;
use std::time::Instant;

use quipu_message::control::answer::{self, Interrupted};
use quipu_message::control::{ControlRequest, ControlResponse, Failure, RequestBody, ResponseBody, request};
use quipu_message::system::{System, live};
use quipu_message::{Entry, Json, Maybe, ToolUseId};
use serde::Serialize;

use super::{answers, change};
use crate::input::Prompt;
use crate::mcp::ServersSet;
use crate::permission::Mode;
use crate::session::Session;

/// What a request gave, or why not; and what is said after the answer.
type Served = Result<(Option<Json>, Vec<Entry>), Refused>;

/// Why a request was not carried out.
struct Refused {
    error: String,
    code: Option<&'static str>,
}

impl<T: Into<String>> From<T> for Refused {
    fn from(error: T) -> Self {
        Self { error: error.into(), code: None }
    }
}

fn gave(answer: &impl Serialize) -> Served {
    Ok((Some(Json::of(answer)), Vec::new()))
}

fn done() -> Served {
    Ok((None, Vec::new()))
}

/// What was noted in the session file is answered when it is written.
async fn noted(session: &Session) -> Served {
    session.noted().await.map_err(|error| Refused::from(error.to_string())).and_then(|()| done())
}

/// What was only done, or why not.
trait IntoServed {
    fn into_served(self) -> Served;
}

impl IntoServed for Result<(), String> {
    fn into_served(self) -> Served {
        self.map_err(Refused::from).and_then(|()| done())
    }
}

/// Breaks the running turn off, whether or not there is one.
pub(super) fn interrupt(session: &Session, request: &ControlRequest) -> ControlResponse {
    let drop_queued = match &request.request {
        RequestBody::Interrupt(body) => body.cancel_queued.is_true(),
        _ => false,
    };
    let cancelled = drop_queued.then(|| {
        let dropped = session.queue.clear();
        dropped.iter().for_each(|prompt| taken_back(session, prompt));
        dropped.into_iter().filter_map(|prompt| prompt.uuid).collect()
    });
    session.interrupt();
    // Whoever interrupts waits for nothing more.
    if !session.held().is_empty() {
        crate::ending::say_held(session);
        if session.state().turn.is_none() {
            session.now_doing("idle");
        }
    }
    let answer =
        Interrupted { still_queued: session.queue.uuids(), cancelled: cancelled.into(), ..Interrupted::default() };
    ControlResponse::success(&request.request_id, Some(Json::of(&answer)))
}

/// Notes that the host takes words back, so that no resume brings them up.
fn taken_back(session: &Session, prompt: &Prompt) {
    // A file that cannot be written ends the turn that needs it.
    let _ = session.note_queue("remove", Some(prompt), Some("cancelled"));
}

/// Carries a request out.
pub(super) async fn serve(session: &Arc<Session>, request: &ControlRequest) -> (ControlResponse, Vec<Entry>) {
    let id = request.request_id.clone();
    match dispatch(session, request).await {
        Some(Ok((answer, after))) => (ControlResponse::success(id, answer), after),
        Some(Err(Refused { error, code })) => {
            let body =
                Failure { request_id: id, error, error_code: code.map(str::to_owned).into(), ..Failure::default() };
            let response = ResponseBody::Error(Box::new(body));
            (ControlResponse { response, ..ControlResponse::default() }, Vec::new())
        }
        None => (ControlResponse::unsupported(request), Vec::new()),
    }
}

async fn dispatch(session: &Arc<Session>, request: &ControlRequest) -> Option<Served> {
    Some(match &request.request {
        RequestBody::Initialize(body) => initialize(session, body).await,
        RequestBody::SetPermissionMode(body) => set_mode(session, &body.mode),
        RequestBody::SetModel(body) => Ok(set_model(session, body.model.text())),
        RequestBody::SetMaxThinkingTokens(body) => {
            set_thinking(session, body);
            done()
        }
        RequestBody::McpStatus(_) => gave(&answer::McpServers { servers: session.mcp.list(), ..Default::default() }),
        RequestBody::McpSetServers(body) => mcp_set(session, &body.servers).await,
        RequestBody::McpReconnect(body) => mcp_again(session, &body.server_name, true).await,
        RequestBody::McpToggle(body) => mcp_again(session, &body.server_name, body.enabled).await,
        RequestBody::McpCall(body) => mcp_call(session, body).await,
        RequestBody::McpReadResource(body) => mcp_read(session, body).await,
        RequestBody::McpMessage(body) => {
            if !session.mcp.heard(&body.server_name, &body.message) {
                return Some(Err(format!("Server not found: {}", body.server_name).into()));
            }
            session.mcp.connect_all(session).await;
            gave(&answer::Nothing::default())
        }
        RequestBody::RewindFiles(body) => rewind(session, body),
        RequestBody::GetContextUsage(_) => gave(&crate::context::usage(session)),
        RequestBody::GetUsage(_) => gave(&answers::usage(session)),
        RequestBody::GetSessionCost(_) => {
            gave(&answer::SessionCost { text: session.ledger().words(), ..Default::default() })
        }
        RequestBody::ListModels(_) => gave(&answer::Models { models: session.models.list(), ..Default::default() }),
        RequestBody::GetSettings(_) => gave(&answers::settings(session)),
        RequestBody::GetHooksListing(_) => gave(&answers::hooks(session)),
        RequestBody::ListPermissionRules(_) => gave(&answers::rules(session)),
        RequestBody::GetBinaryVersion(_) => {
            gave(&answer::BinaryVersion { version: crate::VERSION.to_owned(), ..Default::default() })
        }
        RequestBody::ReadFile(body) => match answers::read_file(session, &body.path) {
            Some(file) => gave(&file),
            None => Err(format!("read denied: {}", body.path).into()),
        },
        RequestBody::FileSuggestions(body) => gave(&answers::suggest(session, &body.query)),
        RequestBody::SeedReadState(body) => {
            answers::seed(session, &body.path);
            done()
        }
        RequestBody::RenameSession(body) => match crate::agent::rename(session, &body.title) {
            Ok(()) => noted(session).await,
            Err(error) => Err(error.to_string().into()),
        },
        RequestBody::StopTask(body) => {
            // A task that is not there is as good as stopped.
            session.place.tasks().stop(&body.task_id);
            gave(&answer::Nothing::default())
        }
        RequestBody::BackgroundTasks(body) => {
            move_aside(session, body.tool_use_id.get());
            gave(&answer::Nothing::default())
        }
        RequestBody::GetTaskOutput(body) => match answers::task_output(session, &body.task_id) {
            Some(output) => gave(&output),
            None => Err(format!("there is no task {}", body.task_id).into()),
        },
        RequestBody::ReloadPlugins(_) => gave(&answers::reloaded(session)),
        RequestBody::ReloadSkills(_) => gave(&answers::skills(session)),
        RequestBody::ReloadOutputStyles(_) => {
            crate::catalog::reload(session);
            let available_output_styles = crate::output_style::names(&session.state().catalog.styles);
            gave(&answer::OutputStyles { available_output_styles, ..Default::default() })
        }
        RequestBody::ApplyFlagSettings(body) => change::flag_settings(session, body.settings.get()).into_served(),
        RequestBody::UpdateSettings(body) => change::update_settings(session, body).into_served(),
        RequestBody::RegisterRepoRoot(body) => change::register_root(session, body).await.into_served(),
        RequestBody::SetHasSubscribers(_) => done(),
        RequestBody::CancelAsyncMessage(body) => {
            let dropped = body.message_uuid.get().and_then(|uuid| session.queue.cancel(uuid));
            dropped.iter().for_each(|prompt| taken_back(session, prompt));
            let cancelled = dropped.is_some();
            if let Err(refused) = noted(session).await {
                return Some(Err(refused));
            }
            gave(&answer::Cancelled { cancelled, ..Default::default() })
        }
        RequestBody::GenerateSessionTitle(body) => title(session, body).await,
        RequestBody::SideQuestion(body) => side_question(session, &request.request_id, &body.question).await,
        RequestBody::EndSession(_) => {
            session.queue.close();
            session.queue.expect_nothing();
            done()
        }
        // Only hosts are asked these.
        RequestBody::CanUseTool(_)
        | RequestBody::HookCallback(_)
        | RequestBody::Elicitation(_)
        | RequestBody::UserDialog(_)
        | RequestBody::Interrupt(_)
        | RequestBody::SetColor(_)
        | RequestBody::Unknown(_) => return None,
    })
}

async fn initialize(session: &Arc<Session>, body: &request::Initialize) -> Served {
    let bad = |what: &str, error: serde_json::Error| Refused::from(format!("cannot read {what}: {error}"));
    if let Some(hooks) = body.hooks.get() {
        session.hooks.add_callbacks(hooks).map_err(|error| bad("hooks", error))?;
    }
    if let Some(agents) = body.agents.get().filter(|json| !json.is_null()) {
        session.state().catalog.add_agents(agents.text()).map_err(|error| bad("agents", error))?;
    }
    run_as_agent(session)?;
    if let Some(schema) = body.json_schema.get().filter(|json| !json.is_null()) {
        crate::structured::Structured::new(schema).map_err(|error| Refused::from(error.to_string()))?;
        session.state().json_schema = Some(schema.text().to_owned());
    }
    if let Some(text) = body.system_prompt.get().filter(|json| !json.is_null()).map(Json::words) {
        session.state().system_prompt = Some(text);
    }
    if let Some(names) = body.skills.get() {
        session.state().catalog.keep_skills(names);
    }
    if let Some(all) = body.forward_subagent_text.get() {
        session.state().subagent_text = *all;
    }
    if let Some(text) = body.append_system_prompt.text() {
        session.state().append_prompt = Some(text.to_owned());
    }
    if let Some(records) = body.system_prompt_snapshot.get() {
        session.state().records_system = *records;
    }
    let servers: Vec<String> = body.sdk_mcp_servers.get().and_then(|json| json.read().ok()).unwrap_or_default();
    session.mcp.add_inside(&servers, body.sdk_mcp_server_manifests.get());
    session.mcp.connect_all(session).await;
    let again = std::mem::replace(&mut session.state().greeted, true);
    // Whoever comes back has missed what changed.
    let after = again.then(|| Entry::System(Box::new(crate::background::running(session))));
    Ok((Some(Json::of(&answers::initialized(session, body.hooks.is_value()))), after.into_iter().collect()))
}

/// Takes the agent of `--agent` up when the host has only now described it.
fn run_as_agent(session: &Session) -> Result<(), Refused> {
    let Some(name) = &session.options.agent else { return Ok(()) };
    let mut state = session.state();
    if state.agent.is_none() {
        let agent = state.catalog.agent(name).map_err(|error| Refused::from(format!("--agent: {error}")))?.clone();
        if let (Some(model), None) = (agent.own_model(), &session.options.model) {
            state.model = session.models.resolve(model);
        }
        state.agent = Some(agent);
    }
    Ok(())
}

/// Sets how far to think and how that is shown: `null` is as at the start, what is left
/// out stays.
fn set_thinking(session: &Session, body: &request::SetMaxThinkingTokens) {
    let mut state = session.state();
    match &body.max_thinking_tokens {
        Maybe::Value(tokens) => state.max_thinking = Some(*tokens),
        Maybe::Null => state.max_thinking = session.options.max_thinking_tokens,
        Maybe::Absent => {}
    }
    match &body.thinking_display {
        Maybe::Value(display) => state.thinking_display = Some(display.clone()),
        Maybe::Null => state.thinking_display = None,
        Maybe::Absent => {}
    }
}

/// Lets one call go on in the background, or all; calls that cannot, stay.
fn move_aside(session: &Session, only: Option<&ToolUseId>) {
    let state = session.state();
    let chosen = state.calls.iter().filter(|(id, _)| only.is_none_or(|only| only == id));
    chosen.for_each(|(_, aside)| aside.cancel());
}

fn set_mode(session: &Session, word: &str) -> Served {
    let Some(mode) = Mode::read(word) else {
        let error = "Cannot set permission mode: must be one of acceptEdits, auto, bypassPermissions, default, dontAsk, manual, plan";
        return Err(Refused { error: error.to_owned(), code: Some("invalid_mode") });
    };
    if mode == Mode::BypassPermissions && !session.options.may_skip_permissions {
        let error = "Cannot set permission mode: the session was not started with --dangerously-skip-permissions";
        return Err(Refused { error: error.to_owned(), code: Some("bypass_not_launched") });
    }
    if !session.may_use(mode) {
        let error = format!("Cannot set permission mode: settings or flags of the session disable {mode}");
        return Err(Refused { error, code: Some("invalid_mode") });
    }
    let changed = session.change_mode(mode);
    let status = live::Status {
        status: Maybe::Null,
        permission_mode: Maybe::Value(mode.as_str().to_owned()),
        envelope: session.output.envelope(),
        ..live::Status::default()
    };
    session.tell_auto();
    let after = changed.then(|| Entry::System(Box::new(System::Status(Box::new(status)))));
    let answer = answer::ModeSet { mode: mode.as_str().to_owned(), ..Default::default() };
    Ok((Some(Json::of(&answer)), after.into_iter().collect()))
}

/// Changes the model; the next prompt finds a note of it in the file.
fn set_model(session: &Session, name: Option<&str>) -> (Option<Json>, Vec<Entry>) {
    let (model, before) = session.choose_model(name.unwrap_or("default"));
    if before != model {
        let (line, said) = crate::commands::printed(session, &format!("Set model to `{model}`"));
        let [caveat, command] = crate::commands::lines("model", &model);
        session.output.say(said);
        session.state().pending.extend([caveat, command, line]);
    }
    (Some(Json::of(&answer::ModelSet { model, ..Default::default() })), Vec::new())
}

async fn mcp_set(session: &Arc<Session>, servers: &Json) -> Served {
    let set = session.mcp.set(servers, session).map_err(|error| Refused::from(error.to_string()))?;
    let ServersSet { added, removed, refused, problems } = set;
    problems.into_iter().for_each(|problem| session.warn(problem));
    session.mcp.connect_all(session).await;
    let failed = session.mcp.list().into_iter().filter(|server| added.contains(&server.name));
    let errors = failed.filter_map(|server| Some((server.name, server.error.into_option()?))).chain(refused).collect();
    gave(&answer::McpServersSet { added, removed, errors, ..Default::default() })
}

async fn mcp_again(session: &Arc<Session>, name: &str, enabled: bool) -> Served {
    if !session.mcp.has(name) {
        return Err(format!("Server not found: {name}").into());
    }
    session.mcp.toggle(name, enabled);
    session.mcp.connect_all(session).await;
    done()
}

async fn mcp_call(session: &Arc<Session>, body: &request::McpCall) -> Served {
    let name = body.tool.text().unwrap_or_default();
    let server = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")).map_or(name, |(server, _)| server);
    if !session.mcp.is_connected(server) {
        return Err(format!("MCP server not connected: {server}").into());
    }
    let tool = session.mcp.tools().into_iter().find(|tool| tool.definition().name == name);
    let Some(tool) = tool else { return Err(format!("no tool {name}").into()) };
    let input = body.arguments.get().map(Json::value).unwrap_or_default();
    let output = tool.run(input, &session.place, &crate::tool::Call::new("mcp_call")).await;
    if output.is_error {
        return Err(output.content.to_text().into());
    }
    gave(&output.content)
}

async fn mcp_read(session: &Arc<Session>, body: &request::McpReadResource) -> Served {
    let (name, uri) = (body.server_name.text().unwrap_or_default(), body.uri.text().unwrap_or_default());
    if !uri.starts_with("ui://") {
        return Err("mcp_read_resource: uri must use the ui:// scheme".into());
    }
    let read = session.mcp.read_resource(name, uri).await.map_err(Refused::from)?;
    gave(&read)
}

fn rewind(session: &Session, body: &request::RewindFiles) -> Served {
    let Some(copies) = &session.checkpoints else { return Err("File rewinding is not enabled.".into()) };
    match copies.rewind(&body.user_message_id, body.dry_run.is_true()) {
        None => Err("No file checkpoint found for this message.".into()),
        Some(Err(error)) => Err(error.to_string().into()),
        Some(Ok(rewound)) => gave(&rewound),
    }
}

async fn title(session: &Arc<Session>, body: &request::GenerateSessionTitle) -> Served {
    if session.var("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC").is_some() {
        return gave(&answer::Title { title: Maybe::Null, ..Default::default() });
    }
    let system = "You name conversations. Answer with a title of three to six words and nothing else.";
    let question = body.description.text().unwrap_or_default().to_owned();
    let title = crate::side::ask(session, system, question).await.map_err(|error| error.to_string())?;
    // Some models wrap it up.
    let wrapped = serde_json::from_str::<answer::Title>(&title).ok().and_then(|wrapped| wrapped.title.into_option());
    let title = wrapped.unwrap_or_else(|| title.trim().trim_matches('"').to_owned());
    if body.persist.is_true() {
        answers::keep_title(session, &title).map_err(|error| error.to_string())?;
        noted(session).await?;
    }
    gave(&answer::Title { title: Maybe::Value(title), ..Default::default() })
}

async fn side_question(session: &Arc<Session>, id: &str, question: &str) -> Served {
    session.say(System::ControlRequestProgress(Box::new(live::ControlRequestProgress {
        request_id: Maybe::Value(id.to_owned()),
        status: Maybe::Value("started".to_owned()),
        envelope: session.output.envelope(),
        ..live::ControlRequestProgress::default()
    })));
    let talk = crate::begin::main_talk(session, None, Default::default());
    let mut request = talk.request();
    // The tools stay and are forbidden in words, so that the prompt is read from the cache.
    let note = "<system-reminder>This question stands beside the conversation. Answer it in text, from what you know \
                already; tools cannot be called.</system-reminder>";
    let blocks = vec![quipu_message::Block::new_text(note), quipu_message::Block::new_text(question)];
    request.messages.push(quipu_message::Message::new(quipu_message::Role::User, blocks));
    request.messages = quipu_conversation::normalise(request.messages);
    request.uncached_tail = true;
    let began = Instant::now();
    let answer = session.client.ask(&request).answer().await.map_err(|error| error.to_string())?;
    let usage = answer.message.usage.get().cloned().unwrap_or_default();
    session.ledger().spend(&request.model, &usage, began.elapsed());
    let response = crate::turn::last_words(&answer.message);
    gave(&answer::SideAnswer { response, synthetic: false, ..Default::default() })
}

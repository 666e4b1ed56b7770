//! Handling the control requests of the host.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use quipu_message::control::response::{self, InterruptResponse};
use quipu_message::control::{
    ControlErrorResponse, ControlRequest, ControlResponse, RequestBody, ResponseBody, request,
};
use quipu_message::system::{System, stream_only};
use quipu_message::values::{QueueAction, QueueReason, SessionActivity};
use quipu_message::{Entry, Json, Maybe};
use serde::Serialize;

use super::{responses, settings_change};
use crate::input::Prompt;
use crate::mcp::ServersSet;
use crate::permission::EffectiveMode;
use crate::session::Session;
use crate::spans::ChatSpan;

/// The response to a request and the entries to emit after it, or an error.
type ControlResult = Result<(Option<Json>, Vec<Entry>), RequestError>;

/// Why a request failed.
struct RequestError {
    error: String,
    code: Option<&'static str>,
}

impl<T: Into<String>> From<T> for RequestError {
    fn from(error: T) -> Self {
        Self { error: error.into(), code: None }
    }
}

fn respond_with(answer: &impl Serialize) -> ControlResult {
    Ok((Some(Json::from_serialize(answer)), Vec::new()))
}

fn respond_empty() -> ControlResult {
    Ok((None, Vec::new()))
}

/// An empty response, once everything recorded so far is written.
async fn respond_when_written(session: &Session) -> ControlResult {
    session
        .wait_for_bookkeeping()
        .await
        .map_err(|error| RequestError::from(error.to_string()))
        .and_then(|()| respond_empty())
}

/// Conversion for requests whose response is empty.
trait IntoControlResult {
    fn into_control_result(self) -> ControlResult;
}

impl IntoControlResult for Result<(), String> {
    fn into_control_result(self) -> ControlResult {
        self.map_err(RequestError::from).and_then(|()| respond_empty())
    }
}

/// Responds to the request, then interrupts the running turn, if there is one.
///
/// The response comes first, so that hosts read it before the last lines of the turn.
pub(super) fn interrupt(session: &Session, request: &ControlRequest) {
    let drop_queued = match &request.request {
        RequestBody::Interrupt(body) => body.cancel_queued.is_true(),
        _ => false,
    };
    let cancelled = drop_queued.then(|| {
        let dropped = session.queue.cancel_prompts();
        dropped.iter().for_each(|prompt| record_cancelled(session, prompt));
        dropped.into_iter().filter_map(|prompt| prompt.uuid).collect()
    });
    let answer = InterruptResponse {
        still_queued: session.queue.uuids(),
        cancelled: cancelled.into(),
        ..InterruptResponse::default()
    };
    let response = ControlResponse::success(&request.request_id, Some(Json::from_serialize(&answer)));
    session.output.emit(Entry::ControlResponse(Box::new(response)));
    session.interrupt();
    // A host that interrupts does not wait for background subagents any more.
    if !session.held_results().is_empty() {
        crate::turn_result::emit_held(session);
        if !session.activity.is_turn_running() {
            session.set_activity(SessionActivity::Idle);
        }
    }
}

/// Records that the host cancelled a prompt, so that no resume brings it up.
fn record_cancelled(session: &Session, prompt: &Prompt) {
    // If the transcript cannot be written, the next turn reports it.
    let _ = session.record_queue_operation(QueueAction::Remove, Some(prompt), Some(QueueReason::Cancelled));
}

/// Handles a request. Returns the response and the entries to emit after it.
pub(super) async fn handle_request(session: &Arc<Session>, request: &ControlRequest) -> (ControlResponse, Vec<Entry>) {
    let id = request.request_id.clone();
    match dispatch(session, request).await {
        Some(Ok((answer, after))) => (ControlResponse::success(id, answer), after),
        Some(Err(RequestError { error, code })) => {
            let body = ControlErrorResponse {
                request_id: id,
                error,
                error_code: code.map(str::to_owned).into(),
                ..ControlErrorResponse::default()
            };
            let response = ResponseBody::Error(Box::new(body));
            (ControlResponse { response, ..ControlResponse::default() }, Vec::new())
        }
        None => (ControlResponse::unsupported(request), Vec::new()),
    }
}

async fn dispatch(session: &Arc<Session>, request: &ControlRequest) -> Option<ControlResult> {
    Some(match &request.request {
        RequestBody::Initialize(body) => initialize(session, body).await,
        RequestBody::SetPermissionMode(body) => set_permission_mode(session, body.mode.as_str()),
        RequestBody::SetModel(body) => Ok(set_model(session, body.model.text())),
        RequestBody::SetMaxThinkingTokens(body) => {
            set_thinking(session, body);
            respond_empty()
        }
        RequestBody::McpStatus(_) => {
            respond_with(&response::McpStatusResponse { servers: session.mcp.list_servers(), ..Default::default() })
        }
        RequestBody::McpSetServers(body) => set_mcp_servers(session, &body.servers).await,
        RequestBody::McpReconnect(body) => reconnect_mcp_server(session, &body.server_name, true).await,
        RequestBody::McpToggle(body) => reconnect_mcp_server(session, &body.server_name, body.enabled).await,
        RequestBody::McpCall(body) => call_mcp_tool(session, body).await,
        RequestBody::McpReadResource(body) => read_mcp_resource(session, body).await,
        RequestBody::McpMessage(body) => {
            if !session.mcp.handle_notification(&body.server_name, &body.message) {
                return Some(Err(format!("Server not found: {}", body.server_name).into()));
            }
            session.connect_mcp().await;
            respond_with(&response::EmptyResponse::default())
        }
        RequestBody::RewindFiles(body) => rewind_files(session, body),
        RequestBody::GetContextUsage(_) => respond_with(&crate::context_usage::context_usage(session)),
        RequestBody::GetUsage(_) => respond_with(&responses::usage_response(session)),
        RequestBody::GetSessionCost(_) => {
            respond_with(&response::GetSessionCostResponse { text: session.usage().to_text(), ..Default::default() })
        }
        RequestBody::ListModels(_) => {
            respond_with(&response::ListModelsResponse { models: session.models.list_models(), ..Default::default() })
        }
        RequestBody::GetSettings(_) => respond_with(&responses::settings_response(session)),
        RequestBody::GetHooksListing(_) => respond_with(&responses::hooks_response(session)),
        RequestBody::ListPermissionRules(_) => respond_with(&responses::permission_rules_response(session)),
        RequestBody::GetBinaryVersion(_) => respond_with(&response::GetBinaryVersionResponse {
            version: crate::VERSION.to_owned(),
            ..Default::default()
        }),
        RequestBody::ReadFile(body) => match responses::read_file(session, &body.path) {
            Some(file) => respond_with(&file),
            None => Err(format!("read denied: {}", body.path).into()),
        },
        RequestBody::FileSuggestions(body) => respond_with(&responses::suggest_files(session, &body.query)),
        RequestBody::SeedReadState(body) => {
            responses::mark_file_seen(session, &body.path);
            respond_empty()
        }
        RequestBody::RenameSession(body) => match session.rename(&body.title) {
            Ok(()) => respond_when_written(session).await,
            Err(error) => Err(error.to_string().into()),
        },
        RequestBody::StopTask(body) => {
            // A task that does not exist counts as stopped.
            session.workspace.tasks().stop(&body.task_id);
            respond_with(&response::EmptyResponse::default())
        }
        RequestBody::BackgroundTasks(body) => {
            session.activity.move_to_background(body.tool_use_id.get());
            respond_with(&response::EmptyResponse::default())
        }
        RequestBody::GetTaskOutput(body) => match responses::task_output(session, &body.task_id) {
            Some(output) => respond_with(&output),
            None => Err(format!("there is no task {}", body.task_id).into()),
        },
        RequestBody::ReloadPlugins(_) => respond_with(&responses::reload_plugins(session)),
        RequestBody::ReloadSkills(_) => respond_with(&responses::reload_skills(session)),
        RequestBody::ReloadOutputStyles(_) => {
            session.reload_definitions();
            let available_output_styles = crate::output_style::style_names(&session.definitions().output_styles);
            respond_with(&response::ReloadOutputStylesResponse { available_output_styles, ..Default::default() })
        }
        RequestBody::ApplyFlagSettings(body) => {
            settings_change::apply_flag_settings(session, body.settings.get()).into_control_result()
        }
        RequestBody::UpdateSettings(body) => settings_change::update_settings(session, body).into_control_result(),
        RequestBody::RegisterRepoRoot(body) => {
            settings_change::register_root(session, body).await.into_control_result()
        }
        RequestBody::SetHasSubscribers(_) => respond_empty(),
        RequestBody::CancelAsyncMessage(body) => {
            let dropped = body.message_uuid.get().and_then(|uuid| session.queue.cancel(uuid));
            dropped.iter().for_each(|prompt| record_cancelled(session, prompt));
            let cancelled = dropped.is_some();
            if let Err(refused) = respond_when_written(session).await {
                return Some(Err(refused));
            }
            respond_with(&response::CancelAsyncMessageResponse { cancelled, ..Default::default() })
        }
        RequestBody::GenerateSessionTitle(body) => generate_title(session, body).await,
        RequestBody::SideQuestion(body) => answer_side_question(session, &request.request_id, &body.question).await,
        RequestBody::EndSession(_) => {
            session.queue.close();
            session.queue.clear_all_expected();
            respond_empty()
        }
        // Requests that only hosts answer, and unknown ones.
        _ => return None,
    })
}

async fn initialize(session: &Arc<Session>, body: &request::Initialize) -> ControlResult {
    let bad = |what: &str, error: serde_json::Error| RequestError::from(format!("cannot read {what}: {error}"));
    if let Some(hooks) = body.hooks.get() {
        session.hooks.add_callbacks(hooks).map_err(|error| bad("hooks", error))?;
    }
    if let Some(agents) = body.agents.get().filter(|json| !json.is_null()) {
        session.definitions().add_agents_json(agents.text()).map_err(|error| bad("agents", error))?;
    }
    apply_agent_option(session)?;
    if let Some(schema) = body.json_schema.get().filter(|json| !json.is_null()) {
        crate::structured_output::StructuredOutputTool::new(schema)
            .map_err(|error| RequestError::from(error.to_string()))?;
        session.agent_config().json_schema = Some(schema.text().to_owned());
    }
    if let Some(text) = body.system_prompt.get().filter(|json| !json.is_null()).map(Json::extract_text) {
        session.agent_config().system_prompt = Some(text);
    }
    if let Some(names) = body.skills.get() {
        session.definitions().restrict_skills(names);
    }
    if let Some(all) = body.forward_subagent_text.get() {
        session.agent_config().forward_subagent_text = *all;
    }
    if let Some(text) = body.append_system_prompt.text() {
        session.agent_config().append_system_prompt = Some(text.to_owned());
    }
    if let Some(records) = body.system_prompt_snapshot.get() {
        session.agent_config().records_system_prompt = *records;
    }
    let servers: Vec<String> = body.sdk_mcp_servers.get().and_then(|json| json.read().ok()).unwrap_or_default();
    let denied = session.mcp.add_sdk_servers(&servers, body.sdk_mcp_server_manifests.get(), &session.settings());
    denied.into_iter().for_each(|problem| session.warn(problem));
    session.connect_mcp().await;
    let again = session.activity.mark_initialized();
    // A host that reconnects has missed earlier changes.
    let after = again.then(|| Entry::System(Box::new(crate::background::running_tasks_entry(session))));
    Ok((
        Some(Json::from_serialize(&responses::initialize_response(session, body.hooks.is_value()))),
        after.into_iter().collect(),
    ))
}

/// Applies `--agent` if `initialize` has just defined that agent.
fn apply_agent_option(session: &Session) -> Result<(), RequestError> {
    let Some(name) = &session.options.agent else { return Ok(()) };
    if session.agent_config().agent.is_none() {
        let found = session.definitions().find_agent(name).cloned();
        let agent = found.map_err(|error| RequestError::from(format!("--agent: {error}")))?;
        if let (Some(model), None) = (agent.own_model(), &session.options.model) {
            let model = session.models.resolve(model);
            session.model_choice.change(|choice| choice.model = model);
        }
        session.agent_config().agent = Some(agent);
    }
    Ok(())
}

/// Sets the thinking budget and display: `null` restores the start value, absent keeps the current one.
fn set_thinking(session: &Session, body: &request::SetMaxThinkingTokens) {
    session.model_choice.change(|choice| {
        match &body.max_thinking_tokens {
            Maybe::Value(tokens) => choice.max_thinking_tokens = Some(*tokens),
            Maybe::Null => choice.max_thinking_tokens = session.options.max_thinking_tokens,
            Maybe::Absent => {}
        }
        match &body.thinking_display {
            Maybe::Value(display) => choice.thinking_display = Some(display.clone()),
            Maybe::Null => choice.thinking_display = None,
            Maybe::Absent => {}
        }
    });
}

fn set_permission_mode(session: &Session, word: &str) -> ControlResult {
    let Some(mode) = EffectiveMode::parse(word) else {
        let error = "Cannot set permission mode: must be one of acceptEdits, auto, bypassPermissions, default, dontAsk, manual, plan";
        return Err(RequestError { error: error.to_owned(), code: Some("invalid_mode") });
    };
    if mode == EffectiveMode::BypassPermissions && !session.options.may_skip_permissions {
        let error = "Cannot set permission mode: the session was not started with --dangerously-skip-permissions";
        return Err(RequestError { error: error.to_owned(), code: Some("bypass_not_launched") });
    }
    if !session.can_use_mode(mode) {
        let error = format!("Cannot set permission mode: settings or flags of the session disable {mode}");
        return Err(RequestError { error, code: Some("invalid_mode") });
    }
    let changed = session.permissions.replace_mode(mode);
    let status = stream_only::Status {
        status: Maybe::Null,
        permission_mode: Maybe::Value(mode.into()),
        envelope: session.output.envelope(),
        ..stream_only::Status::default()
    };
    session.announce_auto_mode();
    let after = changed.then(|| Entry::System(Box::new(System::Status(Box::new(status)))));
    let answer = response::SetPermissionModeResponse { mode: mode.into(), ..Default::default() };
    Ok((Some(Json::from_serialize(&answer)), after.into_iter().collect()))
}

/// Changes the model. The change is recorded with the next prompt.
fn set_model(session: &Session, name: Option<&str>) -> (Option<Json>, Vec<Entry>) {
    let (model, before) = session.set_model(name.unwrap_or("default"));
    if before != model {
        let (line, said) = crate::commands::stdout_entries(session, &format!("Set model to `{model}`"));
        let [caveat, command] = crate::commands::command_entries("model", &model);
        session.output.emit(said);
        session.activity.add_pending([caveat, command, line]);
    }
    (Some(Json::from_serialize(&response::SetModelResponse { model, ..Default::default() })), Vec::new())
}

async fn set_mcp_servers(session: &Arc<Session>, servers: &Json) -> ControlResult {
    let set = session
        .mcp
        .set_servers(servers, &session.env, session.options.safe_mode, &session.settings())
        .map_err(|error| RequestError::from(error.to_string()))?;
    let ServersSet { added, removed, refused, problems } = set;
    problems.into_iter().for_each(|problem| session.warn(problem));
    session.guard_mcp_programs();
    session.connect_mcp().await;
    let failed = session.mcp.list_servers().into_iter().filter(|server| added.contains(&server.name));
    let errors = failed.filter_map(|server| Some((server.name, server.error.into_option()?))).chain(refused).collect();
    respond_with(&response::McpSetServersResponse { added, removed, errors, ..Default::default() })
}

async fn reconnect_mcp_server(session: &Arc<Session>, name: &str, enabled: bool) -> ControlResult {
    if !session.mcp.has_server(name) {
        return Err(format!("Server not found: {name}").into());
    }
    session.mcp.set_enabled(name, enabled);
    session.connect_mcp().await;
    respond_empty()
}

async fn call_mcp_tool(session: &Arc<Session>, body: &request::McpCall) -> ControlResult {
    let name = body.tool.get().cloned().unwrap_or_default();
    let server = name.mcp().map_or(name.as_str(), |(server, _)| server);
    if !session.mcp.is_connected(server) {
        return Err(format!("MCP server not connected: {server}").into());
    }
    let tool = session.mcp.tools().into_iter().find(|tool| tool.name() == name);
    let Some(tool) = tool else { return Err(format!("no tool {name}").into()) };
    let input = body.arguments.get().map(Json::to_value).unwrap_or_default();
    let output = tool.run(input, &session.workspace, &crate::tool::CallContext::new("mcp_call")).await;
    if output.is_error {
        return Err(output.content.to_text().into());
    }
    respond_with(&output.content)
}

async fn read_mcp_resource(session: &Arc<Session>, body: &request::McpReadResource) -> ControlResult {
    let (name, uri) = (body.server_name.text().unwrap_or_default(), body.uri.text().unwrap_or_default());
    if !uri.starts_with("ui://") {
        return Err("mcp_read_resource: uri must use the ui:// scheme".into());
    }
    let read = session.mcp.read_resource(name, uri).await.map_err(RequestError::from)?;
    respond_with(&read)
}

fn rewind_files(session: &Arc<Session>, body: &request::RewindFiles) -> ControlResult {
    let Some(checkpoints) = &session.checkpoints else { return Err("File rewinding is not enabled.".into()) };
    let can_edit = crate::tool_selection::can_edit_files(session);
    let may_change = |path: &Path| can_edit && session.may_edit(path);
    match checkpoints.rewind(&body.user_message_id, body.dry_run.is_true(), &session.workspace, may_change) {
        None => Err("No file checkpoint found for this message.".into()),
        Some(Err(error)) => Err(error.to_string().into()),
        Some(Ok(rewound)) => respond_with(&rewound),
    }
}

async fn generate_title(session: &Arc<Session>, body: &request::GenerateSessionTitle) -> ControlResult {
    if session.var("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC").is_some() {
        return respond_with(&response::GenerateSessionTitleResponse { title: Maybe::Null, ..Default::default() });
    }
    let system = "You name conversations. Answer with a title of three to six words and nothing else.";
    let question = body.description.text().unwrap_or_default().to_owned();
    let title =
        crate::side_calls::ask_small_model(session, system, question).await.map_err(|error| error.to_string())?;
    // Some models answer with JSON.
    let wrapped = serde_json::from_str::<response::GenerateSessionTitleResponse>(&title)
        .ok()
        .and_then(|wrapped| wrapped.title.into_option());
    let title = wrapped.unwrap_or_else(|| title.trim().trim_matches('"').to_owned());
    if body.persist.is_true() {
        responses::record_ai_title(session, &title).map_err(|error| error.to_string())?;
        respond_when_written(session).await?;
    }
    respond_with(&response::GenerateSessionTitleResponse { title: Maybe::Value(title), ..Default::default() })
}

async fn answer_side_question(session: &Arc<Session>, id: &str, question: &str) -> ControlResult {
    session.emit_system(System::ControlRequestProgress(Box::new(stream_only::ControlRequestProgress {
        request_id: Maybe::Value(id.to_owned()),
        status: Maybe::Value("started".to_owned()),
        envelope: session.output.envelope(),
        ..stream_only::ControlRequestProgress::default()
    })));
    let ctx = crate::main_context::main_context(session, None, Default::default());
    let mut request = ctx.full_request();
    // The tools stay in the request, so that the prompt cache applies; the text forbids them.
    let note = "<system-reminder>This question is not part of the conversation. Answer it in text, from what you know \
                already; tools cannot be called.</system-reminder>";
    let blocks = vec![quipu_message::Block::new_text(note), quipu_message::Block::new_text(question)];
    request.messages.push(quipu_message::Message::new(quipu_message::Role::User, blocks));
    request.messages = quipu_conversation::normalise(request.messages);
    request.has_uncached_tail = true;
    let started_at = Instant::now();
    let span = ChatSpan::start(session, ctx.span, &request.model, request.max_tokens);
    let answer = session.client.call(&request).response().await.map_err(|error| error.to_string())?;
    let usage = answer.message.usage.get().cloned().unwrap_or_default();
    session.usage().add_api_call(&request.model, &usage, started_at.elapsed());
    span.complete(&answer.message, answer.request_id.as_ref());
    let response = crate::side_calls::last_text(&answer.message);
    respond_with(&response::SideQuestionResponse { response, synthetic: false, ..Default::default() })
}

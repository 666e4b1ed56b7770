//! The lines on stdin.

use quipu_message::context_ref::{self, ContextRef};
use quipu_message::control::{ControlRequest, ControlResponse, RequestBody};
use quipu_message::user_assistant::{MessageOrigin, User};
use quipu_message::values::{CommandMode, OriginKind};
use quipu_message::{Content, Entry, Maybe, ReadError, Role, Uuid, View};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, BufReader};

use crate::error::{EngineError, InputError, MAX_LINE_BYTES};
use crate::options::{Options, PluginDir};

/// A prompt from the user or the host.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Prompt {
    /// UUID that the host gave the prompt.
    pub uuid: Option<Uuid>,
    /// The text, images and other blocks.
    pub content: Content,
    /// The context references that the host attached; `content` begins with their block.
    pub contexts: Vec<ContextRef>,
    /// Whether slash commands and `@` mentions in it are plain text.
    pub verbatim: bool,
    /// The background task whose end it reports; `None` for other prompts.
    pub task_notice: Option<TaskNotice>,
    /// Whether the host states that a user typed it.
    pub is_typed: bool,
}

/// The end of a background task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskNotice {
    /// Id of the task.
    pub task_id: String,
    /// Id of the run of the task.
    pub run_id: String,
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        let contexts = Vec::new();
        Self { uuid: None, content: Content::Text(text), contexts, verbatim: false, task_notice: None, is_typed: false }
    }
}

/// A parsed line of stdin.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum HostInput {
    /// A prompt for the model.
    Prompt(Prompt),
    /// A control request from the host.
    ControlRequest(Box<ControlRequest>),
    /// The response to a control request of the agent.
    ControlResponse(Box<ControlResponse>),
    /// The host cancels a control request; its id.
    ControlCancel(String),
    /// The host reports an error; its text.
    Error(String),
    /// A blank line or an unknown type.
    Ignored,
}

/// A reader of stdin lines.
pub(crate) struct Stdin {
    lines: BufReader<tokio::io::Stdin>,
    /// The first line, if it was read before the session was set up.
    first: Option<HostInput>,
}

impl Stdin {
    /// Opens stdin. If `options` require it, waits for the first line, which must be `initialize`, and
    /// adds its plugins and managed settings to `options`.
    pub(crate) async fn open(options: &mut Options) -> Result<Self, EngineError> {
        let mut stdin = Self { lines: BufReader::new(tokio::io::stdin()), first: None };
        let flag = match options {
            Options { managed_in_initialize: true, .. } => "--managed-settings-in-initialize",
            Options { await_initialize: true, .. } => "--await-initialize",
            _ => return Ok(stdin),
        };
        let bad = |reason: &str| EngineError::InvalidFlag { flag, reason: reason.to_owned() };
        if !options.stream_input {
            return Err(bad("needs --input-format stream-json"));
        }
        let first = stdin.next_input().await?;
        let body = match &first {
            Some(HostInput::ControlRequest(request)) => match &request.request {
                RequestBody::Initialize(body) => body,
                _ => return Err(bad("the first line on stdin must be the initialize request")),
            },
            _ => return Err(bad("the first line on stdin must be the initialize request")),
        };
        if options.managed_in_initialize {
            let settings = body.managed_settings.get().filter(|json| json.to_value().is_object());
            let settings = settings.ok_or_else(|| bad("the initialize request has no managedSettings"))?;
            options.managed_settings = Some(settings.text().to_owned());
        }
        let plugins = body.plugins.get().into_iter().flatten();
        options.plugin_dirs.extend(plugins.map(|plugin| PluginDir {
            path: plugin.path.as_str().into(),
            uses_mcp: !plugin.skip_mcp_discovery.is_true(),
        }));
        stdin.first = first;
        Ok(stdin)
    }

    /// The next line, parsed; `None` at the end of stdin.
    pub(crate) async fn next_input(&mut self) -> Result<Option<HostInput>, InputError> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        read_line(&mut self.lines).await?.map(|line| parse_line(&line)).transpose()
    }
}

/// The next line without its line end; `None` at the end of the input.
pub(crate) async fn read_line(input: &mut (impl AsyncBufRead + Unpin)) -> Result<Option<String>, InputError> {
    let mut line = Vec::new();
    let count = input.take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', &mut line).await.map_err(InputError::Read)?;
    if line.last() == Some(&b'\n') {
        line.pop();
        line.pop_if(|last| *last == b'\r');
    } else if line.len() > MAX_LINE_BYTES {
        return Err(InputError::TooLong);
    }
    let no_text = |error| InputError::Read(std::io::Error::new(std::io::ErrorKind::InvalidData, error));
    if count == 0 { Ok(None) } else { String::from_utf8(line).map(Some).map_err(no_text) }
}

/// Parses one line.
pub(crate) fn parse_line(line: &str) -> Result<HostInput, InputError> {
    if line.trim().is_empty() {
        return Ok(HostInput::Ignored);
    }
    match Entry::read(line) {
        Ok(Entry::User(user)) => parse_prompt(*user).map(HostInput::Prompt),
        Ok(Entry::ControlRequest(request)) => Ok(HostInput::ControlRequest(request)),
        Ok(Entry::ControlResponse(response)) => Ok(HostInput::ControlResponse(response)),
        Ok(Entry::ControlCancelRequest(cancel)) => Ok(HostInput::ControlCancel(cancel.request_id)),
        Ok(Entry::Error(error)) => Ok(HostInput::Error(error.to_text())),
        Ok(_) | Err(ReadError::Foreign) => Ok(HostInput::Ignored),
        Err(ReadError::NotJson(_)) => Err(InputError::NotJson { length: line.chars().count() }),
        Err(error @ ReadError::Malformed(_)) => parse_malformed(line, error),
    }
}

fn parse_prompt(mut user: User) -> Result<Prompt, InputError> {
    if user.message.role != Role::User {
        return Err(InputError::WrongRole { role: user.message.role.to_string() });
    }
    let origin = user.origin.get().and_then(|origin| origin.read::<MessageOrigin>().ok());
    let contexts = user.contexts.into_option().unwrap_or_default();
    context_ref::prepend_block(&mut user.message.content, &contexts);
    Ok(Prompt {
        contexts,
        // A host may only claim the origin `human`.
        is_typed: origin.is_some_and(|origin| origin.kind == OriginKind::Human),
        uuid: user.envelope.uuid.into_option(),
        verbatim: user.client_composed.is_true(),
        content: user.message.content,
        task_notice: None,
    })
}

/// Handles a line of a known type with invalid fields: a prompt is an error, a control request gets an
/// error response later.
fn parse_malformed(line: &str, error: ReadError) -> Result<HostInput, InputError> {
    let view = View::read(line).ok();
    let has_role = view.as_ref().is_some_and(|view| view.message.as_ref().is_some_and(|said| said.role.is_some()));
    match view.and_then(|view| view.kind).as_deref() {
        Some("user") if !has_role => Err(InputError::WrongRole { role: "undefined".to_owned() }),
        Some("control_request") => match ControlRequest::from_unreadable(line) {
            Some(request) => Ok(HostInput::ControlRequest(Box::new(request))),
            None => Err(InputError::Malformed(error)),
        },
        _ => Err(InputError::Malformed(error)),
    }
}

impl Prompt {
    /// The text of the prompt.
    pub(crate) fn text(&self) -> String {
        self.content.to_text()
    }

    /// The `commandMode` of the prompt if a running turn absorbs it.
    pub(crate) fn command_mode(&self) -> CommandMode {
        if self.task_notice.is_some() { CommandMode::TaskNotification } else { CommandMode::Prompt }
    }

    /// The origin: the end of a task, or a user if the host states so.
    pub(crate) fn origin(&self) -> Maybe<quipu_message::Json> {
        let origin = |notice: &TaskNotice| {
            let run_id = Maybe::Value(notice.run_id.clone());
            quipu_message::Json::from_serialize(&MessageOrigin {
                kind: OriginKind::TaskNotification,
                run_id,
                ..MessageOrigin::default()
            })
        };
        let human = || {
            quipu_message::Json::from_serialize(&MessageOrigin { kind: OriginKind::Human, ..MessageOrigin::default() })
        };
        self.task_notice.as_ref().map(origin).or_else(|| self.is_typed.then(human)).into()
    }

    /// The content for queue entries of the transcript. Blocks are included only if the prompt
    /// `may_wait`: images are large, and otherwise recorded at once.
    pub(crate) fn queue_content(&self, may_wait: bool) -> Maybe<quipu_message::Json> {
        let quotes = may_wait || matches!(self.content, Content::Text(_));
        quotes.then(|| quipu_message::Json::from_serialize(&self.content)).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_prompt_an_error_or_ignored() {
        assert_eq!(parse_line("[1, 2]").unwrap(), HostInput::Ignored);
        assert!(parse_line("{not json").is_err());
        assert!(parse_line(r#"{"type":"user"}"#).is_err());
        let prompt = r#"{"type":"user","message":{"role":"user","content":"hi"}}"#;
        assert!(matches!(parse_line(prompt).unwrap(), HostInput::Prompt(_)));
    }

    #[test]
    fn what_is_wrong_with_a_user_line_is_named() {
        let refused = |line: &str| parse_line(line).unwrap_err().code();
        assert_eq!(refused(r#"{"type":"user"}"#), "input.role");
        assert_eq!(refused(r#"{"type":"user","message":{"role":"assistant","content":"x"}}"#), "input.role");
        let contexts =
            r#"{"type":"user","message":{"role":"user","content":"x"},"contexts":[{"type":"FileReference"}]}"#;
        assert_eq!(refused(contexts), "input.malformed");
    }

    #[test]
    fn references_without_a_block_get_one() {
        let line =
            r#"{"type":"user","message":{"role":"user","content":"x"},"contexts":[{"type":"SelectionReference"}]}"#;
        let Ok(HostInput::Prompt(prompt)) = parse_line(line) else { panic!() };
        assert_eq!(prompt.content, Content::Text(context_ref::write_block(&prompt.contexts) + "x"));
        assert_eq!(prompt.contexts.len(), 1);
    }
}

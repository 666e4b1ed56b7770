//! What a tool is: its definition, a place to run in, a call, an output.

use futures_util::future::BoxFuture;
use quipu_message::{ToolResultContent, ToolUseId};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

pub use crate::path::TargetPath;
use crate::sandbox::SandboxProfile;

mod fetch_scope;
mod page_cache;
mod seen_files;
mod task_list;
mod validate;
mod workspace;

pub(crate) use fetch_scope::check_url;
pub use fetch_scope::{FetchScope, ScopedResolver, is_public};
pub(crate) use page_cache::{FetchedPage, PageCache};
pub(crate) use seen_files::ChangedFile;
pub use task_list::{Task, TaskKind, TaskList, TaskListener, TaskStatus};
pub use validate::validate_input;
pub(crate) use workspace::{DeniedHostFilter, SECRET_VARIABLES};
pub use workspace::{FileChangeObserver, FileKnowledge, HiddenFileFilter, Summariser, Workspace, WorkspaceOptions};

/// Something the model can call.
pub trait Tool: Send + Sync {
    /// What the model is told.
    fn definition(&self) -> ToolDefinition;

    /// Whether its definition is sent only once it was loaded.
    fn is_deferred(&self) -> bool {
        false
    }

    /// Whether a call only reads, so that it may run beside others.
    fn effect(&self, input: &Value) -> ToolEffect;

    /// Looks whether a call can succeed, before anybody is asked to permit it; the output says why it
    /// cannot. Only for calls on a file that may be read without asking: what a file holds must not
    /// show in the answer otherwise.
    fn precheck<'a>(
        &'a self,
        _input: &'a Value,
        _place: &'a Workspace,
        _call: &'a CallContext,
    ) -> BoxFuture<'a, Option<ToolOutput>> {
        Box::pin(std::future::ready(None))
    }

    /// Runs a call that was checked ([`validate_input`]) and permitted. Failure is an output too.
    fn run<'a>(&'a self, input: Value, place: &'a Workspace, call: &'a CallContext) -> BoxFuture<'a, ToolOutput>;
}

/// What the model is told of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// What it is called.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What it is called with, as JSON Schema.
    pub input_schema: Value,
}

impl ToolDefinition {
    /// How much it takes of a request, in characters or nearly so.
    pub(crate) fn size_chars(&self) -> usize {
        self.name.len() + self.description.len() + self.input_schema.to_string().len()
    }
}

/// What a call does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolEffect {
    /// Nothing: such calls may run beside each other.
    ReadOnly,
    /// Something, and sees to its own order: such calls run beside others, but not
    /// before the answer that holds them is whole.
    Independent,
    /// Something.
    Mutating,
}

/// One call of a tool.
#[derive(Debug, Clone, Default)]
pub struct CallContext {
    /// The call.
    pub tool_use_id: ToolUseId,
    /// Says that the call shall stop.
    pub cancel: CancellationToken,
    /// Says that the call shall go on in the background, when it can.
    pub move_to_background: CancellationToken,
    /// What the kernel lets a command do.
    pub profile: SandboxProfile,
    /// Who hears how it goes on.
    pub progress: Option<UnboundedSender<CallProgress>>,
    /// The file the call was permitted for; none means that nobody looked.
    pub target: Option<TargetPath>,
}

impl CallContext {
    /// A call that nobody listens to.
    pub fn new(id: impl Into<ToolUseId>) -> Self {
        Self { tool_use_id: id.into(), ..Self::default() }
    }

    /// The file that the call is about: the one that was permitted, where somebody looked.
    pub fn resolve_target(&self, given: &str, place: &Workspace) -> TargetPath {
        self.target.clone().unwrap_or_else(|| TargetPath::new(place.absolute(given)))
    }

    /// Tells whoever listens how the call goes on.
    pub fn report_progress(&self, seconds: u64, output: impl FnOnce() -> String) {
        if let Some(listener) = &self.progress {
            let _ =
                listener.send(CallProgress { tool_use_id: self.tool_use_id.clone(), seconds, output_tail: output() });
        }
    }
}

/// How a long call goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallProgress {
    /// The call.
    pub tool_use_id: ToolUseId,
    /// For how long it has run.
    pub seconds: u64,
    /// The end of what it has printed.
    pub output_tail: String,
}

/// What a call gave.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// What the model is told.
    pub content: ToolResultContent,
    /// The tool's own form of the result, for the session file and the host.
    pub raw: Option<Value>,
    /// Whether the call failed.
    pub is_error: bool,
}

impl ToolOutput {
    /// A result, in words for the model and in the tool's own form.
    pub fn new(content: impl Into<ToolResultContent>, raw: &impl Serialize) -> Self {
        Self { content: content.into(), raw: serde_json::to_value(raw).ok(), is_error: false }
    }

    /// The call was right, and failed.
    pub fn failure(message: impl Into<String>) -> Self {
        let message = message.into();
        let raw = Some(Value::String(format!("Error: {message}")));
        Self { content: message.into(), raw, is_error: true }
    }

    /// The call was wrong.
    pub fn tool_use_error(message: impl AsRef<str>) -> Self {
        let message = message.as_ref();
        let raw = Some(Value::String(format!("Error: {message}")));
        Self { content: format!("<tool_use_error>{message}</tool_use_error>").into(), raw, is_error: true }
    }

    /// The call names a tool that is not there.
    pub fn no_such_tool(name: &str) -> Self {
        let raw = Some(Value::String(format!("Error: No such tool available: {name}")));
        let content = format!("<tool_use_error>Error: No such tool available: {name}</tool_use_error>").into();
        Self { content, raw, is_error: true }
    }
}

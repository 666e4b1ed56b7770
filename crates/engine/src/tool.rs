//! Tools as the engine sees them: definition, workspace, call and output.

use futures_util::future::BoxFuture;
use quipu_message::{Json, Maybe, ToolName, ToolResultContent, ToolUseId, api};
use quipu_otlp::SpanPlace;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

pub use crate::path::TargetPath;
use crate::sandbox::SandboxProfile;

mod fetch_scope;
mod link_targets;
mod page_cache;
mod seen_files;
mod task_list;
mod validate;
mod workspace;

pub(crate) use fetch_scope::check_url;
pub use fetch_scope::{FetchScope, ScopedResolver, is_public};
pub(crate) use link_targets::{Anchor, LinkTargets};
pub(crate) use page_cache::{FetchedPage, PageCache};
pub(crate) use seen_files::ChangedFile;
pub use task_list::{Task, TaskKind, TaskList, TaskListener, TaskStatus};
pub use validate::validate_input;
pub(crate) use workspace::{DeniedHostFilter, SECRET_VARIABLES, UserShell};
pub use workspace::{
    FileChangeObserver, FileKnowledge, HiddenFileFilter, HiddenFileFilterSource, Summariser, Workspace,
    WorkspaceOptions,
};

/// The subagent of a call that names none.
pub(crate) const DEFAULT_SUBAGENT: &str = "general-purpose";

/// Replaces characters that are not allowed in tool names.
pub(crate) fn sanitise_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' }).collect()
}

/// A tool that the model can call.
pub trait Tool: Send + Sync {
    /// Returns the name that tool calls refer to.
    fn name(&self) -> ToolName;

    /// Returns the name, description and input schema that are sent to the model.
    fn definition(&self) -> ToolDefinition;

    /// Whether the definition is left out of requests until ToolSearch has loaded the tool.
    fn is_deferred(&self) -> bool {
        false
    }

    /// Returns whether a call with this input can run in parallel with others.
    fn effect(&self, input: &Value) -> ToolEffect;

    /// Checks whether a call can succeed before the user is asked to permit it; returns the error
    /// output if it cannot. Called only if the call changes something, and if the file may be read
    /// without asking, because the error may reveal what the file contains.
    fn precheck<'a>(
        &'a self,
        _input: &'a Value,
        _workspace: &'a Workspace,
        _call: &'a CallContext,
    ) -> BoxFuture<'a, Option<ToolOutput>> {
        Box::pin(std::future::ready(None))
    }

    /// Runs a call whose input was validated ([`validate_input`]) and that was permitted. A
    /// failure is an output with `is_error` set.
    fn run<'a>(&'a self, input: Value, workspace: &'a Workspace, call: &'a CallContext) -> BoxFuture<'a, ToolOutput>;
}

/// Description of a tool as it is sent to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// Name that tool calls refer to.
    pub name: ToolName,
    /// Description for the model.
    pub description: String,
    /// JSON Schema of the input.
    pub input_schema: Value,
}

impl ToolDefinition {
    /// Returns the definition as requests contain it.
    pub(crate) fn into_wire(self) -> api::Tool {
        api::Tool {
            name: self.name,
            description: Maybe::Value(self.description),
            input_schema: Maybe::Value(Json::from(self.input_schema)),
            ..api::Tool::default()
        }
    }

    /// Approximate size of the definition in a request, in characters.
    pub(crate) fn size_chars(&self) -> usize {
        self.name.as_str().len() + self.description.len() + self.input_schema.to_string().len()
    }
}

/// Effect of a tool call, which decides when it may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolEffect {
    /// Changes nothing; runs in parallel with other such calls.
    ReadOnly,
    /// Changes something but needs no ordering; runs in parallel with others once the
    /// response that contains it is complete.
    Independent,
    /// Changes something; runs alone.
    Mutating,
}

/// Everything about one tool call besides its input.
#[derive(Debug, Clone, Default)]
pub struct CallContext {
    /// ID of the tool call.
    pub tool_use_id: ToolUseId,
    /// Cancelled to stop the call.
    pub cancel: CancellationToken,
    /// Cancelled to move the call to the background, for tools that support it.
    pub move_to_background: CancellationToken,
    /// Sandbox profile that a command runs in.
    pub profile: SandboxProfile,
    /// Receives the progress of the call; `None` if it is not wanted.
    pub progress: Option<UnboundedSender<CallProgress>>,
    /// File that the call was permitted for; `None` if no permission was requested.
    pub target: Option<TargetPath>,
    /// Span of the call; `None` if no spans are sent.
    pub span: Option<SpanPlace>,
}

impl CallContext {
    /// Context of a call without progress reports, cancellation or sandbox.
    pub fn new(id: impl Into<ToolUseId>) -> Self {
        Self { tool_use_id: id.into(), ..Self::default() }
    }

    /// Returns the file that the call is about: the permitted one, otherwise the one that
    /// `given` resolves to now.
    pub fn resolve_target(&self, given: &str, workspace: &Workspace) -> TargetPath {
        self.target.clone().unwrap_or_else(|| TargetPath::new(workspace.absolute(given)))
    }

    /// Sends progress if there is a receiver; `output` is only called then.
    pub fn report_progress(&self, seconds: u64, output: impl FnOnce() -> String) {
        if let Some(listener) = &self.progress {
            let _ =
                listener.send(CallProgress { tool_use_id: self.tool_use_id.clone(), seconds, output_tail: output() });
        }
    }
}

/// Progress of a long tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallProgress {
    /// ID of the tool call.
    pub tool_use_id: ToolUseId,
    /// Time since the call started, in seconds.
    pub seconds: u64,
    /// Last part of the output so far.
    pub output_tail: String,
}

/// Output of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// Content of the tool result that the model gets.
    pub content: ToolResultContent,
    /// Structured result for the transcript and the host.
    pub raw: Option<Value>,
    /// Whether the call failed.
    pub is_error: bool,
}

impl ToolOutput {
    /// A successful output: text for the model and the structured result.
    pub fn new(content: impl Into<ToolResultContent>, raw: &impl Serialize) -> Self {
        Self { content: content.into(), raw: serde_json::to_value(raw).ok(), is_error: false }
    }

    /// The input was valid, but the call failed.
    pub fn failure(message: impl Into<String>) -> Self {
        let message = message.into();
        let raw = Some(Value::String(format!("Error: {message}")));
        Self { content: message.into(), raw, is_error: true }
    }

    /// The input was invalid; the message is wrapped in `<tool_use_error>`.
    pub fn tool_use_error(message: impl AsRef<str>) -> Self {
        let message = message.as_ref();
        let raw = Some(Value::String(format!("Error: {message}")));
        Self { content: format!("<tool_use_error>{message}</tool_use_error>").into(), raw, is_error: true }
    }

    /// The call names a tool that does not exist.
    pub fn no_such_tool(name: &ToolName) -> Self {
        let raw = Some(Value::String(format!("Error: No such tool available: {name}")));
        let content = format!("<tool_use_error>Error: No such tool available: {name}</tool_use_error>").into();
        Self { content, raw, is_error: true }
    }
}

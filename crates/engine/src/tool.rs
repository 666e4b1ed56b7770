//! What a tool is: its definition, a place to run in, a call, an output.

use futures_util::future::BoxFuture;
use quipu_message::{ResultContent, ToolUseId};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use crate::sandbox::Profile;

mod check;
pub(crate) mod open;
mod path;
mod place;
mod seen;

pub use check::check;
pub(crate) use path::without_dots;
pub use path::{Target, resolve};
pub use place::{BeforeChange, Hides, Knows, Options, Place, Summarise};
pub(crate) use place::{RefusesHost, SECRETS};
pub(crate) use seen::Changed;

/// Something the model can call.
pub trait Tool: Send + Sync {
    /// What the model is told.
    fn definition(&self) -> Definition;

    /// Whether its definition is sent only once it was loaded.
    fn is_on_demand(&self) -> bool {
        false
    }

    /// Whether a call only reads, so that it may run beside others.
    fn effect(&self, input: &Value) -> Effect;

    /// Looks whether a call can succeed, before anybody is asked to permit it; the output says why it
    /// cannot. Only for calls on a file that may be read without asking: what a file holds must not
    /// show in the answer otherwise.
    fn precheck<'a>(&'a self, _input: &'a Value, _place: &'a Place, _call: &'a Call) -> BoxFuture<'a, Option<Output>> {
        Box::pin(std::future::ready(None))
    }

    /// Runs a call that was checked ([`check`]) and permitted. Failure is an output too.
    fn run<'a>(&'a self, input: Value, place: &'a Place, call: &'a Call) -> BoxFuture<'a, Output>;
}

/// What the model is told of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// What it is called.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What it is called with, as JSON Schema.
    pub input_schema: Value,
}

impl Definition {
    /// How much it takes of a request, in characters or nearly so.
    pub(crate) fn size(&self) -> usize {
        self.name.len() + self.description.len() + self.input_schema.to_string().len()
    }
}

/// What a call does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: such calls may run beside each other.
    Reads,
    /// Something, and sees to its own order: such calls run beside others, but not
    /// before the answer that holds them is whole.
    Apart,
    /// Something.
    Changes,
}

/// One call of a tool.
#[derive(Debug, Clone, Default)]
pub struct Call {
    /// The call.
    pub id: ToolUseId,
    /// Says that the call shall stop.
    pub cancel: CancellationToken,
    /// Says that the call shall go on in the background, when it can.
    pub aside: CancellationToken,
    /// What the kernel lets a command do.
    pub profile: Profile,
    /// Who hears how it goes on.
    pub progress: Option<UnboundedSender<Progress>>,
    /// The file the call was permitted for; none means that nobody looked.
    pub target: Option<Target>,
}

impl Call {
    /// A call that nobody listens to.
    pub fn new(id: impl Into<ToolUseId>) -> Self {
        Self { id: id.into(), ..Self::default() }
    }

    /// The file that the call is about: the one that was permitted, where somebody looked.
    pub fn target(&self, given: &str, place: &Place) -> Target {
        self.target.clone().unwrap_or_else(|| Target::new(place.absolute(given)))
    }

    /// Tells whoever listens how the call goes on.
    pub fn tell(&self, seconds: u64, output: impl FnOnce() -> String) {
        if let Some(listener) = &self.progress {
            let _ = listener.send(Progress { id: self.id.clone(), seconds, output: output() });
        }
    }
}

/// How a long call goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The call.
    pub id: ToolUseId,
    /// For how long it has run.
    pub seconds: u64,
    /// The end of what it has printed.
    pub output: String,
}

/// What a call gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// What the model is told.
    pub content: ResultContent,
    /// The tool's own form of the result, for the session file and the host.
    pub raw: Option<Value>,
    /// Whether the call failed.
    pub is_error: bool,
}

impl Output {
    /// A result, in words for the model and in the tool's own form.
    pub fn new(content: impl Into<ResultContent>, raw: &impl Serialize) -> Self {
        Self { content: content.into(), raw: serde_json::to_value(raw).ok(), is_error: false }
    }

    /// The call was right, and failed.
    pub fn failure(message: impl Into<String>) -> Self {
        let message = message.into();
        let raw = Some(Value::String(format!("Error: {message}")));
        Self { content: message.into(), raw, is_error: true }
    }

    /// The call was wrong.
    pub fn misuse(message: impl AsRef<str>) -> Self {
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

//! MCP servers inside the host: tools that are closures, or any handler that rmcp serves.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use quipu_message::Json;
use quipu_message::control::response::McpMessageResponse;
use rmcp::handler::server::tool::{schema_for_input, schema_for_type};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer, RxJsonRpcMessage, TxJsonRpcMessage, serve_server};
use rmcp::{ErrorData, ServerHandler};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

pub use rmcp;

/// A server of tools that are closures. The model sees them as
/// `mcp__<server>__<tool>`.
///
/// ```
/// use quipu_sdk::mcp::Server;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Sum {
///     a: f64,
///     b: f64,
/// }
///
/// let calculator = Server::new("calc")
///     .tool("add", "Adds two numbers.", |sum: Sum| async move {
///         Ok::<_, String>((sum.a + sum.b).to_string())
///     });
/// # let _ = quipu_sdk::Options::new().mcp_server(calculator).allow_tool("mcp__calc__add");
/// ```
#[derive(Clone)]
pub struct Server {
    name: String,
    version: String,
    instructions: Option<String>,
    tools: BTreeMap<Cow<'static, str>, (Tool, ToolFn)>,
}

type ToolFn = Arc<dyn Fn(Value) -> BoxFuture<'static, CallToolResult> + Send + Sync>;

impl Server {
    /// Makes a server without tools.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), version: "1.0.0".to_owned(), instructions: None, tools: BTreeMap::new() }
    }

    /// Sets the version that the server reports.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Sets the server's instructions for the model.
    #[must_use]
    pub fn instructions(mut self, words: impl Into<String>) -> Self {
        self.instructions = Some(words.into());
        self
    }

    /// Adds a tool. The input schema is derived from the closure's argument.
    #[must_use]
    pub fn tool<A, T, E, F, R>(
        self,
        name: impl Into<Cow<'static, str>>,
        description: impl Into<Cow<'static, str>>,
        run: F,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + 'static,
        T: Into<ToolOutput>,
        E: fmt::Display,
        F: Fn(A) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, E>> + Send + 'static,
    {
        let tool = Tool::new(name, description, schema_for_input::<A>().unwrap_or_else(|_| schema_for_type::<A>()));
        self.tool_with_schema(tool, move |input| {
            let reading = serde_json::from_value::<A>(input).map(&run);
            async move {
                match reading {
                    Ok(running) => running.await.map(Into::into).map_err(|error| error.to_string()),
                    Err(error) => Err(format!("the arguments cannot be read: {error}")),
                }
            }
        })
    }

    /// Adds a tool with your own schema and other MCP attributes.
    #[must_use]
    pub fn tool_with_schema<F, R>(mut self, tool: Tool, run: F) -> Self
    where
        F: Fn(Value) -> R + Send + Sync + 'static,
        R: Future<Output = Result<ToolOutput, String>> + Send + 'static,
    {
        let run = Arc::new(run);
        let run: ToolFn = Arc::new(move |input| {
            let run = Arc::clone(&run);
            Box::pin(async move {
                // Called inside the future, because a closure may panic before it returns one.
                match AssertUnwindSafe(async { run(input).await }).catch_unwind().await {
                    Ok(Ok(output)) => output.0,
                    Ok(Err(error)) => CallToolResult::error(vec![ContentBlock::text(error)]),
                    Err(_) => CallToolResult::error(vec![ContentBlock::text("the tool panicked")]),
                }
            })
        });
        self.tools.insert(tool.name.clone(), (tool, run));
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// The result of a tool: text, or any MCP result.
pub struct ToolOutput(CallToolResult);

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self(CallToolResult::success(vec![ContentBlock::text(text)]))
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<Vec<ContentBlock>> for ToolOutput {
    fn from(blocks: Vec<ContentBlock>) -> Self {
        Self(CallToolResult::success(blocks))
    }
}

impl From<CallToolResult> for ToolOutput {
    fn from(result: CallToolResult) -> Self {
        Self(result)
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::default();
        info.capabilities = ServerCapabilities::builder().enable_tools().build();
        info.server_info = Implementation::new(&self.name, &self.version);
        info.instructions = self.instructions.clone();
        info
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.values().map(|(tool, _)| tool.clone()).collect()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some((_, run)) = self.tools.get(&call.name) else {
            return Err(ErrorData::invalid_params(format!("no tool is called {}", call.name), None));
        };
        let running = run(Value::Object(call.arguments.unwrap_or_default()));
        tokio::select! {
            result = running => Ok(result.into()),
            () = context.ct.cancelled() => Err(ErrorData::internal_error("the call was withdrawn", None)),
        }
    }
}

/// Starts a server for one conversation.
pub(crate) type ServerStarter = Arc<dyn Fn() -> McpBridge + Send + Sync>;

/// Makes the function that starts a server.
pub(crate) fn server_starter<H: ServerHandler + Clone>(handler: H) -> ServerStarter {
    Arc::new(move || McpBridge::start(handler.clone()))
}

/// The connection to a server: JSON-RPC messages in control requests.
pub(crate) struct McpBridge {
    to_server: mpsc::UnboundedSender<Value>,
    pending: PendingReplies,
    /// Whether the server was initialized.
    is_initialized: Mutex<bool>,
    server_task: tokio::task::AbortHandle,
}

type PendingReplies = Arc<Mutex<HashMap<String, oneshot::Sender<Value>>>>;

impl McpBridge {
    fn start(handler: impl ServerHandler) -> Self {
        let (told, hears) = mpsc::unbounded_channel();
        let waiting = PendingReplies::default();
        let inside = BridgeTransport { from_host: hears, to_server: told.downgrade(), pending: Arc::clone(&waiting) };
        let serving = tokio::spawn(async move {
            if let Ok(running) = serve_server(handler, inside).await {
                let _ = running.waiting().await;
            }
        });
        Self {
            to_server: told,
            pending: waiting,
            is_initialized: Mutex::default(),
            server_task: serving.abort_handle(),
        }
    }

    /// Sends a message to the server and waits for the response, if the message has one.
    pub(crate) async fn exchange(&self, message: Json) -> Result<Json, String> {
        let message = message.to_value();
        self.ensure_initialized(&message)?;
        let reply = match message.get("id").filter(|id| !id.is_null()).cloned() {
            Some(id) => self.request(id, message).await?,
            None => {
                let withdrawn =
                    (message["method"] == "notifications/cancelled").then(|| message["params"]["requestId"].clone());
                self.send(message)?;
                // The server does not respond to a cancelled request.
                if let Some(id) = withdrawn {
                    let no = json!({ "code": -32800, "message": "the call was withdrawn" });
                    BridgeTransport::complete(&self.pending, json!({ "jsonrpc": "2.0", "id": id, "error": no }));
                }
                json!({ "jsonrpc": "2.0", "result": {} })
            }
        };
        Ok(Json::from_serialize(&McpMessageResponse {
            mcp_response: Json::from(reply).into(),
            ..McpMessageResponse::default()
        }))
    }

    /// Initializes the server if the agent has not: agents that got a manifest skip it.
    fn ensure_initialized(&self, message: &Value) -> Result<(), String> {
        let mut greeted = self.is_initialized.lock();
        if !std::mem::replace(&mut *greeted, true) && message["method"] != "initialize" {
            let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": { "name": "quipu-sdk", "version": env!("CARGO_PKG_VERSION") } });
            self.send(json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params }))?;
            self.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        }
        Ok(())
    }

    async fn request(&self, id: Value, message: Value) -> Result<Value, String> {
        let (answer, comes) = oneshot::channel();
        self.pending.lock().insert(id.to_string(), answer);
        let _forget = PendingReplyGuard { bridge: self, id };
        self.send(message)?;
        comes.await.map_err(|_| "the MCP server has ended".to_owned())
    }

    fn send(&self, message: Value) -> Result<(), String> {
        self.to_server.send(message).map_err(|_| "the MCP server has ended".to_owned())
    }
}

impl Drop for McpBridge {
    fn drop(&mut self) {
        self.server_task.abort();
    }
}

/// Drops a request whose caller stopped waiting, and notifies the server.
struct PendingReplyGuard<'a> {
    bridge: &'a McpBridge,
    id: Value,
}

impl Drop for PendingReplyGuard<'_> {
    fn drop(&mut self) {
        if self.bridge.pending.lock().remove(&self.id.to_string()).is_some() {
            let params = json!({ "requestId": self.id });
            let _ =
                self.bridge.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
        }
    }
}

/// The server's end of the connection.
struct BridgeTransport {
    from_host: mpsc::UnboundedReceiver<Value>,
    to_server: mpsc::WeakUnboundedSender<Value>,
    pending: PendingReplies,
}

impl BridgeTransport {
    fn complete(waiting: &PendingReplies, message: Value) {
        let id = message.get("id").map(Value::to_string).unwrap_or_default();
        if let Some(waits) = waiting.lock().remove(&id) {
            let _ = waits.send(message);
        }
    }
}

impl rmcp::transport::Transport<RoleServer> for BridgeTransport {
    type Error = std::convert::Infallible;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let message = serde_json::to_value(&item).unwrap_or_default();
        match item {
            TxJsonRpcMessage::<RoleServer>::Response(_) | TxJsonRpcMessage::<RoleServer>::Error(_) => {
                Self::complete(&self.pending, message);
            }
            // A request of the server cannot be forwarded to the agent.
            TxJsonRpcMessage::<RoleServer>::Request(_) => {
                let no = json!({ "code": -32601, "message": "the agent cannot be asked" });
                let no = json!({ "jsonrpc": "2.0", "id": message["id"], "error": no });
                let _ = self.to_server.upgrade().map(|told| told.send(no));
            }
            TxJsonRpcMessage::<RoleServer>::Notification(_) => {}
        }
        std::future::ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = self.from_host.recv().await?;
            let id = message.get("id").cloned();
            match serde_json::from_value(message) {
                Ok(message) => return Some(message),
                Err(error) => {
                    let no = json!({ "code": -32600, "message": error.to_string() });
                    Self::complete(&self.pending, json!({ "jsonrpc": "2.0", "id": id, "error": no }));
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.from_host.close();
        // The server has ended, so pending requests fail.
        self.pending.lock().clear();
        Ok(())
    }
}

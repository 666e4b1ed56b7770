//! Transport to a server inside the host, through control requests.

use std::sync::Arc;

use quipu_message::Json;
use quipu_message::control::response::McpMessageResponse;
use quipu_message::control::{RequestBody, request};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::host::{Host, HostError};

/// Transport to a server inside the host.
///
/// Requests that the manifest answers are not sent to the host.
pub(super) struct SdkTransport {
    host: Arc<Host>,
    server_name: String,
    manifest: Option<Value>,
    replies: mpsc::UnboundedSender<Value>,
    incoming: mpsc::UnboundedReceiver<Value>,
    closed: CancellationToken,
}

impl SdkTransport {
    pub(super) fn new(host: &Arc<Host>, name: &str, manifest: Option<Json>) -> Self {
        let (replies, heard) = mpsc::unbounded_channel();
        let manifest = manifest.map(|json| json.to_value());
        let gone = CancellationToken::new();
        Self { host: Arc::clone(host), server_name: name.to_owned(), manifest, replies, incoming: heard, closed: gone }
    }

    /// Returns the response from the manifest; `null` for notifications.
    fn manifest_reply(&self, message: &Value) -> Option<Value> {
        let manifest = self.manifest.as_ref()?;
        let result = match message["method"].as_str()? {
            "initialize" => manifest.get("initializeResult")?,
            "tools/list" => manifest.get("toolsListResult")?,
            "notifications/initialized" => return Some(Value::Null),
            _ => return None,
        };
        Some(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
    }
}

impl Transport<RoleClient> for SdkTransport {
    type Error = HostError;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), HostError>> + Send + 'static {
        let message = serde_json::to_value(&item).unwrap_or_default();
        let known = self.manifest_reply(&message);
        let (host, replies, gone) = (Arc::clone(&self.host), self.replies.clone(), self.closed.clone());
        let body = request::McpMessage {
            server_name: self.server_name.clone(),
            message: Json::from(message.clone()),
            ..request::McpMessage::default()
        };
        async move {
            let reply = match known {
                Some(reply) => reply,
                None => {
                    let answer = host.send_request(RequestBody::McpMessage(Box::new(body)), &gone).await?;
                    let reply: McpMessageResponse = answer.read().unwrap_or_default();
                    reply.mcp_response.get().map(Json::to_value).unwrap_or_default()
                }
            };
            // Notifications also get a reply, without content.
            if message.get("id").is_some() && reply.is_object() {
                let _ = replies.send(reply);
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = tokio::select! {
                message = self.incoming.recv() => message?,
                () = self.closed.cancelled() => return None,
            };
            // A reply that is not JSON-RPC is ignored.
            if let Ok(message) = serde_json::from_value(message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), HostError> {
        self.closed.cancel();
        Ok(())
    }
}

//! Transport to a server inside the host, through control requests.

use std::sync::Arc;

use quipu_message::Json;
use quipu_message::control::response::McpMessageResponse;
use quipu_message::control::{RequestBody, request};
use rmcp::RoleClient;
use rmcp::model::{ErrorData, JsonRpcError, JsonRpcMessage, RequestId};
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
    replies: mpsc::UnboundedSender<RxJsonRpcMessage<RoleClient>>,
    incoming: mpsc::UnboundedReceiver<RxJsonRpcMessage<RoleClient>>,
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
            if let Some(reply) = parse_reply(&message, reply) {
                let _ = replies.send(reply);
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        tokio::select! {
            message = self.incoming.recv() => message,
            () = self.closed.cancelled() => None,
        }
    }

    async fn close(&mut self) -> Result<(), HostError> {
        self.closed.cancel();
        Ok(())
    }
}

/// The reply to a message; `None` if it is a notification or an answer, whose replies have no content. A reply to
/// a request that is not a message becomes an error, so that the call does not wait for another one.
fn parse_reply(message: &Value, reply: Value) -> Option<RxJsonRpcMessage<RoleClient>> {
    message.get("method")?;
    let id: RequestId = serde_json::from_value(message.get("id")?.clone()).ok()?;
    Some(serde_json::from_value(reply).unwrap_or_else(|error| {
        let error = ErrorData::parse_error(format!("the answer of the host cannot be read: {error}"), None);
        JsonRpcMessage::Error(JsonRpcError::new(Some(id), error))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_gets_a_reply_and_a_notification_none() {
        let request = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call"});
        let reply = |message: &Value, reply: Value| {
            parse_reply(message, reply).map(|message| serde_json::to_value(message).unwrap())
        };
        let answer = json!({"jsonrpc": "2.0", "id": 7, "result": {}});
        assert_eq!(reply(&request, answer.clone()).unwrap()["result"], json!({}));
        for unreadable in [Value::Null, json!({}), json!({"jsonrpc": "2.0", "id": 7}), json!([answer])] {
            let error = reply(&request, unreadable).unwrap();
            assert_eq!(error["id"], 7);
            assert!(error["error"]["message"].as_str().unwrap().starts_with("the answer of the host cannot be read"));
        }
        assert_eq!(reply(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}), json!({})), None);
        assert_eq!(reply(&json!({"jsonrpc": "2.0", "id": 3, "result": {}}), Value::Null), None);
    }
}

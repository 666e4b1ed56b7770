//! Transport to a server that is a program: one message per line.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::RoleClient;
use rmcp::model::{ErrorData, JsonRpcError, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, BufReader, Empty};

use super::line_limit::LineLimit;

/// Byte order mark, which may precede a message.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Most requests of a server whose answers it has not read, and the length of their ids, which the answers repeat.
const MAX_UNANSWERED: usize = 1000;
const MAX_REQUEST_ID_BYTES: usize = 1024;

/// Transport over the output and the input of a program.
///
/// An answer that cannot be read fails the call that it belongs to, and ends the connection if it is not known
/// which. The transport of rmcp leaves such answers out, so that the call waits. Other lines are ignored. Requests of a
/// server that does not read the answers end the connection too: the answers would be kept in memory.
pub(super) struct StdioTransport<R, W: AsyncWrite> {
    output: BufReader<LineLimit<R>>,
    /// What was read of the current line: reading may be broken off and continued.
    line: Vec<u8>,
    /// Only writes.
    input: AsyncRwTransport<RoleClient, Empty, W>,
    /// Number of requests that were read and whose answers are not written.
    unanswered: Arc<AtomicUsize>,
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send + 'static> StdioTransport<R, W> {
    pub(super) fn new(output: R, input: W) -> Self {
        let output = BufReader::new(LineLimit::new(output));
        let input = AsyncRwTransport::new(tokio::io::empty(), input);
        Self { output, line: Vec::new(), input, unanswered: Arc::default() }
    }

    /// Whether a message may be handled: not a request too many.
    fn accept(&self, message: &RxJsonRpcMessage<RoleClient>) -> bool {
        let JsonRpcMessage::Request(request) = message else { return true };
        let has_long_id = matches!(&request.id, RequestId::String(id) if id.len() > MAX_REQUEST_ID_BYTES);
        !has_long_id && self.unanswered.fetch_add(1, Ordering::Relaxed) < MAX_UNANSWERED
    }
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send + 'static> Transport<RoleClient>
    for StdioTransport<R, W>
{
    type Error = io::Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleClient>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let is_answer = matches!(item, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let (sending, unanswered) = (self.input.send(item), Arc::clone(&self.unanswered));
        async move {
            let sent = sending.await;
            if is_answer {
                let one_less = |count: usize| count.checked_sub(1);
                let _ = unanswered.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if let Err(error) = self.output.read_until(b'\n', &mut self.line).await {
                tracing::debug!(target: "quipu::mcp", %error, "cannot read the output of a server");
                return None;
            }
            let line = std::mem::take(&mut self.line);
            if !line.ends_with(b"\n") {
                return None;
            }
            match Line::parse(&line) {
                Line::Message(message) => return Some(*message).filter(|message| self.accept(message)),
                Line::Ignored => {}
                Line::Unreadable => return None,
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.input.close().await
    }
}

/// One line of a server.
enum Line {
    /// A message, or the error of an answer that cannot be read.
    Message(Box<RxJsonRpcMessage<RoleClient>>),
    /// Not an answer: text that is not JSON, or a notification or request that is not known.
    Ignored,
    /// An answer to an unknown request.
    Unreadable,
}

/// What is read of a message that cannot be read as a whole: it may be nested too deeply, or have characters
/// or numbers that are not valid.
#[derive(Deserialize)]
struct MessageHead {
    id: Option<RequestId>,
    method: Option<IgnoredAny>,
}

impl Line {
    fn parse(line: &[u8]) -> Self {
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim_ascii();
        let error = match serde_json::from_slice(line) {
            Ok(message) => return Self::Message(Box::new(message)),
            Err(error) => error,
        };
        tracing::debug!(target: "quipu::mcp", %error, "a line of a server is not a message");
        if !line.starts_with(b"{") || !contains(line, b"\"jsonrpc\"") {
            return Self::Ignored;
        }
        match serde_json::from_slice(line) {
            Ok(MessageHead { id: Some(id), method: None }) => {
                let error = ErrorData::parse_error(format!("the answer of the server cannot be read: {error}"), None);
                Self::Message(Box::new(JsonRpcMessage::Error(JsonRpcError::new(Some(id), error))))
            }
            Ok(MessageHead { method: Some(_), .. }) => Self::Ignored,
            _ if contains(line, b"\"result\"") || contains(line, b"\"error\"") => Self::Unreadable,
            _ => Self::Ignored,
        }
    }
}

fn contains(line: &[u8], word: &[u8]) -> bool {
    line.windows(word.len()).any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages until the end of the connection, as JSON, and whether all lines were read.
    async fn received(lines: &[&str]) -> (Vec<serde_json::Value>, bool) {
        let output = lines.join("\n") + "\n";
        let mut transport = StdioTransport::new(output.as_bytes(), tokio::io::sink());
        let mut messages = Vec::new();
        while let Some(message) = transport.receive().await {
            messages.push(serde_json::to_value(message).unwrap());
        }
        (messages, transport.output.buffer().is_empty())
    }

    #[tokio::test]
    async fn an_answer_that_cannot_be_read_fails_its_call() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for result in [deep.as_str(), r#""\ud800""#, "1e999"] {
            let line = format!(r#"{{"jsonrpc":"2.0","result":{{"content":{result}}},"id":7}}"#);
            let (messages, is_read) = received(&[&line, r#"{"jsonrpc":"2.0","id":8,"result":{}}"#]).await;
            assert!(is_read && messages.len() == 2, "{messages:?}");
            assert_eq!(messages[0]["id"], 7);
            let text = messages[0]["error"]["message"].as_str().unwrap();
            assert!(text.starts_with("the answer of the server cannot be read: "), "{text}");
            assert_eq!(messages[1]["id"], 8);
        }
    }

    #[tokio::test]
    async fn a_server_that_reads_no_answers_is_not_heard_for_long() {
        let ping = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"ping"}}"#);
        let lines: Vec<String> = (0..MAX_UNANSWERED + 5).map(|number| ping(&number.to_string())).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(received(&lines).await.0.len(), MAX_UNANSWERED);
        assert_eq!(received(&[&ping(&"x".repeat(MAX_REQUEST_ID_BYTES + 1)), &ping("a")]).await.0.len(), 0);
        // It reads the answers.
        let output = (lines.join("\n") + "\n").repeat(2);
        let mut transport = StdioTransport::new(output.as_bytes(), tokio::io::sink());
        let mut count = 0;
        while let Some(JsonRpcMessage::Request(request)) = transport.receive().await {
            let answer = JsonRpcError::new(Some(request.id), ErrorData::parse_error("no", None));
            transport.send(JsonRpcMessage::Error(answer)).await.unwrap();
            count += 1;
        }
        assert_eq!(count, 2 * lines.len());
    }

    #[tokio::test]
    async fn an_answer_to_an_unknown_request_ends_the_connection_and_other_lines_do_not() {
        let last = r#"{"jsonrpc":"2.0","id":"a","result":{}}"#;
        for line in [r#"{"jsonrpc":"2.0","id":7,"result":{"#, r#"{"jsonrpc":"2.0","id":[7],"error":{"code":"x"}}"#] {
            let (messages, is_read) = received(&[line, last]).await;
            assert!(messages.is_empty() && !is_read, "{line}");
        }
        let deep = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"x","params":{}"#, "[".repeat(200) + &"]".repeat(200));
        for line in ["", "starting", "{ port: 80 }", r#"{"level":"error"}"#, "[1]", "\r", &(deep + "}")] {
            let (messages, is_read) = received(&[line, last]).await;
            assert!(is_read && messages.len() == 1, "{line}");
            assert_eq!(messages[0]["id"], "a");
        }
        // The end of the output.
        assert_eq!(received(&[&format!("\u{feff}{last}\r")]).await.0.len(), 1);
    }
}

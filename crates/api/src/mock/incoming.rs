//! A parsed request, with the properties that rules test.

use std::collections::HashMap;

use quipu_message::api::Request;
use quipu_message::{Block, Content, Message, Role};

/// What the request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// A message.
    Message,
    /// A token count.
    CountTokens,
}

impl RequestKind {
    /// The kind of a request by method and path; `None` if the API has no such method.
    pub(crate) fn from_path(method: &str, path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default().trim_end_matches('/');
        match (method, path) {
            ("POST", path) if path.ends_with("/v1/messages") => Some(Self::Message),
            ("POST", path) if path.ends_with("/v1/messages/count_tokens") => Some(Self::CountTokens),
            _ => None,
        }
    }
}

/// A parsed request, with the properties that rules test.
#[derive(Debug, Clone)]
pub(crate) struct IncomingRequest {
    pub(crate) kind: RequestKind,
    pub(crate) request: Request,
    /// Text of the last user message, without tool results and system reminders. Reminders are
    /// included if they are task notifications or if there is no other text.
    pub(crate) user_text: String,
    /// The last text block of `user_text`.
    pub(crate) last_text: String,
    /// The tool results in the last user message: tool name, call id, text.
    pub(crate) tool_results: Vec<(String, String, String)>,
    pub(crate) system: String,
    /// Number of the user prompt, from 1.
    pub(crate) turn: usize,
    /// Number of the API call in the conversation, from 1.
    pub(crate) step: usize,
    pub(crate) is_subagent: bool,
    /// Estimated number of tokens of the request.
    pub(crate) estimated_tokens: u64,
}

impl IncomingRequest {
    pub(crate) fn parse(kind: RequestKind, body: &str, subagent: bool) -> serde_json::Result<Self> {
        let request: Request = serde_json::from_str(body)?;
        let of = |role: Role| request.messages.iter().filter(move |message| message.role == role);
        let is_turn = |message: &&Message| result_blocks(message).next().is_none();
        let last = of(Role::User).next_back();
        let texts: Vec<String> = last.map(user_texts).unwrap_or_default();
        Ok(Self {
            kind,
            user_text: texts.join("\n"),
            last_text: texts.last().cloned().unwrap_or_default(),
            tool_results: last.map(|last| tool_results(last, &request)).unwrap_or_default(),
            system: request.system.get().map(system_text).unwrap_or_default(),
            turn: of(Role::User).filter(is_turn).count(),
            step: of(Role::Assistant).count() + 1,
            is_subagent: subagent,
            estimated_tokens: (body.len() as u64).div_ceil(4),
            request,
        })
    }

    pub(crate) fn has_tools(&self) -> bool {
        self.request.tools.get().is_some_and(|tools| !tools.is_empty())
    }

    pub(crate) fn wants_stream(&self) -> bool {
        self.request.stream.is_true()
    }

    /// Short description of the request for logs.
    pub(crate) fn summary(&self) -> String {
        let tools = self.request.tools.get().map_or(0, Vec::len);
        let mut summary = format!("{}, {tools} tools, turn {}, step {}", self.request.model, self.turn, self.step);
        for (tool, _, _) in &self.tool_results {
            summary.push_str(&format!(", result of {tool}"));
        }
        if !self.last_text.is_empty() {
            let mut short: String = self.last_text.chars().take(60).collect();
            if short.len() < self.last_text.len() {
                short.push('…');
            }
            summary.push_str(&format!(", {short:?}"));
        }
        summary
    }
}

fn result_blocks(message: &Message) -> impl Iterator<Item = &quipu_message::ToolResult> {
    message.content.blocks().iter().filter_map(Block::tool_result)
}

/// The user's texts of a message; the system reminders if there are no others.
fn user_texts(message: &Message) -> Vec<String> {
    let is_reminder =
        |text: &String| text.trim_start().starts_with("<system-reminder>") && !text.contains("<task-notification>");
    let (reminders, texts): (Vec<String>, Vec<String>) = message_texts(message).into_iter().partition(is_reminder);
    if texts.is_empty() { reminders } else { texts }
}

fn message_texts(message: &Message) -> Vec<String> {
    match &message.content {
        Content::Text(text) => vec![text.clone()],
        content => content.blocks().iter().filter_map(Block::text).map(str::to_owned).collect(),
    }
}

fn tool_results(last: &Message, request: &Request) -> Vec<(String, String, String)> {
    let calls = request.messages.iter().flat_map(|message| message.content.blocks()).filter_map(Block::tool_use);
    let names: HashMap<&str, &str> = calls.map(|call| (call.id.as_str(), call.name.as_str())).collect();
    let describe = |result: &quipu_message::ToolResult| {
        let id = result.tool_use_id.as_str();
        (names.get(id).copied().unwrap_or("?").to_owned(), id.to_owned(), result.text())
    };
    result_blocks(last).map(describe).collect()
}

fn system_text(system: &quipu_message::Json) -> String {
    system.read::<Content>().map(|content| content.to_text()).unwrap_or_default()
}

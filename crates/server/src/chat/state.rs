//! What a chat is at a moment, as far as the session file does not have it.

use std::collections::{BTreeMap, VecDeque};

use quipu_conversation::Tokens;
use quipu_conversation::price::{BilledRequest, Prices};
use quipu_message::Usage;
use tokio::sync::oneshot;

use super::partial::PartialMessages;
use super::prompts::PromptReply;
use super::view::{Chat, ChatPhase, ChatTokens, Note, NoteLevel, Prompt};

/// Notes and withdrawn messages that a client can be behind before it misses one.
const MAX_LOG_ENTRIES: usize = 200;
/// Longest note; the rest is cut off.
const MAX_NOTE_CHARS: usize = 2000;
/// Tool calls whose progress is known.
const MAX_PROGRESS: usize = 100;

/// What a chat is at a moment. Everything in it is bounded.
#[derive(Debug, Default)]
pub(crate) struct ChatState {
    pub(crate) chat: Chat,
    /// Where to send the user's reply to each prompt, by its id.
    pub(super) responders: BTreeMap<String, oneshot::Sender<PromptReply>>,
    pub(super) partial: PartialMessages,
    /// Notes and withdrawn messages, numbered.
    pub(super) log: VecDeque<(u64, LogEntry)>,
    pub(super) progress: BTreeMap<String, Progress>,
    /// Increases with every change.
    pub(super) version: u64,
    /// Version of the last change of `chat`.
    pub(super) chat_version: u64,
    pub(super) usage: UsageMeter,
    /// Background tasks that the agent runs.
    pub(super) background_tasks: usize,
    /// Whether the agent reports when it becomes idle.
    pub(super) reports_activity: bool,
    /// The messages of recent entries, by the UUID of the entry.
    pub(super) recent_entries: VecDeque<(String, String)>,
}

#[derive(Debug)]
pub(super) enum LogEntry {
    Note(Note),
    Withdrawn(String),
}

/// How far a tool call is.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) version: u64,
    pub(super) elapsed_ms: u64,
    pub(super) text: Option<String>,
}

impl ChatState {
    /// Marks `chat` as changed.
    pub(super) fn touch(&mut self) -> &mut Chat {
        self.chat_version = self.version + 1;
        &mut self.chat
    }

    pub(super) fn add_note(&mut self, level: NoteLevel, text: &str) {
        let mut text = text.trim();
        if let Some((end, _)) = text.char_indices().nth(MAX_NOTE_CHARS) {
            text = &text[..end];
        }
        if !text.is_empty() {
            self.push_log(LogEntry::Note(Note { level, text: text.to_owned() }));
        }
    }

    pub(super) fn add_withdrawn(&mut self, message_id: String) {
        self.push_log(LogEntry::Withdrawn(message_id));
    }

    fn push_log(&mut self, entry: LogEntry) {
        let number = self.log.back().map_or(1, |(number, _)| number + 1);
        self.log.push_back((number, entry));
        if self.log.len() > MAX_LOG_ENTRIES {
            self.log.pop_front();
        }
    }

    pub(super) fn set_progress(&mut self, tool_use_id: &str, elapsed_ms: u64, text: Option<String>) {
        let version = self.version + 1;
        let known = self.progress.get(tool_use_id);
        if known.is_none() && self.progress.len() >= MAX_PROGRESS {
            return;
        }
        let elapsed_ms = elapsed_ms.max(known.map_or(0, |known| known.elapsed_ms));
        self.progress.insert(tool_use_id.to_owned(), Progress { version, elapsed_ms, text });
    }

    /// Begins or continues a turn. A compaction is a part of one.
    pub(super) fn set_running(&mut self, now: &str) {
        if matches!(self.chat.state, ChatPhase::Running | ChatPhase::Compacting | ChatPhase::Ended) {
            return;
        }
        let chat = self.touch();
        chat.state = ChatPhase::Running;
        chat.turn_started_at.get_or_insert_with(|| now.to_owned());
    }

    /// Ends a turn.
    pub(super) fn set_idle(&mut self) {
        if self.chat.state == ChatPhase::Ended {
            return;
        }
        self.progress.clear();
        self.withdraw_incomplete(self.background_tasks == 0);
        let chat = self.touch();
        chat.state = ChatPhase::Idle;
        chat.turn_started_at = None;
    }

    /// Withdraws responses that were broken off.
    pub(super) fn withdraw_incomplete(&mut self, include_subagents: bool) {
        for message in self.partial.remove_incomplete(include_subagents) {
            self.add_withdrawn(message);
        }
    }

    /// Removes a message from the queue: the agent has begun with it.
    pub(super) fn take_from_queue(&mut self, uuid: &str) {
        if self.chat.queued.iter().any(|message| message.uuid == uuid) {
            let chat = self.touch();
            chat.queued.retain(|message| message.uuid != uuid);
            chat.rewound_to = None;
        }
    }

    pub(super) fn add_prompt(&mut self, prompt: Prompt, respond: oneshot::Sender<PromptReply>) {
        self.responders.insert(prompt.id.clone(), respond);
        self.touch().prompts.push(prompt);
    }

    /// Removes a prompt. Returns where to send the reply; `None` if there is no such prompt.
    pub(super) fn remove_prompt(&mut self, id: &str) -> Option<oneshot::Sender<PromptReply>> {
        let respond = self.responders.remove(id);
        if self.chat.prompts.iter().any(|prompt| prompt.id == id) {
            self.touch().prompts.retain(|prompt| prompt.id != id);
        }
        respond
    }

    /// Shows the usage so far.
    pub(super) fn show_usage(&mut self) {
        let (cost_usd, tokens) = (self.usage.cost_usd(), self.usage.tokens());
        let chat = self.touch();
        (chat.cost_usd, chat.tokens) = (cost_usd, tokens);
    }
}

/// Cost and tokens: what the agent reported at the end of turns, and an estimate for the running one.
#[derive(Debug, Default)]
pub(super) struct UsageMeter {
    reported_usd: f64,
    reported_tokens: ChatTokens,
    turn_usd: f64,
    turn_tokens: ChatTokens,
    /// Model and usage of the message that each agent writes.
    started: BTreeMap<Option<String>, (String, Usage)>,
}

impl UsageMeter {
    pub(super) fn start_message(&mut self, agent: Option<&str>, model: &str, usage: Usage) {
        // More agents than this do not work at once.
        if self.started.len() < 100 {
            self.started.insert(agent.map(str::to_owned), (model.to_owned(), usage));
        }
    }

    /// Counts a message whose final usage is known.
    pub(super) fn end_message(&mut self, agent: Option<&str>, usage: &Usage, prices: &Prices) {
        let Some((model, start)) = self.started.remove(&agent.map(str::to_owned)) else { return };
        let tokens = Tokens { output: Tokens::from(usage).output, ..Tokens::from(&start) };
        let request = BilledRequest { model: &model, tokens, ..BilledRequest::default() };
        self.turn_usd += prices.cost(&request).usd().map_or(0.0, |usd| usd.as_f64());
        self.turn_tokens.input += tokens.prompt();
        self.turn_tokens.output += tokens.output;
    }

    /// Takes over what the agent reports at the end of a turn: the cost of the session and the usage
    /// of the turn.
    pub(super) fn end_turn(&mut self, total_usd: Option<f64>, usage: Option<&Usage>) {
        self.reported_usd = total_usd.unwrap_or(self.reported_usd + self.turn_usd);
        let turn = usage.map_or(self.turn_tokens, |usage| {
            let tokens = Tokens::from(usage);
            ChatTokens { input: tokens.prompt(), output: tokens.output }
        });
        self.reported_tokens.input += turn.input;
        self.reported_tokens.output += turn.output;
        (self.turn_usd, self.turn_tokens) = (0.0, ChatTokens::default());
        self.started.clear();
    }

    fn cost_usd(&self) -> f64 {
        self.reported_usd + self.turn_usd
    }

    fn tokens(&self) -> ChatTokens {
        ChatTokens {
            input: self.reported_tokens.input + self.turn_tokens.input,
            output: self.reported_tokens.output + self.turn_tokens.output,
        }
    }
}

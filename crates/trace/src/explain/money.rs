//! Where the money of a session went.

use std::collections::BTreeMap;

use quipu_conversation::price::{Cost, Prices, Usd};
use quipu_conversation::usage::MessageUsage;
use quipu_conversation::{MetricsBuilder, SessionFacts, SubagentRef, Tokens};
use quipu_message::View;
use quipu_message::synthetic::SYNTHETIC_MODEL;
use quipu_message::tool::ToolName;

use super::ContextSize;

/// Number of the most expensive API calls that are listed.
const MAX_MOMENTS: usize = 5;

/// Tokens and cost of a session by turn, tool, agent and MCP server.
#[derive(Debug, Clone, Default)]
pub struct Money {
    /// Each turn with its subagents, in order.
    pub turns: Vec<TurnMoney>,
    /// Cost by tool. A response's cost is shared equally among the tools it calls; `(none)`
    /// for responses without a call.
    pub tools: BTreeMap<String, Usd>,
    /// Cost by agent: `main`, or the type of a subagent.
    pub agents: BTreeMap<String, Usd>,
    /// Cost by MCP server, as a part of `tools`.
    pub mcp: BTreeMap<String, Usd>,
    /// The most expensive API calls, the most expensive first.
    pub moments: Vec<Moment>,
    /// All of it.
    pub total: Usd,
    /// Models without a known price, whose tokens cost nothing here.
    pub unpriced_models: Vec<String>,
}

/// Tokens and cost of one turn.
#[derive(Debug, Clone, Default)]
pub struct TurnMoney {
    /// Number of the turn, from 1; 0 for calls before the first prompt.
    pub turn: u32,
    /// Text of the prompt.
    pub prompt: String,
    /// Line of the prompt.
    pub line: u64,
    /// Token counts of all its API calls.
    pub tokens: Tokens,
    /// Cost of all its API calls.
    pub cost: Usd,
    /// Number of its API calls.
    pub calls: u64,
}

/// One expensive API call.
#[derive(Debug, Clone)]
pub struct Moment {
    /// Turn of the call, from 1.
    pub turn: u32,
    /// Line of its first entry; 0 if it is in a subagent's file.
    pub line: u64,
    /// Model that answered.
    pub model: String,
    /// Tools that it called, each once.
    pub tools: Vec<String>,
    /// Type of the subagent; `None` in the main conversation.
    pub agent: Option<String>,
    /// Token counts of the call.
    pub tokens: Tokens,
    /// Cost of the call.
    pub cost: Usd,
}

/// Collects usage from the lines of a session and its subagents.
#[derive(Debug, Default)]
pub(super) struct MoneyBuilder {
    metrics: MetricsBuilder,
    /// Prompt and line of each turn, by its number.
    prompts: BTreeMap<u32, (String, u64)>,
    /// Text and line of the last local command, which is the prompt of a turn if the model responds.
    pending_command: Option<(String, u64)>,
    /// Line of the first entry of each API message, in the order of the tally.
    lines: Vec<u64>,
    is_in_subagent: bool,
}

impl MoneyBuilder {
    /// Declares which file the next lines come from: that of a subagent, or the session file.
    pub(super) fn enter_file(&mut self, subagent: Option<SubagentRef<'_>>) {
        self.is_in_subagent = subagent.is_some();
        self.metrics.enter_file(subagent);
    }

    pub(super) fn push(&mut self, line: u64, view: &View<'_>) {
        let turn_before = self.metrics.current_turn();
        self.metrics.push(view);
        let is_main = !self.is_in_subagent;
        // After a rewind the turns of the new path have the numbers of those that it replaces.
        let turn = self.metrics.current_turn();
        match self.metrics.line_prompt() {
            Some(command) if command.is_local_command => self.pending_command = Some((command.text.clone(), line)),
            Some(prompt) => drop(self.prompts.insert(turn, (prompt.text.clone(), line))),
            None if turn > turn_before => {
                self.prompts.extend(self.pending_command.take().map(|command| (turn, command)))
            }
            None => {}
        }
        self.lines.resize(self.metrics.usage().messages().len(), if is_main { line } else { 0 });
    }

    /// Prices the messages so far.
    pub(super) fn finish(&self, prices: &Prices) -> Money {
        let mut money = Money::default();
        let mut turns: BTreeMap<u32, TurnMoney> = BTreeMap::new();
        for (turn, (prompt, line)) in &self.prompts {
            let row = TurnMoney { turn: *turn, prompt: prompt.clone(), line: *line, ..TurnMoney::default() };
            turns.insert(*turn, row);
        }
        for (message, line) in self.metrics.usage().messages().iter().zip(&self.lines) {
            if !is_api_call(message) {
                continue;
            }
            let cost = match message.cost(prices) {
                Cost::Priced { usd, .. } => usd,
                Cost::Unpriced { model, .. } => {
                    money.unpriced_models.push(model);
                    Usd::ZERO
                }
            };
            let (turn, agent) = self.turn_and_agent(message);
            let row = turns.entry(turn).or_insert_with(|| TurnMoney { turn, ..TurnMoney::default() });
            row.tokens.add(message.tokens);
            row.cost += cost;
            row.calls += 1;
            money.total += cost;
            *money.agents.entry(agent.clone().unwrap_or_else(|| "main".to_owned())).or_default() += cost;
            money.add_tools(message, cost);
            money.moments.push(Moment {
                turn,
                line: *line,
                model: message.serving.model.clone(),
                tools: message.tools.iter().map(ToString::to_string).collect(),
                agent,
                tokens: message.tokens,
                cost,
            });
        }
        money.turns = turns.into_values().collect();
        money.moments.sort_by(|a, b| b.cost.cmp(&a.cost).then(a.line.cmp(&b.line)));
        money.moments.truncate(MAX_MOMENTS);
        money.unpriced_models.sort_unstable();
        money.unpriced_models.dedup();
        money
    }

    /// Id, title and other facts of the session.
    pub(super) fn facts(&self, prices: &Prices) -> SessionFacts {
        self.metrics.finish(prices).facts
    }

    /// Prompt sizes of the main conversation's API calls, in order.
    pub(super) fn context(&self) -> Vec<ContextSize> {
        let messages = self.metrics.usage().messages().iter().zip(&self.lines);
        let main = messages.filter(|(message, _)| is_api_call(message) && message.agent.is_none());
        main.map(|(message, line)| ContextSize {
            turn: message.turn,
            line: *line,
            tokens: message.tokens,
            model: message.serving.model.clone(),
            time: message.earliest_time,
        })
        .collect()
    }

    /// Turn of a message, and the type of its subagent; `None` for the main conversation.
    fn turn_and_agent(&self, message: &MessageUsage) -> (u32, Option<String>) {
        let Some(agent) = &message.agent else { return (message.turn, None) };
        let known = self.metrics.subagents().get(&**agent);
        let kind = known.and_then(|known| known.agent_type.clone()).unwrap_or_else(|| "subagent".to_owned());
        (known.map_or(0, |known| known.turn), Some(kind))
    }
}

/// Whether a message is the response of an API call, and not written by the program.
fn is_api_call(message: &MessageUsage) -> bool {
    message.has_usage && message.serving.model != SYNTHETIC_MODEL
}

impl Money {
    fn add_tools(&mut self, message: &MessageUsage, cost: Usd) {
        if message.tools.is_empty() {
            *self.tools.entry("(none)".to_owned()).or_default() += cost;
        }
        for (n, tool) in message.tools.iter().enumerate() {
            let share = cost.share(message.tools.len(), n == 0);
            *self.tools.entry(tool.to_string()).or_default() += share;
            if let Some((server, _)) = ToolName::from(&**tool).mcp() {
                *self.mcp.entry(server.to_owned()).or_default() += share;
            }
        }
    }
}

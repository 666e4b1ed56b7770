//! What the running turn has taken so far: time, tokens and cost.

use std::time::Instant;

use quipu_conversation::price::Prices;
use quipu_conversation::usage::{UsageSample, UsageTally};
use quipu_message::api::StreamEvent;
use quipu_message::stream::TurnResult;
use quipu_message::view::UsageView;
use quipu_message::{Entry, Json, Usage, View};
use quipu_render::format;

/// Time, tokens and cost of the running turn.
#[derive(Debug)]
pub(crate) struct TurnStatus {
    prices: Prices,
    /// Start of the running turn; `None` between turns.
    started: Option<Instant>,
    usage: UsageTally,
    /// Id, model and usage of the message that is being streamed.
    streamed: Option<(String, String, UsageView)>,
    /// Cost of the session up to the last result, in US dollars.
    earlier_cost: f64,
}

impl TurnStatus {
    pub(crate) fn new(prices: Prices) -> Self {
        Self { prices, started: None, usage: UsageTally::default(), streamed: None, earlier_cost: 0.0 }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.started.is_some()
    }

    /// Starts a turn, unless one is running.
    pub(crate) fn start(&mut self, now: Instant) {
        self.started.get_or_insert(now);
    }

    pub(crate) fn stop(&mut self) {
        self.started = None;
    }

    /// Counts the usage of a message of the agent.
    pub(crate) fn count(&mut self, entry: &Entry, line: &str) {
        match entry {
            Entry::StreamEvent(event) => self.count_event(&event.event),
            Entry::Assistant(_) => {
                if let Ok(view) = View::read(line) {
                    self.usage.add_sample(UsageSample::from(&view));
                }
            }
            Entry::Result(result) => self.count_result(result),
            _ => {}
        }
    }

    fn count_event(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::MessageStart(start) => {
                let message = &start.message;
                let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
                let usage = message.usage.get().map(usage_view).unwrap_or_default();
                self.streamed = Some((text(message.id.get().map(|id| id.as_str())), text(message.model.text()), usage));
            }
            StreamEvent::MessageDelta(delta) => {
                if let (Some((_, _, usage)), Some(new)) = (&mut self.streamed, delta.usage.get()) {
                    usage.output = usage.output.max(usage_view(new).output);
                }
            }
            _ => return,
        }
        if let Some((id, model, usage)) = &self.streamed {
            self.usage.add_sample(UsageSample {
                message_id: Some(id),
                model: Some(model),
                usage: Some(usage.clone()),
                ..UsageSample::default()
            });
        }
    }

    fn count_result(&mut self, result: &TurnResult) {
        let counted = self.turn_cost();
        let total = result.total_cost_usd.get().and_then(serde_json::Number::as_f64);
        self.earlier_cost = total.unwrap_or(self.earlier_cost + counted);
        (self.usage, self.streamed) = (UsageTally::default(), None);
    }

    /// Cost of the messages of the turn, as far as their prices are known.
    fn turn_cost(&self) -> f64 {
        let costs = self.usage.messages().iter().filter_map(|message| message.cost(&self.prices).usd());
        costs.map(|cost| cost.as_f64()).sum()
    }

    /// The status line; `None` between turns.
    pub(crate) fn line(&self, now: Instant) -> Option<String> {
        let elapsed = now.saturating_duration_since(self.started?).as_secs_f64();
        let (mut input, mut output) = (0, 0);
        for message in self.usage.messages() {
            input += message.tokens.prompt();
            output += message.tokens.output;
        }
        let mut parts = vec![format::duration(elapsed)];
        if input + output > 0 {
            parts.push(format!("{} in, {} out", format::tokens(input), format::tokens(output)));
        }
        let cost = self.earlier_cost + self.turn_cost();
        if cost > 0.0 {
            parts.push(format!("{} so far", format::money(cost)));
        }
        parts.push("Esc interrupts".to_owned());
        Some(parts.join(" · "))
    }
}

fn usage_view(usage: &Usage) -> UsageView {
    Json::from_serialize(usage).read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn count(status: &mut TurnStatus, line: &str) {
        status.count(&Entry::read(line).unwrap(), line);
    }

    #[test]
    fn tokens_and_cost_grow_with_the_stream_and_count_once() {
        let mut status = TurnStatus::new(Prices::bundled());
        let start = Instant::now();
        assert_eq!(status.line(start), None);
        status.start(start);
        assert_eq!(status.line(start).unwrap(), "0 s · Esc interrupts");
        count(
            &mut status,
            r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"m1","role":"assistant","model":"claude-opus-4-5","content":[],"usage":{"input_tokens":2000,"output_tokens":1}}}}"#,
        );
        count(
            &mut status,
            r#"{"type":"stream_event","event":{"type":"message_delta","delta":{},"usage":{"output_tokens":1000}}}"#,
        );
        count(
            &mut status,
            r#"{"type":"assistant","uuid":"a","message":{"id":"m1","role":"assistant","model":"claude-opus-4-5","content":[],"usage":{"input_tokens":2000,"output_tokens":1}}}"#,
        );
        let later = start + Duration::from_secs(63);
        // 2,000 tokens at $5 and 1,000 at $25 a million.
        assert_eq!(status.line(later).unwrap(), "1 min 3 s · 2.0k in, 1.0k out · $0.04 so far · Esc interrupts");
        count(&mut status, r#"{"type":"result","subtype":"success","is_error":false,"total_cost_usd":0.5}"#);
        assert_eq!(status.line(later).unwrap(), "1 min 3 s · $0.50 so far · Esc interrupts");
        status.stop();
        assert_eq!(status.line(later), None);
    }
}

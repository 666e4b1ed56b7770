//! Facts about a session for the start of a document.

use quipu_conversation::{Conversation, Metrics, SkeletonView};
use quipu_message::Envelope;

use crate::format::{self, truncate};
use crate::sanitize::sanitize_line;

/// Facts about a session, as text for the reader; `None` if not known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionDetails {
    /// Title of the session.
    pub title: Option<String>,
    /// Id of the session.
    pub session_id: Option<String>,
    /// Working directory; paths under it are shown relative to it.
    pub cwd: Option<String>,
    /// Git branch of the session.
    pub git_branch: Option<String>,
    /// Names of the models used.
    pub model: Option<String>,
    /// Time of the first entry, with its zone.
    pub started: Option<String>,
    /// Time of the last entry, with its zone.
    pub ended: Option<String>,
    /// Time from the first entry to the last.
    pub duration: Option<String>,
    /// Number of turns.
    pub turns: Option<String>,
    /// Token counts of the session.
    pub tokens: Option<String>,
    /// Cost of its API calls.
    pub cost: Option<String>,
    /// Tool calls by tool.
    pub tools: Option<String>,
    /// Number of failed tool calls and API calls.
    pub errors: Option<String>,
    /// Number and kind of items that are left out; terminal output prints it on stderr instead.
    pub not_shown: Option<String>,
}

impl SessionDetails {
    /// Facts about a session. Without metrics, only those in the conversation itself.
    pub fn new(conversation: &Conversation, metrics: Option<&Metrics>, format_time: fn(&str) -> String) -> Self {
        let path = conversation.path();
        let envelopes = || path.iter().filter_map(|node| node.entry.envelope());
        let model = path.iter().rev().find_map(|node| node.assistant()?.message.model.text());
        let time = |mut stamps: Box<dyn Iterator<Item = &str> + '_>| stamps.next().map(format_time);
        let mut details = Self {
            title: conversation.headline().map(|line| truncate(&line, 80)),
            session_id: conversation.session_id().map(ToString::to_string),
            cwd: envelopes().find_map(|e| e.cwd.text()).map(str::to_owned),
            git_branch: envelopes().find_map(|e| e.git_branch.text()).filter(|b| *b != "HEAD").map(str::to_owned),
            model: model.map(str::to_owned),
            started: time(Box::new(path.iter().filter_map(|node| node.timestamp()))),
            ended: time(Box::new(path.iter().rev().filter_map(|node| node.timestamp()))),
            ..Self::default()
        };
        if let Some(metrics) = metrics {
            details.add_totals(metrics, format_time);
        }
        details
    }

    /// Adds the totals of a session: counted in its files, or taken from an index.
    pub fn add_totals(&mut self, metrics: &Metrics, format_time: fn(&str) -> String) {
        if !metrics.models.is_empty() {
            self.model = Some(metrics.models.join(", "));
        }
        self.started = metrics.started_at.as_deref().map(format_time).or(self.started.take());
        self.ended = metrics.ended_at.as_deref().map(format_time).or(self.ended.take());
        self.duration = Some(format::duration(metrics.duration_secs)).filter(|_| metrics.duration_secs >= 1.0);
        self.turns = Some(metrics.turns.to_string()).filter(|_| metrics.turns > 0);
        let tokens = &metrics.tokens;
        if tokens.total() > 0 {
            self.tokens = Some(format!(
                "{} tokens in ({} cached), {} out",
                format::tokens(tokens.prompt()),
                format::tokens(tokens.cache_read),
                format::tokens(tokens.output)
            ));
            self.cost = Some(cost_with_unpriced(metrics));
        }
        let tools: Vec<String> = metrics.tools.iter().map(|(name, calls)| format!("{name} {calls}")).collect();
        self.tools = Some(tools.join(", ")).filter(|tools| !tools.is_empty());
        self.errors = Some(metrics.errors.to_string()).filter(|_| metrics.errors > 0);
    }

    /// Facts about a session of which only a part is shown: those in its first and last entries.
    /// Totals are left out, because counting them means reading the whole file;
    /// [`add_totals`](Self::add_totals) adds those that are known.
    pub fn from_part(session: SkeletonView<'_>, format_time: fn(&str) -> String) -> Self {
        let first = |text: fn(&Envelope) -> Option<&str>| {
            session.find_first(|node| node.entry.envelope().and_then(text).map(str::to_owned))
        };
        let time = |timestamp: Option<String>| timestamp.as_deref().map(format_time);
        Self {
            title: session.headline().map(|line| truncate(&line, 80)),
            session_id: session.session_id().map(ToString::to_string),
            cwd: first(|e| e.cwd.text()),
            git_branch: first(|e| e.git_branch.text()).filter(|branch| branch != "HEAD"),
            model: session.find_last(|node| node.assistant()?.message.model.text().map(str::to_owned)),
            started: time(session.find_first(|node| node.timestamp().map(str::to_owned))),
            ended: time(session.find_last(|node| node.timestamp().map(str::to_owned))),
            turns: Some(session.turns().len()).filter(|&turns| turns > 0).map(|turns| turns.to_string()),
            ..Self::default()
        }
    }

    /// The title, or `Conversation` if there is none; sanitized, on one line.
    pub(crate) fn heading(&self) -> String {
        let title = self.title.as_deref().map(sanitize_line).filter(|title| !title.is_empty());
        title.unwrap_or_else(|| "Conversation".to_owned())
    }

    /// The facts that are known, each with its name; sanitized.
    pub(crate) fn labelled_values(&self) -> Vec<(&'static str, String)> {
        let all = [
            ("session", &self.session_id),
            ("folder", &self.cwd),
            ("branch", &self.git_branch),
            ("model", &self.model),
            ("started", &self.started),
            ("ended", &self.ended),
            ("duration", &self.duration),
            ("turns", &self.turns),
            ("tokens", &self.tokens),
            ("cost", &self.cost),
            ("tools", &self.tools),
            ("errors", &self.errors),
            ("not shown", &self.not_shown),
        ];
        all.into_iter().filter_map(|(name, fact)| Some((name, sanitized_value(fact)?))).collect()
    }

    /// The facts in up to three lines for a terminal; sanitized. Empty if no fact is known.
    pub(crate) fn summary_lines(&self) -> Vec<String> {
        let named = |fact: &Option<String>, one: &str, many: &str| {
            sanitized_value(fact).map(|n| if n == "1" { format!("1 {one}") } else { format!("{n} {many}") })
        };
        let lines = [
            vec![sanitized_value(&self.session_id), sanitized_value(&self.cwd), sanitized_value(&self.git_branch)],
            vec![self.format_period(), sanitized_value(&self.duration), named(&self.turns, "turn", "turns")],
            vec![
                sanitized_value(&self.model),
                sanitized_value(&self.tokens),
                sanitized_value(&self.cost),
                named(&self.errors, "error", "errors"),
            ],
        ];
        let lines = lines.into_iter().map(|facts| facts.into_iter().flatten().collect::<Vec<_>>().join(" · "));
        lines.filter(|line| !line.is_empty()).collect()
    }

    /// Start and end, without repeating a common day or time zone.
    fn format_period(&self) -> Option<String> {
        let started = sanitized_value(&self.started)?;
        let Some(ended) = sanitized_value(&self.ended).filter(|ended| *ended != started) else { return Some(started) };
        let zone = |text: &str| text.splitn(3, ' ').nth(2).map(str::to_owned);
        let from = match zone(&started) {
            Some(same) if zone(&ended).as_ref() == Some(&same) => started.trim_end_matches(&same).trim_end(),
            _ => &started,
        };
        let to = match (started.split_once(' '), ended.split_once(' ')) {
            (Some((day, _)), Some((same, time))) if day == same => time,
            _ => &ended,
        };
        Some(format!("{from} – {to}"))
    }

    /// The texts that may have something to mask.
    pub(crate) fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let Self { title, session_id, cwd, git_branch, model, tools, .. } = self;
        [title, session_id, cwd, git_branch, model, tools].into_iter().flatten()
    }

    pub(crate) fn base_folder(&self) -> &str {
        self.cwd.as_deref().unwrap_or_default()
    }
}

fn sanitized_value(fact: &Option<String>) -> Option<String> {
    fact.as_deref().map(sanitize_line).filter(|fact| !fact.is_empty())
}

/// Describes the number of hidden items; `None` if there are none.
pub fn hidden_summary(count: usize) -> Option<String> {
    (count > 0).then(|| format!("{} (texts for the model, measurements)", format::count(count, "hidden item")))
}

fn cost_with_unpriced(metrics: &Metrics) -> String {
    let known = format::cost(metrics.cost_usd, metrics.unpriced_models.len());
    match metrics.unpriced_models.as_slice() {
        [] => known,
        models => format!("{known} (no price for {})", models.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::SessionDetails;

    #[test]
    fn common_parts_of_start_and_end_are_shown_once() {
        let lines = |started: &str, ended: &str| {
            let fact = |text: &str| Some(text.to_owned());
            SessionDetails { started: fact(started), ended: fact(ended), turns: fact("1"), ..SessionDetails::default() }
                .summary_lines()
        };
        assert_eq!(lines("2026-11-03 10:41 CET", "2026-11-03 11:05 CET"), ["2026-11-03 10:41 – 11:05 CET · 1 turn"]);
        assert_eq!(
            lines("2026-10-24 23:41 CEST", "2026-10-25 03:05 CET"),
            ["2026-10-24 23:41 CEST – 2026-10-25 03:05 CET · 1 turn"]
        );
        assert_eq!(lines("2026-11-03 10:41 CET", "2026-11-03 10:41 CET"), ["2026-11-03 10:41 CET · 1 turn"]);
    }
}

//! Facts about a session for the start of a document.

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

//! Collects facts about a session for the header of `show` and `export`.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use quipu_conversation::{Conversation, Metrics, SkeletonView};
use quipu_message::Envelope;
use quipu_render::SessionDetails;

use crate::format;
use crate::table::truncate;

/// Facts about a session. Without metrics, only those in the conversation itself.
pub(crate) fn session_details(conversation: &Conversation, metrics: Option<&Metrics>) -> SessionDetails {
    let path = conversation.path();
    let envelopes = || path.iter().filter_map(|node| node.entry.envelope());
    let model = path.iter().rev().find_map(|node| node.assistant()?.message.model.text());
    let time = |mut stamps: Box<dyn Iterator<Item = &str> + '_>| stamps.next().map(local_time_with_zone);
    let mut details = SessionDetails {
        title: conversation.headline().map(|line| truncate(&line, 80)),
        session_id: conversation.session_id().map(ToString::to_string),
        cwd: envelopes().find_map(|e| e.cwd.text()).map(str::to_owned),
        git_branch: envelopes().find_map(|e| e.git_branch.text()).filter(|b| *b != "HEAD").map(str::to_owned),
        model: model.map(str::to_owned),
        started: time(Box::new(path.iter().filter_map(|node| node.timestamp()))),
        ended: time(Box::new(path.iter().rev().filter_map(|node| node.timestamp()))),
        ..SessionDetails::default()
    };
    let Some(metrics) = metrics else { return details };
    if !metrics.models.is_empty() {
        details.model = Some(metrics.models.join(", "));
    }
    details.started = metrics.started_at.as_deref().map(local_time_with_zone).or(details.started);
    details.ended = metrics.ended_at.as_deref().map(local_time_with_zone).or(details.ended);
    details.duration = Some(format::duration(metrics.duration_secs)).filter(|_| metrics.duration_secs >= 1.0);
    details.turns = Some(metrics.turns.to_string()).filter(|_| metrics.turns > 0);
    let tokens = &metrics.tokens;
    if tokens.total() > 0 {
        details.tokens = Some(format!(
            "{} tokens in ({} cached), {} out",
            format::tokens(tokens.prompt()),
            format::tokens(tokens.cache_read),
            format::tokens(tokens.output)
        ));
        details.cost = Some(cost_with_unpriced(metrics));
    }
    let tools: Vec<String> = metrics.tools.iter().map(|(name, calls)| format!("{name} {calls}")).collect();
    details.tools = Some(tools.join(", ")).filter(|tools| !tools.is_empty());
    details.errors = Some(metrics.errors.to_string()).filter(|_| metrics.errors > 0);
    details
}

/// Facts about a session of which only a part is shown: those in its first and last entries.
/// Totals are left out, because counting them means reading the whole file.
pub(crate) fn part_details(session: SkeletonView<'_>) -> SessionDetails {
    let first = |text: fn(&Envelope) -> Option<&str>| {
        session.find_first(|node| node.entry.envelope().and_then(text).map(str::to_owned))
    };
    let time = |timestamp: Option<String>| timestamp.as_deref().map(local_time_with_zone);
    SessionDetails {
        title: session.headline().map(|line| truncate(&line, 80)),
        session_id: session.session_id().map(ToString::to_string),
        cwd: first(|e| e.cwd.text()),
        git_branch: first(|e| e.git_branch.text()).filter(|branch| branch != "HEAD"),
        model: session.find_last(|node| node.assistant()?.message.model.text().map(str::to_owned)),
        started: time(session.find_first(|node| node.timestamp().map(str::to_owned))),
        ended: time(session.find_last(|node| node.timestamp().map(str::to_owned))),
        turns: Some(session.turns().len()).filter(|&turns| turns > 0).map(|turns| turns.to_string()),
        ..SessionDetails::default()
    }
}

/// Describes the number of hidden items; `None` if there are none.
pub(crate) fn hidden_summary(count: usize) -> Option<String> {
    (count > 0).then(|| format!("{} (texts for the model, measurements)", format::count(count, "hidden item")))
}

fn cost_with_unpriced(metrics: &Metrics) -> String {
    let known = format::cost(metrics.cost_usd, metrics.unpriced_models.len());
    match metrics.unpriced_models.as_slice() {
        [] => known,
        models => format!("{known} (no price for {})", models.join(", ")),
    }
}

/// A timestamp in the local time zone with its abbreviation; unchanged if it cannot be parsed.
fn local_time_with_zone(timestamp: &str) -> String {
    match timestamp.parse::<Timestamp>() {
        Ok(time) => time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M %Z").to_string(),
        Err(_) => timestamp.to_owned(),
    }
}

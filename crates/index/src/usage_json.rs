//! Usage reports as JSON.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::listed_session::ListedSession;
use crate::usage::{GroupBy, UsageReport};

/// A report in the shape of `quipu usage --json`. Each row also has its key under a specific name,
/// such as `date`, and the fields of its session. `token_limit` is what blocks are compared with.
pub fn usage_json(
    report: &UsageReport,
    group_by: GroupBy,
    sessions: &[ListedSession],
    token_limit: Option<u64>,
) -> Value {
    // Fails only for maps whose keys are not text; there are none.
    let mut document = serde_json::to_value(report).unwrap_or_default();
    let sessions: HashMap<&str, &ListedSession> =
        sessions.iter().rev().map(|session| (session.session_id.as_str(), session)).collect();
    let rows = document["rows"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut);
    for (row, counted) in rows.zip(&report.rows) {
        let key = row["key"].as_str().unwrap_or_default().to_owned();
        let mut more = |name: &str, value: Value| {
            row.entry(name.to_owned()).or_insert(value);
        };
        match group_by {
            GroupBy::Day => more("date", json!(key)),
            GroupBy::Week => more("week", json!(key)),
            GroupBy::Month => more("month", json!(key)),
            GroupBy::Model => more("model", json!(key)),
            GroupBy::Tool => more("tool", json!(key)),
            GroupBy::Agent => more("agent", json!(key)),
            GroupBy::Block => {
                if let Some(limit) = token_limit {
                    more("token_limit", json!(limit));
                    more("token_limit_used", json!(counted.tokens.total() as f64 / limit as f64));
                }
            }
            GroupBy::Project => {
                let cwd = sessions.values().find(|session| session.project == key).and_then(|s| s.cwd.clone());
                more("project", json!(key));
                more("cwd", json!(cwd));
            }
            GroupBy::Session => add_session_fields(row, &key, &sessions),
            GroupBy::Turn => {
                let (session, turn) = key.rsplit_once(':').unwrap_or((&key, "0"));
                more("turn", json!(turn.parse::<u32>().unwrap_or_default()));
                add_session_fields(row, session, &sessions);
            }
        }
    }
    document
}

fn add_session_fields(row: &mut Map<String, Value>, id: &str, sessions: &HashMap<&str, &ListedSession>) {
    row.insert("session_id".to_owned(), json!(id));
    if let Some(session) = sessions.get(id) {
        row.insert("project".to_owned(), json!(session.project));
        row.insert("cwd".to_owned(), json!(session.cwd));
        row.insert("title".to_owned(), json!(session.title.as_ref().or(session.first_prompt.as_ref())));
    }
}

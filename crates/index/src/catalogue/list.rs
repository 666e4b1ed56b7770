//! Lists the sessions of the index.

use std::cmp::Reverse;
use std::collections::HashMap;

use rusqlite::Connection;

use crate::listed_session::ListedSession;

/// Existing sessions, or those whose files were deleted; latest first.
pub(super) fn list_sessions(db: &Connection, vanished: bool) -> rusqlite::Result<Vec<ListedSession>> {
    let mut select = db.prepare_cached(
        "SELECT listed, (SELECT max(modified) FROM file WHERE session = session.id AND NOT gone)
         FROM session JOIN story ON story.session = session.id WHERE NOT gone AND vanished = ?",
    )?;
    let mut rows = select.query([vanished])?;
    let mut listed = Vec::new();
    while let Some(row) = rows.next()? {
        let session = ListedSession::from_stored(row.get_ref(0)?.as_str()?, None);
        let modified: Option<i64> = row.get(1)?;
        listed.extend(session.map(|session| ListedSession { modified_ns: modified.unwrap_or_default(), ..session }));
    }
    listed.sort_by_cached_key(|session| (Reverse(session.last_active_ns()), session.path.clone()));
    set_forked_from(&mut listed);
    set_continues(&mut listed);
    Ok(listed)
}

/// Sets `forked_from`: a fork has the same first entry as an earlier session, or names it.
fn set_forked_from(sessions: &mut [ListedSession]) {
    let mut earliest: HashMap<String, (Option<String>, String)> = HashMap::new();
    for session in sessions.iter() {
        let Some(uuid) = &session.links.first_uuid else { continue };
        let this = (session.ended_at.clone(), session.session_id.clone());
        let first = earliest.entry(uuid.clone()).or_insert_with(|| this.clone());
        if this < *first {
            *first = this;
        }
    }
    for session in sessions {
        let first = session.links.first_uuid.as_ref().and_then(|uuid| earliest.get(uuid));
        let shared = first.map(|(_, id)| id.clone()).filter(|id| *id != session.session_id);
        session.forked_from = shared.or_else(|| session.links.forked_from.clone());
    }
}

/// Sets `continues`: an old-style compaction started a new file that names the last entry
/// of the old one.
fn set_continues(sessions: &mut [ListedSession]) {
    let last = |session: &ListedSession| Some((session.links.last_uuid.clone()?, session.session_id.clone()));
    let by_last: HashMap<String, String> = sessions.iter().filter_map(last).collect();
    for session in sessions {
        session.continues = session.links.continues_leaf.as_ref().and_then(|leaf| by_last.get(leaf)).cloned();
    }
}

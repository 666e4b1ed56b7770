//! A line copied into another session under ids of its own.

use serde::Serialize;

use super::{Fields, Line, SpliceError};
use crate::text::Str;
use crate::{SessionId, Uuid};

/// Where a line names lines of its session.
enum Names {
    /// One id.
    One(&'static str),
    /// A list of ids.
    Many(&'static str),
    /// An object that names lines.
    In(&'static str, &'static [Names]),
}

const NAMES: &[Names] = &[
    Names::One("uuid"),
    Names::One("parentUuid"),
    Names::One("logicalParentUuid"),
    Names::One("sourceToolAssistantUUID"),
    Names::One("refusedUserMessageUuid"),
    Names::In(
        "compactMetadata",
        &[
            Names::In("preservedSegment", &[Names::One("headUuid"), Names::One("anchorUuid"), Names::One("tailUuid")]),
            Names::In("preservedMessages", &[Names::One("anchorUuid"), Names::Many("uuids"), Names::Many("allUuids")]),
        ],
    ),
];

/// A withdrawal holds the line it withdraws.
const WITHDRAWN: &[Names] = &[Names::One("uuid"), Names::One("parentUuid"), Names::In("message", NAMES)];

/// Which line a line is a copy of.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ForkedFrom<'a> {
    session_id: &'a SessionId,
    message_uuid: &'a str,
}

impl Line {
    /// The line as a copy under another id: `rename` says what each line it names is
    /// called now, and the copy says which line of which session it was made from.
    /// Every other byte is kept.
    pub fn copy_of(&self, session: &SessionId, rename: &mut dyn FnMut(&str) -> Uuid) -> Result<Self, SpliceError> {
        let mended = super::mend(&self.0);
        let field = |key| crate::text::field(&mended, key).ok().flatten();
        let names = if field("type").as_deref() == Some("tombstone") { WITHDRAWN } else { NAMES };
        let mut changes = Vec::new();
        find(&self.0, 0, names, rename, &mut changes);
        changes.sort_unstable_by_key(|(start, _, _)| *start);
        let (mut text, mut kept) = (String::with_capacity(self.0.len()), 0);
        for (start, end, name) in changes {
            text.push_str(&self.0[kept..start]);
            text.push_str(&name);
            kept = end;
        }
        text.push_str(&self.0[kept..]);
        let copy = Self(text.into());
        match field("uuid") {
            Some(uuid) => copy.with(&["forkedFrom"], &ForkedFrom { session_id: session, message_uuid: &uuid }),
            None => Ok(copy),
        }
    }
}

/// Finds the ids in an object that begins at `base`, with what to write instead.
fn find(
    object: &str,
    base: usize,
    names: &[Names],
    rename: &mut dyn FnMut(&str) -> Uuid,
    changes: &mut Vec<(usize, usize, String)>,
) {
    let Ok(fields) = serde_json::from_str::<Fields<'_>>(object) else { return };
    for (key, raw) in &fields.0 {
        let raw = raw.get();
        let start = base + raw.as_ptr().addr() - object.as_ptr().addr();
        let changed = match names.iter().find(|name| name.key() == &**key) {
            Some(Names::One(_)) => serde_json::from_str::<Str<'_>>(raw).ok().map(|id| quoted(&rename(&id))),
            Some(Names::Many(_)) => serde_json::from_str::<Vec<Str<'_>>>(raw).ok().map(|ids| {
                let ids: Vec<String> = ids.iter().map(|id| quoted(&rename(id))).collect();
                format!("[{}]", ids.join(","))
            }),
            Some(Names::In(_, inner)) => {
                find(raw, start, inner, rename, changes);
                None
            }
            None => None,
        };
        changes.extend(changed.map(|name| (start, start + raw.len(), name)));
    }
}

fn quoted(id: &Uuid) -> String {
    serde_json::Value::from(id.as_str()).to_string()
}

impl Names {
    fn key(&self) -> &'static str {
        match self {
            Self::One(key) | Self::Many(key) | Self::In(key, _) => key,
        }
    }
}

//! A line copied into another session under ids of its own.

use serde::Serialize;

use super::{Line, ObjectFields, SpliceError};
use crate::text::Str;
use crate::{SessionId, Uuid};

/// Where a line names lines of its session.
enum UuidField {
    /// One id.
    Single(&'static str),
    /// A list of ids.
    List(&'static str),
    /// An object that names lines.
    Object(&'static str, &'static [UuidField]),
}

const UUID_FIELDS: &[UuidField] = &[
    UuidField::Single("uuid"),
    UuidField::Single("parentUuid"),
    UuidField::Single("logicalParentUuid"),
    UuidField::Single("sourceToolAssistantUUID"),
    UuidField::Single("refusedUserMessageUuid"),
    UuidField::Object(
        "compactMetadata",
        &[
            UuidField::Object(
                "preservedSegment",
                &[UuidField::Single("headUuid"), UuidField::Single("anchorUuid"), UuidField::Single("tailUuid")],
            ),
            UuidField::Object(
                "preservedMessages",
                &[UuidField::Single("anchorUuid"), UuidField::List("uuids"), UuidField::List("allUuids")],
            ),
        ],
    ),
];

/// A withdrawal holds the line it withdraws.
const TOMBSTONE_UUID_FIELDS: &[UuidField] =
    &[UuidField::Single("uuid"), UuidField::Single("parentUuid"), UuidField::Object("message", UUID_FIELDS)];

/// Which line a line is a copy of.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ForkedFrom<'a> {
    session_id: &'a SessionId,
    message_uuid: &'a str,
}

impl Line {
    /// A copy of the line with new ids: `rename` returns the new id of each entry that the line refers to.
    /// The copy also refers to its original. Every other byte is kept.
    pub fn copy_with_new_ids(
        &self,
        session: &SessionId,
        rename: &mut dyn FnMut(&str) -> Uuid,
    ) -> Result<Self, SpliceError> {
        let mended = super::replace_lone_surrogates(&self.0);
        let field = |key| crate::text::find_string_field(&mended, key).ok().flatten();
        let names = if field("type").as_deref() == Some("tombstone") { TOMBSTONE_UUID_FIELDS } else { UUID_FIELDS };
        let mut changes = Vec::new();
        collect_replacements(&self.0, 0, names, rename, &mut changes);
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
            Some(uuid) => copy.with_field(&["forkedFrom"], &ForkedFrom { session_id: session, message_uuid: &uuid }),
            None => Ok(copy),
        }
    }
}

/// Finds the ids in an object that begins at `base`, with what to write instead.
fn collect_replacements(
    object: &str,
    base: usize,
    names: &[UuidField],
    rename: &mut dyn FnMut(&str) -> Uuid,
    changes: &mut Vec<(usize, usize, String)>,
) {
    let Ok(fields) = serde_json::from_str::<ObjectFields<'_>>(object) else { return };
    for (key, raw) in &fields.0 {
        let raw = raw.get();
        let start = base + raw.as_ptr().addr() - object.as_ptr().addr();
        let changed = match names.iter().find(|name| name.key() == &**key) {
            Some(UuidField::Single(_)) => {
                serde_json::from_str::<Str<'_>>(raw).ok().map(|id| to_json_string(&rename(&id)))
            }
            Some(UuidField::List(_)) => serde_json::from_str::<Vec<Str<'_>>>(raw).ok().map(|ids| {
                let ids: Vec<String> = ids.iter().map(|id| to_json_string(&rename(id))).collect();
                format!("[{}]", ids.join(","))
            }),
            Some(UuidField::Object(_, inner)) => {
                collect_replacements(raw, start, inner, rename, changes);
                None
            }
            None => None,
        };
        changes.extend(changed.map(|name| (start, start + raw.len(), name)));
    }
}

fn to_json_string(id: &Uuid) -> String {
    serde_json::Value::from(id.as_str()).to_string()
}

impl UuidField {
    fn key(&self) -> &'static str {
        match self {
            Self::Single(key) | Self::List(key) | Self::Object(key, _) => key,
        }
    }
}

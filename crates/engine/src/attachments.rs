//! New attachment entries.

use quipu_message::attachment::{Attachment, AttachmentEntry, RenderedMessage};
use quipu_message::{Content, Entry, Envelope, Maybe, Role};

use crate::clock::{new_id, now};

/// An attachment entry with a new id and the current time. The model does not see it.
pub(crate) fn new_attachment(attachment: Attachment) -> AttachmentEntry {
    let envelope = Envelope { uuid: Maybe::Value(new_id()), timestamp: Maybe::Value(now()), ..Envelope::default() };
    AttachmentEntry { attachment, envelope, ..AttachmentEntry::default() }
}

/// An attachment entry that the model sees as user messages of these texts.
pub(crate) fn rendered_attachment(attachment: Attachment, texts: Vec<String>) -> Entry {
    let piece = |text| RenderedMessage { content: Maybe::Value(Content::Text(text)), ..RenderedMessage::default() };
    let line = AttachmentEntry {
        rendered: Maybe::Value(texts.into_iter().map(piece).collect()),
        rendered_role: Maybe::Value(Role::User),
        ..new_attachment(attachment)
    };
    Entry::Attachment(Box::new(line))
}

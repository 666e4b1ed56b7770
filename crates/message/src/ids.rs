//! Ids are text, and child ids are derived from their parent's.

use crate::macros::ids;

ids! {
    /// Names a session: its file, and every line of it.
    SessionId,
    /// Names one line of a conversation.
    Uuid,
    /// Names one API message; several lines may carry it.
    MessageId,
    /// Names one tool call and its result.
    ToolUseId,
    /// Names one call of the API.
    RequestId,
    /// Names a subagent and its file.
    AgentId,
}

impl Uuid {
    /// The id of the `index`th block when a line is split into its blocks: the
    /// first 24 characters kept, the index as 12 hex digits. The same split
    /// always gives the same ids. An id shorter than that is kept whole.
    ///
    /// ```
    /// use quipu_message::Uuid;
    /// let line = Uuid::from("e79bb003-9477-43a0-856a-b8922ff833ba");
    /// assert_eq!(line.child(1).as_str(), "e79bb003-9477-43a0-856a-000000000001");
    /// ```
    pub fn child(&self, index: usize) -> Self {
        let id = self.as_str();
        let stem = id.char_indices().nth(24).map_or(id, |(end, _)| &id[..end]);
        Self::from(format!("{stem}{index:012x}"))
    }

    /// Whether the id has the shape of a derived one: a UUID whose last group is
    /// a small number. Newer files and streams carry such ids already.
    pub fn is_child(&self) -> bool {
        let id = self.as_str().as_bytes();
        id.len() == 36 && id[23] == b'-' && id[24..32].iter().all(|&b| b == b'0')
    }
}

/// Makes the ids and times a factory fills in; tests pass fixed ones.
pub trait StampSource {
    /// A fresh id for a line or a message.
    fn new_uuid(&mut self) -> Uuid;
    /// The present moment, as ISO 8601 text in UTC with milliseconds.
    fn now(&mut self) -> String;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn child_ids_are_stable_and_differ_by_index() {
        let id = Uuid::from("e79bb003-9477-43a0-856a-b8922ff833ba");
        assert_eq!(id.child(0), id.child(0));
        assert_eq!(id.child(255).as_str(), "e79bb003-9477-43a0-856a-0000000000ff");
        assert!(id.child(3).is_child() && !id.is_child());
    }

    #[test]
    fn an_id_that_is_no_uuid_keeps_its_first_24_characters() {
        assert_eq!(Uuid::from("line-7").child(2).as_str(), "line-7000000000002");
        assert_eq!(Uuid::from("é".repeat(30)).child(0).as_str(), format!("{}000000000000", "é".repeat(24)));
    }
}

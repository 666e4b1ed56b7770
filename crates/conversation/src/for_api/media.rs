//! Images and documents that the API refused as too large.

use std::borrow::Cow;
use std::collections::HashMap;

use quipu_message::user_assistant::Assistant;
use quipu_message::{Block, Content, Entry, Maybe};

use super::is_sent;
use crate::conversation::Node;

/// Which pictures or documents were too large to send.
#[derive(Clone, Copy)]
pub(super) struct RejectedMedia {
    images: bool,
    documents: bool,
}

impl RejectedMedia {
    /// What a failed call complained of.
    pub(super) fn from_api_error(line: &Assistant) -> Option<Self> {
        if !line.is_api_error() {
            return None;
        }
        let text = line.message.content.to_text().to_lowercase();
        if !(text.contains("too large") || text.contains("exceed") && text.contains("max")) {
            return None;
        }
        let (images, documents) = (text.contains("image"), text.contains("pdf") || text.contains("document"));
        let request = text.contains("request too large") || text.contains("request exceeds");
        (images || documents || request).then_some(Self { images: images || request, documents: documents || request })
    }

    fn matches_block(self, block: &Block) -> bool {
        match block {
            Block::Image(_) => self.images,
            Block::Document(_) => self.documents,
            _ => false,
        }
    }

    /// Whether an entry holds such media, also in a tool result.
    fn occurs_in(self, node: &Node) -> bool {
        any_in(node, |block| self.matches_block(block))
    }

    /// Whether an entry holds such media that no API takes.
    fn is_oversized_in(self, node: &Node) -> bool {
        let is_oversized = |block: &Block| match block {
            Block::Image(image) => image.source.data.text().is_some_and(|data| data.len() > MAX_IMAGE_BASE64_BYTES),
            _ => false,
        };
        any_in(node, |block| self.matches_block(block) && is_oversized(block))
    }

    /// Takes the media out; where the user or a tool put them, a note says so.
    pub(super) fn remove_from(self, blocks: &mut Vec<Block>, with_note: bool) {
        if !with_note {
            blocks.retain(|block| !self.matches_block(block));
            return;
        }
        for block in blocks {
            if self.matches_block(block) {
                *block = Block::new_text(REMOVED_MEDIA_TEXT);
            } else if let Block::ToolResult(result) = block
                && let Maybe::Value(Content::Blocks(inner)) = &mut result.content
            {
                self.remove_from(inner, true);
            }
        }
    }
}

/// Whether a block of an entry, or one inside a tool result of it, is such.
fn any_in(node: &Node, is_such: impl Fn(&Block) -> bool) -> bool {
    blocks_of(node).iter().any(|block| is_such(block) || result_blocks(block).iter().any(&is_such))
}

/// The blocks of an entry that may hold media.
fn blocks_of(node: &Node) -> Cow<'_, [Block]> {
    match &node.entry {
        Entry::User(line) => Cow::Borrowed(line.message.content.blocks()),
        Entry::Attachment(line) => Cow::Owned(line.for_model()),
        _ => Cow::Borrowed(&[]),
    }
}

/// The blocks inside a tool result.
fn result_blocks(block: &Block) -> &[Block] {
    block.tool_result().map_or(&[], |result| result.blocks())
}

/// The longest image the API takes, in base64.
const MAX_IMAGE_BASE64_BYTES: usize = 5 << 20;

/// Stands for an image or a document that the API refused.
const REMOVED_MEDIA_TEXT: &str =
    "[An image or document was here. The API refused it as too large, so it is no longer sent.]";

/// The entries, by position, whose media a later failure named as too large: of those that
/// came since the last answer the oversized ones, or else all; or else the nearest message
/// of the program that holds any.
pub(super) fn rejected_media(nodes: &[&Node]) -> HashMap<usize, RejectedMedia> {
    let mut strip = HashMap::new();
    for (at, node) in nodes.iter().enumerate() {
        let Some(media) = node.assistant().and_then(RejectedMedia::from_api_error) else { continue };
        let answered = nodes[..at].iter().rposition(|node| node.assistant().is_some_and(is_sent));
        let new = answered.map_or(0, |answered| answered + 1);
        let suspects: Vec<usize> = (new..at).filter(|&i| media.occurs_in(nodes[i])).collect();
        let oversized: Vec<usize> = suspects.iter().copied().filter(|&i| media.is_oversized_in(nodes[i])).collect();
        let guilty = if oversized.is_empty() { suspects } else { oversized };
        let is_meta = |node: &&Node| node.user().is_some_and(|line| line.is_meta.is_true() && media.occurs_in(node));
        let earlier = || nodes[..at].iter().rposition(is_meta);
        let guilty = if guilty.is_empty() { earlier().into_iter().collect() } else { guilty };
        strip.extend(guilty.into_iter().map(|i| (i, media)));
    }
    strip
}

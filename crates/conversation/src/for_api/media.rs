//! Images and documents that the API rejected as too large.

use std::borrow::Cow;
use std::collections::HashMap;

use quipu_message::user_assistant::Assistant;
use quipu_message::{Block, Content, Entry, Maybe};

use super::is_sent;
use crate::node::Node;

/// Which kinds of media an API error reports as too large.
#[derive(Clone, Copy)]
pub(super) struct RejectedMedia {
    images: bool,
    documents: bool,
}

impl RejectedMedia {
    /// Reads an API error; `None` if it is not about the size of media.
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

    /// Whether an entry holds such media, directly or in a tool result.
    fn occurs_in(self, node: &Node) -> bool {
        any_in(node, |block| self.matches_block(block))
    }

    /// Whether an entry holds such media above the limit of the API.
    fn is_oversized_in(self, node: &Node) -> bool {
        let is_oversized = |block: &Block| match block {
            Block::Image(image) => image.source.data.text().is_some_and(|data| data.len() > MAX_IMAGE_BASE64_BYTES),
            _ => false,
        };
        any_in(node, |block| self.matches_block(block) && is_oversized(block))
    }

    /// Removes the media; with a note in their place, or without if the program added them.
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

/// Whether any block of an entry, or inside one of its tool results, matches.
fn any_in(node: &Node, matches: impl Fn(&Block) -> bool) -> bool {
    blocks_of(node).iter().any(|block| matches(block) || result_blocks(block).iter().any(&matches))
}

/// Blocks of an entry that may hold media.
fn blocks_of(node: &Node) -> Cow<'_, [Block]> {
    match &node.entry {
        Entry::User(line) => Cow::Borrowed(line.message.content.blocks()),
        Entry::Attachment(line) => Cow::Owned(line.for_model()),
        _ => Cow::Borrowed(&[]),
    }
}

/// Blocks inside a tool result.
fn result_blocks(block: &Block) -> &[Block] {
    block.tool_result().map_or(&[], |result| result.blocks())
}

/// Largest image that the API accepts, in base64.
const MAX_IMAGE_BASE64_BYTES: usize = 5 << 20;

/// Text that replaces an image or document that the API rejected.
const REMOVED_MEDIA_TEXT: &str =
    "[An image or document was here. The API refused it as too large, so it is no longer sent.]";

/// The entries, by position, whose media must not be sent again.
///
/// An API error does not name the media it rejects. Candidates are the entries since the last
/// response: those with media above the limit, or all with such media if none is above it. If
/// there are none, the media were in the nearest earlier meta entry.
pub(super) fn rejected_media(nodes: &[&Node]) -> HashMap<usize, RejectedMedia> {
    let mut strip = HashMap::new();
    for (index, node) in nodes.iter().enumerate() {
        let Some(media) = node.assistant().and_then(RejectedMedia::from_api_error) else { continue };
        let last_response = nodes[..index].iter().rposition(|node| node.assistant().is_some_and(is_sent));
        let start = last_response.map_or(0, |i| i + 1);
        let candidates: Vec<usize> = (start..index).filter(|&i| media.occurs_in(nodes[i])).collect();
        let oversized: Vec<usize> = candidates.iter().copied().filter(|&i| media.is_oversized_in(nodes[i])).collect();
        let rejected = if oversized.is_empty() { candidates } else { oversized };
        let is_meta = |node: &&Node| node.user().is_some_and(|line| line.is_meta.is_true() && media.occurs_in(node));
        let earlier = || nodes[..index].iter().rposition(is_meta);
        let rejected = if rejected.is_empty() { earlier().into_iter().collect() } else { rejected };
        strip.extend(rejected.into_iter().map(|i| (i, media)));
    }
    strip
}

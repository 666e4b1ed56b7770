//! What filled the context of a session.

use std::collections::HashMap;

use quipu_message::View;
use quipu_message::view::{BlockView, ContentView};

use super::report::FilledBy;

/// Counts the bytes that tools, prompts, responses and attachments add to the context.
#[derive(Debug, Default)]
pub(super) struct FillingBuilder {
    tool_names: HashMap<String, String>,
    sources: HashMap<String, (u64, u64)>,
}

impl FillingBuilder {
    /// Adds a line of the main file.
    pub(super) fn push(&mut self, text: &str, view: &View<'_>) {
        if view.is_sidechain == Some(true) {
            return;
        }
        let content = view.message.as_ref().and_then(|message| message.content.as_ref());
        match view.kind.as_deref() {
            Some("assistant") => {
                for block in content.map(ContentView::blocks).unwrap_or_default() {
                    if let (Some(id), Some(name)) = (block.id.as_deref(), block.name.as_deref()) {
                        self.tool_names.insert(id.to_owned(), name.to_owned());
                    }
                    self.add("responses", block_bytes(block));
                }
            }
            Some("user") => match content {
                Some(ContentView::Text(text)) => self.add("prompts", text.len() as u64),
                Some(ContentView::Blocks(blocks)) => blocks.iter().for_each(|block| self.push_user_block(block)),
                None => {}
            },
            Some("attachment") => self.add("attachments", text.len() as u64),
            _ => {}
        }
    }

    /// The sources, the largest first.
    pub(super) fn finish(self) -> Vec<FilledBy> {
        let row = |(source, (count, bytes))| FilledBy { source, count, bytes };
        let mut rows: Vec<FilledBy> = self.sources.into_iter().map(row).collect();
        rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.source.cmp(&b.source)));
        rows
    }

    fn push_user_block(&mut self, block: &BlockView<'_>) {
        let Some(id) = block.tool_use_id.as_deref() else { return self.add("prompts", block_bytes(block)) };
        let source = match self.tool_names.get(id) {
            Some(name) => format!("results of {name}"),
            None => "results of unknown tools".to_owned(),
        };
        self.add(&source, block_bytes(block));
    }

    fn add(&mut self, source: &str, bytes: u64) {
        let (count, sum) = match self.sources.get_mut(source) {
            Some(row) => row,
            None => self.sources.entry(source.to_owned()).or_default(),
        };
        *count += 1;
        *sum += bytes;
    }
}

fn block_bytes(block: &BlockView<'_>) -> u64 {
    let text = block.text.as_deref().map_or(0, str::len);
    let raw = [block.input, block.content].into_iter().flatten().map(|raw| raw.get().len()).sum::<usize>();
    (text + raw) as u64
}

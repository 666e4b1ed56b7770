//! Shows hooks next to the tool call they ran for.

use std::collections::{HashMap, HashSet};

use quipu_message::progress::{ProgressData, ProgressKind};
use quipu_message::{Entry, ToolUseId};

use super::{ItemKind, ScreenItem, item_for_node, notice};
use crate::node::Node;

/// Hook entries by tool call: those that ran before it and those after it.
pub(super) struct HooksByCall<'a> {
    by_call: HashMap<&'a ToolUseId, (Vec<&'a Node>, Vec<&'a Node>)>,
    shown_lines: HashSet<u64>,
}

impl<'a> HooksByCall<'a> {
    pub(super) fn new(path: &[&'a Node], calls: &HashSet<&'a ToolUseId>) -> Self {
        let mut hooks = Self { by_call: HashMap::new(), shown_lines: HashSet::new() };
        for node in path {
            let Some((call, event)) = node.hook_call_and_event().filter(|(call, _)| calls.contains(call)) else {
                continue;
            };
            let (before, after) = hooks.by_call.entry(call).or_default();
            if event.starts_with("Pre") {
                before.push(*node)
            } else {
                after.push(*node)
            }
            hooks.shown_lines.insert(node.line);
        }
        hooks
    }

    /// The items of hooks that ran before and after a tool call.
    pub(super) fn items_for_call(&self, call: &ToolUseId) -> (Vec<ScreenItem>, Vec<ScreenItem>) {
        let Some((before, after)) = self.by_call.get(call) else { return Default::default() };
        let items = |nodes: &[&Node]| nodes.iter().filter_map(|node| hook_item(node)).collect();
        (items(before), items(after))
    }

    pub(super) fn is_shown_with_call(&self, node: &Node) -> bool {
        self.shown_lines.contains(&node.line)
    }
}

/// The item of a hook entry; `None` for other progress, which the tool card shows.
pub(super) fn hook_item(node: &Node) -> Option<ScreenItem> {
    match &node.entry {
        Entry::Progress(line) => match &line.data {
            ProgressData::Tagged(ProgressKind::Hook(hook)) => {
                let name = hook.hook_name.text().unwrap_or_default();
                let text = match hook.command.text() {
                    Some(command) => format!("{name}: {command}"),
                    None => name.to_owned(),
                };
                // The hook has started; its output, if any, is in another entry.
                Some(ScreenItem { text: Some(text), is_silent: true, ..item_for_node(node, ItemKind::Hook) })
            }
            ProgressData::Tagged(ProgressKind::Unknown(unknown)) => Some(ScreenItem {
                text: Some(unknown.json().text().to_owned()),
                ..item_for_node(node, ItemKind::Unknown)
            }),
            _ => None,
        },
        Entry::Attachment(line) => notice::hook_attachment_item(node, &line.attachment),
        _ => None,
    }
}

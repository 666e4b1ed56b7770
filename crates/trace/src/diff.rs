//! What differs between two requests.

use quipu_message::Role;
use serde::Serialize;

use crate::call::{Call, RequestParts};
use crate::prompt_store::{MessageKey, PartKey, TextId};
use crate::trace::Trace;

/// One difference between two requests.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Place in the request, for example `tools[3] Bash` or `messages[0].content[1]`.
    pub at: String,
    /// What happened there.
    pub change: Change,
    /// JSON before the change; `None` for something that was added.
    pub old: Option<String>,
    /// JSON after the change; `None` for something that was removed.
    pub new: Option<String>,
}

/// What happened to a part of a request.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Change {
    /// Only the second request has it.
    Added,
    /// Only the first request has it.
    Removed,
    /// Both have it, with other content.
    Changed,
    /// Both have it, at another place.
    Moved,
}

/// The differences between two requests in the order of the cached prefix: model and
/// parameters, tools, system blocks, messages. Cache breakpoints are not compared. Empty if
/// they are equal or one of them is not known.
pub fn diff_requests(trace: &Trace, old: &Call, new: &Call) -> Vec<Difference> {
    let (Some(a), Some(b)) = (&old.request, &new.request) else { return Vec::new() };
    let mut differences = Vec::new();
    let mut push = |at: &str, old: Option<String>, new: Option<String>| {
        if old != new {
            differences.push(difference(at.to_owned(), old, new));
        }
    };
    push("model", Some(a.model.clone()), Some(b.model.clone()));
    push("betas", Some(old.betas.join(",")), Some(new.betas.join(",")));
    let text = |id: Option<TextId>| id.map(|id| trace.prompts.text(id).to_owned());
    push("thinking", text(a.thinking), text(b.thinking));
    push("output_config", text(a.output_config), text(b.output_config));
    push("tool_choice", text(a.tool_choice), text(b.tool_choice));
    push("context_management", text(a.context_management), text(b.context_management));
    push("speed", a.speed.clone(), b.speed.clone());
    let number = |n: Option<u64>| n.map(|n| n.to_string());
    push("max_tokens", number(a.max_tokens), number(b.max_tokens));
    diff_tools(trace, a, b, &mut differences);
    diff_parts(trace, "system", &a.system, &b.system, &mut differences);
    diff_messages(trace, a, b, &mut differences);
    differences
}

fn difference(at: String, old: Option<String>, new: Option<String>) -> Difference {
    let change = match (&old, &new) {
        (None, _) => Change::Added,
        (_, None) => Change::Removed,
        _ => Change::Changed,
    };
    Difference { at, change, old, new }
}

/// Tools are compared by name: an added tool moves all later ones, which is no difference of
/// theirs.
fn diff_tools(trace: &Trace, a: &RequestParts, b: &RequestParts, out: &mut Vec<Difference>) {
    let name = |key: &PartKey| trace.prompts.part(key.text).tool_name.clone().unwrap_or_default();
    let json = |key: &PartKey| trace.prompts.text(key.text).to_owned();
    let find = |tools: &[PartKey], wanted: &str| tools.iter().position(|tool| name(tool) == wanted);
    for (i, tool) in a.tools.iter().enumerate() {
        let tool_name = name(tool);
        match find(&b.tools, &tool_name) {
            None => out.push(difference(format!("tools[{i}] {tool_name}"), Some(json(tool)), None)),
            Some(j) if b.tools[j].text != tool.text => {
                out.push(difference(format!("tools[{j}] {tool_name}"), Some(json(tool)), Some(json(&b.tools[j]))));
            }
            Some(_) => {}
        }
    }
    for (j, tool) in b.tools.iter().enumerate() {
        let tool_name = name(tool);
        if find(&a.tools, &tool_name).is_none() {
            out.push(difference(format!("tools[{j}] {tool_name}"), None, Some(json(tool))));
        }
    }
    let common = |tools: &[PartKey], other: &[PartKey]| -> Vec<String> {
        tools.iter().map(name).filter(|name| find(other, name).is_some()).collect()
    };
    let (before, after) = (common(&a.tools, &b.tools), common(&b.tools, &a.tools));
    if let Some(i) = before.iter().zip(&after).position(|(before, after)| before != after) {
        let at = format!("tools: {} comes before {}", after[i], before[i]);
        out.push(Difference { at, change: Change::Moved, old: Some(before.join(" ")), new: Some(after.join(" ")) });
    }
}

fn diff_parts(trace: &Trace, name: &str, a: &[PartKey], b: &[PartKey], out: &mut Vec<Difference>) {
    let json = |key: &PartKey| trace.prompts.text(key.text).to_owned();
    for i in 0..a.len().max(b.len()) {
        let (old, new) = (a.get(i), b.get(i));
        if old.map(|key| key.text) != new.map(|key| key.text) {
            out.push(difference(format!("{name}[{i}]"), old.map(json), new.map(json)));
        }
    }
}

/// Messages are compared by place. A message that only one request has is one difference,
/// a changed one a difference for each of its blocks.
fn diff_messages(trace: &Trace, a: &RequestParts, b: &RequestParts, out: &mut Vec<Difference>) {
    for i in 0..a.messages.len().max(b.messages.len()) {
        let at = format!("messages[{i}]");
        match (a.messages.get(i), b.messages.get(i)) {
            (Some(old), Some(new)) => diff_message(trace, &at, *old, *new, out),
            (old, new) => {
                let json = |key: &MessageKey| message_json(trace, *key);
                out.push(difference(at, old.map(json), new.map(json)));
            }
        }
    }
}

fn diff_message(trace: &Trace, at: &str, old: MessageKey, new: MessageKey, out: &mut Vec<Difference>) {
    let (a, b) = (trace.prompts.message(old), trace.prompts.message(new));
    if a.cache_hash == b.cache_hash {
        return;
    }
    if a.role != b.role {
        out.push(difference(at.to_owned(), Some(message_json(trace, old)), Some(message_json(trace, new))));
        return;
    }
    let before = out.len();
    diff_parts(trace, &format!("{at}.content"), &a.blocks, &b.blocks, out);
    if out.len() == before {
        // The messages differ in a field other than their content.
        out.push(difference(at.to_owned(), Some(a.extra.clone()), Some(b.extra.clone())));
    }
}

/// A message as JSON, its blocks without breakpoints.
fn message_json(trace: &Trace, key: MessageKey) -> String {
    let message = trace.prompts.message(key);
    let role: &Role = &message.role;
    let blocks: Vec<&str> = message.blocks.iter().map(|block| trace.prompts.text(block.text)).collect();
    format!("{}: [{}]", role.as_str(), blocks.join(","))
}

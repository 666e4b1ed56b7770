//! Deferred tools: if the definitions of MCP tools would fill much of the context, requests name the
//! tools only, and ToolSearch finds and loads their definitions.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use quipu_conversation::Node;
use quipu_message::attachment::{Attachment, DeferredToolsRecord};
use quipu_message::tool::ToolSearchInput;
use quipu_message::tool::output::ToolSearchOutput;
use quipu_message::{Block, Entry, Json, Maybe, ToolName, ToolReference, api};
use serde_json::{Value, json};

use crate::agent_context::AgentContext;
use crate::attachments::new_attachment;
use crate::conversation_log::ConversationLog;
use crate::model::ModelLimits;
use crate::session::Session;
use crate::tool::{CallContext, Tool, ToolDefinition, ToolEffect, ToolOutput, Workspace, sanitise_name};
use crate::tools::wire_definition;

/// The beta for requests with deferred tools.
pub(crate) const TOOL_SEARCH_BETA: &str = "advanced-tool-use-2025-11-20";

/// The most characters of MCP tool definitions that are sent at once: about ten thousand tokens.
const MAX_DEFINITION_CHARS: usize = 40_000;

/// Estimated characters per token.
const CHARS_PER_TOKEN: usize = 4;

/// The longest name of a tool that the API accepts.
const MAX_NAME_CHARS: usize = 128;

/// How many tools a search loads by default.
const DEFAULT_MAX_RESULTS: usize = 5;

/// A tool whose definition is left out of requests until it is loaded.
struct DeferredTool(Arc<dyn Tool>);

impl Tool for DeferredTool {
    fn name(&self) -> ToolName {
        self.0.name()
    }

    fn definition(&self) -> ToolDefinition {
        self.0.definition()
    }

    fn is_deferred(&self) -> bool {
        true
    }

    fn effect(&self, input: &Value) -> ToolEffect {
        self.0.effect(input)
    }

    fn run<'a>(&'a self, input: Value, place: &'a Workspace, call: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        self.0.run(input, place, call)
    }
}

/// Defers the MCP tools among `tools` and adds ToolSearch, if their definitions are large.
/// `ENABLE_TOOL_SEARCH` overrides that: `true`, `false`, `auto`, or `auto:N` for definitions of more
/// than N percent of the context window.
pub(crate) fn defer_mcp_tools(session: &Session, tools: &mut Vec<Arc<dyn Tool>>) {
    let is_mcp = |tool: &Arc<dyn Tool>| tool.name().is_mcp();
    let size: usize = tools.iter().filter(|tool| is_mcp(tool)).map(|tool| tool.definition().size_chars()).sum();
    let context = ModelLimits::for_model(&session.model_choice.model()).context_window;
    if session.request_env.no_betas
        || size == 0
        || size <= max_definition_chars(session.var("ENABLE_TOOL_SEARCH"), context)
    {
        return;
    }
    let (mut deferred, direct): (Vec<_>, Vec<_>) = std::mem::take(tools).into_iter().partition(is_mcp);
    *tools = direct;
    deferred.sort_by_key(|tool| tool.name());
    tools.push(Arc::new(ToolSearch { tools: deferred.iter().map(|tool| tool.definition()).collect() }));
    tools.extend(deferred.into_iter().map(|tool| Arc::new(DeferredTool(tool)) as Arc<dyn Tool>));
}

/// The most characters of definitions that are sent at once.
fn max_definition_chars(setting: Option<&str>, context: u64) -> usize {
    match setting.map(str::trim) {
        Some("true" | "1") => 0,
        Some("false" | "0") => usize::MAX,
        Some(other) => {
            let percent = other.strip_prefix("auto:").and_then(|percent| percent.parse::<u64>().ok());
            let tokens = percent.and_then(|percent| usize::try_from(context * percent.min(100) / 100).ok());
            tokens.map_or(MAX_DEFINITION_CHARS, |tokens| tokens * CHARS_PER_TOKEN)
        }
        None => MAX_DEFINITION_CHARS,
    }
}

/// The tools of a request: those that are not deferred, and the loaded ones. Of what the conversation says
/// about tools only their names are used, because it may come from someone else.
pub(crate) fn request_tools(ctx: &AgentContext<'_>) -> Vec<api::Tool> {
    let mut offered: Vec<api::Tool> =
        ctx.tools.iter().filter(|tool| !tool.is_deferred()).map(wire_definition).collect();
    if ctx.tools.iter().any(|tool| tool.is_deferred()) {
        let text = "A placeholder for the tools that ToolSearch loads. It cannot be called.";
        offered.push(loaded_on_demand(uncallable("DeferredToolPlaceholder".into(), text)));
    }
    // Tools may read the conversation to describe themselves, so it is not locked meanwhile.
    let (loaded, referenced) = {
        let log = ctx.log();
        let loaded = loaded_names(&log);
        // Only results of searches refer to tools, and searches are recorded.
        let searched = log.context().iter().filter(|_| !loaded.is_empty());
        let referenced: Vec<ToolName> = searched.flat_map(referenced_names).collect();
        (loaded, referenced)
    };
    let definition = |name: &ToolName| {
        let tool = ctx.tools.iter().find(|tool| tool.is_deferred() && tool.name() == *name);
        tool.map(|tool| tool.definition())
    };
    // The API refuses a conversation that refers to a tool without a definition.
    let referenced = referenced.into_iter().filter(is_valid_name).map(|name| {
        let gone = "This tool is not available any more. It cannot be called.";
        definition(&name).unwrap_or_else(|| uncallable(name, gone))
    });
    let mut names: BTreeSet<ToolName> = offered.iter().map(|tool| tool.name.clone()).collect();
    let loaded = loaded.iter().filter_map(definition).chain(referenced);
    offered.extend(loaded.filter(|tool| names.insert(tool.name.clone())).map(loaded_on_demand));
    offered
}

/// The definition of a tool that the agent does not have.
fn uncallable(name: ToolName, description: &str) -> ToolDefinition {
    let input_schema = json!({"type": "object", "properties": {}});
    ToolDefinition { name, description: description.to_owned(), input_schema }
}

/// The record of the tools that a search has loaded; `None` if the context holds all of them.
pub(crate) fn loaded_tools_record(ctx: &AgentContext<'_>, output: &ToolOutput) -> Option<Entry> {
    let found: ToolSearchOutput = Json::from(output.raw.clone()?).read().ok()?;
    let known = loaded_names(&ctx.log());
    let new = found.matches.into_iter().filter(|name| !known.contains(name));
    let entries: Vec<api::Tool> =
        new.filter_map(|name| Some(loaded_on_demand(ctx.find_tool(&name)?.definition()))).collect();
    if entries.is_empty() {
        return None;
    }
    let record =
        DeferredToolsRecord { entries: Maybe::Value(Json::from_serialize(&entries)), ..DeferredToolsRecord::default() };
    let line = new_attachment(Attachment::DeferredToolsRecord(Box::new(record)));
    Some(Entry::Attachment(Box::new(line)))
}

/// The names of the tools that the context records as loaded.
fn loaded_names(log: &ConversationLog) -> Vec<ToolName> {
    let records = log.attachments().filter_map(|line| match &line.attachment {
        Attachment::DeferredToolsRecord(record) => record.entries.get()?.read::<Vec<api::Tool>>().ok(),
        _ => None,
    });
    records.flatten().map(|tool| tool.name).collect()
}

/// The names of the tools that the tool results of an entry refer to.
fn referenced_names(node: &Node) -> Vec<ToolName> {
    let Entry::User(line) = &node.entry else { return Vec::new() };
    let results = line.message.content.blocks().iter().filter_map(Block::tool_result);
    let names = results.flat_map(|result| result.blocks()).filter_map(|block| match block {
        Block::ToolReference(reference) => Some(reference.tool_name.clone()),
        _ => None,
    });
    names.collect()
}

/// Whether the API accepts the name of a tool.
fn is_valid_name(name: &ToolName) -> bool {
    let text = name.as_str();
    (1..=MAX_NAME_CHARS).contains(&text.len()) && sanitise_name(text) == text
}

fn loaded_on_demand(definition: ToolDefinition) -> api::Tool {
    api::Tool { defer_loading: Maybe::Value(true), ..definition.into_wire() }
}

/// The ToolSearch tool, which finds deferred tools and loads their definitions.
pub(crate) struct ToolSearch {
    /// The deferred tools.
    tools: Vec<ToolDefinition>,
}

impl Tool for ToolSearch {
    fn name(&self) -> ToolName {
        ToolName::ToolSearch
    }

    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name(),
            description: "Loads tools that are only known by name so far; the conversation lists them. A query \
                          `select:NAME,NAME` loads just these. Any other query is words to look for in names and \
                          descriptions, best matches first; a word with `+` before it must be there. A tool can be \
                          called once it is loaded."
                .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "`select:` and names, or words to look for"},
                    "max_results": {"type": "integer", "minimum": 1, "description": "How many tools to load at most (default: 5)"},
                },
                "required": ["query"],
                "additionalProperties": false,
            }),
        }
    }

    fn effect(&self, _: &Value) -> ToolEffect {
        ToolEffect::ReadOnly
    }

    fn run<'a>(&'a self, input: Value, _place: &'a Workspace, _call: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        let output = match Json::from(input).read::<ToolSearchInput>() {
            Ok(input) => self.search(input),
            Err(error) => ToolOutput::tool_use_error(format!("InputValidationError: {error}")),
        };
        Box::pin(std::future::ready(output))
    }
}

impl ToolSearch {
    fn search(&self, input: ToolSearchInput) -> ToolOutput {
        let max = input.max_results.get().and_then(|max| usize::try_from(*max).ok()).unwrap_or(DEFAULT_MAX_RESULTS);
        let matches = match input.query.trim().strip_prefix("select:") {
            Some(names) => self.select(names),
            None => self.best_matches(&input.query, max),
        };
        let reference = |name: &ToolName| {
            Block::ToolReference(Box::new(ToolReference { tool_name: name.clone(), ..ToolReference::default() }))
        };
        let blocks: Vec<Block> = match matches.as_slice() {
            [] => vec![Block::new_text(format!("No tool matches {:?}.", input.query))],
            names => names.iter().map(reference).collect(),
        };
        let raw = ToolSearchOutput {
            matches,
            query: input.query,
            total_deferred_tools: self.tools.len() as u64,
            ..ToolSearchOutput::default()
        };
        ToolOutput::new(blocks, &raw)
    }

    /// The deferred tools among these names, which are separated by commas.
    fn select(&self, names: &str) -> Vec<ToolName> {
        let names: Vec<&str> = names.split(',').map(str::trim).collect();
        self.tools.iter().map(|tool| &tool.name).filter(|name| names.contains(&name.as_str())).cloned().collect()
    }

    /// The tools that match a query of words, best first.
    fn best_matches(&self, query: &str, max: usize) -> Vec<ToolName> {
        let query = query.to_lowercase();
        let words: Vec<(&str, bool)> =
            query.split_whitespace().map(|word| word.strip_prefix('+').map_or((word, false), |w| (w, true))).collect();
        let mut scored: Vec<(usize, &ToolName)> =
            self.tools.iter().map(|tool| (score(tool, &words), &tool.name)).filter(|(score, _)| *score > 0).collect();
        scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        scored.into_iter().take(max).map(|(_, name)| name.clone()).collect()
    }
}

/// How well a tool matches: a whole part of its name counts most, the description least; 0 if a
/// required word is missing.
fn score(tool: &ToolDefinition, words: &[(&str, bool)]) -> usize {
    let (name, description) = (tool.name.as_str().to_lowercase(), tool.description.to_lowercase());
    let mut total = 0;
    for (word, required) in words.iter().filter(|(word, _)| !word.is_empty()) {
        let part = name.split(['_', '-']).any(|part| part == *word);
        let found =
            4 * usize::from(part) + 2 * usize::from(name.contains(word)) + usize::from(description.contains(word));
        if found == 0 && *required {
            return 0;
        }
        total += found;
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, description: &str) -> ToolDefinition {
        ToolDefinition { name: name.into(), description: description.to_owned(), input_schema: json!({}) }
    }

    fn check(query: &str, expected: &[&str]) {
        let tools = vec![
            tool("mcp__chat__send_message", "Sends a message to a channel"),
            tool("mcp__chat__list_channels", "Lists the channels"),
            tool("mcp__mail__send", "Sends mail"),
        ];
        let input = ToolSearchInput { query: query.to_owned(), ..ToolSearchInput::default() };
        let output = ToolSearch { tools }.search(input);
        let raw: ToolSearchOutput = Json::from(output.raw.clone().unwrap()).read().unwrap();
        assert_eq!(raw.matches, expected, "{query}");
        assert_eq!(
            output.content.blocks().iter().filter(|b| matches!(b, Block::ToolReference(_))).count(),
            expected.len()
        );
    }

    #[test]
    fn tools_are_found_by_name_and_by_words() {
        check("select:mcp__mail__send, mcp__chat__list_channels", &["mcp__chat__list_channels", "mcp__mail__send"]);
        check("select:none", &[]);
        check("send mail", &["mcp__mail__send", "mcp__chat__send_message"]);
        check("+chat channels", &["mcp__chat__list_channels", "mcp__chat__send_message"]);
        check("zebra", &[]);
        check("", &[]);
    }

    #[test]
    fn the_environment_sets_the_size_limit() {
        for (setting, expected) in [
            (None, MAX_DEFINITION_CHARS),
            (Some("true"), 0),
            (Some("false"), usize::MAX),
            (Some("auto"), MAX_DEFINITION_CHARS),
            (Some("auto:5"), 40_000),
            (Some("auto:x"), MAX_DEFINITION_CHARS),
        ] {
            assert_eq!(max_definition_chars(setting, 200_000), expected, "{setting:?}");
        }
    }
}

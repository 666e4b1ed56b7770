//! Parameters of a request that change what of it is cached.

use quipu_message::api::{OutputConfig, ThinkingConfig, ToolChoice};

use crate::call::RequestParts;
use crate::prompt_store::PromptStore;

/// Parameters of a request that change what of it is cached, without those that do not: the
/// display of thinking, task budgets, defaults that are written out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct CacheParameters {
    /// Speed, if it is not the standard one. Changes the system prompt.
    pub(super) speed: Option<String>,
    /// Format of the response. Changes the system prompt.
    pub(super) format: Option<String>,
    /// Kind and budget of thinking. Changes the messages.
    pub(super) thinking: Option<(String, Option<u64>)>,
    /// Effort. Changes the messages.
    pub(super) effort: Option<String>,
    /// `tool_choice`, if it is not `auto`. Changes the messages.
    pub(super) tool_choice: Option<String>,
}

impl CacheParameters {
    pub(super) fn of(request: &RequestParts, prompts: &PromptStore) -> Self {
        let text = |id| prompts.text(id);
        let output = request.output_config.map(text).and_then(|text| serde_json::from_str::<OutputConfig>(text).ok());
        let thinking = request.thinking.map(text).map(|text| match serde_json::from_str::<ThinkingConfig>(text) {
            Ok(thinking) => (thinking.kind.as_str().to_owned(), thinking.budget_tokens.get().copied()),
            Err(_) => (text.to_owned(), None),
        });
        let is_auto = |text: &&str| {
            let choice = serde_json::from_str::<ToolChoice>(text);
            choice.is_ok_and(|choice| choice.kind == "auto" && choice.extra.iter().next().is_none())
        };
        Self {
            speed: request.speed.clone().filter(|speed| speed != "standard"),
            format: output.as_ref().and_then(|output| output.format.get()).map(|format| format.text().to_owned()),
            thinking,
            effort: output.as_ref().and_then(|output| output.effort.get()).map(|effort| effort.as_str().to_owned()),
            tool_choice: request.tool_choice.map(text).filter(|text| !is_auto(text)).map(str::to_owned),
        }
    }
}

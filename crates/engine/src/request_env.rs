//! What environment variables ask of every API request.

use quipu_api::{CacheTtl, FallbackModel, ThinkingMode};
use quipu_message::Json;
use serde_json::{Map, Value, json};

use crate::error::EngineError;
use crate::model::{self, DEFAULT_EFFORT, ModelLimits, ThinkingSupport};

/// The smallest thinking budget that the API accepts, in tokens.
const MIN_THINKING_BUDGET: u64 = 1024;

/// The beta for thinking between tool calls.
const INTERLEAVED_THINKING_BETA: &str = "interleaved-thinking-2025-05-14";

/// Variables that select an API provider other than Anthropic.
const OTHER_PROVIDERS: [&str; 3] = ["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"];

/// The parameters of requests that environment variables set.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RequestEnv {
    /// `CLAUDE_CODE_MAX_OUTPUT_TOKENS`: `max_tokens` instead of the model's default.
    max_output_tokens: Option<u64>,
    /// `MAX_THINKING_TOKENS`: the thinking budget of models that accept one.
    max_thinking_tokens: Option<u64>,
    /// `CLAUDE_CODE_EFFORT_LEVEL`, which overrides flags and settings.
    effort: Option<String>,
    /// `DISABLE_PROMPT_CACHING`, `ENABLE_PROMPT_CACHING_1H`.
    pub(crate) cache: CacheTtl,
    /// `CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS`: use no betas but those of `--betas` and of `[1m]`.
    /// Some gateways reject betas they do not know.
    pub(crate) no_betas: bool,
    /// `CLAUDE_CODE_EXTRA_BODY`: fields to add to every request.
    pub(crate) extra_body: Option<Map<String, Value>>,
    /// `CLAUDE_CODE_SUBAGENT_MODEL`: the model of all subagents.
    pub(crate) subagent_model: Option<String>,
}

impl RequestEnv {
    /// Reads the variables. Fails if one has an invalid value or selects another provider.
    pub(crate) fn from_env<'a>(var: impl Fn(&str) -> Option<&'a str>) -> Result<Self, EngineError> {
        let is_on = |name: &str| var(name).is_some_and(|value| !matches!(value, "0" | "false"));
        if let Some(name) = OTHER_PROVIDERS.into_iter().find(|name| is_on(name)) {
            return Err(EngineError::UnsupportedProvider { name });
        }
        let number = |name: &'static str| {
            let bad =
                |value: &str| EngineError::InvalidVariable { name, reason: format!("{value:?} is not a whole number") };
            var(name).map(|value| value.trim().parse::<u64>().map_err(|_| bad(value))).transpose()
        };
        let extra_body = var("CLAUDE_CODE_EXTRA_BODY").map(|text| {
            let bad = |reason| EngineError::InvalidVariable { name: "CLAUDE_CODE_EXTRA_BODY", reason };
            match serde_json::from_str(text) {
                Ok(Value::Object(fields)) => Ok(fields),
                Ok(_) => Err(bad("it must be a JSON object".to_owned())),
                Err(error) => Err(bad(error.to_string())),
            }
        });
        Ok(Self {
            max_output_tokens: number("CLAUDE_CODE_MAX_OUTPUT_TOKENS")?.filter(|tokens| *tokens > 0),
            max_thinking_tokens: number("MAX_THINKING_TOKENS")?,
            effort: var("CLAUDE_CODE_EFFORT_LEVEL").map(str::to_owned),
            cache: match () {
                () if is_on("DISABLE_PROMPT_CACHING") => CacheTtl::Off,
                () if is_on("ENABLE_PROMPT_CACHING_1H") => CacheTtl::OneHour,
                () => CacheTtl::FiveMinutes,
            },
            no_betas: is_on("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS"),
            extra_body: extra_body.transpose()?,
            subagent_model: var("CLAUDE_CODE_SUBAGENT_MODEL").filter(|name| *name != "inherit").map(str::to_owned),
        })
    }

    /// The most tokens of an answer of this model.
    pub(crate) fn max_tokens(&self, model: &str) -> u64 {
        self.max_output_tokens.unwrap_or_else(|| ModelLimits::for_model(model).max_output_tokens)
    }

    /// The `thinking` parameter of a request; `None` if the model accepts none. `chosen` is the budget
    /// from flags or the host; 0 turns thinking off.
    fn thinking(&self, model: &str, chosen: Option<u64>) -> Option<ThinkingMode> {
        match (ThinkingSupport::for_model(model), chosen) {
            (ThinkingSupport::None, _) => None,
            (_, Some(0)) => Some(ThinkingMode::Off),
            // Such a model accepts no budget, so the variable is ignored.
            (ThinkingSupport::Adaptive, _) => Some(ThinkingMode::Adaptive),
            (ThinkingSupport::Budget, chosen) => match chosen.or(self.max_thinking_tokens) {
                Some(0) => Some(ThinkingMode::Off),
                _ if self.max_tokens(model) <= MIN_THINKING_BUDGET => None,
                // The client lowers the budget to leave room for an answer.
                tokens => Some(ThinkingMode::Budget(tokens.unwrap_or(u64::MAX).max(MIN_THINKING_BUDGET))),
            },
        }
    }

    /// The parameters of a request to this model. `max_thinking` and `effort` come from flags, settings
    /// or the host; `betas` apply to every model.
    pub(crate) fn for_model(
        &self,
        model: &str,
        max_thinking: Option<u64>,
        effort: Option<String>,
        betas: &[String],
    ) -> FallbackModel {
        let with_betas = !self.no_betas;
        let thinking = self.thinking(model, max_thinking);
        let thinks = thinking.is_some_and(|thinking| thinking != ThinkingMode::Off);
        let keep_thinking =
            || Json::from_serialize(&json!({"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}));
        let needed = [
            (thinks && with_betas, INTERLEAVED_THINKING_BETA),
            (model::needs_long_context_beta(model), model::LONG_CONTEXT_BETA),
        ];
        let needed = needed.into_iter().filter(|(needed, _)| *needed).map(|(_, beta)| beta.to_owned());
        FallbackModel {
            model: model::wire_name(model).to_owned(),
            max_tokens: self.max_tokens(model),
            thinking,
            effort: self.effort(model, effort).filter(|_| with_betas),
            context_management: (thinks && with_betas).then(keep_thinking),
            betas: betas.iter().cloned().chain(needed).collect(),
        }
    }

    /// The effort level of a request; `None` for a model that accepts none. `chosen` comes from flags,
    /// settings or the host.
    pub(crate) fn effort(&self, model: &str, chosen: Option<String>) -> Option<String> {
        let adaptive = ThinkingSupport::for_model(model) == ThinkingSupport::Adaptive;
        let level = self.effort.clone().or(chosen).filter(|level| level != "auto");
        adaptive.then(|| level.unwrap_or_else(|| DEFAULT_EFFORT.to_owned()))
    }
}

#[cfg(test)]
mod tests;

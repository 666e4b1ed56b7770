//! What an API request holds beside the conversation: the model and its parameters, as
//! flags, settings and environment variables choose them.

use quipu_api::{Cache, Fallback, Request, Thinking};
use quipu_message::Json;
use serde_json::{Map, Value, json};

use crate::error::EngineError;
use crate::model::{self, DEFAULT_EFFORT, Size, ThinkingSupport};
use crate::options::{Format, Options};
use crate::talk::Talk;
use crate::tool_search;

/// The fewest tokens the API takes as a thinking budget.
const MIN_THINKING_BUDGET: u64 = 1024;

/// The beta under which models that take a budget think between tool calls too.
const INTERLEAVED_THINKING_BETA: &str = "interleaved-thinking-2025-05-14";

/// Variables that send the real program to another API than Anthropic's.
const OTHER_PROVIDERS: [&str; 3] = ["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"];

/// What environment variables say of every request.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RequestEnv {
    /// `CLAUDE_CODE_MAX_OUTPUT_TOKENS`: `max_tokens` in place of the model's own.
    max_output: Option<u64>,
    /// `MAX_THINKING_TOKENS`: the budget of models that take one.
    max_thinking: Option<u64>,
    /// `CLAUDE_CODE_EFFORT_LEVEL`, which wins over flags and settings.
    effort: Option<String>,
    /// `DISABLE_PROMPT_CACHING`, `ENABLE_PROMPT_CACHING_1H`.
    cache: Cache,
    /// `CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS`: send nothing that needs a beta but what
    /// `--betas` and a model's `[1m]` ask for. Some gateways refuse what they do not know.
    pub(crate) no_betas: bool,
    /// `CLAUDE_CODE_EXTRA_BODY`: fields put into every request.
    extra_body: Option<Map<String, Value>>,
    /// `CLAUDE_CODE_SUBAGENT_MODEL`: the model of all subagents.
    pub(crate) subagent_model: Option<String>,
}

impl RequestEnv {
    /// Reads the variables; one that holds what it cannot is an error.
    pub(crate) fn read<'a>(var: impl Fn(&str) -> Option<&'a str>) -> Result<Self, EngineError> {
        let is_on = |name: &str| var(name).is_some_and(|value| !matches!(value, "0" | "false"));
        if let Some(name) = OTHER_PROVIDERS.into_iter().find(|name| is_on(name)) {
            return Err(EngineError::Provider { name });
        }
        let number = |name: &'static str| {
            let bad = |value: &str| EngineError::Variable { name, reason: format!("{value:?} is not a whole number") };
            var(name).map(|value| value.trim().parse::<u64>().map_err(|_| bad(value))).transpose()
        };
        let extra_body = var("CLAUDE_CODE_EXTRA_BODY").map(|text| {
            let bad = |reason| EngineError::Variable { name: "CLAUDE_CODE_EXTRA_BODY", reason };
            match serde_json::from_str(text) {
                Ok(Value::Object(fields)) => Ok(fields),
                Ok(_) => Err(bad("it must be a JSON object".to_owned())),
                Err(error) => Err(bad(error.to_string())),
            }
        });
        Ok(Self {
            max_output: number("CLAUDE_CODE_MAX_OUTPUT_TOKENS")?.filter(|tokens| *tokens > 0),
            max_thinking: number("MAX_THINKING_TOKENS")?,
            effort: var("CLAUDE_CODE_EFFORT_LEVEL").map(str::to_owned),
            cache: match () {
                () if is_on("DISABLE_PROMPT_CACHING") => Cache::Off,
                () if is_on("ENABLE_PROMPT_CACHING_1H") => Cache::OneHour,
                () => Cache::FiveMinutes,
            },
            no_betas: is_on("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS"),
            extra_body: extra_body.transpose()?,
            subagent_model: var("CLAUDE_CODE_SUBAGENT_MODEL").filter(|name| *name != "inherit").map(str::to_owned),
        })
    }

    /// The most tokens of an answer of a model.
    pub(crate) fn max_tokens(&self, model: &str) -> u64 {
        self.max_output.unwrap_or_else(|| Size::of(model).output)
    }

    /// The `thinking` parameter of a request. `chosen` is what flags or the host ask for: no
    /// thinking for 0.
    fn thinking(&self, model: &str, chosen: Option<u64>) -> Option<Thinking> {
        match (ThinkingSupport::of(model), chosen) {
            (ThinkingSupport::None, _) => None,
            (_, Some(0)) => Some(Thinking::Off),
            // Such a model takes no budget, whatever the variable says.
            (ThinkingSupport::Adaptive, _) => Some(Thinking::Adaptive),
            (ThinkingSupport::Budget, chosen) => match chosen.or(self.max_thinking) {
                Some(0) => Some(Thinking::Off),
                _ if self.max_tokens(model) <= MIN_THINKING_BUDGET => None,
                // The budget is cut to leave room for an answer.
                tokens => Some(Thinking::Budget(tokens.unwrap_or(u64::MAX).max(MIN_THINKING_BUDGET))),
            },
        }
    }

    /// What a request asks of a model, beside the conversation. `max_thinking` and `effort`
    /// are what flags, settings or the host ask for, `betas` those of every model.
    fn for_model(&self, model: &str, max_thinking: Option<u64>, effort: Option<String>, betas: &[String]) -> Fallback {
        let with_betas = !self.no_betas;
        let thinking = self.thinking(model, max_thinking);
        let thinks = thinking.is_some_and(|thinking| thinking != Thinking::Off);
        let keep_thinking = || Json::of(&json!({"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}));
        let needed = [
            (thinks && with_betas, INTERLEAVED_THINKING_BETA),
            (model::needs_long_context_beta(model), model::LONG_CONTEXT_BETA),
        ];
        let needed = needed.into_iter().filter(|(needed, _)| *needed).map(|(_, beta)| beta.to_owned());
        Fallback {
            model: model::wire_name(model).to_owned(),
            max_tokens: self.max_tokens(model),
            thinking,
            effort: self.effort(model, effort).filter(|_| with_betas),
            context_management: (thinks && with_betas).then(keep_thinking),
            betas: betas.iter().cloned().chain(needed).collect(),
        }
    }

    /// The effort level of a request; `None` for a model that takes no level. `chosen`
    /// is what flags, settings or the host ask for.
    pub(crate) fn effort(&self, model: &str, chosen: Option<String>) -> Option<String> {
        let adaptive = ThinkingSupport::of(model) == ThinkingSupport::Adaptive;
        let level = self.effort.clone().or(chosen).filter(|level| level != "auto");
        adaptive.then(|| level.unwrap_or_else(|| DEFAULT_EFFORT.to_owned()))
    }
}

/// How thinking is displayed if not configured: in reports where every line is printed as it
/// comes, otherwise not at all.
fn default_display(options: &Options, foreground_subagent: bool) -> &'static str {
    let printed = options.verbose || options.format == Format::StreamJson;
    if printed && !foreground_subagent { "updates" } else { "omitted" }
}

impl Talk<'_> {
    /// The request for what is recorded so far, with all its messages.
    pub(crate) fn request(&self) -> Request {
        let messages = self.log().messages();
        Request { messages, ..self.frame() }
    }

    /// The same request, for sending: turns that are over are text already.
    pub(crate) fn next_request(&self) -> Request {
        let (settled, messages) = self.log().sending();
        Request { settled, messages, ..self.frame() }
    }

    /// The model that is asked next: the session's own may change when planning ends.
    pub(crate) fn current_model(&self) -> String {
        let state = self.session.state();
        let changes = self.is_main() && state.planning_model.is_some();
        if changes { state.active_model().to_owned() } else { self.model.clone() }
    }

    /// The request without the conversation.
    pub(crate) fn frame(&self) -> Request {
        let (session, model) = (self.session, self.current_model());
        let model = model.as_str();
        let (effort, max_thinking, thinking_display, session_id) = {
            let state = session.state();
            (state.effort(model), state.max_thinking, state.thinking_display.clone(), state.id.clone())
        };
        let (env, options) = (&session.request_env, &session.options);
        let foreground = self.sub().is_some_and(|sub| !sub.is_aside());
        let display = thinking_display.unwrap_or_else(|| default_display(options, foreground).to_owned());
        let with_betas = !env.no_betas;
        let tools = tool_search::offered(self);
        let mut betas = options.betas.clone();
        if tools.iter().any(|tool| tool.defer_loading.is_true()) {
            betas.push(tool_search::BETA.to_owned());
        }
        let for_model = |model: &str| env.for_model(model, max_thinking, effort.clone(), &betas);
        let Fallback { model, max_tokens, thinking, effort, context_management, betas } = for_model(model);
        Request {
            model,
            fallbacks: options.fallback_models.iter().map(|name| for_model(&session.models.resolve(name))).collect(),
            system: self.system.clone(),
            tools,
            max_tokens,
            thinking,
            thinking_display: Some(display).filter(|_| with_betas),
            effort,
            task_budget: options.task_budget,
            context_management,
            cache: env.cache,
            betas,
            device_id: session.device_id(),
            session_id: Some(session_id),
            agent_id: self.sub().map(|sub| sub.id.clone()),
            extra_body: env.extra_body.clone(),
            ..Request::default()
        }
    }
}

#[cfg(test)]
mod tests;

//! API requests of an agent: its conversation, tools, model and parameters.

use quipu_api::{FallbackModel, Request};
use quipu_message::values::ThinkingDisplay;

use crate::agent_context::AgentContext;
use crate::options::{Format, Options};
use crate::session::ModelParameters;
use crate::tool_search;

/// How thinking is displayed by default: as updates if every line is printed, otherwise not at all.
fn default_thinking_display(options: &Options, foreground_subagent: bool) -> ThinkingDisplay {
    let printed = options.verbose || options.format == Format::StreamJson;
    if printed && !foreground_subagent { ThinkingDisplay::Updates } else { ThinkingDisplay::Omitted }
}

impl AgentContext<'_> {
    /// The next request with all messages.
    pub(crate) fn full_request(&self) -> Request {
        let messages = self.log().api_messages();
        Request { messages, ..self.base_request() }
    }

    /// The next request for sending: finished turns are encoded already.
    pub(crate) fn next_request(&self) -> Request {
        let (settled, messages) = self.log().encoded_messages();
        Request { history: settled, messages, ..self.base_request() }
    }

    /// The model of the next call; the main agent's may change when plan mode ends.
    pub(crate) fn current_model(&self) -> String {
        let changes = self.is_main() && self.session.model_choice.parameters().planning_model.is_some();
        if changes { self.session.active_model() } else { self.model.clone() }
    }

    /// The next request without messages.
    pub(crate) fn base_request(&self) -> Request {
        let (session, model) = (self.session, self.current_model());
        let model = model.as_str();
        let ModelParameters { max_thinking_tokens: max_thinking, thinking_display, .. } =
            session.model_choice.parameters();
        let effort = session.effort_for(model);
        let (env, options) = (&session.request_env, &session.options);
        let foreground = self.subagent().is_some_and(|subagent| !subagent.is_in_background());
        let display = thinking_display.unwrap_or_else(|| default_thinking_display(options, foreground));
        let with_betas = !env.no_betas;
        let tools = tool_search::request_tools(self);
        let mut betas = options.betas.clone();
        if tools.iter().any(|tool| tool.defer_loading.is_true()) {
            betas.push(tool_search::TOOL_SEARCH_BETA.to_owned());
        }
        let for_model = |model: &str| env.for_model(model, max_thinking, effort.clone(), &betas);
        let FallbackModel { model, max_tokens, thinking, effort, context_management, betas } = for_model(model);
        Request {
            model,
            fallbacks: options.fallback_models.iter().map(|name| for_model(&session.models.resolve(name))).collect(),
            system: self.system_prompt.clone(),
            tools,
            max_tokens,
            thinking,
            thinking_display: Some(display).filter(|_| with_betas),
            effort,
            task_budget: options.task_budget,
            context_management,
            cache_ttl: env.cache,
            betas,
            device_id: session.device_id.clone(),
            session_id: Some(session.identity.id()),
            agent_id: self.subagent().map(|subagent| subagent.id.clone()),
            extra_body: env.extra_body.clone(),
            ..Request::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_is_shown_where_lines_are_printed_as_they_come() {
        let json = Options { format: Format::Json, ..Options::default() };
        assert_eq!(default_thinking_display(&json, false), "omitted");
        assert_eq!(default_thinking_display(&Options { verbose: true, ..json }, false), "updates");
        let stream = Options { format: Format::StreamJson, ..Options::default() };
        assert_eq!(default_thinking_display(&stream, false), "updates");
        assert_eq!(default_thinking_display(&stream, true), "omitted");
    }
}

//! Finer wishes of a request, which few endpoints know.

use quipu_message::api::{self, OutputConfig, TaskBudget, ThinkingConfig};
use quipu_message::{Json, Maybe};

/// The beta under which a budget may be named.
const BUDGET_BETA: &str = "task-budgets-2026-03-13";

/// Finer wishes of a request; what is not wished is not sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Finer {
    /// How many tokens the model is told it has for the whole task.
    pub task_budget: Option<u64>,
    /// How thinking is shown: `summarized`, `omitted` …
    pub thinking_display: Option<String>,
}

impl Finer {
    /// The beta that the wishes need.
    pub(crate) fn beta(&self) -> Option<&'static str> {
        self.task_budget.map(|_| BUDGET_BETA)
    }

    /// Puts the wishes into a request that is otherwise whole.
    pub(crate) fn apply(&self, wire: &mut api::Request) {
        if let Some(total) = self.task_budget {
            let mut config: OutputConfig =
                wire.output_config.get().and_then(|json| json.read().ok()).unwrap_or_default();
            let budget = TaskBudget { kind: "tokens".to_owned(), total, ..TaskBudget::default() };
            config.task_budget = Maybe::Value(budget);
            wire.output_config = Maybe::Value(Json::of(&config));
        }
        let thinking: Option<ThinkingConfig> = wire.thinking.get().and_then(|json| json.read().ok());
        if let (Some(display), Some(mut thinking)) = (&self.thinking_display, thinking)
            && thinking.kind != "disabled"
        {
            thinking.display = Maybe::Value(display.clone());
            wire.thinking = Maybe::Value(Json::of(&thinking));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(thinking: &str) -> api::Request {
        api::Request {
            output_config: Maybe::Value(Json::parse(r#"{"effort":"low"}"#).unwrap()),
            thinking: Maybe::Value(Json::parse(thinking).unwrap()),
            ..api::Request::default()
        }
    }

    #[test]
    fn wishes_stand_beside_what_is_asked_already() {
        let finer = Finer { task_budget: Some(9000), thinking_display: Some("omitted".to_owned()) };
        let mut asked = wire(r#"{"type":"adaptive"}"#);
        finer.apply(&mut asked);
        assert_eq!(finer.beta(), Some("task-budgets-2026-03-13"));
        let config = r#"{"effort":"low","task_budget":{"type":"tokens","total":9000}}"#;
        assert_eq!(asked.output_config.get().unwrap().text(), config);
        assert_eq!(asked.thinking.get().unwrap().text(), r#"{"type":"adaptive","display":"omitted"}"#);
    }

    #[test]
    fn thinking_that_is_off_is_not_shown_in_any_way() {
        let finer = Finer { thinking_display: Some("omitted".to_owned()), ..Finer::default() };
        let mut asked = wire(r#"{"type":"disabled"}"#);
        finer.apply(&mut asked);
        assert_eq!(asked.thinking.get().unwrap().text(), r#"{"type":"disabled"}"#);
        let mut same = wire(r#"{"type":"adaptive"}"#);
        Finer::default().apply(&mut same);
        assert_eq!(same, wire(r#"{"type":"adaptive"}"#));
    }
}

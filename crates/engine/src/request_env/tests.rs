use super::*;

fn env(set: &[(&str, &'static str)]) -> Result<RequestEnv, EngineError> {
    let set: std::collections::BTreeMap<&str, &'static str> = set.iter().copied().collect();
    RequestEnv::from_env(|name| set.get(name).copied())
}

#[test]
fn newer_models_use_adaptive_thinking_whatever_the_variable() {
    for tokens in ["0", "8000"] {
        let env = env(&[("MAX_THINKING_TOKENS", tokens)]).unwrap();
        assert_eq!(env.thinking("claude-opus-5-5", None), Some(ThinkingMode::Adaptive));
    }
}

#[test]
fn models_that_take_a_budget_get_the_variable_the_flag_or_all_there_is() {
    let model = "claude-sonnet-4-5";
    let set = env(&[("MAX_THINKING_TOKENS", "8000")]).unwrap();
    assert_eq!(set.thinking(model, None), Some(ThinkingMode::Budget(8000)));
    assert_eq!(set.thinking(model, Some(2000)), Some(ThinkingMode::Budget(2000)));
    assert_eq!(set.thinking(model, Some(5)), Some(ThinkingMode::Budget(MIN_THINKING_BUDGET)));
    let off = env(&[("MAX_THINKING_TOKENS", "0")]).unwrap();
    assert_eq!(off.thinking(model, None), Some(ThinkingMode::Off));
    assert_eq!(RequestEnv::default().thinking(model, None), Some(ThinkingMode::Budget(u64::MAX)));
    let short = env(&[("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "500")]).unwrap();
    assert_eq!(short.thinking(model, None), None);
}

#[test]
fn models_without_thinking_get_no_thinking_parameter() {
    assert_eq!(RequestEnv::default().thinking("someone-elses-model", Some(2000)), None);
    assert_eq!(RequestEnv::default().effort("claude-sonnet-4-5", Some("high".to_owned())), None);
}

#[test]
fn the_effort_of_the_environment_wins_over_the_chosen_one() {
    let (model, chosen) = ("claude-opus-5-5", || Some("low".to_owned()));
    let effort = |env: &RequestEnv, chosen| env.effort(model, chosen).unwrap();
    assert_eq!(effort(&env(&[("CLAUDE_CODE_EFFORT_LEVEL", "max")]).unwrap(), chosen()), "max");
    assert_eq!(effort(&env(&[("CLAUDE_CODE_EFFORT_LEVEL", "auto")]).unwrap(), chosen()), "medium");
    assert_eq!(effort(&RequestEnv::default(), chosen()), "low");
    assert_eq!(effort(&RequestEnv::default(), None), "medium");
}

#[test]
fn max_tokens_and_caching_follow_the_environment() {
    let set = env(&[("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "16000"), ("DISABLE_PROMPT_CACHING", "1")]).unwrap();
    assert_eq!((set.max_tokens("claude-opus-5-5"), set.cache), (16_000, CacheTtl::Off));
    let usual = env(&[("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "0"), ("DISABLE_PROMPT_CACHING", "0")]).unwrap();
    assert_eq!((usual.max_tokens("claude-opus-5-5"), usual.cache), (128_000, CacheTtl::FiveMinutes));
    assert_eq!(env(&[("ENABLE_PROMPT_CACHING_1H", "1")]).unwrap().cache, CacheTtl::OneHour);
}

#[test]
fn a_variable_that_cannot_be_followed_is_an_error() {
    for (name, value, code) in [
        ("CLAUDE_CODE_USE_BEDROCK", "1", "agent.other_provider"),
        ("CLAUDE_CODE_USE_VERTEX", "true", "agent.other_provider"),
        ("CLAUDE_CODE_USE_FOUNDRY", "1", "agent.other_provider"),
        ("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "many", "agent.bad_variable"),
        ("MAX_THINKING_TOKENS", "-1", "agent.bad_variable"),
        ("CLAUDE_CODE_EXTRA_BODY", "[1]", "agent.bad_variable"),
        ("CLAUDE_CODE_EXTRA_BODY", "{", "agent.bad_variable"),
    ] {
        let error = env(&[(name, value)]).unwrap_err();
        assert_eq!(error.code(), code, "{name}={value}");
        assert!(error.to_string().contains(name), "{error}");
    }
    assert_eq!(env(&[("CLAUDE_CODE_USE_BEDROCK", "0")]).unwrap(), RequestEnv::default());
}

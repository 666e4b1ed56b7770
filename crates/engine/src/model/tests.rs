use super::*;

fn models() -> ModelAliases {
    ModelAliases::from_env(|_| None)
}

#[test]
fn aliases_are_the_models_of_today() {
    for (alias, model) in [
        ("default", "claude-opus-5-5"),
        ("opus", "claude-opus-5-5"),
        ("best", "claude-opus-5-5"),
        ("sonnet", "claude-sonnet-5-5"),
        ("haiku", "claude-haiku-5-5"),
        ("fable", "claude-fable-5-2"),
        ("opusplan", "claude-sonnet-5-5"),
        ("sonnet[1m]", "claude-sonnet-5-5[1m]"),
        ("opusplan[1m]", "claude-sonnet-5-5[1m]"),
        ("claude-opus-4-8", "claude-opus-4-8"),
        ("gpt-4", "gpt-4"),
    ] {
        assert_eq!(models().resolve(alias), model, "{alias}");
    }
}

#[test]
fn the_environment_names_other_models() {
    let named = ModelAliases::from_env(|name| name.strip_prefix("ANTHROPIC_").map(str::to_lowercase));
    assert_eq!(named.resolve("opus"), "default_opus_model");
    assert_eq!(named.resolve("sonnet"), "default_sonnet_model");
    assert_eq!(named.resolve("haiku"), "default_haiku_model");
    assert_eq!(named.resolve("fable"), "default_fable_model");
    assert_eq!(named.small_model(), "small_fast_model");
    let haiku = ModelAliases::from_env(|name| (name == "ANTHROPIC_DEFAULT_HAIKU_MODEL").then(|| "tiny".to_owned()));
    assert_eq!(haiku.small_model(), "tiny");
}

#[test]
fn only_opusplan_has_another_model_for_planning() {
    assert_eq!(models().planning_model("opusplan").as_deref(), Some("claude-opus-5-5"));
    assert_eq!(models().planning_model("opus"), None);
}

#[test]
fn the_version_in_a_name_decides_the_parameters() {
    use ThinkingSupport::{Adaptive, Budget};
    for (model, context_window, max_output_tokens, thinking) in [
        ("claude-opus-5-5", 1_000_000, 128_000, Adaptive),
        ("claude-haiku-5-5", 1_000_000, 128_000, Adaptive),
        ("claude-fable-5-2", 1_000_000, 128_000, Adaptive),
        ("claude-opus-5", 1_000_000, 128_000, Adaptive),
        ("claude-opus-4-8", 200_000, 64_000, Adaptive),
        ("claude-opus-4-8[1m]", 1_000_000, 64_000, Adaptive),
        ("us.anthropic.claude-sonnet-4-6-v1:0", 200_000, 64_000, Adaptive),
        ("claude-sonnet-4-5", 200_000, 32_000, Budget),
        ("anthropic/claude-sonnet-4.5", 200_000, 32_000, Budget),
        ("claude-haiku-4-5-20251001", 200_000, 32_000, Budget),
        ("claude-opus-4-20250514", 200_000, 32_000, Budget),
        ("claude-3-7-sonnet-20250219", 200_000, 32_000, Budget),
        ("claude-3-5-haiku-20241022", 200_000, 8_192, ThinkingSupport::None),
        ("claude-3-opus-20240229", 200_000, 4_096, ThinkingSupport::None),
        ("claude-instant", 200_000, 32_000, ThinkingSupport::None),
        ("gpt-4", 200_000, 32_000, ThinkingSupport::None),
    ] {
        assert_eq!(ModelLimits::for_model(model), ModelLimits { context_window, max_output_tokens }, "{model}");
        assert_eq!(ThinkingSupport::for_model(model), thinking, "{model}");
    }
}

#[test]
fn the_suffix_for_a_long_context_is_not_sent() {
    assert_eq!(wire_name("claude-opus-4-8[1m]"), "claude-opus-4-8");
    assert_eq!(wire_name("claude-opus-4-8"), "claude-opus-4-8");
    assert!(needs_long_context_beta("claude-opus-4-8[1m]"));
    assert!(!needs_long_context_beta("claude-opus-4-8"));
}

#[test]
fn hosts_get_the_models_that_support_effort() {
    let list =
        ModelAliases::from_env(|name| (name == "ANTHROPIC_DEFAULT_SONNET_MODEL").then(|| "claude-sonnet-4-5".into()))
            .list_models();
    let row = |value: &str| list.iter().find(|row| row.value == value).unwrap();
    let opus = row("opus");
    assert!(opus.supports_effort.is_true() && opus.supports_adaptive_thinking.is_true());
    assert_eq!(opus.supported_effort_levels.get().unwrap(), &["low", "medium", "high", "xhigh", "max"]);
    let sonnet = row("sonnet");
    assert!(!sonnet.supports_effort.is_value() && sonnet.supports_thinking_off.is_true());
}

use super::*;

#[test]
fn numbers_have_thousands_separators_and_things_a_plural() {
    assert_eq!(["0", "999", "1,000", "12,399", "1,234,567"], [0, 999, 1000, 12_399, 1_234_567].map(thousands));
    assert_eq!(count(1, "session"), "1 session");
    assert_eq!(count(0, "session"), "0 sessions");
    assert_eq!(count(2000, "web search"), "2,000 web searches");
    assert_eq!(count(2, "branch"), "2 branches");
}

#[test]
fn tokens_are_short() {
    let shown = ["999", "1.0k", "186.4k", "1.0M", "12.3M", "1.2B"];
    assert_eq!(shown, [999, 1000, 186_444, 999_999, 12_345_678, 1_191_300_000].map(tokens));
}

#[test]
fn money_is_never_rounded_to_nothing() {
    let shown = ["$0.00", "<$0.01", "$0.01", "$1.20", "$18,591.30", "$0.00"];
    assert_eq!(shown, [0.0, 0.0004, 0.005, 1.2, 18_591.3, -0.0].map(money));
    assert_eq!(cost(1.2, 1), "$1.20 + ?");
}

#[test]
fn models_lose_vendor_and_date() {
    assert_eq!(model("claude-opus-4-5-20251101"), "opus-4-5");
    assert_eq!(model("claude-sonnet-4-5[1m]"), "sonnet-4-5");
    assert_eq!(model("glm-4.6"), "glm-4.6");
}

#[test]
fn a_project_is_named_by_the_end_of_its_path() {
    for (cwd, name) in [
        ("/home/sam/tidepool", "tidepool"),
        ("/home/sam/tidepool/", "tidepool"),
        ("/Users/alex/workspace/cli/.worktrees/3", "cli/.worktrees/3"),
        ("C:\\Users\\alex\\cli", "cli"),
        ("/", "-x"),
        ("/1", "/1"),
    ] {
        assert_eq!(project(Some(cwd), "-x"), name, "{cwd}");
    }
    assert_eq!(project(None, "-home-sam"), "-home-sam");
}

#[test]
fn durations_have_at_most_two_units() {
    let shown = [0.0, 0.4, 8.4, 60.0, 754.0, 7_200.0, 7_260.0, 86_400.0, 86_430.0, 200_000.0].map(duration);
    assert_eq!(shown, ["0 s", "0 s", "8 s", "1 min", "12 min 34 s", "2 h", "2 h 1 min", "1 d", "1 d", "2 d 7 h"]);
}

use super::*;

fn check(text: &str, expected: Option<SyntheticText>) {
    assert_eq!(SyntheticText::from_text(text), expected, "{text:?}");
    assert_eq!(is_synthetic(text), expected.is_some(), "{text:?}");
}

#[test]
fn the_five_are_recognised() {
    check("[Request interrupted by user]", Some(SyntheticText::Interrupt));
    check("[Request interrupted by user for tool use]", Some(SyntheticText::InterruptForToolUse));
    check("The user doesn't want to take this action right now. Stop.", Some(SyntheticText::Cancel));
    check("The user doesn't want to proceed with this tool use. Anything.", Some(SyntheticText::Reject));
    check("No response requested.", Some(SyntheticText::NoResponseRequested));
}

#[test]
fn the_prefixes_alone_are_enough() {
    check(CANCEL_PREFIX, Some(SyntheticText::Cancel));
    check(REJECT_PREFIX, Some(SyntheticText::Reject));
}

#[test]
fn the_line_end_that_api_requests_add_is_allowed() {
    check("[Request interrupted by user]\n", Some(SyntheticText::Interrupt));
    check("[Request interrupted by user for tool use]\n", Some(SyntheticText::InterruptForToolUse));
}

#[test]
fn a_text_that_only_mentions_tags_is_typed_by_the_user() {
    check("", None);
    check("why does it say [Request interrupted by user]", None);
    check("[Request interrupted by user] why?", None);
    check(" [Request interrupted by user]", None);
    check("[Request interrupted by user for tool use", None);
    check("No response requested", None);
    check("No response requested. Thanks", None);
    check("It said: The user doesn't want to proceed with this tool use.", None);
}

#[test]
fn the_other_fixed_texts_are_not_among_the_five() {
    for text in [
        NO_CONTENT,
        MISSING_RESULT,
        SYNTHETIC_MODEL,
        &subagent_reject_text(),
        &automatic_denial_text("a rule forbids it"),
    ] {
        check(text, None);
    }
}

#[test]
fn each_maker_is_recognised_by_its_recogniser_only() {
    let texts = [
        cancel_text(),
        reject_text(None),
        reject_text(Some("use the other file")),
        stopped_text(),
        subagent_reject_text(),
        automatic_denial_text("outside the project"),
        MISSING_RESULT.to_owned(),
    ];
    let seen: Vec<_> = texts
        .iter()
        .map(|text| {
            (
                SyntheticText::from_text(text),
                is_subagent_reject(text),
                is_automatic_denial(text),
                is_missing_result(text),
            )
        })
        .collect();
    let expected = [
        (Some(SyntheticText::Cancel), false, false, false),
        (Some(SyntheticText::Reject), false, false, false),
        (Some(SyntheticText::Reject), false, false, false),
        (Some(SyntheticText::Reject), false, false, false),
        (None, true, false, false),
        (None, false, true, false),
        (None, false, false, true),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn the_missing_result_placeholder_is_exact() {
    assert!(is_missing_result("[Tool result missing due to internal error]"));
    assert!(is_missing_result("[Tool result missing due to internal error]\n"));
    assert!(!is_missing_result("grep: [Tool result missing due to internal error]"));
    assert!(!is_missing_result(""));
}

#[test]
fn feedback_is_the_text_of_the_user() {
    assert_eq!(rejection_feedback(&reject_text(Some("first\n\nsecond"))), Some("first\n\nsecond"));
    assert_eq!(rejection_feedback(&reject_text(Some("the user said:\nno"))), Some("the user said:\nno"));
    let real = "The user doesn't want to proceed with this tool use. The tool use was rejected \
                (eg. if …). To tell you how to proceed, the user said:\nlet's talk about this";
    assert_eq!(rejection_feedback(real), Some("let's talk about this"));
    let subagent = "Permission for this tool use was denied. Rejected. the user said:\nnot now";
    assert_eq!(rejection_feedback(subagent), Some("not now"));
}

#[test]
fn synthetic_user_texts_are_recognized_by_their_beginning() {
    assert!(is_automatic_prompt("<tick>09:00</tick>") && is_automatic_prompt(" <goal>ship</goal>"));
    assert!(!is_automatic_prompt("what is a <tick>?"));
}

#[test]
fn without_text_there_is_no_feedback() {
    for text in
        [reject_text(None), reject_text(Some("")), reject_text(Some(" \n")), cancel_text(), subagent_reject_text()]
    {
        assert_eq!(rejection_feedback(&text), None, "{text}");
    }
    assert_eq!(rejection_feedback("the user said:\nhello"), None);
    assert_eq!(reject_text(Some(" ")), reject_text(None));
}

#[test]
fn an_automatic_denial_gives_the_reason_the_honest_way_and_the_limit() {
    let text = automatic_denial_text(" the rule `deny rm` matches. ");
    assert!(text.starts_with("Permission for this action has been denied. Reason: the rule `deny rm` matches. Work"));
    assert!(text.contains("different tool or approach is welcome"), "{text}");
    assert!(text.contains("Do not work around"), "{text}");
    assert!(text.contains("let them decide"), "{text}");
    assert!(!text.contains("  "), "{text}");
    assert!(automatic_denial_text("").contains("Reason: none given. "));
}

#[test]
fn a_summary_begins_as_other_readers_expect() {
    let text = compact_summary_text("The pier is twelve planks long.");
    assert!(text.starts_with("This session is being continued from a previous conversation that ran out of context."));
    assert!(text.contains("\n\nThe pier is twelve planks long.\n\n"), "{text}");
}

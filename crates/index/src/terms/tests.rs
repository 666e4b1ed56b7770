use super::*;

#[track_caller]
fn parse(query: &str) -> SearchTerms {
    SearchTerms::parse(query).unwrap()
}

#[test]
fn the_index_is_queried_for_words_phrases_and_prefixes() {
    let check = |query: &str, expect: &str| assert_eq!(parse(query).candidate_expression().unwrap(), expect, "{query}");
    check("tide Table", r#"((("tide" OR "·tide"))) AND ((("table" OR "·table")))"#);
    check("getUserById", r#"((("get user by id" OR "getuserbyid" OR "·getuserbyid")))"#);
    check(r#""the tide turns" noon"#, r#"("the tide turns") AND ((("noon" OR "·noon")))"#);
    check(r#""the ReadCommitted level""#, r#"(("the read committed level" OR "the readcommitted level"))"#);
    check("tide.rs", r#"(("tide rs" OR ("·tide" AND "rs") OR ("·tide" AND "·rs") OR ("tide" AND "·rs")))"#);
    check(
        "userId.r*",
        r#"((("user id r"* OR "userid r"*) OR ("·userid" AND "r"*) OR ("·userid" AND "·r"*) OR (("user id" OR "userid") AND "·r"*)))"#,
    );
    check("C++ tide", r#"((("c" OR "·c"))) AND ((("tide" OR "·tide")))"#);
    check("潮汐.rs", r#"(("潮汐" AND ("rs" OR "·rs")))"#);
    check("抽奖", r#"(("抽奖"))"#);
    check("抽奖脚本", r#"(("抽奖 奖脚 脚本"))"#);
    check("潮", r#"(("潮"*))"#);
    check("har*", r#"((("har"* OR "·har"*)))"#);
    check("tide OR ebb flow", r#"((("tide" OR "·tide")) OR (("ebb" OR "·ebb"))) AND ((("flow" OR "·flow")))"#);
    check("tide -harbour", r#"(((("tide" OR "·tide")))) NOT ((("harbour" OR "·harbour")))"#);
    check("tide tide tide", r#"((("tide" OR "·tide")))"#);
    check("🚀 tide", r#"((("tide" OR "·tide")))"#);
    check("tide,", r#"((("tide" OR "·tide")))"#);
    let many = parse("a.b.c.d.e.f.g").candidate_expression().unwrap();
    assert!(many.starts_with(r#"((("a" OR "·a") AND ("b" OR "·b") AND "#), "{many}");
    let again = parse("tide ebb tide OR flow").candidate_expression().unwrap();
    assert!(again.ends_with(r#" AND ((("tide" OR "·tide")) OR (("flow" OR "·flow")))"#), "{again}");
    for query in ["🚀", " -- ", "->", "++"] {
        assert!(!parse(query).has_words(), "{query}");
    }
}

#[test]
fn adjacent_words_are_queried_first() {
    let check = |query: &str, expect: Option<&str>| {
        assert_eq!(parse(query).adjacent_expression().as_deref(), expect, "{query}")
    };
    check("exit status 1", Some(r#""exit status 1""#));
    check("src/tide.rs", Some(r#""src tide rs""#));
    check("tide", None);
    check("userId", None);
    check("a OR b c", None);
    check("exit sta*", Some(r#""exit sta"*"#));
}

/// The text with its matches in brackets; `None` if it does not match.
fn marked(query: &str, text: &str) -> Option<String> {
    let mut out = text.to_owned();
    for (_, found) in parse(query).find_matches(text)?.into_iter().rev() {
        out.insert(found.end, ']');
        out.insert(found.start, '[');
    }
    Some(out)
}

#[test]
fn a_text_is_tested_and_marked() {
    let check = |query: &str, text: &str, expect: &str| {
        let expect = (!expect.is_empty()).then(|| expect.to_owned());
        assert_eq!(marked(query, text), expect, "{query} in {text}");
    };
    check("tide", "The Tide, the tides", "The [Tide], the tides");
    for query in ["readcommitted", "READCOMMITTED", "read_committed", "ReadCommitted"] {
        check(query, "ReadCommitted", "[ReadCommitted]");
        check(query, "READ_COMMITTED", "[READ_COMMITTED]");
        check(query, "is readcommitted", "is [readcommitted]");
    }
    check("\"session id\"", "session_id SessionID", "[session_id] [SessionID]");
    check("id", "userId grid", "user[Id] grid");
    check("C++", "C and C++", "C and [C++]");
    check("C++", "C and C", "");
    check("#104", "104 #1045 #104", "104 #1045 [#104]");
    check("50%", "150% 50%", "150% [50%]");
    check("@entire", "@Entire entire", "[@Entire] entire");
    check("2026-02-12", "2026-02-12T22:40", "[2026-02-12]T22:40");
    check("22:40", "2026-02-12T22:40", "2026-02-12T[22:40]");
    check("src/Tide.rs", "at src/tide.rs:12", "at [src/tide.rs]:12");
    check("har*", "harbour shard", "[harbour] shard");
    check("抽奖", "在抽奖中", "在[抽奖]中");
    check("潮", "潮汐", "[潮]汐");
    check("🚀", "go 🚀", "go [🚀]");
    check("tide noon", "noon, tide", "[noon], [tide]");
    check("tide noon", "noon", "");
    check("tide OR noon", "noon", "[noon]");
    check("tide -noon", "tide at noon", "");
    check("tide -noon", "tide", "[tide]");
    check("-> tide", "a->b tide", "a[->]b [tide]");
    check("\"a  b++\"", "a\nb++", "[a\nb++]");
    check("--exact", "with --exact", "with [--exact]");
    check("key=\"value\"", "key=\"value\" key", "[key=\"value\"] key");
}

#[test]
fn nothing_and_too_much_are_refused() {
    for query in ["", "  ", "\"\"", "-tide"] {
        assert!(matches!(SearchTerms::parse(query), Err(PatternError::Empty)), "{query}");
    }
    let many: Vec<String> = (0..1000).map(|n| format!("w{n}")).collect();
    assert!(matches!(SearchTerms::parse(&many.join(" ")), Err(PatternError::TooManyTerms { .. })));
    assert!(SearchTerms::parse(&"tide ".repeat(1000)).is_ok());
    assert!(SearchTerms::parse(&"x".repeat(100_000)).is_ok());
}

use quipu_conversation::Conversation;

use super::*;

#[track_caller]
fn masks(text: &str, expect: &str) {
    let mut redactor = Redactor::default();
    assert_eq!(redactor.text(text), expect);
    assert_eq!(redactor.counts().values().sum::<u64>() > 0, text != expect);
}

#[test]
fn every_rule_compiles() {
    assert_eq!(Redactor::default().rules.len(), RULES.len());
    assert_eq!(Redactor::default().any.len(), RULES.len());
}

#[test]
fn keys_and_tokens_are_masked() {
    masks(&format!("key sk-ant-api03-{} end", "a1B2".repeat(8)), "key [Anthropic key] end");
    masks(&format!("ghp_{}", "a1".repeat(18)), "[GitHub token]");
    masks("AKIAABCDEFGHIJKLMNOP", "[AWS key]");
    masks("Authorization: Bearer abcdefghijklmnop123", "Authorization: Bearer [bearer token]");
    masks("postgres://sam:hunter2@db/x", "postgres://sam:[password in an address]@db/x");
    masks("DB_PASSWORD=correct-horse", "DB_PASSWORD=[secret]");
    masks("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nafter", "[private key]\nafter");
    masks("-----BEGIN PRIVATE KEY-----\ncut off", "[private key]");
    masks("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcd1234", "[JSON web token]");
}

#[test]
fn people_and_their_folders_are_masked() {
    masks("ask sam.o-x@mail.example.org now", "ask [e-mail address] now");
    masks("/home/sam/app and /Users/sam/x", "/home/[home folder]/app and /Users/[home folder]/x");
    masks(r"C:\Users\Sam\x", r"C:\Users\[home folder]\x");
}

#[test]
fn ordinary_text_is_left_alone() {
    masks("the token count is 12345", "the token count is 12345");
    masks("max_tokens: 4096", "max_tokens: 4096");
    masks("see https://example.org/a@b and @src/main.rs", "see https://example.org/a@b and @src/main.rs");
}

#[test]
fn everything_an_item_shows_is_masked() {
    let mut talk = Conversation::default();
    talk.push_line(1, r#"{"type":"assistant","uuid":"a","message":{"role":"assistant","content":[{"type":"text","text":"to sam@example.org"},{"type":"tool_use","id":"t","name":"Bash","input":{"command":"cat /home/sam/.env","password":"hunter2hunter2"}}]}}"#);
    talk.push_line(2, r#"{"type":"user","uuid":"b","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"API_KEY=abcdef123456"}]}]},"toolUseResult":{"stdout":"API_KEY=abcdef123456"}}"#);
    let mut items = talk.for_ui();
    let mut redactor = Redactor::default();
    items.iter_mut().for_each(|item| redactor.item(item));
    let shown = serde_json::to_string(&items).unwrap();
    for secret in ["sam@", "/sam/", "hunter2", "abcdef123456"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
    assert_eq!(redactor.counts().values().sum::<u64>(), 5);
}

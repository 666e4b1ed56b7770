use quipu_conversation::Conversation;

use super::*;

#[track_caller]
fn check_masked(text: &str, expect: &str) {
    let mut redactor = Redactor::default();
    assert_eq!(redactor.redact_text(text), expect);
    assert_eq!(redactor.counts().values().sum::<u64>() > 0, text != expect);
}

#[test]
fn secrets_are_masked_and_the_rest_is_kept() {
    check_masked(&format!("key sk-ant-api03-{} end", "a1B2".repeat(8)), "key [Anthropic key] end");
    check_masked("Authorization: Bearer abcdefghijklmnop123", "Authorization: Bearer [bearer token]");
    check_masked("postgres://sam:hunter2@db.example.org/x", "postgres://sam:[password in an address]@db.example.org/x");
    check_masked("A_PASSWORD=correct-horse B_PASSWORD='x y z'", "A_PASSWORD=[password] B_PASSWORD='[password]'");
    check_masked("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nafter", "[private key]\nafter");
}

#[test]
fn masking_twice_changes_nothing() {
    let text =
        "DB_PASSWORD=hunter2 password: 'a b' sam@example.org /home/sam/x -Users-sam-x \"token\": \"a1b2c3d4e5f6\"";
    let once = Redactor::default().redact_text(text).into_owned();
    check_masked(&once, &once);
}

#[test]
fn addresses_and_home_folders_are_masked() {
    check_masked("ask sam.o-x@mail.example.org now", "ask [e-mail address] now");
    check_masked("/home/sam/app and /Users/sam/x", "/home/[home folder]/app and /Users/[home folder]/x");
    check_masked(r"C:\Users\Sam\x", r"C:\Users\[home folder]\x");
    check_masked("C:/Users/Sam/x", "C:/Users/[home folder]/x");
    check_masked(
        "~/.claude/projects/-Users-alicesmith-projects-x",
        "~/.claude/projects/-Users-[home folder]-projects-x",
    );
    check_masked("-home-sam-tidepool", "-home-[home folder]-tidepool");
    check_masked(r"projects\C--Users-Sam-x", r"projects\C--Users-[home folder]-x");
}

#[test]
fn a_user_name_with_punctuation_is_masked_in_its_dashed_form() {
    let about = SessionDetails { cwd: Some("/Users/alice.smith/app".to_owned()), ..SessionDetails::default() };
    let masked = Redactor::new(&about).redact_text("in projects/-Users-alice-smith-app/x.jsonl").into_owned();
    assert_eq!(masked, "in projects/-Users-[home folder]-app/x.jsonl");
}

#[test]
fn ordinary_text_is_left_alone() {
    for text in [
        "max_tokens: 4096",
        "see https://example.org/a@b and @src/main.rs",
        "git clone git@github.com:org/repo.git",
        "go-home-page --home-dir x /home/ /Users/$USER /home/{user}",
    ] {
        check_masked(text, text);
    }
}

#[test]
fn everything_an_item_shows_is_masked() {
    let mut conversation = Conversation::default();
    conversation.push_line(1, r#"{"type":"assistant","uuid":"a","message":{"role":"assistant","content":[{"type":"text","text":"to sam@example.org"},{"type":"tool_use","id":"t","name":"Bash","input":{"command":"cat /home/sam/.env","password":"hunter2","/home/sam/key":{"a":"b"}}}]}}"#);
    conversation.push_line(2, r#"{"type":"user","uuid":"b","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"API_KEY=abcdef123456"}]}]},"toolUseResult":{"stdout":"API_KEY=abcdef123456"}}"#);
    let mut items = conversation.for_ui();
    let mut redactor = Redactor::default();
    items.iter_mut().for_each(|item| redactor.redact_item(item));
    let shown = serde_json::to_string(&items).unwrap();
    for secret in ["sam@", "/sam/", "hunter2", "abcdef123456"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
    assert_eq!(redactor.counts().values().sum::<u64>(), 6);
}

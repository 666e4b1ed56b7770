use super::rules::RULES;
use super::*;

/// A made-up value, the same in every run. The tests put their secrets together from
/// parts, so that this file holds none.
fn generate_token(len: usize) -> String {
    generate_from("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", len)
}

fn generate_hex(len: usize) -> String {
    generate_from("0123456789abcdef", len)
}

fn generate_from(alphabet: &str, len: usize) -> String {
    let mut state = 4_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(alphabet.as_bytes()[(state >> 16) as usize % alphabet.len()])
    };
    (0..len).map(|_| next()).collect()
}

fn found_values(text: &str) -> Vec<(&'static str, &str)> {
    find_secrets(text).into_iter().map(|secret| (secret.kind, &text[secret.range])).collect()
}

/// `text` has exactly one secret, of this kind, at the position of `{}`.
#[track_caller]
fn check_found(kind: &str, template: &str, secret: &str) {
    let text = template.replace("{}", secret);
    assert_eq!(found_values(&text), [(kind, secret)], "in {text}");
}

#[track_caller]
fn check_nothing_found(text: &str) {
    assert_eq!(found_values(text), [], "in {text}");
}

#[test]
fn every_rule_compiles() {
    RULES.iter().for_each(|rule| drop(compile(rule.pattern)));
    find_secrets("password: x"); // the keywords and the expressions of `assigned`
}

#[test]
fn tokens_of_services_are_found() {
    let m = generate_token;
    let h = generate_hex;
    let cases = [
        ("Anthropic key", ["sk-ant-", "api03-"].concat() + &m(40)),
        ("OpenAI key", "sk-".to_owned() + &m(48)),
        ("OpenAI key", "sk-proj-".to_owned() + &m(60)),
        ("GitHub token", "ghp_".to_owned() + &m(36)),
        ("GitHub token", "github_pat_".to_owned() + &m(50)),
        ("GitLab token", "glpat-".to_owned() + &m(20)),
        ("AWS key", "AKIA".to_owned() + &m(16).to_uppercase()),
        ("Google key", "AIza".to_owned() + &m(35)),
        ("Google token", "ya29.".to_owned() + &m(60)),
        ("Slack token", "xoxb-".to_owned() + "1234567890-" + &m(24)),
        ("Stripe key", ["sk_", "live_"].concat() + &m(24)),
        ("npm token", "npm_".to_owned() + &m(36)),
        ("PyPI token", "pypi-".to_owned() + &m(60)),
        ("Hugging Face token", "hf_".to_owned() + &m(34)),
        ("SendGrid key", format!("SG.{}.{}", m(22), m(43))),
        ("DigitalOcean token", "dop_v1_".to_owned() + &h(64)),
        ("Vault token", "hvs.".to_owned() + &m(24)),
        ("Databricks token", "dapi".to_owned() + &h(32)),
        ("Twilio key", "SK".to_owned() + &h(32)),
        ("Mailgun key", "key-".to_owned() + &h(32)),
        ("Mailchimp key", h(32) + "-us12"),
        ("Linear key", "lin_api_".to_owned() + &m(40)),
        ("Notion token", "ntn_".to_owned() + &m(46)),
        ("Supabase token", "sbp_".to_owned() + &h(40)),
        ("Shopify token", "shpat_".to_owned() + &h(32)),
        ("Square token", "sq0atp-".to_owned() + &m(22)),
        ("Mapbox token", format!("sk.eyJ{}.{}", m(60), m(22))),
        ("New Relic key", "NRAK-".to_owned() + &m(27).to_uppercase()),
        ("age key", "AGE-SECRET-KEY-1".to_owned() + &m(58).to_uppercase()),
        ("Discord token", format!("MT{}.{}.{}", m(24), m(6), m(38))),
        ("Telegram token", format!("1234567890:AA{}", m(33))),
        ("JSON web token", format!("eyJ{}.eyJ{}.{}", m(20), m(30), m(43))),
        ("Doppler token", "dp.pt.".to_owned() + &m(43)),
        ("Groq key", "gsk_".to_owned() + &m(52)),
        ("Grafana token", "glsa_".to_owned() + &m(41)),
        ("Sentry token", "sntrys_".to_owned() + &m(60)),
        ("Postman key", format!("PMAK-{}-{}", h(24), h(34))),
        ("Pulumi token", "pul-".to_owned() + &h(40)),
        ("Tailscale key", format!("tskey-auth-{}", m(32))),
        ("Docker token", "dckr_pat_".to_owned() + &m(27)),
        ("RubyGems key", "rubygems_".to_owned() + &h(48)),
    ];
    for (kind, token) in &cases {
        check_found(kind, "run it with {} and wait", token);
        check_found(kind, "\"{}\"", token);
        check_found(kind, "API_TOKEN={}\n", token);
        check_found(kind, "see {}", token);
    }
}

#[test]
fn secrets_are_found_by_their_context() {
    check_found(
        "Slack webhook",
        "https://hooks.slack.com/services/{}",
        &format!("T0{}/B0{}/{}", 1234567, 7654321, generate_token(24)),
    );
    check_found(
        "Discord webhook",
        "https://discord.com/api/webhooks/{}",
        &format!("123456789012345678/{}", generate_token(68)),
    );
    check_found("bearer token", "Authorization: Bearer {}", "abcdefghijklmnop123");
    check_found("basic authorization", "Authorization: Basic {}", "dXNlcjpwYXNzd29yZA==");
    check_found("basic authorization", r#"{"auths":{"host":{"auth":"{}"}}}"#, "dXNlcjpwYXNzd29yZA==");
    check_found("password in an address", "postgres://sam:{}@db/x", "hunter2");
    check_found("password in an address", "redis://:{}@cache:6379", "hunter2");
    check_found("password", "curl -s -u sam:{} https://example.org", "hunter2");
    check_found("password", "curl --user 'sam:{}' https://example.org", "hunter2");
    check_found("password", "sshpass -p {} ssh host", "hunter2");
    check_found("password", "machine host login sam password {}", "hunter2");
    check_found("password", "machine host\n  login sam\n  password {}\n", "hunter2");
    check_found("cookie", "Cookie: {}", "session=abc123; theme=dark");
    check_found("cookie", "Set-Cookie: {}", "id=a3fWa; Secure; HttpOnly");
    check_found(
        "Azure SAS signature",
        "https://x.blob.core.windows.net/c?sv=2024&sig={}",
        &(generate_token(42) + "%3D"),
    );
    let pem = |kind: &str| format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----", generate_token(64));
    for kind in ["RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"] {
        check_found("private key", "before\n{}\nafter", &pem(kind));
    }
    check_found("private key", "{}", "-----BEGIN PRIVATE KEY-----\ncut off");
}

#[test]
fn secrets_are_found_by_the_names_of_their_variables() {
    check_found("secret", "AWS_SECRET_ACCESS_KEY={}", &(generate_token(20) + "/" + &generate_token(19)));
    check_found("secret", "aws_secret_access_key = {}", &generate_token(40));
    check_found("secret", "SECRET_KEY = '{}'", &format!("django-insecure-{}!@#$", generate_token(30)));
    check_found("secret", "AccountName=x;AccountKey={};EndpointSuffix=y", &(generate_token(86) + "=="));
    check_found("secret", r#""private_key_id": "{}""#, &generate_hex(40));
    check_found("secret", "API_KEY={}", "abcdef123456");
    check_found("secret", "export const apiKey: string = \"{}\"", &generate_token(20));
    check_found("secret", r#"{\"api_key\":\"{}\"}"#, &generate_token(20));
    check_found("secret", "tool --api-key {} run", &generate_token(20));
    check_found("secret", "X-Api-Key: {}", &generate_hex(32));
    check_found("password", "DB_PASSWORD={}", "correct-horse");
    check_found("password", "PASSWORD='{}'", "several words of it");
    check_found("password", "password: \"{}\"", "hunter2");
    check_found("password", "password: {}", "hunter2");
    check_found("password", "smtp_pass={}", "s3cr");
    check_found("password", "mysql --password={}", "hunter2");
    check_found("password", "psql --password {} -h db", "hunter2");
    check_found("password", "'db_passwd' => '{}',", "hunter2");
    check_found("random value", "SENDER={}", &generate_token(32));
    check_found("random value", "\"sender\": \"{}\"", &generate_token(40));
}

#[test]
fn ordinary_text_is_left_alone() {
    for text in [
        "the token count is 12345",
        "max_tokens: 4096, input_tokens=18231",
        "password: string; confirmPassword: z.string().min(8)",
        "password = request.form['password']",
        "login(username=user, password=password)",
        "PASSWORD=$DB_PASSWORD ./run, password: ${{ secrets.DB_PASSWORD }}",
        "password: '<your password>', api_key=\"YOUR_API_KEY\"",
        "passwordError: \"Password must have 8 characters\"",
        "--- PASS: TestUser/logs_in_2 (0.00s)",
        "passed: 12, failed: 0, passRate=98.5",
        "primary_key = user_id_2, cacheKey: 'user:profile:v2', key: Uint8Array",
        "postgres://user:password@localhost/db, https://example.org:8080/a@b",
        "PWD=/srv/app2 OLDPWD=/srv",
        "import { token } from './token-2'; author: x2, authority=1",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx sk-xxxxxxxxxxxxxxxxxxxxxxxx",
        "class=\"sk-loading-indicator-container-wide\"",
        "git rev-parse: 3f9a0c7e1b58d2463f9a0c7e1b58d2463f9a0c7e",
        "the basic idea: Basic authentication",
        "curl -o out:file https://example.org | docker run -u 1000:1000 x",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        "[password] password: [secret] DB_PASSWORD=[password]",
    ] {
        check_nothing_found(text);
    }
}

#[test]
fn hashes_signatures_ids_and_media_are_left_alone() {
    let m = generate_token;
    check_nothing_found(&format!("\"integrity\": \"sha512-{}==\"", m(86)));
    check_nothing_found(&format!("sha256: {}, etag=\"{}\", \"hash\":\"{}\"", generate_hex(64), m(32), m(40)));
    check_nothing_found(&format!("{{\"id\":\"toolu_01{}\",\"requestId\":\"req_011{}\"}}", m(22), m(21)));
    check_nothing_found(&format!("\"signature\": \"{}\"", m(300)));
    check_nothing_found(&format!("data:image/png;base64,{}AKIA{}/{}", m(400), "A1B2C3D4E5F6G7H8", m(400)));
    check_nothing_found(&format!("{}/ghp_{}", m(700), m(36)));
    let line = format!("{{\"signature\":\"{}\",\"data\":\"{}\",\"uuid\":\"{}\"}}", m(60), m(60), m(36));
    find_secrets_in_line(&line, &mut |kind, value| panic!("{kind}: {value}"));
}

#[track_caller]
fn found_in_line(line: &str) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    find_secrets_in_line(line, &mut |kind, value| found.push((kind, value.to_owned())));
    found
}

#[test]
fn a_line_is_searched_string_by_string() {
    assert_eq!(found_in_line(r#"{"a":[{"password":"hunter2"}]}"#), [("password", "hunter2".to_owned())]);
    let escaped = r#"{"text":"he said:\nDB_PASSWORD=\"hun ter2\"\n"}"#;
    assert_eq!(found_in_line(escaped), [("password", "hun ter2".to_owned())]);
    assert_eq!(found_in_line("{torn \"password\":\"hunter2\""), [("password", "hunter2".to_owned())]);
    assert_eq!(found_in_line(r#"{"text":"\ud800 PASSWORD=hunter2"}"#), [("password", "hunter2".to_owned())]);
    assert_eq!(found_in_line(&format!("{}\"password\":\"hunter2\"{}", "[{\"x\":".repeat(200), "}]")).len(), 1);
}

#[test]
fn of_findings_that_overlap_one_is_left() {
    let token = "ghp_".to_owned() + &generate_token(36);
    assert_eq!(found_values(&format!("GITHUB_TOKEN={token}")), [("GitHub token", &*token)]);
    let cookie = format!("a={token}; b=secret-session-1");
    assert_eq!(found_values(&format!("Cookie: {cookie}")), [("GitHub token", &*cookie)]);
}

//! Finds values whose name says that they are secret, and random values of any name.

use std::ops::Range;
use std::sync::LazyLock;

use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input};

use super::value::{RANDOM_MIN_BYTES, is_basic_auth, is_identifier, is_key_like, is_password, is_random_value};
use super::{FoundSecret, compile, is_inside_base64};

/// Parts of names that may belong to a secret, for the keyword search.
pub(super) const NAME_KEYWORDS: &[&str] = &["pass", "pwd", "secret", "token", "key", "credential", "auth"];

/// The rest of a name after the keyword, a separator and a value, quoted or up to a space.
static ASSIGNMENT_REGEX: LazyLock<Regex> = LazyLock::new(|| {
    compile(concat!(
        r#"[A-Za-z0-9_-]{0,40}\\*["'\]]{0,2}[ \t]*"#,
        // `: String =` is the type of what follows.
        r"(=>|:=|={1,3}|:(?:[ \t]*[A-Za-z&][A-Za-z&<>\[\]|?. ]{0,24}=)?)[ \t]*",
        r#"(?:[bBrRuU]?\\*"([^"\\\n]*)|[bBrRuU]?\\*'([^'\\\n]*)|`([^`\n]*)|([^\s"'`,;<>(){}\[\]|&\\]+))"#,
    ))
});

/// The rest of a command-line option after the keyword, and its value.
static OPTION_REGEX: LazyLock<Regex> =
    LazyLock::new(|| compile(r#"[a-z0-9-]{0,40}[ \t]+(?:"([^"\\\n]*)|'([^'\\\n]*)|([^\s"'`,;<>(){}\[\]|&\\]+))"#));

/// A long value after `:` or `=`.
static LONG_VALUE_REGEX: LazyLock<Regex> = LazyLock::new(|| {
    assert_eq!(RANDOM_MIN_BYTES, 24, "the pattern says so too");
    compile(r#"[:=][ \t]{0,2}\\?["']?[A-Za-z0-9+/_-]{24,}"#)
});

/// Syntax of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueForm {
    Quoted,
    /// Between backticks: a template in JavaScript after `=`, or code in prose.
    Backticks,
    /// After `=` without quotes, as in the environment of a command.
    Bare,
    /// After `:` without quotes: YAML, or prose.
    AfterColon,
}

/// The secret assigned to the name around the keyword at `keyword`; `None` if the value is not a
/// secret.
pub(super) fn find_assigned_secret(text: &str, keyword: Range<usize>) -> Option<FoundSecret> {
    let bytes = text.as_bytes();
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    let start = keyword.start - bytes[..keyword.start].iter().rev().take(60).take_while(|b| is_name(b)).count();
    let end = keyword.end + bytes[keyword.end..].iter().take(40).take_while(|b| is_name(b)).count();
    // Most keywords are words in prose; this check is cheaper than the regular expression.
    if !bytes.get(end).is_some_and(|b| b" \t:=\"'\\]".contains(b)) {
        return None;
    }
    let kind = NameHint::from_name(&text[start..end])?;
    let input = Input::new(text).range(keyword.end..).anchored(Anchored::Yes);
    let is_option = text[start..].starts_with("--");
    let (range, form) = match first_capture(&ASSIGNMENT_REGEX, &input, 2) {
        Some((range, group)) => {
            let sign = text[keyword.end..range.start].trim_end_matches([' ', '\t']).as_bytes().last().copied();
            let form = match (group, sign) {
                (2 | 3, _) => ValueForm::Quoted,
                (4, _) => ValueForm::Backticks,
                (_, Some(b':')) => ValueForm::AfterColon,
                _ => ValueForm::Bare,
            };
            (range, form)
        }
        None if is_option => first_capture(&OPTION_REGEX, &input, 1).map(|(range, _)| (range, ValueForm::Bare))?,
        None => return None,
    };
    let value = &text[range.clone()];
    let is_call = bytes.get(range.end).is_some_and(|b| matches!(b, b'(' | b'[')) && form != ValueForm::Quoted;
    let is_uppercase_name = is_option || !text[start..end].bytes().any(|b| b.is_ascii_lowercase());
    // `PASS: name` is how test runners report.
    let is_report =
        text[start..end].eq_ignore_ascii_case("pass") && form != ValueForm::Quoted && form != ValueForm::Bare;
    let is_secret =
        !is_call && !is_report && kind.accepts_value(value, form, is_uppercase_name) && !is_inside_base64(text, &range);
    is_secret.then_some(FoundSecret { kind: kind.kind_name(), range })
}

/// Kind of secret of a JSON value by its key; `None` if it is not a secret.
pub(crate) fn secret_kind_for_key(key: &str, value: &str) -> Option<&'static str> {
    if value.len() > 512 {
        return None;
    }
    match NameHint::from_name(key) {
        Some(kind) if kind.accepts_value(value, ValueForm::Quoted, false) => Some(kind.kind_name()),
        _ => (!is_public_name(key) && is_random_token(value)).then_some(RANDOM_KIND),
    }
}

/// Random values assigned to any name that is not known to be public.
pub(super) fn find_random_values(text: &str) -> Vec<FoundSecret> {
    let mut secrets = Vec::new();
    let mut from = 0;
    while let Some(matched_range) = LONG_VALUE_REGEX.find(Input::new(text).range(from..)) {
        from = matched_range.end();
        let matched = &text[matched_range.range()];
        let value = matched.trim_start_matches([':', '=', ' ', '\t', '"', '\'', '\\']);
        let range = matched_range.end() - value.len()..matched_range.end();
        // A value ends at a space, a quote or a bracket.
        let ends = !text.as_bytes().get(range.end).is_some_and(|b| b".:@%~$#?".contains(b) || !b.is_ascii());
        let name = name_before(&text[..matched_range.start()]);
        if ends
            && !name.is_empty()
            && !is_public_name(name)
            && is_random_token(value)
            && !is_inside_base64(text, &range)
        {
            secrets.push(FoundSecret { kind: RANDOM_KIND, range });
        }
    }
    secrets
}

const RANDOM_KIND: &str = "random value";

/// The name at the end of the text, without quotes and spaces after it.
fn name_before(text: &str) -> &str {
    let text = text.trim_end_matches([' ', '\t', '"', '\'', '\\', ']']);
    let len = text.bytes().rev().take(60).take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')).count();
    &text[text.len() - len..]
}

/// Prefixes of ids, which are random but not secret.
const ID_PREFIXES: &[&str] = &[
    "toolu_",
    "srvtoolu_",
    "msg_",
    "req_",
    "call_",
    "chatcmpl",
    "resp_",
    "file_",
    "file-",
    "sha1-",
    "sha256-",
    "sha384-",
    "sha512-",
    "sess",
    "session_",
    "agent-",
    "cse_",
    "org_",
    "user_",
    "task_",
    "wrkr_",
    "mcpsrv_",
    "container_",
    "gen-",
    "run_",
    "pk_",
    "cus_",
    "price_",
    "prod_",
    "sub_",
    "pi_",
    "evt_",
];

fn is_random_token(value: &str) -> bool {
    value.len() <= 200
        && value.bytes().all(super::is_base64_byte)
        && value.matches('/').count() <= 3
        && !ID_PREFIXES.iter().any(|prefix| value.starts_with(prefix))
        && is_random_value(value)
}

/// Last words of names whose values are random but not secret.
const PUBLIC_NAME_ENDINGS: &[&str] = &[
    "id",
    "ids",
    "uuid",
    "guid",
    "hash",
    "sha",
    "sha1",
    "sha256",
    "sha384",
    "sha512",
    "md5",
    "digest",
    "checksum",
    "integrity",
    "etag",
    "signature",
    "sig",
    "commit",
    "revision",
    "rev",
    "data",
    "base64",
    "content",
    "src",
    "href",
    "url",
    "uri",
    "path",
    "file",
    "filename",
    "name",
    "fingerprint",
    "version",
    "cursor",
    "nonce",
    "ref",
    "blob",
    "image",
    "public",
    "cid",
    "request",
    "trace",
    "span",
    "thumbprint",
    "ray",
    "class",
    "http",
    "https",
    "v",
    "slug",
    "encrypted",
];

fn is_public_name(name: &str) -> bool {
    split_name(name).last().is_none_or(|last| PUBLIC_NAME_ENDINGS.contains(&last.as_str()))
        || split_name(name).iter().any(|w| w == "public")
}

/// Kind of secret that a name suggests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameHint {
    Password,
    Secret,
    /// `auth` in a Docker configuration.
    BasicAuth,
}

/// Last words of names whose values describe a secret but are not one.
const NON_SECRET_NAME_ENDINGS: &[&str] = &[
    "hash",
    "hashed",
    "field",
    "length",
    "len",
    "min",
    "max",
    "input",
    "label",
    "policy",
    "reset",
    "required",
    "file",
    "path",
    "url",
    "uri",
    "prompt",
    "type",
    "strength",
    "error",
    "errors",
    "message",
    "manager",
    "selector",
    "regex",
    "pattern",
    "hint",
    "count",
    "rate",
    "enabled",
    "name",
    "names",
    "limit",
    "usage",
    "expiry",
    "expires",
    "ttl",
    "size",
    "store",
    "provider",
    "format",
    "source",
    "env",
    "var",
    "vars",
    "arn",
    "ref",
    "prefix",
    "suffix",
    "budget",
    "tokens",
    "secrets",
    "passwords",
    "keys",
    "credentials",
    "helper",
    "service",
    "class",
    "method",
    "mode",
    "status",
    "index",
    "id",
    "ids",
    "code",
    "codes",
    "author",
    "authors",
    "at",
    "in",
    "header",
    "endpoint",
    "version",
    "algorithm",
    "algo",
    "alg",
    "kind",
    "state",
    "spec",
    "rotation",
    "scope",
    "scopes",
];

impl NameHint {
    /// Kind of secret that the name suggests; `None` if it suggests none.
    fn from_name(name: &str) -> Option<Self> {
        let words = split_name(name);
        let has = |word: &str| words.iter().any(|w| w == word);
        let last = words.last()?.as_str();
        if has("public") || has("pub") {
            return None;
        }
        let password = ["password", "passwd", "passphrase", "passwort", "pwd", "pass", "passcode"].into_iter().any(has)
            || words.iter().any(|word| word.ends_with("password") || word.ends_with("passwd"));
        if name.eq_ignore_ascii_case("private_key_id") {
            return Some(Self::Secret);
        }
        if NON_SECRET_NAME_ENDINGS.contains(&last) {
            return None;
        }
        if password {
            return Some(Self::Password);
        }
        if last == "auth" {
            return Some(Self::BasicAuth);
        }
        let key = last == "key" && words.len() > 1
            || ["apikey", "accesskey", "secretkey", "privatekey", "accountkey", "authkey"].contains(&last);
        let secret = words.iter().any(|word| {
            matches!(word.as_str(), "secret" | "token" | "credential" | "apikey" | "authtoken" | "accesstoken")
        });
        (key || secret).then_some(Self::Secret)
    }

    fn kind_name(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::Secret => "secret",
            Self::BasicAuth => "basic authorization",
        }
    }

    /// Whether the value is a secret of this kind. `is_uppercase_name` is true for a name in capital
    /// letters, such as an environment variable, and for a command-line option.
    fn accepts_value(self, value: &str, form: ValueForm, is_uppercase_name: bool) -> bool {
        let plain_number = value.parse::<f64>().is_ok() && value.len() < 6;
        match self {
            // `key: Uint8Array` is a type, `API_KEY=abc123def456` a value.
            Self::Secret => {
                is_key_like(value) && (form != ValueForm::AfterColon || value.len() >= 16 || !is_identifier(value))
            }
            Self::BasicAuth => value.len() >= 8 && is_basic_auth(value),
            Self::Password if plain_number || !is_password(value) || value.starts_with("//") => false,
            Self::Password => match form {
                ValueForm::Quoted => !is_sentence(value) && value.trim() == value,
                ValueForm::Backticks => !value.contains(char::is_whitespace),
                ValueForm::Bare | ValueForm::AfterColon => {
                    let has_sign = value.bytes().any(|b| !b.is_ascii_alphabetic() && b != b'_' && b != b'.');
                    let len = if form == ValueForm::Bare { 4 } else { 6 };
                    !value.starts_with('/')
                        && value.len() >= len
                        && (has_sign || is_uppercase_name && form == ValueForm::Bare)
                }
            },
        }
    }
}

/// Whether a quoted text is a sentence about passwords, not a password.
fn is_sentence(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let about = ["password", "passphrase", "enter", "must", "invalid", "required", "please", "incorrect", "wrong"];
    value.contains(' ') && about.iter().any(|word| lower.contains(word))
}

/// The words of a name in lower case, split at `_`, `-`, `.` and at capital letters.
fn split_name(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    for part in name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()) {
        let bytes = part.as_bytes();
        let mut start = 0;
        for at in 1..bytes.len() {
            let hump = bytes[at].is_ascii_uppercase()
                && (bytes[at - 1].is_ascii_lowercase()
                    || bytes[at - 1].is_ascii_uppercase() && bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase));
            if hump {
                words.push(part[start..at].to_ascii_lowercase());
                start = at;
            }
        }
        words.push(part[start..].to_ascii_lowercase());
    }
    words
}

/// Range and number of the first group, from `from` on, that takes part in the match.
fn first_capture(regex: &Regex, input: &Input<'_>, from: usize) -> Option<(Range<usize>, usize)> {
    let mut captures = regex.create_captures();
    regex.search_captures(input, &mut captures);
    (from..captures.group_len()).find_map(|group| Some((captures.get_group(group)?.range(), group)))
}

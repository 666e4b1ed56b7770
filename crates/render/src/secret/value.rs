//! Tells random values, passwords and placeholders apart.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Words that are used in place of a password.
const PLACEHOLDERS: &[&str] = &[
    "password",
    "passwd",
    "pass",
    "pwd",
    "passphrase",
    "secret",
    "token",
    "string",
    "str",
    "text",
    "none",
    "null",
    "nil",
    "undefined",
    "true",
    "false",
    "required",
    "optional",
    "redacted",
    "hidden",
    "masked",
    "changeme",
    "value",
    "prompt",
    "empty",
    "unknown",
    "disabled",
    "enabled",
    "default",
    "hash",
    "plaintext",
    "function",
];

/// Texts that occur in placeholders and in no password.
const PLACEHOLDER_PARTS: &[&str] =
    &["your", "placeholder", "redacted", "process.env", "environ", "getenv", "example.com", "...", "…", "xxx", "***"];

/// Whether a value is a placeholder such as `xxxx`, `****`, `<token>` or `[secret]`.
pub(super) fn is_placeholder(value: &str) -> bool {
    let filler = value.bytes().filter(|b| matches!(b, b'x' | b'X' | b'*' | b'.')).count();
    let marked = value.trim_start_matches([':', '=', ',', ';']).starts_with(['<', '[', '{']);
    filler * 10 >= value.len() * 7 || marked || value.contains("${")
}

/// Whether a value may be a password: neither a placeholder nor a variable.
pub(super) fn is_password(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let variable = value.strip_prefix(['$', '%', '@', '&', '#', ':']).is_some_and(is_identifier);
    value.len() >= 3
        && !is_placeholder(value)
        && !variable
        && !value.starts_with(['(', '|', '\\'])
        && !value.starts_with("$(")
        && !PLACEHOLDERS.contains(&lower.as_str())
        && !PLACEHOLDER_PARTS.iter().any(|part| lower.contains(part))
}

/// Whether a value has at least two letters and two digits and is not a placeholder.
pub(super) fn has_letters_and_digits(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    digits >= 2 && letters >= 2 && !is_placeholder(value)
}

/// Whether a value is base64 of `user:password`.
pub(super) fn is_basic_auth(value: &str) -> bool {
    let decoded = STANDARD.decode(value).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.is_some_and(|text| text.contains(':') && !text.chars().any(char::is_control))
}

/// Whether the value of a name such as `API_KEY` looks like a key: a part of it mixes letters
/// and digits, or changes between character classes more often than words do.
pub(super) fn is_key_like(value: &str) -> bool {
    let parts = || value.split(|c: char| !c.is_ascii_alphanumeric());
    let mixed = |part: &str| {
        part.len() >= 6
            && part.bytes().any(|b| b.is_ascii_digit())
            && part.bytes().filter(u8::is_ascii_alphabetic).count() >= 2
    };
    let chaotic = |part: &str| part.len() >= 16 && class_changes(part) * 10 >= part.len() * 4;
    value.len() >= 8
        && !value.contains(char::is_whitespace)
        && !value.contains("://")
        && is_password(value)
        && !is_path(value)
        && entropy(value) >= 2.5
        && parts().any(|part| mixed(part) || chaotic(part))
}

/// Whether a value is random, whatever its name: long, with lower-case and capital letters and
/// digits that alternate more often than in words. Hexadecimal hashes are not.
pub(super) fn is_random_value(value: &str) -> bool {
    let count = |is: fn(&u8) -> bool| value.bytes().filter(is).count();
    let alphanumeric = count(u8::is_ascii_alphanumeric);
    value.len() >= RANDOM_MIN_BYTES
        && count(u8::is_ascii_lowercase) >= 4
        && count(u8::is_ascii_uppercase) >= 4
        && count(u8::is_ascii_digit) >= 2
        && alphanumeric * 10 >= value.len() * 9
        && class_changes(value) * 100 >= value.len() * 45
        && entropy(value) >= 4.0
        && !is_placeholder(value)
}

/// Shorter values are never recognised as random.
pub(super) const RANDOM_MIN_BYTES: usize = 24;

/// Number of changes between lower case, capitals, digits and other characters.
fn class_changes(value: &str) -> usize {
    let class = |byte: u8| match byte {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    };
    value.as_bytes().windows(2).filter(|pair| class(pair[0]) != class(pair[1])).count()
}

/// Shannon entropy, in bits per byte.
fn entropy(value: &str) -> f64 {
    let mut counts = [0_u32; 256];
    value.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let len = value.len() as f64;
    let bits = |count: &u32| {
        let share = f64::from(*count) / len;
        -share * share.log2()
    };
    counts.iter().filter(|count| **count > 0).map(bits).sum()
}

/// Whether a value is an identifier, or several joined by `.` or `:`, as in source code.
pub(super) fn is_identifier(value: &str) -> bool {
    let part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    value.split(['.', ':']).filter(|word| !word.is_empty()).all(part)
}

/// Whether a value is a file path, a URL or a package name.
fn is_path(value: &str) -> bool {
    value.starts_with(['/', '.', '~']) || value.split('/').filter(|part| part.len() > 2).count() >= 4
}

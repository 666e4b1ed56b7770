//! The rules on real sessions: what they find there, and how fast nothing else is found.

use std::collections::BTreeMap;
use std::fs;

use quipu_render::find_secrets_in_line;
use quipu_testkit::{files_under, shared_dir};

/// Credentials that the published sessions do hold: kind, first four characters, why.
const KNOWN_FINDINGS: [(&str, &str, &str); 5] = [
    ("password", "post", "the password of a development database, passed as PGPASSWORD"),
    ("secret", "tk_3", "a ticket system's token, passed as TRACKGENTIC_TOKEN"),
    ("secret", "tk_f", "a made-up token in a test of that ticket system"),
    ("secret", "tk_k", "a token in that ticket system's documentation"),
    ("secret", "tk_r", "another one there"),
];

#[test]
fn published_sessions_give_at_most_one_false_finding_per_megabyte() {
    let Some(shared) = shared_dir() else { return };
    let sessions = files_under(&shared.join("corpus/data"), |path| path.extension().is_some_and(|ext| ext == "jsonl"));
    let (mut bytes, mut accepted, mut others) = (0, 0, BTreeMap::<(&str, String), u64>::new());
    for path in sessions {
        let text = fs::read(&path).unwrap();
        bytes += text.len() as u64;
        for line in String::from_utf8_lossy(&text).lines() {
            find_secrets_in_line(line, &mut |kind, value| {
                let prefix: String = value.chars().take(4).collect();
                if KNOWN_FINDINGS.iter().any(|(known, begins, _)| *known == kind && *begins == prefix) {
                    accepted += 1;
                } else {
                    *others.entry((kind, prefix)).or_default() += 1;
                }
            });
        }
    }
    let false_findings: u64 = others.values().sum();
    assert!(accepted > 0, "the sessions hold credentials, and none was found");
    assert!(false_findings * 1_000_000 <= bytes, "{false_findings} in {bytes} bytes: {others:?}");
}

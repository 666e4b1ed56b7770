//! The direction of the crates, kept by a test on `cargo metadata`.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

/// Which of our crates each crate may use; DESIGN says why.
const ALLOWED_CRATES: [(&str, &[&str]); 15] = [
    ("quipu-message", &[]),
    ("quipu-conversation", &["quipu-message"]),
    ("quipu-api", &["quipu-message", "quipu-conversation"]),
    ("quipu-otlp", &["quipu-message", "quipu-conversation"]),
    ("quipu-transcript", &["quipu-message", "quipu-conversation"]),
    ("quipu-render", &["quipu-message", "quipu-conversation"]),
    ("quipu-files", &[]),
    ("quipu-index", &["quipu-message", "quipu-conversation", "quipu-transcript"]),
    (
        "quipu-engine",
        &["quipu-message", "quipu-conversation", "quipu-files", "quipu-transcript", "quipu-api", "quipu-otlp"],
    ),
    ("quipu-sdk", &["quipu-message", "quipu-conversation", "quipu-transcript"]),
    ("quipu-console", &["quipu-message", "quipu-conversation", "quipu-files", "quipu-render", "quipu-sdk"]),
    ("quipu-trace", &["quipu-message", "quipu-conversation", "quipu-transcript", "quipu-api", "quipu-otlp"]),
    (
        "quipu-server",
        &[
            "quipu-message",
            "quipu-conversation",
            "quipu-files",
            "quipu-render",
            "quipu-transcript",
            "quipu-index",
            "quipu-sdk",
            "quipu-trace",
        ],
    ),
    (
        "quipu",
        &[
            "quipu-message",
            "quipu-console",
            "quipu-conversation",
            "quipu-files",
            "quipu-transcript",
            "quipu-render",
            "quipu-index",
            "quipu-api",
            "quipu-engine",
            "quipu-otlp",
            "quipu-sdk",
            "quipu-trace",
            "quipu-server",
        ],
    ),
    ("quipu-testkit", &[]),
];

/// Dependencies that some crates must never have, however indirectly they crept in.
const FORBIDDEN_DEPENDENCIES: [(&str, &[&str]); 5] = [
    ("quipu-message", &["tokio", "jiff", "reqwest", "uuid"]),
    ("quipu-conversation", &["tokio", "reqwest"]),
    ("quipu-transcript", &["reqwest", "hyper", "axum"]),
    ("quipu-render", &["tokio", "reqwest"]),
    ("quipu-sdk", &["reqwest", "hyper", "axum"]),
];

fn packages() -> BTreeMap<String, Vec<(String, bool)>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let manifest = quipu_testkit::repository_root().join("Cargo.toml");
    let out = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--no-deps", "--offline", "--manifest-path"])
        .arg(manifest)
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let data: Value = serde_json::from_slice(&out.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let depends = |package: &Value| {
        let list = package["dependencies"].as_array().unwrap().iter();
        list.map(|d| (text(&d["name"]), d["kind"] == "dev")).collect()
    };
    data["packages"].as_array().unwrap().iter().map(|p| (text(&p["name"]), depends(p))).collect()
}

#[test]
fn crates_depend_only_in_the_direction_of_the_data() {
    let packages = packages();
    let known: Vec<&str> = ALLOWED_CRATES.iter().map(|(name, _)| *name).collect();
    for (name, depends) in &packages {
        let Some((_, may)) = ALLOWED_CRATES.iter().find(|(known, _)| known == name) else {
            panic!("{name} has no place in the layers: add it to MAY_USE and to ARCHITECTURE.md");
        };
        for (other, dev) in depends.iter().filter(|(other, _)| other.starts_with("quipu")) {
            let is_kit = other == "quipu-testkit";
            assert!(if is_kit { *dev } else { *dev || may.contains(&other.as_str()) }, "{name} must not use {other}");
        }
    }
    assert!(known.iter().all(|name| packages.contains_key(*name)), "{:?}", packages.keys());
}

#[test]
fn no_crate_has_a_dependency_it_must_never_have() {
    let packages = packages();
    for (name, never) in FORBIDDEN_DEPENDENCIES {
        let found = packages[name].iter().find(|(other, dev)| !dev && never.contains(&other.as_str()));
        assert_eq!(found, None, "{name}");
    }
}

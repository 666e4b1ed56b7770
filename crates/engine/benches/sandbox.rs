//! What the sandbox costs: the time of a Bash call in each profile, the median of 200,
//! as rows for docs/bench.md. `QUIPU_BENCH_LAUNCHER` names another launcher, such as
//! `quipu-agent`.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a bench prints what it measured"
)]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use quipu_engine::testing::permission::{Behavior, Rule, RuleSet, RuleSource, sandbox_restrictions};
use quipu_engine::testing::sandbox::{self, SandboxLevel, SandboxProfile};
use quipu_engine::testing::tool::{CallContext, Tool as _, Workspace, WorkspaceOptions};
use quipu_engine::testing::tools::bash::Bash;
use serde_json::json;

const ROUNDS: usize = 200;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let launcher = std::env::var_os("QUIPU_BENCH_LAUNCHER").map(PathBuf::from);
    let launcher = launcher.unwrap_or_else(|| env!("CARGO_BIN_EXE_quipu-launcher").into());
    let folder = tempfile::tempdir().unwrap();
    for name in ["project/.env", "project/a", "project/.git/HEAD"] {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "text\n").unwrap();
    }
    let place = |level: SandboxLevel| {
        let env = [("PATH".into(), std::env::var_os("PATH").unwrap())].into_iter().collect();
        let options = sandbox::SandboxOptions {
            launcher: Some(launcher.clone()),
            assumed_level: Some(level),
            ..Default::default()
        };
        let outputs = Some(folder.path().join("outputs"));
        Workspace::new(
            folder.path().join("project"),
            WorkspaceOptions { env, output_folder: outputs, sandbox: options, ..WorkspaceOptions::default() },
        )
    };
    let full = place(SandboxLevel::Full);
    let mut rules = RuleSet::default();
    rules.add(Behavior::Deny, RuleSource::Flags, Rule::parse("Read(.env)").unwrap());
    full.sandbox().set_restrictions(sandbox_restrictions(&rules, &full));
    let filters = place(SandboxLevel::WithoutMounts);
    let cases = [
        ("without a sandbox", &full, SandboxProfile::None, ""),
        ("Landlock and seccomp", &filters, SandboxProfile::Read, "3 ms"),
        ("with mounts, one file covered", &full, SandboxProfile::Read, "8 ms"),
        ("with mounts, *workspace*", &full, SandboxProfile::Workspace, "8 ms"),
    ];
    // By turns, so that whatever else the machine does falls on all alike.
    let mut times = cases.map(|_| Vec::with_capacity(ROUNDS));
    for _ in 0..ROUNDS {
        for ((_, place, profile, _), times) in cases.iter().zip(&mut times) {
            times.push(time(place, *profile).await);
        }
    }
    let medians = times.map(|mut times| {
        times.sort();
        times[ROUNDS / 2]
    });
    let ms = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1000.0);
    println!("| Bash call `true` | median of {ROUNDS} | more than without | limit |");
    println!("|---|--:|--:|--:|");
    for ((name, .., limit), median) in cases.iter().zip(medians) {
        let more = if median == medians[0] { String::new() } else { ms(median.saturating_sub(medians[0])) };
        println!("| {name} | {} | {more} | {limit} |", ms(median));
    }
}

async fn time(place: &Workspace, profile: SandboxProfile) -> Duration {
    let call = CallContext { profile, ..CallContext::new("toolu_1") };
    let began = Instant::now();
    let output = Bash.run(json!({"command": "true"}), place, &call).await;
    let time = began.elapsed();
    assert!(!output.is_error, "{}", output.content.to_text());
    time
}

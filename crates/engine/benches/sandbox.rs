//! What the sandbox costs: the time of a Bash call in each profile, the median of 200,
//! as rows for docs/bench.md. `QUIPU_BENCH_LAUNCHER` names another launcher, such as
//! `quipu-agent`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench prints what it measured")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use quipu_engine::permission::{Behavior, Rule, Rules, Source, refused};
use quipu_engine::sandbox::{self, Level, Profile};
use quipu_engine::tool::{Call, Options, Place, Tool as _};
use quipu_engine::tools::bash::Bash;
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
    let place = |level: Level| {
        let env = [("PATH".into(), std::env::var_os("PATH").unwrap())].into_iter().collect();
        let options = sandbox::Options { launcher: Some(launcher.clone()), assumed: Some(level), ..Default::default() };
        let outputs = Some(folder.path().join("outputs"));
        Place::new(folder.path().join("project"), Options { env, outputs, sandbox: options, ..Options::default() })
    };
    let full = place(Level::Full);
    let mut rules = Rules::default();
    rules.add(Behavior::Deny, Source::Flags, Rule::parse("Read(.env)").unwrap());
    full.sandbox().refuse(refused(&rules, &full));
    let filters = place(Level::WithoutMounts);
    let plain = median(&full, Profile::None).await;
    let cases = [
        ("Landlock and seccomp", median(&filters, Profile::Read).await),
        ("with mounts, one file covered", median(&full, Profile::Read).await),
        ("with mounts, *workspace*", median(&full, Profile::Workspace).await),
    ];
    let ms = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1000.0);
    println!("| Bash call `true` | median of {ROUNDS} | more than without |");
    println!("|---|---|---|");
    println!("| without a sandbox | {} | |", ms(plain));
    for (name, time) in cases {
        println!("| {name} | {} | {} |", ms(time), ms(time.saturating_sub(plain)));
    }
}

async fn median(place: &Place, profile: Profile) -> Duration {
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let call = Call { profile, ..Call::new("toolu_1") };
        let began = Instant::now();
        let output = Bash.run(json!({"command": "true"}), place, &call).await;
        times.push(began.elapsed());
        assert!(!output.is_error, "{}", output.content.to_text());
    }
    times.sort();
    times[ROUNDS / 2]
}

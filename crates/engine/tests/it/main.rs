//! The tools and the permissions, as the engine uses them.
#![allow(clippy::unwrap_used, reason = "a test says what must hold")]

mod bash;
mod change;
mod differential;
mod find;
mod judging;
mod read;
mod recordings;
mod red_team;
mod review;
mod sandboxed;
mod security;
mod web;

use std::fs;
use std::path::PathBuf;

use quipu_engine::permission::{Behavior, Mode, Rule, Rules, Source, Verdict, judge};
use quipu_engine::sandbox::{self, Level};
use quipu_engine::tool::{Call, Options, Output, Place, check};
use quipu_engine::tools;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder of its own with a place in it.
struct Bench {
    /// The folder and that of the outputs; they go when the bench goes.
    _folders: [TempDir; 2],
    place: Place,
}

impl Bench {
    fn new() -> Self {
        Self::with(Options::default())
    }

    /// A bench that judges as if the kernel could hold everything.
    fn with(options: Options) -> Self {
        let assumed = options.sandbox.assumed.clone().or(Some(Level::Full));
        Self::real(Options { sandbox: sandbox::Options { assumed, ..options.sandbox.clone() }, ..options })
    }

    fn real(options: Options) -> Self {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let outputs = Some(folders[1].path().to_owned());
        let place = Place::new(folders[0].path(), Options { outputs, ..options });
        Self { _folders: folders, place }
    }

    /// A file of the folder.
    fn path(&self, name: &str) -> PathBuf {
        self.place.root().join(name)
    }

    fn name(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), content).unwrap();
    }

    fn judge(&self, mode: Mode, texts: &[&str], tool: &str, input: &Value) -> Verdict {
        judge(mode, &rules(texts), tool, input, &self.place)
    }

    /// The verdict on a shell command, in a word.
    fn bash(&self, mode: Mode, texts: &[&str], command: &str) -> &'static str {
        word(&self.judge(mode, texts, "Bash", &json!({"command": command})))
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    async fn run(&self, name: &str, input: Value) -> Output {
        self.call(name, input, &Call::new("toolu_1")).await
    }

    async fn call(&self, name: &str, input: Value, call: &Call) -> Output {
        let tool = tools::builtin().into_iter().find(|tool| tool.definition().name == name).unwrap();
        match check(&tool.definition(), &input) {
            Ok(()) => tool.run(input, &self.place, call).await,
            Err(output) => *output,
        }
    }
}

/// Rules written as `allow Bash(ls:*)`, from the command line.
fn rules(texts: &[&str]) -> Rules {
    let mut rules = Rules::default();
    for text in texts {
        let (behavior, rule) = text.split_once(' ').unwrap();
        rules.add(Behavior::read(behavior).unwrap(), Source::Flags, Rule::parse(rule).unwrap());
    }
    rules
}

/// A verdict in a word.
fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Allow { .. } => "allow",
        Verdict::Deny { .. } => "deny",
        Verdict::Ask(_) => "ask",
    }
}

/// What the model is told.
fn said(output: &Output) -> String {
    output.content.to_text()
}

/// What the model is told of a call that went well.
fn good(output: Output) -> String {
    assert!(!output.is_error, "{}", said(&output));
    said(&output)
}

/// What the model is told of a call that did not.
fn bad(output: Output) -> String {
    assert!(output.is_error, "{}", said(&output));
    said(&output)
}

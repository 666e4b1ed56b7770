//! The tools and the permissions, as the engine uses them.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a failed unwrap is a failed test")]

mod bash;
mod deny_rule_attacks;
mod differential;
mod edit_tools;
mod git_repositories;
mod ignore_patterns;
mod named_files;
mod permission_attacks;
mod permission_decisions;
mod permission_regressions;
mod read_tool;
mod recordings;
mod red_team;
mod sandbox_attacks;
mod sandbox_path_attacks;
mod sandboxed_commands;
mod search_tools;
mod settings_attacks;
mod web_fetch;

use std::fs;
use std::path::PathBuf;

use quipu_engine::testing::permission::{Behavior, Decision, PermissionMode, Rule, RuleSet, RuleSource, evaluate};
use quipu_engine::testing::sandbox::{self, SandboxLevel};
use quipu_engine::testing::tool::{CallContext, ToolOutput, Workspace, WorkspaceOptions, validate_input};
use quipu_engine::testing::tools;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A temporary folder with a workspace in it.
struct TestWorkspace {
    /// The folder and the output folder; removed on drop.
    _folders: [TempDir; 2],
    inner: Workspace,
}

impl TestWorkspace {
    fn new() -> Self {
        Self::with_options(WorkspaceOptions::default())
    }

    /// A workspace that assumes a full sandbox when it evaluates permissions.
    fn with_options(options: WorkspaceOptions) -> Self {
        let assumed = options.sandbox.assumed_level.clone().or(Some(SandboxLevel::Full));
        Self::with_real_sandbox(WorkspaceOptions {
            sandbox: sandbox::SandboxOptions { assumed_level: assumed, ..options.sandbox.clone() },
            ..options
        })
    }

    fn with_real_sandbox(options: WorkspaceOptions) -> Self {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let outputs = Some(folders[1].path().to_owned());
        let inner = Workspace::new(folders[0].path(), WorkspaceOptions { output_folder: outputs, ..options });
        Self { _folders: folders, inner }
    }

    /// A file of the folder.
    fn path(&self, name: &str) -> PathBuf {
        self.inner.root().join(name)
    }

    fn path_text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), content).unwrap();
    }

    fn evaluate(&self, mode: PermissionMode, texts: &[&str], tool: &str, input: &Value) -> Decision {
        evaluate(mode, &parse_rules(texts), tool, input, &self.inner)
    }

    /// The decision about a shell command: `allow`, `deny` or `ask`.
    fn bash_decision(&self, mode: PermissionMode, texts: &[&str], command: &str) -> &'static str {
        decision_word(&self.evaluate(mode, texts, "Bash", &json!({"command": command})))
    }

    fn read_text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    async fn run_tool(&self, name: &str, input: Value) -> ToolOutput {
        self.run_tool_with(name, input, &CallContext::new("toolu_1")).await
    }

    async fn run_tool_with(&self, name: &str, input: Value, call: &CallContext) -> ToolOutput {
        let tool = tools::builtin_tools().into_iter().find(|tool| tool.name() == name).unwrap();
        match validate_input(&tool.definition(), &input) {
            Ok(()) => tool.run(input, &self.inner, call).await,
            Err(output) => *output,
        }
    }
}

/// Rules written as `allow Bash(ls:*)`, from the command line.
fn parse_rules(texts: &[&str]) -> RuleSet {
    let mut rules = RuleSet::default();
    for text in texts {
        let (behavior, rule) = text.split_once(' ').unwrap();
        rules.add(Behavior::parse(behavior).unwrap(), RuleSource::Flags, Rule::parse(rule).unwrap());
    }
    rules
}

/// A decision as `allow`, `deny` or `ask`.
fn decision_word(decision: &Decision) -> &'static str {
    match decision {
        Decision::Allow { .. } => "allow",
        Decision::Deny { .. } => "deny",
        Decision::Ask(_) => "ask",
    }
}

/// Text of the output that the model gets.
fn output_text(output: &ToolOutput) -> String {
    output.content.to_text()
}

/// Text of an output that must not be an error.
fn success_text(output: ToolOutput) -> String {
    assert!(!output.is_error, "{}", output_text(&output));
    output_text(&output)
}

/// Text of an output that must be an error.
fn error_text(output: ToolOutput) -> String {
    assert!(output.is_error, "{}", output_text(&output));
    output_text(&output)
}

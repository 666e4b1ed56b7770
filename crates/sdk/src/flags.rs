//! Options as flags, environment and first control request of an agent.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::Path;

use quipu_message::control::request::Initialize;
use quipu_message::control::setup::{HookMatcher, McpConfig, McpSdk, McpServerConfig};
use quipu_message::values::{HookFailurePolicy, SettingSource, ThinkingDisplay};
use quipu_message::{Json, Maybe, ToolName};
use serde_json::Number;

use crate::callbacks::Callbacks;
use crate::choices::{Skills, SystemPrompt, ThinkingMode, insert_setting};
use crate::options::Options;
use crate::transport::Subprocess;
use crate::{Error, program};

impl Options {
    /// Returns the program that these options start. [`Client::connect`] uses it; a transport of your own may
    /// need it.
    ///
    /// [`Client::connect`]: crate::Client::connect
    pub fn command(&self) -> Result<Subprocess, Error> {
        self.validate()?;
        Ok(Subprocess {
            program: program::find_program(self.cli.as_deref())?,
            args: self.to_flags()?,
            env: self.environment(),
            // With this variable an agent would run as a tool of the outer agent.
            env_remove: vec!["CLAUDECODE".into()],
            cwd: self.cwd.clone(),
        })
    }

    /// Checks that the options are consistent.
    pub(crate) fn validate(&self) -> Result<(), Error> {
        let goes_on = self.resume.is_some() || self.continue_latest;
        let refuse = |what: &str| Err(Error::invalid_options(what));
        if self.resume.is_some() && self.continue_latest {
            return refuse("resume and continue_latest each name a session: use one of them");
        }
        if self.session_id.is_some() && goes_on && !self.fork {
            return refuse("session_id names a new session: with resume it needs fork_session");
        }
        if self.resume_at.is_some() && self.resume.is_none() {
            return refuse("resume_at names a message of the session to resume: it needs resume");
        }
        if self.resume_drops_turn.is_some() && self.resume_at.is_none() {
            return refuse("resume_drops_turn says what resume_at leaves out: it needs resume_at");
        }
        if self.can_use_tool.is_some() && self.permission_prompt_tool.is_some() {
            return refuse("can_use_tool and permission_prompt_tool both answer for the person: use one of them");
        }
        if let Some(name) = self.in_process_servers.keys().find(|name| self.mcp_servers.contains_key(*name)) {
            return refuse(&format!("two MCP servers are called {name}"));
        }
        if self.mcp_config.is_some() && !(self.mcp_servers.is_empty() && self.in_process_servers.is_empty()) {
            return refuse("mcp_config and single MCP servers cannot go together");
        }
        if let Some(Skills::Named(names)) = &self.skills {
            let odd =
                |name: &&String| name.trim() != name.as_str() || name.is_empty() || name.contains(['(', ')', ',', '*']);
            if let Some(name) = names.iter().find(odd) {
                return refuse(&format!("{name:?} is no name of a skill"));
            }
        }
        Ok(())
    }

    fn to_flags(&self) -> Result<Vec<OsString>, Error> {
        let mut flags = FlagList::default();
        flags
            .push_value("output-format", "stream-json")
            .push_switch("verbose", true)
            .push_value("input-format", "stream-json");
        match &self.system_prompt {
            SystemPrompt::AgentDefault => &mut flags,
            SystemPrompt::Empty => flags.push_value("system-prompt", ""),
            SystemPrompt::Custom(words) => flags.push_value("system-prompt", words),
            SystemPrompt::Append(words) => flags.push_value("append-system-prompt", words),
            SystemPrompt::File(path) => flags.push_value("system-prompt-file", path),
        };
        flags.push_optional("tools", self.tools.as_ref().map(|names| names.join(",")).as_ref());
        flags.push_list("allowedTools", &self.allowed_rules());
        flags.push_list("disallowedTools", &self.disallowed_tools);
        flags.push_optional("model", self.model.as_ref()).push_optional("fallback-model", self.fallback_model.as_ref());
        flags.push_list("betas", &self.betas);
        match &self.thinking {
            Some(ThinkingMode::Adaptive) => flags.push_value("thinking", "adaptive"),
            Some(ThinkingMode::Disabled) => flags.push_value("thinking", "disabled"),
            Some(ThinkingMode::Budget(tokens)) => flags.push_value("max-thinking-tokens", tokens.to_string()),
            None => &mut flags,
        };
        flags.push_optional("thinking-display", self.thinking_display.as_ref().map(ThinkingDisplay::as_str));
        flags.push_optional("effort", self.effort.as_ref().map(|effort| effort.as_str()));
        flags.push_optional("max-turns", self.max_turns.map(|n| n.to_string()));
        flags.push_optional("max-budget-usd", self.max_budget_usd.map(|n| n.to_string()));
        flags.push_optional("task-budget", self.task_budget.map(|n| n.to_string()));
        flags.push_optional("json-schema", self.output_schema.as_ref().map(Json::text));
        flags.push_optional("permission-mode", self.permission_mode.as_ref().map(|mode| mode.as_str()));
        let asks_us = self.can_use_tool.is_some().then_some("stdio");
        flags.push_optional("permission-prompt-tool", asks_us.or(self.permission_prompt_tool.as_deref()));
        flags.push_optional("settings", self.settings_with_sandbox()?);
        flags.push_optional("setting-sources", self.setting_sources_value());
        for folder in &self.plugins {
            flags.push_value("plugin-dir", folder);
        }
        for folder in &self.add_dirs {
            flags.push_value("add-dir", folder);
        }
        flags
            .push_optional("mcp-config", self.mcp_config_value())
            .push_switch("strict-mcp-config", self.strict_mcp_config);
        flags.push_switch("continue", self.continue_latest).push_optional("resume", self.resume.as_ref());
        flags.push_optional("resume-session-at", self.resume_at.as_ref());
        flags.push_optional("resume-drops-turn", self.resume_drops_turn.as_ref());
        flags.push_switch("fork-session", self.fork).push_optional("session-id", self.session_id.as_ref());
        flags.push_switch("session-mirror", self.session_mirror);
        flags.push_switch("include-partial-messages", self.partial_messages);
        flags.push_switch("include-hook-events", self.hook_events);
        flags.push_switch("replay-user-messages", self.replay_prompts);
        for (name, value) in &self.extra_args {
            match value {
                Some(value) => flags.push_optional(name, Some(value)),
                None => flags.push_switch(name, true),
            };
        }
        Ok(flags.0)
    }

    /// The allow rules, including those that skills need.
    fn allowed_rules(&self) -> Vec<String> {
        let mut allowed = self.allowed_tools.clone();
        match &self.skills {
            Some(Skills::All) => allowed.push(ToolName::Skill.to_string()),
            Some(Skills::Named(names)) => {
                allowed.extend(names.iter().map(|name| format!("{}({name})", ToolName::Skill)))
            }
            None => {}
        }
        allowed
    }

    /// The settings files to read. Skills are found only if settings are read.
    fn setting_sources_value(&self) -> Option<String> {
        let found = [SettingSource::User, SettingSource::Project];
        let skilled = self.skills.is_some().then_some(&found[..]);
        let sources = self.setting_sources.as_deref().or(skilled)?;
        Some(sources.iter().map(SettingSource::as_str).collect::<Vec<_>>().join(","))
    }

    /// The settings, including those of the sandbox.
    fn settings_with_sandbox(&self) -> Result<Option<String>, Error> {
        let Some(sandbox) = &self.sandbox else { return Ok(self.settings.clone()) };
        let text = match self.settings.as_deref() {
            Some(inline) if inline.trim_start().starts_with('{') => Some(inline.to_owned()),
            Some(file) => {
                let path = self.cwd.as_deref().unwrap_or(Path::new("")).join(file);
                let cannot =
                    |error| Error::invalid_options(format!("cannot read the settings {}: {error}", path.display()));
                Some(std::fs::read_to_string(&path).map_err(cannot)?)
            }
            None => None,
        };
        let cannot = |error| Error::invalid_options(format!("the settings are no JSON object: {error}"));
        insert_setting(text.as_deref(), "sandbox", sandbox).map(Some).map_err(cannot)
    }

    /// The value of `--mcp-config`.
    fn mcp_config_value(&self) -> Option<OsString> {
        if self.mcp_servers.is_empty() && self.in_process_servers.is_empty() {
            return self.mcp_config.clone();
        }
        let here = |name: &String| {
            let here = McpSdk { name: name.clone(), ..McpSdk::default() };
            (name.clone(), Json::from_serialize(&McpServerConfig::Sdk(Box::new(here))))
        };
        let away = self.mcp_servers.iter().map(|(name, server)| (name.clone(), Json::from_serialize(server)));
        let servers = away.chain(self.in_process_servers.keys().map(here)).collect();
        Some(Json::from_serialize(&McpConfig { servers, ..McpConfig::default() }).text().into())
    }

    fn environment(&self) -> BTreeMap<OsString, OsString> {
        let mut env: BTreeMap<OsString, OsString> = BTreeMap::new();
        env.insert("CLAUDE_CODE_ENTRYPOINT".into(), "sdk-rs".into());
        env.insert("CLAUDE_CODE_SDK_READS_SESSION_STATE".into(), "1".into());
        if let Some(cwd) = &self.cwd {
            env.insert("PWD".into(), cwd.into());
        }
        env.extend(self.env.clone());
        if let Some(app) = &self.client_app {
            env.insert("CLAUDE_AGENT_SDK_CLIENT_APP".into(), app.into());
        }
        if self.file_checkpointing {
            env.insert("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING".into(), "true".into());
        }
        env.insert("CLAUDE_AGENT_SDK_VERSION".into(), env!("CARGO_PKG_VERSION").into());
        env
    }

    /// The first control request, and the callbacks for requests of the agent.
    pub(crate) fn to_initialize(&self) -> (Initialize, Callbacks) {
        let mut by_event: BTreeMap<&str, Vec<HookMatcher>> = BTreeMap::new();
        let mut hooks = HashMap::new();
        for (n, hook) in self.hooks.iter().enumerate() {
            let id = format!("hook_{n}");
            by_event.entry(&hook.event).or_default().push(HookMatcher {
                matcher: hook.matcher.clone().map_or(Maybe::Null, Maybe::Value),
                hook_callback_ids: vec![id.clone()],
                timeout: hook.timeout.and_then(|time| Number::from_f64(time.as_secs_f64())).into(),
                on_failure: hook.blocks_on_failure.then_some(HookFailurePolicy::Block).into(),
                ..HookMatcher::default()
            });
            hooks.insert(id, (hook.callback.clone(), hook.timeout));
        }
        let initialize = Initialize {
            hooks: if by_event.is_empty() { Maybe::Null } else { Maybe::Value(Json::from_serialize(&by_event)) },
            agents: (!self.agents.is_empty()).then(|| Json::from_serialize(&self.agents)).into(),
            skills: match &self.skills {
                Some(Skills::Named(names)) => Maybe::Value(names.clone()),
                _ => Maybe::Absent,
            },
            forward_subagent_text: self.subagent_text.then_some(true).into(),
            exclude_dynamic_sections: self.exclude_dynamic_sections.then_some(true).into(),
            ..Initialize::default()
        };
        let callbacks = Callbacks {
            permission: self.can_use_tool.clone(),
            permission_timeout: self.permission_timeout,
            hooks,
            mcp_servers: self.in_process_servers.iter().map(|(name, start)| (name.clone(), start())).collect(),
            on_request: self.on_request.clone(),
        };
        (initialize, callbacks)
    }
}

/// The arguments of a command line.
#[derive(Default)]
struct FlagList(Vec<OsString>);

impl FlagList {
    fn push_switch(&mut self, name: &str, on: bool) -> &mut Self {
        if on {
            self.0.push(format!("--{name}").into());
        }
        self
    }

    /// Adds a flag and its value as one argument, so that a value that begins with `-` is not read as a flag.
    fn push_value(&mut self, name: &str, value: impl Into<OsString>) -> &mut Self {
        let mut whole = OsString::from(format!("--{name}="));
        whole.push(value.into());
        self.0.push(whole);
        self
    }

    fn push_optional(&mut self, name: &str, value: Option<impl Into<OsString>>) -> &mut Self {
        match value {
            Some(value) => self.push_value(name, value),
            None => self,
        }
    }

    fn push_list(&mut self, name: &str, values: &[String]) -> &mut Self {
        if !values.is_empty() {
            self.push_value(name, values.join(","));
        }
        self
    }
}

#[cfg(test)]
mod tests;

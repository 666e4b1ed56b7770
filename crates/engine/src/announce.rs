//! Facts about the session that the model gets besides the prompts: where it runs, the model, the
//! output style, tools, subagents, skills, the date.
//!
//! None of them is in the system prompt, which is therefore the same every day and in every folder
//! and stays in the prompt cache. Each fact is an attachment in the conversation, recorded when the
//! context does not hold its current value: with the first prompt, after a compaction, and when it
//! has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use quipu_message::attachment::{self, Attachment, EnvironmentSnapshot, ModelIdentityDetails, OutputStyleDetails};
use quipu_message::{Entry, Json, Maybe, ToolName};

use crate::agent_context::AgentContext;
use crate::attachments::rendered_attachment;
use crate::clock::now;
use crate::conversation_log::ConversationLog;
use crate::git;
use crate::instructions::InstructionFile;
use crate::output_style::OutputStyle;
use crate::session::Session;

mod session_facts;

pub(crate) use session_facts::{budget_attachment, due_instructions, instructions_attachment, plan_mode_attachment};

/// The writer that this program names in a snapshot of the system prompt.
const SNAPSHOT_WRITER: &str = "quipu-agent";

/// The attachments for facts whose current value the context does not hold; empty with `--bare`.
pub(crate) fn due_attachments(ctx: &AgentContext<'_>) -> Vec<Entry> {
    if ctx.session.options.bare {
        return Vec::new();
    }
    let known = AnnouncedFacts::from_context(&ctx.log());
    let style = ctx.session.output_style().filter(|_| ctx.is_main());
    let facts = [
        known.environment_attachment(ctx),
        known.model_attachment(&ctx.model),
        known.style_text_attachment(style.as_ref()),
        known.deferred_tools_attachment(ctx),
        ctx.find_tool(&ToolName::Agent).and_then(|_| known.agents_attachment(ctx.session)),
        ctx.find_tool(&ToolName::Skill).and_then(|_| known.skills_attachment(ctx.session)),
        known.style_attachment(style.as_ref()),
    ];
    facts.into_iter().flatten().collect()
}

/// The date; `None` if the context holds it.
pub(crate) fn date_attachment(ctx: &AgentContext<'_>) -> Option<Entry> {
    AnnouncedFacts::from_context(&ctx.log()).date_attachment()
}

/// The instruction files that the context holds, as JSON; `None` if it holds none.
fn announced_instructions(log: &ConversationLog) -> Option<Json> {
    log.attachments().rev().find_map(|line| match &line.attachment {
        Attachment::Instructions(told) if line.rendered_role.text() == Some("user") => told.files.get().cloned(),
        _ => None,
    })
}

/// The rules that apply to `file` and that the context does not hold yet.
pub(crate) fn path_rule_attachments(ctx: &AgentContext<'_>, file: &Path) -> Vec<Entry> {
    let all = ctx.session.path_rules();
    let rules = all.iter().filter(|rule| rule.applies_to(file));
    let mut fitting: Vec<&InstructionFile> = rules.flat_map(|rule| &rule.files).collect();
    if fitting.is_empty() {
        return Vec::new();
    }
    for line in ctx.log().attachments() {
        if let Attachment::NestedMemory(told) = &line.attachment {
            fitting.retain(|rule| told.path.text() != Some(&*rule.path.to_string_lossy()));
        }
    }
    let entry = |rule: &InstructionFile| {
        let path = rule.path.display().to_string();
        let text = format!("Instructions for {}, from {path}:\n\n{}", file.display(), rule.content.trim_end());
        let fact = attachment::NestedMemory {
            path: Maybe::Value(path),
            content: Maybe::Value(Json::from_serialize(rule)),
            ..attachment::NestedMemory::default()
        };
        rendered_attachment(Attachment::NestedMemory(Box::new(fact)), vec![text])
    };
    fitting.into_iter().map(entry).collect()
}

/// The files that the user or a command has changed since the model saw them. Each change is
/// returned once.
pub(crate) fn changed_file_attachments(ctx: &AgentContext<'_>) -> Vec<Entry> {
    let entry = |file: crate::tool::ChangedFile| {
        let name = file.path.display().to_string();
        let text = format!(
            "{name} has changed since you saw it, by the user or by a command. Leave the change as it is unless \
             you are asked to undo it. The lines are now:\n{}",
            file.snippet
        );
        let fact = attachment::EditedFile {
            filename: Maybe::Value(name),
            snippet: Maybe::Value(file.snippet),
            ..attachment::EditedFile::default()
        };
        rendered_attachment(Attachment::EditedFile(Box::new(fact)), vec![text])
    };
    // A rule that allowed reading the file may have ended with its turn.
    ctx.workspace.take_changed_files(|target| ctx.may_read(target)).into_iter().map(entry).collect()
}

/// The recorded system prompt; `None` if the context holds no record of this program. A record of
/// Claude Code names tools that do not exist here.
pub(crate) fn recorded_system_prompt(log: &ConversationLog) -> Option<Vec<String>> {
    log.attachments().rev().find_map(|line| match &line.attachment {
        Attachment::PromptSnapshot(snapshot) if snapshot.writer.text() == Some(SNAPSHOT_WRITER) => {
            snapshot.system_prompt.get()?.read().ok()
        }
        _ => None,
    })
}

/// A record of the system prompt; `None` if the context holds one, or recording is off.
pub(crate) fn system_prompt_record(ctx: &AgentContext<'_>) -> Option<Entry> {
    let wanted = ctx.session.agent_config().records_system_prompt && !ctx.session.options.bare;
    if !wanted || recorded_system_prompt(&ctx.log()).is_some() {
        return None;
    }
    let snapshot = attachment::PromptSnapshot {
        system_prompt: Maybe::Value(Json::from_serialize(&ctx.system_prompt)),
        context_rendering: Maybe::Value("announced".to_owned()),
        writer: Maybe::Value(SNAPSHOT_WRITER.to_owned()),
        ..attachment::PromptSnapshot::default()
    };
    let line = crate::attachments::new_attachment(Attachment::PromptSnapshot(Box::new(snapshot)));
    Some(Entry::Attachment(Box::new(line)))
}

/// The facts that the context holds.
#[derive(Default)]
struct AnnouncedFacts {
    environment: Option<Json>,
    model: Option<String>,
    style_text: Option<Json>,
    style: Option<String>,
    /// Descriptions of the subagents, by name.
    agents: BTreeMap<String, String>,
    skills: Option<String>,
    /// Names of the tools that ToolSearch loads.
    deferred_tools: BTreeSet<String>,
    date: Option<String>,
}

impl AnnouncedFacts {
    fn from_context(log: &ConversationLog) -> Self {
        let mut known = Self::default();
        for line in log.attachments() {
            // Other programs send some of these as system messages, which our requests leave out.
            if line.rendered_role.text() != Some("user") {
                continue;
            }
            match &line.attachment {
                Attachment::Environment(it) => known.environment = it.snapshot.get().cloned(),
                Attachment::ModelIdentity(it) => known.model = it.text.get().cloned(),
                Attachment::OutputStyleInstructions(it) => known.style_text = it.style.get().cloned(),
                Attachment::OutputStyle(it) => known.style = it.style.get().cloned(),
                Attachment::AgentListing(it) => known.fold_agents(it),
                Attachment::DeferredTools(it) => {
                    let removed = it.removed_names.get().cloned().unwrap_or_default();
                    known.deferred_tools.retain(|name| !removed.contains(name));
                    known.deferred_tools.extend(it.added_names.get().into_iter().flatten().cloned());
                }
                Attachment::SkillListing(it) => known.skills = it.content.get().cloned(),
                Attachment::Date(it) => known.date = it.date.get().cloned(),
                _ => {}
            }
        }
        known
    }

    fn fold_agents(&mut self, listing: &attachment::AgentListing) {
        for name in listing.removed_types.get().into_iter().flatten() {
            self.agents.remove(name);
        }
        let (names, lines) = (listing.added_types.get(), listing.added_lines.get());
        for (name, line) in names.into_iter().flatten().zip(lines.into_iter().flatten()) {
            self.agents.insert(name.clone(), line.clone());
        }
    }

    fn environment_attachment(&self, ctx: &AgentContext<'_>) -> Option<Entry> {
        let (root, folders) = (ctx.workspace.root(), ctx.workspace.folders());
        let others: Vec<String> =
            folders.iter().filter(|folder| *folder != root).map(|folder| folder.display().to_string()).collect();
        let git_root = git::git_root(root);
        let is_worktree = git_root.is_some_and(git::is_worktree);
        let snapshot = EnvironmentSnapshot {
            working_directory: Maybe::Value(root.display().to_string()),
            is_worktree: Maybe::Value(is_worktree),
            is_git_repo: Maybe::Value(git_root.is_some()),
            additional_working_directories: Maybe::Value(others.clone()),
            platform: Maybe::Value(std::env::consts::OS.to_owned()),
            shell: shell_name(ctx.session).into(),
            ..EnvironmentSnapshot::default()
        };
        let snapshot = Json::from_serialize(&snapshot);
        if self.environment.as_ref().is_some_and(|known| known.to_value() == snapshot.to_value()) {
            return None;
        }
        let git = match git_root {
            Some(_) if is_worktree => "yes, a worktree",
            Some(_) => "yes",
            None => "no",
        };
        let mut text = format!(
            "Environment:\n- Working directory: {}\n- Git repository: {git}\n- Platform: {}",
            root.display(),
            std::env::consts::OS,
        );
        if !others.is_empty() {
            text.push_str(&format!("\n- Further directories: {}", others.join(", ")));
        }
        let snapshot = Maybe::Value(snapshot);
        let fact = attachment::Environment { snapshot, ..attachment::Environment::default() };
        Some(rendered_attachment(Attachment::Environment(Box::new(fact)), vec![text]))
    }

    fn model_attachment(&self, model: &str) -> Option<Entry> {
        let text = format!("The model is {model}.");
        if self.model.as_ref() == Some(&text) {
            return None;
        }
        let facts =
            ModelIdentityDetails { model_id: Maybe::Value(model.to_owned()), ..ModelIdentityDetails::default() };
        let fact = attachment::ModelIdentity {
            identity: Maybe::Value(Json::from_serialize(&facts)),
            text: Maybe::Value(text.clone()),
            ..attachment::ModelIdentity::default()
        };
        Some(rendered_attachment(Attachment::ModelIdentity(Box::new(fact)), vec![text]))
    }

    fn style_text_attachment(&self, style: Option<&OutputStyle>) -> Option<Entry> {
        let style = style?;
        let (name, prompt) = (Maybe::Value(style.name.clone()), Maybe::Value(style.prompt.clone()));
        let text = Json::from_serialize(&OutputStyleDetails { name, prompt, ..OutputStyleDetails::default() });
        if self.style_text.as_ref().is_some_and(|known| known.to_value() == text.to_value()) {
            return None;
        }
        let told_text = format!("Output style {}:\n\n{}", style.name, style.prompt);
        let style = Maybe::Value(text);
        let fact = attachment::OutputStyleInstructions { style, ..attachment::OutputStyleInstructions::default() };
        Some(rendered_attachment(Attachment::OutputStyleInstructions(Box::new(fact)), vec![told_text]))
    }

    fn style_attachment(&self, style: Option<&OutputStyle>) -> Option<Entry> {
        let name = match (style, self.style.as_deref()) {
            (Some(style), known) if known != Some(style.name.as_str()) => style.name.as_str(),
            // A style was in use and is not any more.
            (None, Some(known)) if known != "default" => "default",
            _ => return None,
        };
        let text = match style {
            Some(_) => format!("The output style {name} is in force: write your answers as it says."),
            None => "No output style is in force any more: write as you would without one.".to_owned(),
        };
        let style = Maybe::Value(name.to_owned());
        let fact = attachment::OutputStyle { style, ..attachment::OutputStyle::default() };
        Some(rendered_attachment(Attachment::OutputStyle(Box::new(fact)), vec![text]))
    }

    fn deferred_tools_attachment(&self, ctx: &AgentContext<'_>) -> Option<Entry> {
        let names = ctx.tools.iter().filter(|tool| tool.is_deferred()).map(|tool| tool.name());
        let now: BTreeSet<String> = names.map(|name| name.to_string()).collect();
        let new: Vec<String> = now.difference(&self.deferred_tools).cloned().collect();
        let removed: Vec<String> = self.deferred_tools.difference(&now).cloned().collect();
        if new.is_empty() && removed.is_empty() {
            return None;
        }
        let mut texts = Vec::new();
        if !new.is_empty() {
            texts.push(format!("These tools can be used once ToolSearch has loaded them:\n{}", new.join("\n")));
        }
        if !removed.is_empty() {
            texts.push(format!("These tools cannot be used any more: {}", removed.join(", ")));
        }
        let fact = attachment::DeferredTools {
            added_names: Maybe::Value(new.clone()),
            added_lines: Maybe::Value(new),
            removed_names: Maybe::Value(removed),
            ..attachment::DeferredTools::default()
        };
        Some(rendered_attachment(Attachment::DeferredTools(Box::new(fact)), vec![texts.join("\n\n")]))
    }

    fn agents_attachment(&self, session: &Session) -> Option<Entry> {
        let definitions = session.definitions();
        let now: BTreeMap<&str, String> =
            definitions.agents.values().map(|a| (a.name.as_str(), a.listing_line())).collect();
        let is_new = |(name, line): &(&&str, &String)| self.agents.get(**name) != Some(*line);
        let (names, lines): (Vec<String>, Vec<String>) =
            now.iter().filter(is_new).map(|(name, line)| ((*name).to_owned(), line.clone())).unzip();
        let removed: Vec<String> =
            self.agents.keys().filter(|name| !now.contains_key(name.as_str())).cloned().collect();
        if names.is_empty() && removed.is_empty() {
            return None;
        }
        let mut text = String::new();
        if !lines.is_empty() {
            let more = if self.agents.is_empty() { "" } else { ", new or changed" };
            text = format!("Subagents for the Agent tool{more}:\n{}", lines.join("\n"));
        }
        if !removed.is_empty() {
            text.push_str(&format!("\nThese subagents are gone: {}", removed.join(", ")));
        }
        let fact = attachment::AgentListing {
            added_types: Maybe::Value(names),
            added_lines: Maybe::Value(lines),
            removed_types: Maybe::Value(removed),
            is_initial: Maybe::Value(self.agents.is_empty()),
            ..attachment::AgentListing::default()
        };
        Some(rendered_attachment(Attachment::AgentListing(Box::new(fact)), vec![text.trim_start().to_owned()]))
    }

    fn skills_attachment(&self, session: &Session) -> Option<Entry> {
        let definitions = session.definitions();
        let (names, lines): (Vec<String>, Vec<String>) = definitions
            .skills()
            .map(|skill| (skill.name.clone(), format!("- {}: {}", skill.name, skill.description)))
            .unzip();
        let content = lines.join("\n");
        if self.skills.as_ref() == Some(&content) {
            return None;
        }
        let head = match &self.skills {
            None => "Skills, for the Skill tool",
            Some(_) => "The skills have changed. Skills, for the Skill tool",
        };
        let text = format!("{head}:\n{content}");
        let fact = attachment::SkillListing {
            content: Maybe::Value(content),
            skill_count: Maybe::Value(names.len() as u64),
            is_initial: Maybe::Value(self.skills.is_none()),
            names: Maybe::Value(names),
            ..attachment::SkillListing::default()
        };
        Some(rendered_attachment(Attachment::SkillListing(Box::new(fact)), vec![text]))
    }

    fn date_attachment(&self) -> Option<Entry> {
        let now = now();
        let today = now.split('T').next().unwrap_or_default();
        if self.date.as_deref() == Some(today) {
            return None;
        }
        let date = Maybe::Value(today.to_owned());
        let fact = attachment::Date { date, ..attachment::Date::default() };
        Some(rendered_attachment(Attachment::Date(Box::new(fact)), vec![format!("Today is {today}.")]))
    }
}

/// The name of the user's shell.
fn shell_name(session: &Session) -> Option<String> {
    let path = Path::new(session.var("SHELL")?);
    Some(path.file_name()?.to_string_lossy().into_owned())
}

//! Definitions from Markdown files and the host: slash commands, skills, subagents, output styles.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use quipu_message::control::setup::McpConfig;
use quipu_message::{Json, ToolName};
use serde::de::{DeserializeOwned, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::git::git_root;
use crate::options::PluginDir;
use crate::output_style::{self, OutputStyle};
use crate::path::{TargetPath, resolve};
use crate::settings::SettingSource;
use crate::text_file;
use crate::tool::{DEFAULT_SUBAGENT, HiddenFileFilter};

mod arguments;

/// The most commands, skills or subagents of a folder.
const MAX_FILES: usize = 1000;

/// A slash command or a skill: a prompt with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SavedPrompt {
    /// Its name, without the slash.
    pub name: String,
    /// A description for listings.
    pub description: String,
    /// A hint for its arguments.
    pub argument_hint: String,
    /// Permission rules that allow tool calls in its turn.
    pub allowed_tools: Vec<String>,
    /// The model of its turn; the session's if `None`.
    pub model: Option<String>,
    /// The text of the prompt, with placeholders for arguments.
    pub body: String,
    /// Whether it is a skill, which the model may use by itself.
    pub is_skill: bool,
    /// The folder of its file.
    pub folder: PathBuf,
    /// Whether it comes from the project, not from the user or a plugin.
    pub is_from_project: bool,
    /// Whether its permission rules count: not if it comes from a folder of the project that the user does
    /// not trust.
    pub is_trusted: bool,
}

/// The definition of a subagent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentDefinition {
    /// The name of the subagent.
    pub name: String,
    /// When the model should use it.
    pub description: String,
    /// Its system prompt.
    pub prompt: String,
    /// Names of its tools; `None` for all.
    pub tools: Option<Vec<ToolName>>,
    /// Names of tools that it may not use.
    pub disallowed_tools: Vec<ToolName>,
    /// Its model; `None` for the session's.
    pub model: Option<String>,
    /// `worktree` if it works in a git worktree of its own.
    pub isolation: Option<String>,
    /// Maximum number of API calls; `None` for no limit.
    pub max_turns: Option<u64>,
    /// Whether it runs in the background unless the call says otherwise.
    pub is_background: bool,
    /// Where the definition comes from.
    pub(crate) origin: AgentOrigin,
}

/// Where the definition of a subagent comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AgentOrigin {
    /// Built into the program.
    Builtin,
    /// A Markdown file.
    File {
        path: PathBuf,
        /// The name of the plugin with a colon; empty without a plugin.
        prefix: String,
        /// The folder of the project, which links must not lead out of; `None` for other files.
        project: Option<PathBuf>,
    },
    /// A flag, or the host.
    Host,
}

impl AgentDefinition {
    /// Its line in the list of subagents for the model.
    pub(crate) fn listing_line(&self) -> String {
        format!("- {}: {}", self.name, self.description)
    }

    /// Reads a definition; `None` if that fails, with the reason in `problems`.
    fn from_file(
        path: &Path,
        prefix: &str,
        project: Option<&Path>,
        rules: &ProjectRules<'_>,
        problems: &mut Vec<String>,
    ) -> Option<Self> {
        let (front, body) = read_file(path, project, rules, problems)?;
        let stem = || path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let origin = AgentOrigin::File {
            path: path.to_owned(),
            prefix: prefix.to_owned(),
            project: project.map(Path::to_owned),
        };
        Some(Self {
            name: format!("{prefix}{}", front.name.unwrap_or_else(stem)),
            description: front.description.unwrap_or_default(),
            prompt: body.trim().to_owned(),
            tools: front.tools.map(NameList::into_tool_names),
            disallowed_tools: front.disallowed_tools.map(NameList::into_tool_names).unwrap_or_default(),
            model: front.model,
            isolation: front.isolation,
            max_turns: front.max_turns,
            is_background: front.background.unwrap_or_default(),
            origin,
        })
    }

    /// Whether it comes from the user, the host, a plugin or a project that the user trusts.
    fn is_trusted(&self, rules: &ProjectRules<'_>) -> bool {
        match &self.origin {
            AgentOrigin::File { project: Some(project), .. } => (rules.is_trusted)(project),
            AgentOrigin::File { project: None, .. } | AgentOrigin::Builtin | AgentOrigin::Host => true,
        }
    }

    /// The definition as its file is now; `None` if the file is gone or has another name in it.
    fn reload(&self, rules: &ProjectRules<'_>) -> Option<Self> {
        match &self.origin {
            AgentOrigin::File { path, prefix, project } => {
                // Problems were reported when it was first read.
                let fresh = Self::from_file(path, prefix, project.as_deref(), rules, &mut Vec::new());
                fresh.filter(|fresh| fresh.name == self.name)
            }
            AgentOrigin::Builtin | AgentOrigin::Host => Some(self.clone()),
        }
    }
}

impl AgentDefinition {
    /// The model of the definition; `None` for the session's.
    pub(crate) fn own_model(&self) -> Option<&str> {
        self.model.as_deref().filter(|model| *model != "inherit")
    }
}

/// What decides which definitions of a project are used, and for what.
pub(crate) struct ProjectRules<'a> {
    /// Whether the user trusts a folder.
    pub(crate) is_trusted: &'a dyn Fn(&Path) -> bool,
    /// The files that permission rules hide. A definition that is a link to one of them is left out.
    pub(crate) hidden_files: HiddenFileFilter,
}

/// A folder with commands, skills, subagents and hooks of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Plugin {
    /// The name of the plugin.
    pub(crate) name: String,
    /// Path of the folder.
    pub(crate) path: PathBuf,
    /// Whether its MCP servers are used.
    #[serde(skip)]
    pub(crate) uses_mcp: bool,
}

impl Plugin {
    /// A plugin with the name in its manifest, or else the name of its folder. Adds what cannot be read
    /// to `problems`.
    pub(crate) fn from_folder(cwd: &Path, given: &PluginDir, problems: &mut Vec<String>) -> Self {
        #[derive(Deserialize)]
        struct Manifest {
            name: String,
        }
        let path = cwd.join(&given.path);
        if !path.is_dir() {
            problems.push(format!("{}: there is no such folder", path.display()));
        }
        let manifest = path.join(".claude-plugin/plugin.json");
        let named = read_json::<Manifest>(&manifest, None, problems).map(|known| known.name);
        let folder = || path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { name: named.unwrap_or_else(folder), uses_mcp: given.uses_mcp, path }
    }

    /// The MCP servers in its `.mcp.json`, by name.
    pub(crate) fn mcp_servers(&self, problems: &mut Vec<String>) -> BTreeMap<String, Json> {
        let listing: Option<McpConfig> = read_json(&self.path.join(".mcp.json"), Some(&self.path), problems);
        listing.map(|listing| listing.servers).unwrap_or_default()
    }

    /// Settings with the `hooks` of its `hooks/hooks.json` and nothing else, because other settings could grant
    /// permissions. `None` if it has no hooks.
    pub(crate) fn hook_settings(&self, problems: &mut Vec<String>) -> Option<serde_json::Value> {
        let path = self.path.join("hooks/hooks.json");
        let mut file: serde_json::Map<String, serde_json::Value> = read_json(&path, Some(&self.path), problems)?;
        Some(serde_json::json!({"hooks": file.remove("hooks")?}))
    }
}

/// Reads a JSON file of a plugin; `root` replaces `${CLAUDE_PLUGIN_ROOT}`. `None` if the file is missing
/// or invalid; the latter is added to `problems`.
fn read_json<T: DeserializeOwned>(path: &Path, root: Option<&Path>, problems: &mut Vec<String>) -> Option<T> {
    path.symlink_metadata().ok()?;
    let text = text_file::read(path, None, text_file::MAX_BYTES).map_err(|error| error.to_string());
    let read = text.and_then(|text| {
        let text = root.map_or(text.clone(), |root| text.replace("${CLAUDE_PLUGIN_ROOT}", &root.to_string_lossy()));
        serde_json::from_str(&text).map_err(|error| error.to_string())
    });
    read.map_err(|error| problems.push(format!("{}: {error}", path.display()))).ok()
}

/// All commands, skills, subagents and output styles of a session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Definitions {
    /// Slash commands and skills, by name.
    pub saved_prompts: BTreeMap<String, SavedPrompt>,
    /// Subagents, by name.
    pub agents: BTreeMap<String, AgentDefinition>,
    /// Names of the skills that the host selected; `None` for all.
    allowed_skills: Option<Vec<String>>,
    /// Output styles, by name.
    pub(crate) output_styles: BTreeMap<String, OutputStyle>,
    /// The plugins.
    pub(crate) plugins: Vec<Plugin>,
    /// A sentence for each file that is invalid or was used in part only.
    pub(crate) problems: Vec<String>,
}

impl Definitions {
    /// Reads the folders of the given sources: the user's, and those of the project from its
    /// repository's root down to `cwd`. The subagents of a project that the user trusts win over the
    /// user's, the user's commands, skills and output styles over the project's.
    pub(crate) fn load(config: &Path, cwd: &Path, sources: &[SettingSource], rules: &ProjectRules<'_>) -> Self {
        let mut definitions = Self::default();
        for agent in builtin_agents() {
            definitions.agents.insert(agent.name.clone(), agent);
        }
        definitions.output_styles = output_style::builtin_styles().map(|style| (style.name.clone(), style)).collect();
        if sources.contains(&SettingSource::User) {
            definitions.add_folder(config, "", None, rules);
        }
        if sources.contains(&SettingSource::Project) {
            let top = git_root(cwd).unwrap_or(cwd);
            let folders: Vec<&Path> = cwd.ancestors().take_while(|folder| folder.starts_with(top)).collect();
            folders
                .into_iter()
                .rev()
                .for_each(|folder| definitions.add_folder(&folder.join(".claude"), "", Some(folder), rules));
        }
        definitions
    }

    /// The subagent of this name, or an error text that lists the names.
    pub(crate) fn find_agent(&self, name: &str) -> Result<&AgentDefinition, String> {
        let names = || self.agents.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        self.agents.get(name).ok_or_else(|| format!("no agent '{name}'; there are {}", names()))
    }

    /// Adds the definitions in a folder that was added to the project.
    pub(crate) fn add_root(&mut self, root: &Path, rules: &ProjectRules<'_>) {
        self.add_folder(&root.join(".claude"), "", Some(root), rules);
    }

    /// Adds a plugin and its definitions, under the name of the plugin.
    pub(crate) fn add_plugin(&mut self, plugin: &Plugin, rules: &ProjectRules<'_>) {
        self.add_folder(&plugin.path, &format!("{}:", plugin.name), None, rules);
        self.plugins.push(plugin.clone());
    }

    /// Adds subagents given as JSON: name to description, prompt, tools and model.
    pub(crate) fn add_agents_json(&mut self, json: &str) -> serde_json::Result<()> {
        let given: BTreeMap<String, AgentJson> = serde_json::from_str(json)?;
        for (name, given) in given {
            let agent = AgentDefinition {
                description: given.description,
                prompt: given.prompt,
                tools: given.tools.map(NameList::into_tool_names),
                disallowed_tools: given.disallowed_tools.map(NameList::into_tool_names).unwrap_or_default(),
                model: given.model,
                isolation: given.isolation,
                max_turns: given.max_turns,
                is_background: given.background.unwrap_or_default(),
                origin: AgentOrigin::Host,
                name: name.clone(),
            };
            self.agents.insert(name, agent);
        }
        Ok(())
    }

    /// Replaces all definitions that come from files; those of flags and the host stay.
    pub(crate) fn replace_file_definitions(&mut self, fresh: Self) {
        let given: Vec<AgentDefinition> =
            self.agents.values().filter(|agent| agent.origin == AgentOrigin::Host).cloned().collect();
        (self.saved_prompts, self.agents, self.output_styles) =
            (fresh.saved_prompts, fresh.agents, fresh.output_styles);
        self.agents.extend(given.into_iter().map(|agent| (agent.name.clone(), agent)));
        if let Some(names) = self.allowed_skills.take() {
            self.restrict_skills(&names);
        }
    }

    /// Reads a subagent from its file again; `None` if there is none, or not any more.
    pub(crate) fn reload_agent(&mut self, name: &str, rules: &ProjectRules<'_>) -> Option<AgentDefinition> {
        let fresh = self.agents.get(name)?.reload(rules);
        match &fresh {
            Some(agent) => self.agents.insert(name.to_owned(), agent.clone()),
            None => self.agents.remove(name),
        };
        fresh
    }

    /// Removes all skills but these, also after the files are read again.
    pub(crate) fn restrict_skills(&mut self, names: &[String]) {
        self.allowed_skills = Some(names.to_vec());
        self.saved_prompts.retain(|name, saved| !saved.is_skill || names.contains(name));
    }

    /// The skills, sorted by name.
    pub(crate) fn skills(&self) -> impl Iterator<Item = &SavedPrompt> {
        self.saved_prompts.values().filter(|saved| saved.is_skill)
    }

    /// Adds the definitions in a folder; links of a project must not lead out of `project`.
    fn add_folder(&mut self, folder: &Path, prefix: &str, project: Option<&Path>, rules: &ProjectRules<'_>) {
        let commands = folder.join("commands");
        for path in find_markdown_files(&commands, &mut self.problems) {
            let name = path.strip_prefix(&commands).unwrap_or(&path).with_extension("");
            let name: Vec<_> = name.iter().map(|part| part.to_string_lossy()).collect();
            self.add_prompt_file(&path, format!("{prefix}{}", name.join(":")), false, (project, rules));
        }
        let skills = fs::read_dir(folder.join("skills")).into_iter().flatten().flatten();
        let mut skills: Vec<PathBuf> = skills.take(MAX_FILES).map(|entry| entry.path().join("SKILL.md")).collect();
        skills.sort();
        for path in skills {
            let name = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
            self.add_prompt_file(&path, format!("{prefix}{name}"), true, (project, rules));
        }
        for path in find_markdown_files(&folder.join("agents"), &mut self.problems) {
            if let Some(agent) = AgentDefinition::from_file(&path, prefix, project, rules, &mut self.problems) {
                self.add_agent(agent, rules);
            }
        }
        for path in find_markdown_files(&folder.join("output-styles"), &mut self.problems) {
            self.add_style_file(&path, prefix, project, rules);
        }
    }

    /// Adds a subagent. One of a project that the user does not trust replaces only others of such projects,
    /// because the one of its name may have fewer tools.
    fn add_agent(&mut self, agent: AgentDefinition, rules: &ProjectRules<'_>) {
        let is_replaced = |known: &AgentDefinition| agent.is_trusted(rules) || !known.is_trusted(rules);
        if self.agents.get(&agent.name).is_none_or(is_replaced) {
            self.agents.insert(agent.name.clone(), agent);
        }
    }

    fn add_prompt_file(
        &mut self,
        path: &Path,
        name: String,
        is_skill: bool,
        (project, rules): (Option<&Path>, &ProjectRules<'_>),
    ) {
        let Some((front, body)) = read_file(path, project, rules, &mut self.problems) else { return };
        let prefix = name.rfind(':').filter(|_| is_skill).map_or("", |end| &name[..=end]);
        let name = front.name.filter(|_| is_skill).map_or_else(|| name.clone(), |own| format!("{prefix}{own}"));
        if project.is_some() && self.saved_prompts.get(&name).is_some_and(|known| !known.is_from_project) {
            return;
        }
        let first_line = body.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let saved = SavedPrompt {
            description: front.description.unwrap_or_else(|| first_line.trim_start_matches('#').trim().to_owned()),
            argument_hint: front.argument_hint.unwrap_or_default(),
            allowed_tools: front.allowed_tools.map(|names| names.0).unwrap_or_default(),
            model: front.model.filter(|model| model != "inherit"),
            body,
            is_skill,
            folder: path.parent().unwrap_or(Path::new("/")).to_owned(),
            is_from_project: project.is_some(),
            is_trusted: project.is_none_or(rules.is_trusted),
            name: name.clone(),
        };
        self.saved_prompts.insert(name, saved);
    }

    fn add_style_file(&mut self, path: &Path, prefix: &str, project: Option<&Path>, rules: &ProjectRules<'_>) {
        let Some((front, body)) = read_file(path, project, rules, &mut self.problems) else { return };
        let stem = || path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let style = OutputStyle {
            name: format!("{prefix}{}", front.name.unwrap_or_else(stem)),
            prompt: body.trim().to_owned(),
            // Only a folder that the user trusts may replace them.
            keeps_coding_instructions: front.keep_coding_instructions.unwrap_or(false)
                || !project.is_none_or(rules.is_trusted),
            is_from_project: project.is_some(),
        };
        if project.is_some() && self.output_styles.get(&style.name).is_some_and(|known| !known.is_from_project) {
            return;
        }
        self.output_styles.insert(style.name.clone(), style);
    }
}

impl SavedPrompt {
    /// The text of the prompt with the arguments filled in.
    pub(crate) fn expand(&self, arguments: &str) -> String {
        arguments::fill_arguments(&self.body, arguments)
    }
}

/// The front matter of a file: the YAML between two `---` lines at its top.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FrontMatter {
    name: Option<String>,
    description: Option<String>,
    #[serde(rename = "argument-hint")]
    argument_hint: Option<String>,
    #[serde(rename = "allowed-tools")]
    allowed_tools: Option<NameList>,
    tools: Option<NameList>,
    #[serde(rename = "disallowedTools")]
    disallowed_tools: Option<NameList>,
    model: Option<String>,
    isolation: Option<String>,
    #[serde(rename = "maxTurns")]
    max_turns: Option<u64>,
    background: Option<bool>,
    #[serde(rename = "keep-coding-instructions")]
    keep_coding_instructions: Option<bool>,
}

/// The definition of a subagent in JSON.
#[derive(Debug, Deserialize)]
struct AgentJson {
    description: String,
    prompt: String,
    #[serde(default)]
    tools: Option<NameList>,
    #[serde(default, rename = "disallowedTools")]
    disallowed_tools: Option<NameList>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    isolation: Option<String>,
    #[serde(default, rename = "maxTurns")]
    max_turns: Option<u64>,
    #[serde(default)]
    background: Option<bool>,
}

/// Names as a list, or as one string with commas.
#[derive(Debug)]
struct NameList(Vec<String>);

impl NameList {
    fn into_tool_names(self) -> Vec<ToolName> {
        self.0.into_iter().map(ToolName::from).collect()
    }
}

impl<'de> Deserialize<'de> for NameList {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        list_or_text(d, crate::flags::split_list).map(Self)
    }
}

/// Deserialises a list of texts, or one string that `split` splits.
pub(crate) fn list_or_text<'de, D: Deserializer<'de>>(
    d: D,
    split: fn(&str) -> Vec<String>,
) -> Result<Vec<String>, D::Error> {
    struct NameListVisitor(fn(&str) -> Vec<String>);
    impl<'de> Visitor<'de> for NameListVisitor {
        type Value = Vec<String>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list, or a text with commas")
        }
        fn visit_str<E>(self, text: &str) -> Result<Vec<String>, E> {
            Ok((self.0)(text))
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<String>, A::Error> {
            let mut texts = Vec::new();
            while let Some(text) = list.next_element()? {
                texts.push(text);
            }
            Ok(texts)
        }
    }
    d.deserialize_any(NameListVisitor(split))
}

/// Reads a Markdown file: its front matter and the text after it. `None` if the file is missing or
/// cannot be read; the latter is added to `problems`, and so is invalid front matter, which counts as
/// empty.
fn read_file(
    path: &Path,
    project: Option<&Path>,
    rules: &ProjectRules<'_>,
    problems: &mut Vec<String>,
) -> Option<(FrontMatter, String)> {
    path.symlink_metadata().ok()?;
    let mut note = |error: String| problems.push(format!("{}: {error}", path.display()));
    // Resolved once: a link may lead elsewhere the next time.
    let read = text_file::resolve_within(path, project).and_then(|real| {
        if project.is_some_and(|project| is_link_to_hidden_file(path, &real, project, rules)) {
            return Err(std::io::Error::other("a rule refuses to read it"));
        }
        text_file::read_resolved(&real, text_file::MAX_BYTES).and_then(text_file::into_text)
    });
    let text = match read {
        Ok(text) => text,
        Err(error) => {
            note(error.to_string());
            return None;
        }
    };
    let (front, body) = parse_front_matter(&text);
    let front = front.unwrap_or_else(|error| {
        // The text is still useful without the front matter.
        note(format!("the lines between --- cannot be read: {error}"));
        FrontMatter::default()
    });
    Some((front, body.to_owned()))
}

/// Whether a file of a project is a link, or in a linked folder, and leads to a file that permission rules hide.
fn is_link_to_hidden_file(path: &Path, real: &Path, project: &Path, rules: &ProjectRules<'_>) -> bool {
    let own = || Some(resolve(project)?.join(path.strip_prefix(project).ok()?));
    own().as_deref() != Some(real) && (rules.hidden_files)(&TargetPath::from_resolved(real))
}

fn parse_front_matter(text: &str) -> (Result<FrontMatter, String>, &str) {
    let Some((head, body)) = split_front_matter(text) else { return (Ok(FrontMatter::default()), text) };
    (serde_saphyr::from_str(head).map_err(|error| one_line(&error.to_string())), body)
}

/// The first line of a text.
fn one_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// Splits a text into its front matter and the rest; `None` if it has no front matter.
pub(crate) fn split_front_matter(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("---\n")?;
    let end = rest.find("\n---")?;
    Some((&rest[..end], rest[end + 4..].trim_start_matches('\n')))
}

/// Paths of the Markdown files in a folder and below it. A folder that cannot be read is added to
/// `problems`.
fn find_markdown_files(folder: &Path, problems: &mut Vec<String>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    let mut visited = 0;
    while let Some(folder) = folders.pop().filter(|_| found.len() < MAX_FILES && visited < MAX_FILES) {
        visited += 1;
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) => {
                if folder.symlink_metadata().is_ok() {
                    problems.push(format!("{}: {error}", folder.display()));
                }
                continue;
            }
        };
        for entry in entries.flatten().take(MAX_FILES) {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else if path.extension().is_some_and(|ext| ext == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Tools that read-only subagents do not have.
const READ_ONLY_DISALLOWED_TOOLS: &[ToolName] =
    &[ToolName::Edit, ToolName::Write, ToolName::NotebookEdit, ToolName::Agent];

fn builtin_agents() -> [AgentDefinition; 3] {
    let agent = |name: &str, description: &str, prompt: &str, without: &[ToolName]| AgentDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        prompt: prompt.to_owned(),
        tools: None,
        disallowed_tools: without.to_vec(),
        model: None,
        isolation: None,
        max_turns: None,
        is_background: false,
        origin: AgentOrigin::Builtin,
    };
    [
        agent(
            DEFAULT_SUBAGENT,
            "Works on any task of several steps by itself and reports back.",
            "You work for another agent on one task. Do all of it and nothing beyond it, then report what you did and \
             found in a few plain sentences, with the paths that matter. Nobody can answer questions meanwhile.",
            &[],
        ),
        agent(
            "Explore",
            "Looks through a code base and answers where and how things are; changes nothing.",
            "You look for things in a code base for another agent. Search widely first, then read closely. Change \
             nothing. Report the answer with paths and line numbers, in a few plain sentences.",
            READ_ONLY_DISALLOWED_TOOLS,
        ),
        agent(
            "Plan",
            "Works out how to do a task before anything is changed: steps, files that matter, what could go wrong.",
            "You plan work on a code base for another agent. Read what the task touches and how the project does such \
             things elsewhere. Change nothing. Report the plan: the steps in order, the files each one concerns, \
             what was weighed against what, and what is still open. Be short and definite.",
            READ_ONLY_DISALLOWED_TOOLS,
        ),
    ]
}

#[cfg(test)]
mod tests;

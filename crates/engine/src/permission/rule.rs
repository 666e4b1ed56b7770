//! One rule: a tool, and what a call of it must look like.

use std::fmt;

use quipu_message::control::permission::PermissionRuleValue;

use super::bash::matches_wildcards;
use super::file_tools;

/// What a rule says of the calls it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Behavior {
    /// They may run.
    Allow,
    /// They may not run, whatever else is allowed.
    Deny,
    /// A person is asked, even where others are not.
    Ask,
}

impl Behavior {
    /// Reads the word of the wire; an unknown word is no behavior.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "allow" => Some(Self::Allow),
            "deny" => Some(Self::Deny),
            "ask" => Some(Self::Ask),
            _ => None,
        }
    }
}

/// Where a rule comes from, and where it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RuleSource {
    /// The command line.
    Flags,
    /// The settings given on the command line.
    FlagSettings,
    /// The settings of whoever runs the machine.
    Policy,
    /// The person's settings.
    User,
    /// The project's settings.
    Project,
    /// The person's settings for the project.
    Local,
    /// This session only.
    Session,
    /// A saved prompt, for the turn it begins.
    Command,
}

impl RuleSource {
    /// Reads the word of the wire; what a saved prompt says is no destination.
    pub fn parse(word: &str) -> Option<Self> {
        let all =
            [Self::Flags, Self::FlagSettings, Self::Policy, Self::User, Self::Project, Self::Local, Self::Session];
        all.into_iter().find(|source| source.as_str() == word)
    }

    /// The word of the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Flags => "cliArg",
            Self::FlagSettings => "flagSettings",
            Self::Policy => "policySettings",
            Self::User => "userSettings",
            Self::Project => "projectSettings",
            Self::Local => "localSettings",
            Self::Session => "session",
            Self::Command => "command",
        }
    }
}

/// A rule, as it is written: `Tool` or `Tool(what)`.
///
/// ```
/// use quipu_engine::testing::permission::Rule;
/// let rule = Rule::parse("Bash(git diff:*)").unwrap();
/// assert_eq!((rule.tool.as_str(), rule.content.as_deref()), ("Bash", Some("git diff:*")));
/// assert_eq!(Rule::parse("Bash").unwrap().content, None);
/// assert_eq!(Rule::parse("Bash(git"), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The tool.
    pub tool: String,
    /// What the call must look like; none means any call.
    pub content: Option<String>,
}

impl Rule {
    /// Reads a rule; `None` if it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let Some((tool, rest)) = text.split_once('(') else {
            let word = !text.is_empty() && !text.contains([')', ' ', ',']);
            return word.then(|| Self::new(text, None));
        };
        let content = rest.strip_suffix(')')?;
        (!tool.is_empty() && !tool.contains([')', ' ', ','])).then(|| Self::new(tool, Some(content)))
    }

    /// Reads the rules of a flag: separated by commas or spaces, brackets kept whole.
    /// What is no rule is in the second list.
    pub fn parse_list(text: &str) -> (Vec<Self>, Vec<String>) {
        let mut depth = 0_usize;
        let ends = |c: char| {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && (c == ',' || c.is_whitespace())
        };
        let mut rules = (Vec::new(), Vec::new());
        for word in text.split(ends).filter(|word| !word.is_empty()) {
            match Self::parse(word) {
                Some(rule) => rules.0.push(rule),
                None => rules.1.push(word.to_owned()),
            }
        }
        rules
    }

    /// A rule for a tool. Content that says nothing is left out; for files, `*` says
    /// where: in the session's folder.
    pub fn new(tool: &str, content: Option<&str>) -> Self {
        let tool = tool.trim();
        let says = |content: &&str| {
            !content.is_empty() && (*content != "*" || file_tools::is_read_tool(tool) || file_tools::is_edit_tool(tool))
        };
        Self { tool: tool.to_owned(), content: content.map(str::trim).filter(says).map(str::to_owned) }
    }

    /// Whether the rule is about a tool, by whatever name it goes.
    pub(super) fn applies_to(&self, tool: &str) -> bool {
        let agents = ["Task", "Agent"];
        self.tool == tool
            || (agents.contains(&self.tool.as_str()) && agents.contains(&tool))
            || self.names_server_of(tool)
    }

    /// Whether the rule names the MCP server of a tool: `mcp__server` or `mcp__server__*`.
    ///
    /// Where `__` is in the name of a server or of a tool, it cannot be told where one ends
    /// and the other begins; such tools are allowed by their whole name alone.
    fn names_server_of(&self, tool: &str) -> bool {
        let server = self.tool.strip_suffix("__*").unwrap_or(&self.tool);
        let is_name = |name: &str| !name.is_empty() && !name.contains("__");
        let one_server = server.strip_prefix("mcp__").is_some_and(is_name);
        one_server && tool.strip_prefix(server).and_then(|rest| rest.strip_prefix("__")).is_some_and(is_name)
    }

    /// Whether a rule that refuses or asks is about a tool: for MCP tools also where the
    /// name of the server may be meant, and where a `*` stands for anything.
    pub(super) fn restricts(&self, tool: &str) -> bool {
        let is_below = |rest: &str| rest.starts_with("__");
        let below = tool.strip_prefix(self.tool.as_str()).is_some_and(is_below);
        let pieces: Vec<String> = self.tool.split('*').map(str::to_owned).collect();
        self.applies_to(tool) || (self.tool.starts_with("mcp__") && (below || matches_wildcards(&pieces, tool)))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            Some(content) => write!(f, "{}({content})", self.tool),
            None => f.write_str(&self.tool),
        }
    }
}

impl From<&PermissionRuleValue> for Rule {
    fn from(value: &PermissionRuleValue) -> Self {
        Self::new(&value.tool_name, value.rule_content.get().map(String::as_str))
    }
}

impl From<&Rule> for PermissionRuleValue {
    fn from(rule: &Rule) -> Self {
        Self { tool_name: rule.tool.clone(), rule_content: rule.content.clone().into(), ..Self::default() }
    }
}

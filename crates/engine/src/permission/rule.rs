//! One permission rule: a tool and a pattern for its calls.

use std::fmt;

use quipu_message::ToolName;
use quipu_message::control::permission::PermissionRuleValue;
use quipu_message::values::SettingsLocation;

use super::bash::matches_wildcards;
use super::file_tools;
use crate::flags::has_closed_brackets;
use crate::tool::sanitise_name;

/// Effect of a rule on the calls it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Behavior {
    /// The call may run.
    Allow,
    /// The call must not run, whatever other rules allow.
    Deny,
    /// The user is asked, even if another rule allows the call.
    Ask,
}

impl Behavior {
    /// Parses the value used in JSON; `None` if it is unknown.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "allow" => Some(Self::Allow),
            "deny" => Some(Self::Deny),
            "ask" => Some(Self::Ask),
            _ => None,
        }
    }
}

/// Where a rule comes from, and where updates of it are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RuleSource {
    /// `--allowedTools` and similar flags.
    Flags,
    /// `--settings` on the command line.
    FlagSettings,
    /// Managed settings of the administrator.
    Policy,
    /// `settings.json` of the user.
    User,
    /// `.claude/settings.json` of the project.
    Project,
    /// `.claude/settings.local.json` of the project.
    Local,
    /// Valid for this session only.
    Session,
    /// `allowed-tools` of a saved prompt, for the turn it starts.
    Command,
}

impl RuleSource {
    /// Parses the destination of an update; `None` for unknown values and `command`.
    pub fn parse(word: &str) -> Option<Self> {
        let all =
            [Self::Flags, Self::FlagSettings, Self::Policy, Self::User, Self::Project, Self::Local, Self::Session];
        all.into_iter().find(|source| source.as_str() == word)
    }

    /// Returns the value used in JSON.
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

/// A rule as written in settings: `Tool` or `Tool(content)`.
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
    /// Name of the tool, or a pattern for MCP tools.
    pub tool: ToolName,
    /// Pattern for the call; `None` matches every call of the tool.
    pub content: Option<String>,
}

impl Rule {
    /// Parses a rule; `None` if the text is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let Some((tool, rest)) = text.split_once('(') else {
            let word = !text.is_empty() && !text.contains([')', ' ', ',']);
            return word.then(|| Self::new(text.into(), None));
        };
        let content = rest.strip_suffix(')')?;
        (!tool.is_empty() && !tool.contains([')', ' ', ','])).then(|| Self::new(tool.into(), Some(content)))
    }

    /// Parses one rule of a flag, or a deny or ask rule of settings; `None` if the text is not one, or if its
    /// brackets are not balanced or close before its end. It may then contain other rules, which must not get lost.
    pub fn parse_flag(text: &str) -> Option<Self> {
        Self::parse(text).filter(|_| has_closed_brackets(text))
    }

    /// Creates a rule. Content that matches everything is dropped, except `*` for file tools,
    /// which limits the rule to the session's folder.
    pub fn new(tool: ToolName, content: Option<&str>) -> Self {
        let says = |content: &&str| {
            !content.is_empty()
                && (*content != "*" || file_tools::is_read_tool(&tool) || file_tools::is_edit_tool(&tool))
        };
        let content = content.map(str::trim).filter(says).map(str::to_owned);
        Self { tool, content }
    }

    /// Whether the rule names a tool that this program knows, or MCP tools.
    pub(crate) fn names_known_tool(&self) -> bool {
        self.tool.is_mcp() || !matches!(self.tool, ToolName::Other(_))
    }

    /// Whether the rule applies to a tool, including renamed tools and MCP servers.
    pub(super) fn applies_to(&self, tool: &ToolName) -> bool {
        self.tool.is_same_tool(tool) || self.names_server_of(tool)
    }

    /// Whether the rule names the MCP server of a tool: `mcp__server` or `mcp__server__*`.
    ///
    /// If the name of a server or tool contains `__`, or the server's ends or the tool's begins with
    /// `_`, the two cannot be separated; such tools are allowed only by their full name.
    fn names_server_of(&self, tool: &ToolName) -> bool {
        let (Some(server), Some(tool)) = (self.tool.after_mcp_prefix(), tool.after_mcp_prefix()) else { return false };
        let server = server.strip_suffix("__*").unwrap_or(server);
        let is_name = |name: &str| !name.is_empty() && !name.contains("__");
        let tool = tool.strip_prefix(server).and_then(|rest| rest.strip_prefix("__"));
        is_name(server) && !server.ends_with('_') && tool.is_some_and(|tool| is_name(tool) && !tool.starts_with('_'))
    }

    /// Whether a deny or ask rule applies to a tool. For MCP tools it also does if the rule
    /// may name the server, and `*` matches anything. Names may be written as the server has them.
    pub(super) fn restricts(&self, tool: &ToolName) -> bool {
        if !self.tool.is_mcp() {
            return self.applies_to(tool);
        }
        let pattern: String = self.tool.as_str().split('*').map(sanitise_name).collect::<Vec<_>>().join("*");
        let pieces: Vec<String> = pattern.split('*').map(str::to_owned).collect();
        let rule = Self { tool: pattern.as_str().into(), content: None };
        rule.applies_to(tool) || tool.may_belong_to(&rule.tool) || matches_wildcards(&pieces, tool.as_str())
    }
}

impl From<RuleSource> for SettingsLocation {
    fn from(source: RuleSource) -> Self {
        Self::from(source.as_str())
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            Some(content) => write!(f, "{}({content})", self.tool),
            None => f.write_str(self.tool.as_str()),
        }
    }
}

impl From<&PermissionRuleValue> for Rule {
    fn from(value: &PermissionRuleValue) -> Self {
        Self::new(value.tool_name.as_str().trim().into(), value.rule_content.get().map(String::as_str))
    }
}

impl From<&Rule> for PermissionRuleValue {
    fn from(rule: &Rule) -> Self {
        Self { tool_name: rule.tool.clone(), rule_content: rule.content.clone().into(), ..Self::default() }
    }
}

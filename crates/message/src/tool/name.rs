//! Names of tools.

use crate::macros::open_str_enum;

open_str_enum! {
    /// Name of a tool, as calls, rules and hooks write it.
    ///
    /// Tools of MCP servers and of later versions are [`Other`](Self::Other). Names are compared
    /// exactly, as the API does; [`from_any_case`](Self::from_any_case) recognises the spelling of
    /// other programs.
    ///
    /// ```
    /// use quipu_message::ToolName;
    /// assert_eq!(ToolName::from("Bash"), ToolName::Bash);
    /// assert_eq!(ToolName::from("mcp__calc__add").mcp(), Some(("calc", "add")));
    /// assert!(ToolName::from("Task").is_agent());
    /// ```
    pub enum ToolName {
        /// Starts a subagent, since version 2.1.
        "Agent" => Agent,
        /// Asks the user one or more questions.
        "AskUserQuestion" => AskUserQuestion,
        /// Runs a shell command.
        "Bash" => Bash,
        /// Reads the output of a background command; `TaskOutput` in newer versions.
        "BashOutput" => BashOutput,
        /// Replaces text in a file.
        "Edit" => Edit,
        /// Presents a plan to the user.
        "ExitPlanMode" => ExitPlanMode,
        /// Finds files by name.
        "Glob" => Glob,
        /// Finds lines by pattern.
        "Grep" => Grep,
        /// Ends a background command; `TaskStop` in newer versions.
        "KillShell" => KillShell,
        /// Lists a folder, in older versions.
        "LS" => Ls,
        /// Watches the output of a command.
        "Monitor" => Monitor,
        /// Replaces text in several places of a file, in older versions.
        "MultiEdit" => MultiEdit,
        /// Changes a cell of a notebook.
        "NotebookEdit" => NotebookEdit,
        /// Reads a notebook, in older versions.
        "NotebookRead" => NotebookRead,
        /// Reads a file.
        "Read" => Read,
        /// Sends a message to another agent.
        "SendMessage" => SendMessage,
        /// Loads the instructions of a skill.
        "Skill" => Skill,
        /// Runs a slash command, in older versions.
        "SlashCommand" => SlashCommand,
        /// Delivers the answer in the form that the host's schema requires.
        "StructuredOutput" => StructuredOutput,
        /// Starts a subagent, in older versions and in the list of tools of a session.
        "Task" => Task,
        /// Adds a task to the task list.
        "TaskCreate" => TaskCreate,
        /// Reads a task of the task list.
        "TaskGet" => TaskGet,
        /// Reads the output of a background task.
        "TaskOutput" => TaskOutput,
        /// Ends a background task.
        "TaskStop" => TaskStop,
        /// Replaces the to-do list.
        "TodoWrite" => TodoWrite,
        /// Finds tools whose definitions are not in the request, and loads them.
        "ToolSearch" => ToolSearch,
        /// Reads a web page.
        "WebFetch" => WebFetch,
        /// Searches the web, which costs money beside tokens.
        "WebSearch" => WebSearch,
        /// Writes a file.
        "Write" => Write,
        /// Reads a web page on the server of the API.
        "web_fetch" => ServerWebFetch,
        /// Searches the web on the server of the API.
        "web_search" => ServerWebSearch,
    }
}

/// Prefix of the names of MCP tools.
const MCP_PREFIX: &str = "mcp__";

/// Separates the server from the tool in the name of an MCP tool.
const MCP_SEPARATOR: &str = "__";

impl ToolName {
    /// Recognises a known tool in any case, such as `bash`; other names are kept as they are.
    pub fn from_any_case(name: &str) -> Self {
        let known = Self::KNOWN.iter().find(|known| known.eq_ignore_ascii_case(name));
        Self::from(known.copied().unwrap_or(name))
    }

    /// Name under which an agent offers a tool of an MCP server: `mcp__server__tool`.
    pub fn for_mcp(server: &str, tool: &str) -> Self {
        Self::Other(format!("{MCP_PREFIX}{server}{MCP_SEPARATOR}{tool}").into())
    }

    /// Server and tool in the name of an MCP tool; `None` for other tools.
    ///
    /// If the name of the server contains `__`, it is cut there: nothing separates the two then.
    pub fn mcp(&self) -> Option<(&str, &str)> {
        self.after_mcp_prefix()?.split_once(MCP_SEPARATOR)
    }

    /// Whether the name belongs to an MCP server: `mcp__server__tool`, or `mcp__server` as rules
    /// may write it.
    pub fn is_mcp(&self) -> bool {
        self.after_mcp_prefix().is_some()
    }

    /// The part after `mcp__`; `None` for other tools.
    pub fn after_mcp_prefix(&self) -> Option<&str> {
        self.as_str().strip_prefix(MCP_PREFIX)
    }

    /// Whether `server`, written `mcp__server`, can be the MCP server of this tool.
    pub fn may_belong_to(&self, server: &ToolName) -> bool {
        let rest = self.as_str().strip_prefix(server.as_str());
        server.is_mcp() && rest.is_some_and(|rest| rest.starts_with(MCP_SEPARATOR))
    }

    /// Whether the tool starts a subagent: `Task` or `Agent`, in any case.
    pub fn is_agent(&self) -> bool {
        [Self::Task, Self::Agent].iter().any(|agent| self.as_str().eq_ignore_ascii_case(agent.as_str()))
    }

    /// Whether both name the same tool: equal names, or `Task` and `Agent`.
    pub fn is_same_tool(&self, other: &ToolName) -> bool {
        let starts_subagent = |name: &Self| matches!(name, Self::Task | Self::Agent);
        self == other || starts_subagent(self) && starts_subagent(other)
    }
}

#[cfg(test)]
mod tests {
    use super::ToolName;

    #[test]
    fn every_known_name_is_read_as_its_variant_and_written_back() {
        for name in ToolName::KNOWN {
            let tool = ToolName::from(*name);
            assert!(!matches!(tool, ToolName::Other(_)), "{name}");
            assert_eq!(tool.as_str(), *name);
            assert_eq!(ToolName::from_any_case(&name.to_lowercase()), tool);
        }
        assert_eq!(ToolName::from("bash"), ToolName::Other("bash".into()));
        assert_eq!(ToolName::from_any_case("My_Tool"), "My_Tool");
    }

    #[test]
    fn the_name_of_an_mcp_tool_has_a_server_and_a_tool() {
        let parts = |name: &str| ToolName::from(name).mcp().map(|(server, tool)| (server.to_owned(), tool.to_owned()));
        let some = |server: &str, tool: &str| Some((server.to_owned(), tool.to_owned()));
        assert_eq!(parts("mcp__calc__add"), some("calc", "add"));
        assert_eq!(parts("mcp__calc__add__all"), some("calc", "add__all"));
        assert_eq!(parts("mcp__calc"), None);
        assert_eq!(parts("mcp_calc__add"), None);
        assert_eq!(parts("Bash"), None);
        assert_eq!(ToolName::for_mcp("calc", "add"), "mcp__calc__add");
        assert!(ToolName::from("mcp__calc").is_mcp() && !ToolName::from("MCP__calc").is_mcp());
    }

    #[test]
    fn a_tool_may_belong_to_the_server_that_its_name_begins_with() {
        let belongs = |tool: &str, server: &str| ToolName::from(tool).may_belong_to(&ToolName::from(server));
        assert!(belongs("mcp__calc__add", "mcp__calc"));
        assert!(belongs("mcp__a__b__c", "mcp__a__b") && belongs("mcp__a__b__c", "mcp__a"));
        assert!(!belongs("mcp__calculator__add", "mcp__calc"));
        assert!(!belongs("Bash__x", "Bash"));
    }

    #[test]
    fn task_and_agent_are_one_tool() {
        let same = |a: &str, b: &str| ToolName::from(a).is_same_tool(&ToolName::from(b));
        assert!(same("Task", "Agent") && same("Agent", "Task") && same("Bash", "Bash") && same("x", "x"));
        assert!(!same("Task", "TaskStop") && !same("Bash", "bash"));
    }

    #[test]
    fn names_are_ordered_as_text() {
        let mut names = ["mcp__a__b", "Write", "Agent", "Zebra", "LS"].map(ToolName::from);
        names.sort();
        assert_eq!(names.map(|name| name.to_string()), ["Agent", "LS", "Write", "Zebra", "mcp__a__b"]);
    }
}

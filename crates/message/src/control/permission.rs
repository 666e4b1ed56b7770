//! Changes of permission rules and folders: hosts return them, agents suggest them.

use std::fmt;

use crate::ToolName;
use crate::macros::{open_enum, wire};
use crate::values::{PermissionMode, RuleBehavior, SettingsLocation};

open_enum! {
    /// One change of permission rules, mode or folders.
    pub enum PermissionUpdate by "type" {
        /// Adds rules.
        "addRules" => AddRules(AddRules),
        /// Replaces all rules of the same behavior and destination.
        "replaceRules" => ReplaceRules(ReplaceRules),
        /// Removes rules.
        "removeRules" => RemoveRules(RemoveRules),
        /// Changes the permission mode.
        "setMode" => SetMode(SetMode),
        /// Adds working folders.
        "addDirectories" => AddDirectories(AddDirectories),
        /// Removes working folders.
        "removeDirectories" => RemoveDirectories(RemoveDirectories),
    }
}

macro_rules! rule_updates {
    ($( $(#[$meta:meta])* $name:ident = $tag:literal ),+ $(,)?) => { $(
        wire! {
            $(#[$meta])*
            pub struct $name ["type" = $tag] {
                /// The rules.
                rules: req Vec<PermissionRuleValue>,
                /// `allow`, `deny` or `ask`.
                behavior: req RuleBehavior,
                /// Where the change is stored.
                destination: req SettingsLocation,
            }
        }
    )+ };
}

rule_updates! {
    /// Adds rules.
    AddRules = "addRules",
    /// Replaces all rules of the same behavior and destination.
    ReplaceRules = "replaceRules",
    /// Removes rules.
    RemoveRules = "removeRules",
}

wire! {
    /// A permission rule: a tool and a pattern for its calls.
    pub struct PermissionRuleValue {
        /// Name of the tool, or of an MCP server as `mcp__server`.
        tool_name: req ToolName = "toolName",
        /// Pattern that a call must match; absent if every call matches.
        rule_content: opt String = "ruleContent",
    }
}

/// As in settings files: `Bash(git status:*)`, or the name of the tool alone.
impl fmt::Display for PermissionRuleValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rule_content.text() {
            Some(content) => write!(f, "{}({content})", self.tool_name),
            None => write!(f, "{}", self.tool_name),
        }
    }
}

wire! {
    /// Changes the permission mode.
    pub struct SetMode ["type" = "setMode"] {
        /// The new mode.
        mode: req PermissionMode,
        /// Where the change is stored.
        destination: req SettingsLocation,
    }
}

wire! {
    /// Adds working folders.
    pub struct AddDirectories ["type" = "addDirectories"] {
        /// Paths of the folders.
        directories: req Vec<String>,
        /// Where the change is stored.
        destination: req SettingsLocation,
    }
}

wire! {
    /// Removes working folders.
    pub struct RemoveDirectories ["type" = "removeDirectories"] {
        /// Paths of the folders.
        directories: req Vec<String>,
        /// Where the change is stored.
        destination: req SettingsLocation,
    }
}

//! Changes of the permission rules, as a host answers them and an agent suggests them.

use crate::macros::{open_enum, wire};
use crate::values::{PermissionMode, RuleBehavior, SettingsLocation};

open_enum! {
    /// One change of the permission rules.
    pub enum PermissionUpdate by "type" {
        /// Add rules to those of a place.
        "addRules" => AddRules(AddRules),
        /// Put rules in the place of all others of their kind.
        "replaceRules" => ReplaceRules(ReplaceRules),
        /// Take rules away.
        "removeRules" => RemoveRules(RemoveRules),
        /// Change the mode.
        "setMode" => SetMode(SetMode),
        /// Open more folders.
        "addDirectories" => AddDirectories(AddDirectories),
        /// Close folders again.
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
                /// Where they are kept.
                destination: req SettingsLocation,
            }
        }
    )+ };
}

rule_updates! {
    /// Adds rules to those of a place.
    AddRules = "addRules",
    /// Puts rules in the place of all others of their kind.
    ReplaceRules = "replaceRules",
    /// Takes rules away.
    RemoveRules = "removeRules",
}

wire! {
    /// A rule: a tool, and what of it.
    pub struct PermissionRuleValue {
        /// Name of the tool.
        tool_name: req String = "toolName",
        /// What the call must look like; none means any call.
        rule_content: opt String = "ruleContent",
    }
}

wire! {
    /// Changes the mode.
    pub struct SetMode ["type" = "setMode"] {
        /// The mode.
        mode: req PermissionMode,
        /// Where it is kept.
        destination: req SettingsLocation,
    }
}

wire! {
    /// Opens more folders.
    pub struct AddDirectories ["type" = "addDirectories"] {
        /// The folders.
        directories: req Vec<String>,
        /// Where they are kept.
        destination: req SettingsLocation,
    }
}

wire! {
    /// Closes folders again.
    pub struct RemoveDirectories ["type" = "removeDirectories"] {
        /// The folders.
        directories: req Vec<String>,
        /// Where they are kept.
        destination: req SettingsLocation,
    }
}

//! The permission rules of a session and updates of them.

use std::path::Path;

use quipu_message::control::PermissionUpdate;
use quipu_message::control::permission::PermissionRuleValue;

use super::{Behavior, EffectiveMode, Rule, RuleSource};
use crate::tool::Workspace;

/// The permission rules of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleSet {
    rules: Vec<SourcedRule>,
}

/// A rule with its behavior and source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcedRule {
    /// Effect of the rule.
    pub behavior: Behavior,
    /// Settings file or flag that contains the rule.
    pub source: RuleSource,
    /// The rule itself.
    pub rule: Rule,
}

/// Why a permission update was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpdateError {
    /// The update has an unknown type.
    #[error("unknown permission update {0:?}")]
    UnknownUpdate(String),
    /// A field of the update has an unknown value.
    #[error("unknown {what} {word:?} in a permission update")]
    UnknownWord {
        /// Name of the field.
        what: &'static str,
        /// The unknown value.
        word: String,
    },
}

impl UpdateError {
    /// Returns a stable code for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownUpdate(_) => "permission.unknown_update",
            Self::UnknownWord { .. } => "permission.unknown_word",
        }
    }
}

impl RuleSet {
    /// Adds a rule unless it is already there.
    pub fn add(&mut self, behavior: Behavior, source: RuleSource, rule: Rule) {
        let rule = SourcedRule { behavior, source, rule };
        if !self.rules.contains(&rule) {
            self.rules.push(rule);
        }
    }

    /// Removes all rules from one source.
    pub(crate) fn remove_source(&mut self, source: RuleSource) {
        self.rules.retain(|rule| rule.source != source);
    }

    /// Returns all rules in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = &SourcedRule> {
        self.rules.iter()
    }

    /// Returns the rules with one behavior.
    pub fn with_behavior(&self, behavior: Behavior) -> impl Iterator<Item = &SourcedRule> {
        self.rules.iter().filter(move |rule| rule.behavior == behavior)
    }

    /// Returns the rules without those of one behavior.
    pub(super) fn without(&self, behavior: Behavior) -> Self {
        Self { rules: self.rules.iter().filter(|rule| rule.behavior != behavior).cloned().collect() }
    }

    /// Applies an update to the rules or to the folders of the workspace, or returns the mode
    /// that it sets.
    ///
    /// The caller decides whether the mode may be entered and stores the update.
    pub fn apply(
        &mut self,
        update: &PermissionUpdate,
        workspace: &Workspace,
    ) -> Result<Option<EffectiveMode>, UpdateError> {
        match update {
            PermissionUpdate::AddRules(body) => {
                let (behavior, source) = parse_destination(body.behavior.as_str(), body.destination.as_str())?;
                body.rules.iter().for_each(|rule| self.add(behavior, source, rule.into()));
            }
            PermissionUpdate::ReplaceRules(body) => {
                let (behavior, source) = parse_destination(body.behavior.as_str(), body.destination.as_str())?;
                self.rules.retain(|rule| rule.behavior != behavior || rule.source != source);
                body.rules.iter().for_each(|rule| self.add(behavior, source, rule.into()));
            }
            PermissionUpdate::RemoveRules(body) => {
                let (behavior, source) = parse_destination(body.behavior.as_str(), body.destination.as_str())?;
                let gone: Vec<Rule> = body.rules.iter().map(<Rule as From<&PermissionRuleValue>>::from).collect();
                self.rules
                    .retain(|rule| rule.behavior != behavior || rule.source != source || !gone.contains(&rule.rule));
            }
            PermissionUpdate::SetMode(body) => {
                parse_source(body.destination.as_str())?;
                let mode = EffectiveMode::parse(body.mode.as_str());
                return mode
                    .map(Some)
                    .ok_or_else(|| UpdateError::UnknownWord { what: "mode", word: body.mode.to_string() });
            }
            PermissionUpdate::AddDirectories(body) => {
                parse_source(body.destination.as_str())?;
                body.directories.iter().for_each(|folder| workspace.add_folder(Path::new(folder)));
            }
            PermissionUpdate::RemoveDirectories(body) => {
                body.directories.iter().for_each(|folder| workspace.remove_folder(Path::new(folder)));
            }
            other => return Err(UpdateError::UnknownUpdate(other.tag().to_owned())),
        }
        Ok(None)
    }
}

fn parse_destination(behavior: &str, destination: &str) -> Result<(Behavior, RuleSource), UpdateError> {
    let unknown = || UpdateError::UnknownWord { what: "behavior", word: behavior.to_owned() };
    Ok((Behavior::parse(behavior).ok_or_else(unknown)?, parse_source(destination)?))
}

fn parse_source(destination: &str) -> Result<RuleSource, UpdateError> {
    let unknown = || UpdateError::UnknownWord { what: "destination", word: destination.to_owned() };
    RuleSource::parse(destination).ok_or_else(unknown)
}

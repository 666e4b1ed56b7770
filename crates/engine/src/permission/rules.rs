//! All rules in force, and how they change.

use std::path::Path;

use quipu_message::control::PermissionUpdate;
use quipu_message::control::permission::PermissionRuleValue;

use super::{Behavior, PermissionMode, Rule, RuleSource};
use crate::tool::Workspace;

/// All rules in force.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleSet {
    rules: Vec<SourcedRule>,
}

/// A rule with what it says and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcedRule {
    /// What it says.
    pub behavior: Behavior,
    /// Where it comes from.
    pub source: RuleSource,
    /// The rule.
    pub rule: Rule,
}

/// Why a change of the rules was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpdateError {
    /// The change is of a kind this build does not know.
    #[error("unknown permission update {0:?}")]
    UnknownUpdate(String),
    /// A word of the change is unknown.
    #[error("unknown {what} {word:?} in a permission update")]
    UnknownWord {
        /// What the word stands for.
        what: &'static str,
        /// The word.
        word: String,
    },
}

impl UpdateError {
    /// A stable name for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownUpdate(_) => "permission.unknown_update",
            Self::UnknownWord { .. } => "permission.unknown_word",
        }
    }
}

impl RuleSet {
    /// Adds a rule, once.
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

    /// All rules, in the order they came.
    pub fn iter(&self) -> impl Iterator<Item = &SourcedRule> {
        self.rules.iter()
    }

    /// The rules that say one thing.
    pub fn with_behavior(&self, behavior: Behavior) -> impl Iterator<Item = &SourcedRule> {
        self.rules.iter().filter(move |rule| rule.behavior == behavior)
    }

    /// Makes a change here, in the place, or returns the mode it asks for.
    ///
    /// Whether a mode may be entered, and whether a change is also written to a
    /// settings file, is the caller's business.
    pub fn apply(
        &mut self,
        update: &PermissionUpdate,
        place: &Workspace,
    ) -> Result<Option<PermissionMode>, UpdateError> {
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
                let mode = PermissionMode::parse(body.mode.as_str());
                return mode
                    .map(Some)
                    .ok_or_else(|| UpdateError::UnknownWord { what: "mode", word: body.mode.to_string() });
            }
            PermissionUpdate::AddDirectories(body) => {
                body.directories.iter().for_each(|folder| place.add_folder(Path::new(folder)));
            }
            PermissionUpdate::RemoveDirectories(body) => {
                body.directories.iter().for_each(|folder| place.remove_folder(Path::new(folder)));
            }
            other => return Err(UpdateError::UnknownUpdate(other.tag().to_owned())),
        }
        Ok(None)
    }
}

fn parse_destination(behavior: &str, destination: &str) -> Result<(Behavior, RuleSource), UpdateError> {
    let unknown = |what, word: &str| UpdateError::UnknownWord { what, word: word.to_owned() };
    let behavior = Behavior::parse(behavior).ok_or_else(|| unknown("behavior", behavior))?;
    let source = RuleSource::parse(destination).ok_or_else(|| unknown("destination", destination))?;
    Ok((behavior, source))
}

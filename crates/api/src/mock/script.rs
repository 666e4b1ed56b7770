//! A script: rules in order, or recorded calls.

use std::path::Path;
use std::{fs, io};

use super::incoming::{IncomingRequest, RequestKind};
use super::recording::{MatchMode, PlayedCall, RecordedCall, Recording};
use super::request_difference::{ComparableRequest, RequestDifference};
use super::response::{IdGenerator, MockResponse};
use super::rule::Rule;

/// Responses of a [`MockServer`](super::MockServer); `docs/answer.md` describes the format.
#[derive(Debug, Clone)]
pub struct Script {
    source: ScriptSource,
}

#[derive(Debug, Clone)]
enum ScriptSource {
    Rules(Vec<Rule>),
    Recorded(Recording),
}

/// Why a script is invalid.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// Path of the file.
        path: String,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
    /// The script has an error at this place.
    #[error("line {line}, column {column}: {message}")]
    Invalid {
        /// The line, counted from 1.
        line: u64,
        /// The column, counted from 1.
        column: u64,
        /// Description of the error.
        message: String,
    },
    /// The script has no rules.
    #[error("the script has no rules")]
    Empty,
}

impl ScriptError {
    /// Stable error code, for `--json` output.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } => "answer.cannot_read",
            Self::Invalid { .. } => "answer.bad_script",
            Self::Empty => "answer.empty_script",
        }
    }

    /// Hint for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Read { .. } => "name a script (YAML or JSON) or a recording (api.jsonl)",
            Self::Invalid { .. } => "the keys of a rule and of `when` are listed in docs/answer.md",
            Self::Empty => "a script is a list of rules; the shortest is `- reply: Hello`",
        }
    }
}

impl Script {
    /// Reads a script from a file.
    pub fn read(path: &Path) -> Result<Self, ScriptError> {
        let fail = |source| ScriptError::Read { path: path.display().to_string(), source };
        Self::parse(&fs::read_to_string(path).map_err(fail)?)
    }

    /// Parses a script: JSON if it begins with `[`, recorded calls (one JSON object per line) if it
    /// begins with `{`, otherwise YAML.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let source = match text.trim_start().chars().next() {
            None => return Err(ScriptError::Empty),
            Some('{') => {
                ScriptSource::Recorded(Recording::parse(text).map_err(|(line, message)| ScriptError::Invalid {
                    line: line as u64,
                    column: 1,
                    message,
                })?)
            }
            Some('[') => ScriptSource::Rules(serde_json::from_str(text).map_err(|error| json_error(&error))?),
            Some(_) => ScriptSource::Rules(serde_saphyr::from_str(text).map_err(|error| yaml_error(&error))?),
        };
        match &source {
            ScriptSource::Rules(rules) if rules.is_empty() => Err(ScriptError::Empty),
            _ => Ok(Self { source }),
        }
    }

    /// Plays recorded calls.
    pub fn from_recorded(calls: Vec<RecordedCall>, mode: MatchMode) -> Self {
        Self { source: ScriptSource::Recorded(Recording::new(calls, mode)) }
    }

    /// Chooses the response to a request, the `call`th since the start.
    pub(crate) fn respond(
        &mut self,
        request: &IncomingRequest,
        comparable: impl FnOnce() -> ComparableRequest,
        call: usize,
        ids: &IdGenerator,
        request_id: &str,
    ) -> ScriptResponse {
        let mut found = match &mut self.source {
            ScriptSource::Recorded(recording) => match recording.play(request, &comparable()) {
                Ok(played) => played.into(),
                Err(difference) => ScriptResponse { difference, ..ScriptResponse::default() },
            },
            ScriptSource::Rules(rules) => {
                let fits = |(_, rule): &(usize, &mut Rule)| rule.matches(request, call);
                let rule = rules.iter_mut().enumerate().find(fits);
                let matched = rule.map(|(index, rule)| {
                    rule.remaining_uses = rule.remaining_uses.map(|times| times - 1);
                    let name = rule.name.clone().unwrap_or_else(|| format!("rule {}", index + 1));
                    (name, MockResponse::from_rule(rule, request, ids, request_id))
                });
                ScriptResponse { matched, difference: None }
            }
        };
        // Token counts need no rule; they are estimated.
        if found.matched.is_none() && request.kind == RequestKind::CountTokens {
            found.matched = Some(("estimate".to_owned(), MockResponse::from_token_count(request.estimated_tokens)));
        }
        found
    }

    /// Response of a recorded call that asked for no message; `None` if there is none.
    pub(crate) fn respond_other(&mut self, method: &str, path: &str) -> Option<ScriptResponse> {
        match &mut self.source {
            ScriptSource::Recorded(recording) => recording.play_other(method, path).map(ScriptResponse::from),
            ScriptSource::Rules(_) => None,
        }
    }

    /// Names of the recorded calls for messages that were not played.
    pub(crate) fn unplayed_calls(&self) -> Vec<String> {
        match &self.source {
            ScriptSource::Recorded(recording) => recording.unplayed(),
            ScriptSource::Rules(_) => Vec::new(),
        }
    }
}

/// The response that a script has for a request.
#[derive(Debug, Default)]
pub(crate) struct ScriptResponse {
    /// Name of the rule or call, and its response; `None` if none fits.
    pub(crate) matched: Option<(String, MockResponse)>,
    /// Where the request differs from a recorded one.
    pub(crate) difference: Option<RequestDifference>,
}

impl From<PlayedCall> for ScriptResponse {
    fn from(played: PlayedCall) -> Self {
        Self { matched: Some((played.name, played.response)), difference: played.difference }
    }
}

fn json_error(error: &serde_json::Error) -> ScriptError {
    let text = error.to_string();
    let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message).to_owned();
    ScriptError::Invalid { line: error.line() as u64, column: error.column() as u64, message }
}

fn yaml_error(error: &serde_saphyr::Error) -> ScriptError {
    let error = error.without_snippet();
    let (line, column) = error.location().map_or((1, 1), |place| (place.line(), place.column()));
    let message = error.to_string().replace(&format!(" at line {line}, column {column}"), "");
    let not_a_list = "expected sequence start";
    let message =
        if message == not_a_list { "a script is a list of rules, each begun with `- `".to_owned() } else { message };
    ScriptError::Invalid { line, column, message }
}

#[cfg(test)]
mod tests;

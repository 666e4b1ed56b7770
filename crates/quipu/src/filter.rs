//! The options that `ls`, `usage`, `search` and others share to select sessions and messages.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::Path;

use anyhow::Result;
use clap::Args as ClapArgs;
use jiff::{Timestamp, Zoned};
use quipu_conversation::parse_timestamp;
use quipu_index::{ListedSession, SessionKey};

use crate::catalogue;
use crate::global::GlobalArgs;
use crate::project_filter::ProjectFilter;
use crate::sessions;
use crate::time::TimeArg;

#[cfg(test)]
mod tests;

#[derive(Debug, Clone, Default, ClapArgs)]
#[command(next_help_heading = "Filters")]
pub(crate) struct FilterArgs {
    /// Only projects whose folder contains TEXT; `.` is the current folder
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) project: Option<String>,
    /// Only models whose name contains TEXT
    #[arg(long, value_name = "TEXT")]
    pub(crate) model: Option<String>,
    /// From then on: a date or a month, `yesterday`, `monday`, `7d`, `2 weeks ago`
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<TimeArg>,
    /// Until then; the day or month named is included
    #[arg(long, value_name = "WHEN")]
    pub(crate) until: Option<TimeArg>,
    /// Only this session: its id, a unique prefix of it, `latest`, or a file
    #[arg(id = "only_session", long = "session", value_name = "SESSION")]
    pub(crate) session: Option<String>,
}

impl FilterArgs {
    /// Whether nothing is filtered.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { project, model, since, until, session } = self;
        let texts = [project, model, session].iter().all(|text| text.is_none());
        texts && since.is_none() && until.is_none()
    }

    /// Resolves names and times. Days are those of the time zone of `now`.
    pub(crate) fn resolve(&self, now: &Zoned, global: &GlobalArgs) -> Result<Filter> {
        let session = self.session.as_deref().map(|spec| sessions::resolve_session(spec, global)).transpose()?;
        Ok(Filter {
            project: self.project.as_deref().map(ProjectFilter::new).transpose()?,
            model: self.model.as_ref().map(|part| part.to_lowercase()),
            since: self.since.as_ref().map(|time| time.period(now).start),
            until: self.until.as_ref().map(|time| time.period(now).end),
            session: session.as_deref().map(session_key),
        })
    }
}

/// The selection of [`FilterArgs`]; a field that is `None` selects everything.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    project: Option<ProjectFilter>,
    model: Option<String>,
    /// Start of the selected period, inclusive.
    pub(crate) since: Option<Timestamp>,
    /// End of the selected period, exclusive.
    pub(crate) until: Option<Timestamp>,
    session: Option<SessionKey>,
}

impl Filter {
    /// Whether a session is selected by its id, project and models, and was active in the period.
    pub(crate) fn matches(&self, row: &ListedSession) -> bool {
        let time = |text: &Option<String>| text.as_deref().and_then(|text| text.parse::<Timestamp>().ok());
        self.matches_apart_from_time(row)
            && self.since.is_none_or(|since| time(&row.ended_at).is_some_and(|end| end >= since))
            && self.until.is_none_or(|until| time(&row.started_at).is_some_and(|start| start < until))
    }

    /// Whether a timestamp is in the selected period. `None` matches only if no period is given.
    pub(crate) fn matches_time(&self, time: Option<&str>) -> bool {
        let time = || time.and_then(parse_timestamp);
        self.since.is_none_or(|since| time().is_some_and(|time| time >= since))
            && self.until.is_none_or(|until| time().is_some_and(|time| time < until))
    }

    fn matches_apart_from_time(&self, row: &ListedSession) -> bool {
        self.matches_session(&row.project, &row.session_id, || row.cwd.clone())
            && (self.model.is_none() || row.models.iter().any(|model| self.matches_model(model)))
    }

    /// Whether a session is selected by its id and the name of its project folder. `cwd` is only
    /// called if the result depends on the working directory.
    pub(crate) fn matches_session(&self, project: &str, id: &str, cwd: impl FnOnce() -> Option<String>) -> bool {
        self.session.as_ref().is_none_or(|key| key.project == project && key.id == id)
            && self.project.as_ref().is_none_or(|filter| filter.matches(project, cwd().as_deref()))
    }

    /// Whether [`matches_session`](Self::matches_session) may call `cwd`.
    pub(crate) fn needs_cwd(&self) -> bool {
        self.project.is_some()
    }

    /// Whether messages of this model are selected.
    pub(crate) fn matches_model(&self, model: &str) -> bool {
        self.model.as_ref().is_none_or(|part| model.to_lowercase().contains(part))
    }

    /// Sessions selected by `--project`, `--model` and `--session`; `None` if none of them is given.
    /// Reads the index for the first two.
    pub(crate) fn sessions(&self, global: &GlobalArgs) -> Result<Option<HashSet<SessionKey>>> {
        if self.project.is_none() && self.model.is_none() {
            return Ok(self.session.clone().map(|key| HashSet::from([key])));
        }
        let rows = catalogue::list_sessions(global)?;
        let selected = rows.into_iter().filter(|row| self.matches_apart_from_time(row));
        Ok(Some(selected.map(|row| SessionKey { project: row.project, id: row.session_id }).collect()))
    }
}

fn session_key(session: &Path) -> SessionKey {
    let name = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    SessionKey { project: name(session.parent().and_then(Path::file_name)), id: name(session.file_stem()) }
}

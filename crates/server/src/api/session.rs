//! `/api/sessions/{key}`: the structure of one session.

use std::sync::Arc;

use axum::extract::{Path, State};
use quipu_conversation::{Problem, SkeletonView, user_prompt};
use quipu_transcript::{OpenSession, ResumeCommand};
use schemars::JsonSchema;
use serde::Serialize;

use crate::api::sessions::ShownSession;
use crate::app::App;
use crate::error::ApiError;
use crate::json::Json;

/// Characters of a prompt in the list of turns.
const MAX_PROMPT_CHARS: usize = 200;

/// What is known of a session without reading its entries.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionStructure<'a> {
    /// `None` if the session is not in the list yet.
    session: Option<ShownSession<'a>>,
    path: String,
    /// Shell command that resumes the session; `None` if it does not name its folder.
    resume: Option<String>,
    /// One line that names the session.
    headline: Option<String>,
    version: String,
    /// Number of entries on the active path.
    entries: usize,
    turns: Vec<SessionTurn>,
    branches: Vec<SessionBranch>,
    compactions: Vec<SessionCompaction>,
    problems: Vec<Problem>,
    subagents: Vec<SessionSubagent>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionTurn {
    /// Number of the turn, from 1.
    turn: usize,
    /// Position of the prompt.
    position: usize,
    /// Number of entries, from the prompt on.
    entries: usize,
    /// Line of the prompt.
    line: u64,
    /// The first characters of the prompt.
    prompt: String,
    started_at: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionBranch {
    /// Number of the branch, from 1.
    branch: usize,
    /// Position before which it is announced.
    position: usize,
    entries: usize,
    line: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionCompaction {
    position: usize,
    line: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionSubagent {
    agent_id: String,
    agent_type: Option<String>,
    description: Option<String>,
    tool_use_id: Option<String>,
    /// Number of entries of its conversation.
    entries: usize,
}

pub(crate) async fn session(State(app): State<Arc<App>>, Path(key): Path<String>) -> Result<Json, ApiError> {
    app.blocking(move |app| {
        let path = app.list.resolve(&key)?;
        let row = app.list.row_of(&path);
        let row = row.as_ref().map(|row| ShownSession::new(row, app));
        let resume = ResumeCommand::from_file(&path, app.usual_config_dir.as_deref());
        let resume = resume.and_then(|resume| resume.shell_command()).ok();
        Ok(app.sessions.with(&path, |session| Json::new(&SessionStructure::new(session, row, resume)))?)
    })
    .await
}

impl<'a> SessionStructure<'a> {
    fn new(session: &OpenSession, row: Option<ShownSession<'a>>, resume: Option<String>) -> Self {
        let view = session.view();
        Self {
            session: row,
            path: session.path().display().to_string(),
            resume,
            headline: view.headline(),
            version: session.version(),
            entries: view.len(),
            turns: turns(view),
            branches: view
                .branches()
                .into_iter()
                .map(|branch| SessionBranch {
                    branch: branch.number,
                    position: branch.position,
                    entries: branch.entries,
                    line: branch.line,
                })
                .collect(),
            compactions: view
                .compactions()
                .into_iter()
                .map(|(position, line)| SessionCompaction { position, line })
                .collect(),
            problems: view.problems().to_vec(),
            subagents: session
                .subagents()
                .map(|subagent| SessionSubagent {
                    agent_id: subagent.agent_id.to_string(),
                    agent_type: subagent.agent_type.clone(),
                    description: subagent.description.clone(),
                    tool_use_id: subagent.tool_use_id.as_ref().map(ToString::to_string),
                    entries: view.subagent(subagent.agent_id.as_str()).map_or(0, |view| view.len()),
                })
                .collect(),
        }
    }
}

fn turns(view: SkeletonView<'_>) -> Vec<SessionTurn> {
    let turns = view.turns();
    let row = |(index, turn): (usize, &quipu_conversation::SkeletonTurn)| {
        let node = view.entry(turn.prompt);
        let prompt = node.as_ref().and_then(|node| node.user()).and_then(user_prompt).unwrap_or_default();
        SessionTurn {
            turn: index + 1,
            position: turn.prompt,
            entries: turn.positions.end - turn.prompt,
            line: turn.line,
            prompt: prompt.chars().take(MAX_PROMPT_CHARS).collect(),
            started_at: node.and_then(|node| node.timestamp().map(str::to_owned)),
        }
    };
    turns.iter().enumerate().map(row).collect()
}

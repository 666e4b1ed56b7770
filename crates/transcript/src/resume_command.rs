//! The command that resumes a session in its folder.

use std::path::{Path, PathBuf};

use crate::find::project_folder_name;
use crate::overview::SessionOverview;
use crate::problem::FileError;
use crate::read::load_file;

/// Session id, folder and environment of the command that resumes a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeCommand {
    /// Id of the session.
    pub session_id: String,
    /// Folder to run the agent in.
    pub cwd: String,
    /// Config folder to pass to the agent; `None` if it is the usual one.
    pub config_dir: Option<String>,
}

/// Why there is no command that resumes a session.
#[derive(Debug, thiserror::Error)]
pub enum ResumeCommandError {
    /// The file is that of a subagent.
    #[error("'{id}' is a subagent, not a session")]
    Subagent {
        /// Name of the file without its extension.
        id: String,
    },
    /// Agents do not look for sessions where the file is.
    #[error("'{}' is not in a config folder", path.display())]
    NotInProjects {
        /// Path of the session file.
        path: PathBuf,
    },
    /// No entry has a working directory.
    #[error("the session '{id}' does not say which folder it belongs to")]
    NoFolder {
        /// Id of the session.
        id: String,
    },
    /// A shell or a program would misread the command.
    #[error("the session's id or folder has characters that are not safe in a command")]
    Unsafe,
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
}

impl ResumeCommandError {
    /// Stable code for scripts, such as `resume.no_folder`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Subagent { .. } => "resume.subagent",
            Self::NotInProjects { .. } => "resume.not_in_projects",
            Self::NoFolder { .. } => "resume.no_folder",
            Self::Unsafe => "resume.unsafe",
            Self::File(error) => error.code(),
        }
    }
}

impl ResumeCommand {
    /// Program that resumes sessions.
    pub const PROGRAM: &str = "claude";

    /// The command for a session file in `<config folder>/projects/<project>`. `usual_config_dir` is
    /// the config folder that the agent uses by itself.
    pub fn from_file(path: &Path, usual_config_dir: Option<&Path>) -> Result<Self, ResumeCommandError> {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let session_id = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if session_id.starts_with("agent-") {
            return Err(ResumeCommandError::Subagent { id: session_id });
        }
        let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        let is_projects_folder = |folder: &Path| folder.file_name() == Some("projects".as_ref());
        let config = path.ancestors().nth(3).filter(|_| path.ancestors().nth(2).is_some_and(is_projects_folder));
        let Some(config) = config else { return Err(ResumeCommandError::NotInProjects { path }) };
        let Some(cwd) = session_cwd(&path, &folder)? else {
            return Err(ResumeCommandError::NoFolder { id: session_id });
        };
        let is_unsafe = |text: &str| text.chars().any(char::is_control);
        if is_unsafe(&session_id) || is_unsafe(&cwd) || session_id.starts_with('-') {
            return Err(ResumeCommandError::Unsafe);
        }
        let config_dir = (usual_config_dir != Some(config)).then(|| config.to_string_lossy().into_owned());
        Ok(Self { session_id, cwd, config_dir })
    }

    /// The command for a shell. Fails if a text cannot be quoted.
    pub fn shell_command(&self) -> Result<String, ResumeCommandError> {
        let quote = |text| shlex::try_quote(text).map_err(|_| ResumeCommandError::Unsafe);
        let set = match &self.config_dir {
            Some(dir) => format!("CLAUDE_CONFIG_DIR={} ", quote(dir)?),
            None => String::new(),
        };
        Ok(format!("cd {} && {set}{} --resume {}", quote(&self.cwd)?, Self::PROGRAM, quote(&self.session_id)?))
    }
}

/// Working directory of a session. The first one in the file, unless it does not belong to the
/// project folder and a later one does.
fn session_cwd(path: &Path, folder: &str) -> Result<Option<String>, FileError> {
    let first = SessionOverview::read_both_ends(path)?.cwd;
    if first.as_deref().is_none_or(|cwd| project_folder_name(cwd) == folder) {
        return Ok(first);
    }
    let conversation = load_file(path)?;
    let named = conversation.path().into_iter().filter_map(|node| node.entry.envelope()?.cwd.text());
    let fits = named.map(str::to_owned).find(|cwd| project_folder_name(cwd) == folder);
    Ok(fits.or(first))
}

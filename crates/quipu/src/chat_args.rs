//! Arguments of `quipu chat`.

use std::path::PathBuf;

use clap::Args;

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu chat                                     a new session in this folder
  quipu chat latest                              continue the latest session, in its folder
  quipu chat 05ef09b2 --fork                     continue in a copy of a session
  quipu chat --agent quipu-agent --model opus    with another agent and model
  quipu chat --permission-mode plan --cwd ~/app  plan first, in another folder
  echo 'What is in README.md?' | quipu chat      one prompt a line, answers as plain text

/help in the chat lists commands and keys. Without a terminal, tool calls that need a \
permission are denied.

Exit status: 0 if the chat ended as wanted, 1 if the agent failed or, without a terminal, a turn.";

/// Arguments of `quipu chat`.
#[derive(Debug, Args)]
pub(crate) struct ChatArgs {
    /// A session to continue: its id or a unique prefix of it, `latest`, PROJECT/ID or a file
    /// [default: a new session]
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// The agent to start: a path, or the name of a program
    /// [default: $QUIPU_CLI, or `claude` or `quipu-agent` if they are installed]
    #[arg(long, value_name = "PATH|NAME")]
    pub(crate) agent: Option<PathBuf>,
    /// Name or alias of the model [default: the agent's]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// What runs without asking: default, acceptEdits, plan, auto, dontAsk or bypassPermissions
    #[arg(long, value_name = "MODE")]
    pub(crate) permission_mode: Option<String>,
    /// Continue in a copy of the session, with a new id
    #[arg(long, requires = "session")]
    pub(crate) fork: bool,
    /// Folder to work in [default: the session's folder, or the current one]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
}

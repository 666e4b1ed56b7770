//! `/compact`.

use std::sync::Arc;
use std::time::Instant;

use quipu_transcript::AppendError;
use tokio_util::sync::CancellationToken;

use crate::announce;
use crate::compact::{self, CompactionError};
use crate::init::emit_init;
use crate::main_context::main_context;
use crate::session::Session;
use crate::turn_result;

/// Runs `/compact`.
pub(super) async fn run(session: &Arc<Session>, args: &str, cancel: &CancellationToken) -> Result<(), AppendError> {
    let began = Instant::now();
    // Readers that sort by time show the command before the summary that it asked for.
    let [caveat, command] = super::command_entries("compact", args);
    let talk = main_context(session, None, cancel.clone());
    let done = talk.compact_manually(args).await;
    let text = match done {
        Ok(summed) => {
            emit_init(&talk);
            compact::emit_boundary(session, summed);
            let (line, said) = super::stdout_entries(session, "Compacted ");
            session.record(vec![caveat, command, line]).await?;
            // Instructions and date come with the next prompt.
            talk.record(announce::due_attachments(&talk)).await?;
            session.output.emit(said);
            String::new()
        }
        Err(CompactionError::Append(error)) => return Err(error),
        Err(CompactionError::TooShort) => {
            emit_init(&talk);
            String::new()
        }
        Err(trouble) => {
            emit_init(&talk);
            format!("Not compacted: {}", trouble.message())
        }
    };
    turn_result::emit_or_hold(session, turn_result::local_command_result(session, "compact", &text, began));
    Ok(())
}

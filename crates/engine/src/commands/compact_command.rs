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

/// Runs `/compact` with the user's instructions for the summary.
pub(super) async fn run(session: &Arc<Session>, args: &str, cancel: &CancellationToken) -> Result<(), AppendError> {
    let started_at = Instant::now();
    // Readers that sort by time show the command before the summary that it asked for.
    let [caveat, command] = super::command_entries("compact", args);
    let ctx = main_context(session, None, cancel.clone());
    let done = ctx.compact_manually(args).await;
    let text = match done {
        Ok(compaction) => {
            emit_init(&ctx);
            compact::emit_boundary(session, compaction);
            let (line, stream_entry) = super::stdout_entries(session, "Compacted ");
            session.record(vec![caveat, command, line]).await?;
            // Instructions and date come with the next prompt.
            ctx.record(announce::due_attachments(&ctx)).await?;
            session.output.emit(stream_entry);
            String::new()
        }
        Err(CompactionError::Append(error)) => return Err(error),
        Err(CompactionError::TooShort) => {
            emit_init(&ctx);
            String::new()
        }
        Err(error) => {
            emit_init(&ctx);
            format!("Not compacted: {}", error.message())
        }
    };
    turn_result::emit_or_hold(session, turn_result::local_command_result(session, "compact", &text, started_at));
    Ok(())
}

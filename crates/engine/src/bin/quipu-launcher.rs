//! The internal roles of the agent's program alone, for programs that use the engine as a library.

use std::process::ExitCode;

fn main() -> ExitCode {
    quipu_engine::run_internal_role().unwrap_or(ExitCode::FAILURE)
}

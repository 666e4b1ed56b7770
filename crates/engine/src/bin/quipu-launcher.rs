//! The sandbox launcher alone, for programs that use the engine as a library.

use std::process::ExitCode;

fn main() -> ExitCode {
    quipu_engine::launch_sandbox().unwrap_or(ExitCode::FAILURE)
}

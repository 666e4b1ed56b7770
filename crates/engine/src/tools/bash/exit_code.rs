//! Meaning of exit codes and of missing output.

use crate::permission::program_names;

/// Describes a non-zero exit code that is not an error, such as 1 from `grep`; otherwise `None`.
pub(super) fn interpret_exit_code(command: &str, code: i32) -> Option<&'static str> {
    let program = program_names(command).pop()?;
    match (program.as_str(), code) {
        ("grep" | "egrep" | "fgrep" | "rg", 1) => Some("No matches found"),
        ("diff" | "cmp", 1) => Some("Files differ"),
        ("test" | "[", 1) => Some("Condition is false"),
        ("find", 1) => Some("Some folders could not be read"),
        _ => None,
    }
}

/// Whether a command normally prints nothing on success.
pub(super) fn is_silent_command(command: &str) -> bool {
    let silent = [
        "cd", "chgrp", "chmod", "chown", "cp", "export", "ln", "mkdir", "mv", "rm", "rmdir", "set", "touch", "true",
        "unset", "wait", "sleep",
    ];
    let programs = program_names(command);
    !programs.is_empty() && programs.iter().all(|program| silent.contains(&program.as_str()))
}

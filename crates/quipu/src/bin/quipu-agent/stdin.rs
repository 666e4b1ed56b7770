//! Text piped in with or instead of a prompt.

use std::io::{IsTerminal, Read};

use quipu_engine::EngineError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::print_warning;

/// How long to wait for the first byte on stdin.
const MAX_STDIN_SILENCE: Timespec = Timespec { tv_sec: 3, tv_nsec: 0 };

/// Limit on piped input, in bytes.
const MAX_PIPED_BYTES: u64 = 64 << 20;

/// The prompt of the command line, followed by piped input. An error if there is neither, also if stdin is
/// open and nothing arrives.
pub(crate) fn read_prompt(given: Option<String>) -> Result<String, EngineError> {
    let given = given.filter(|text| !text.trim().is_empty());
    let piped = if std::io::stdin().is_terminal() { None } else { read_piped(given.is_some())? };
    match (given, piped.filter(|text| !text.trim().is_empty())) {
        (Some(prompt), Some(piped)) => Ok(format!("{prompt}\n{piped}")),
        (Some(text), None) | (None, Some(text)) => Ok(text),
        (None, None) => Err(EngineError::NoPrompt),
    }
}

/// The piped input; `None` if nothing arrives in time.
fn read_piped(has_prompt: bool) -> Result<Option<String>, EngineError> {
    let stdin = std::io::stdin();
    // Ready means that the first bytes, the end or an error can be read.
    let ready = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&MAX_STDIN_SILENCE));
    if ready == Ok(0) {
        if has_prompt {
            print_warning(
                "nothing came on stdin for 3 seconds, going on without it; `< /dev/null` says that nothing will",
            );
        }
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let read = stdin.lock().take(MAX_PIPED_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|source| EngineError::Setup { what: "stdin", source })?;
    if bytes.len() as u64 > MAX_PIPED_BYTES {
        let reason = format!("more than {} MiB were piped in", MAX_PIPED_BYTES >> 20);
        return Err(EngineError::InvalidFlag { flag: "stdin", reason });
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

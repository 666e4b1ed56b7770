//! The mode of the terminal in which single keys are read.

use std::io::{self, Write as _};
use std::sync::Once;
use std::thread::{self, ThreadId};

use crossterm::ExecutableCommand as _;
use crossterm::cursor::Show;
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};

/// Single keys are read from the terminal while this value exists. The mode from before is
/// restored when it is dropped, and before the message of a panic is printed.
#[derive(Debug)]
pub(crate) struct KeyMode(());

impl KeyMode {
    pub(crate) fn enter() -> io::Result<Self> {
        restore_on_panic();
        enable_raw_mode()?;
        let mode = Self(());
        io::stdout().execute(EnableBracketedPaste)?;
        Ok(mode)
    }
}

impl Drop for KeyMode {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    let mut stdout = io::stdout();
    // A terminal that has gone away needs no mode.
    let _ = stdout.execute(DisableBracketedPaste).and_then(|stdout| stdout.execute(Show)).map(drop);
    let _ = disable_raw_mode();
    let _ = stdout.flush();
}

/// Installs a panic hook that restores the mode if this thread panics. Panics of other threads do
/// not end the chat.
fn restore_on_panic() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let chat: ThreadId = thread::current().id();
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if thread::current().id() == chat {
                restore();
            }
            previous(info);
        }));
    });
}

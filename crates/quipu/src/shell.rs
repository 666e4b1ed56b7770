//! Signals that end a server, and quoting for shells.

use std::future::Future;
use std::io;

/// Installs handlers for the signals that end a program, and returns a future that is ready
/// when one of them arrives.
pub(crate) fn ended_by_signal() -> io::Result<impl Future<Output = ()>> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        Ok(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        })
    }
    #[cfg(not(unix))]
    Ok(async {
        // Without a handler Ctrl-C ends the program, too.
        let _ = tokio::signal::ctrl_c().await;
    })
}

/// A word quoted for a shell; unchanged if it cannot be quoted.
#[cfg(feature = "capture")]
pub(crate) fn quote(word: &str) -> std::borrow::Cow<'_, str> {
    shlex::try_quote(word).unwrap_or(word.into())
}

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

/// Waits until the terminal that is standard input is closed; for ever if that cannot be found out.
///
/// Usually SIGHUP ends the program then, but not under `nohup` or `setsid`, and crossterm would use a whole core without
/// an end, because it ignores that reading fails.
pub(crate) async fn terminal_closed() {
    #[cfg(unix)]
    {
        use rustix::event::{PollFd, PollFlags, poll};
        use rustix::io::Errno;
        let (sender, closed) = tokio::sync::oneshot::channel();
        let watch = move || {
            let stdin = io::stdin();
            let mut watched = [PollFd::new(&stdin, PollFlags::empty())];
            while poll(&mut watched, None) == Err(Errno::INTR) {}
            if watched[0].revents().contains(PollFlags::HUP) {
                let _ = sender.send(());
            }
        };
        let is_watched = std::thread::Builder::new().name("terminal-watch".to_owned()).spawn(watch).is_ok();
        if is_watched && closed.await.is_ok() {
            return;
        }
    }
    std::future::pending().await
}

/// A word quoted for a shell; unchanged if it cannot be quoted.
#[cfg(feature = "capture")]
pub(crate) fn quote(word: &str) -> std::borrow::Cow<'_, str> {
    shlex::try_quote(word).unwrap_or(word.into())
}

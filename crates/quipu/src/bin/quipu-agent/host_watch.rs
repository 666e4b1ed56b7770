//! Ends the agent when the host that reads its output is gone.

/// Watches stdout on a thread: if its other end is closed, this process gets SIGTERM, which ends the turn,
/// its commands and the agent. A host that was killed cannot interrupt a turn, and a turn that waits for the
/// API writes nothing that would fail.
pub(crate) fn end_with_host() {
    #[cfg(unix)]
    {
        use rustix::event::{PollFd, PollFlags, poll};
        use rustix::io::Errno;
        use rustix::process::{Signal, getpid, kill_process};
        let watch = || {
            let stdout = std::io::stdout();
            let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
            while poll(&mut watched, None) == Err(Errno::INTR) {}
            if watched[0].revents().contains(PollFlags::ERR) {
                let _ = kill_process(getpid(), Signal::TERM);
            }
        };
        // Without the thread the agent ends after its turn.
        let _ = std::thread::Builder::new().name("host-watch".to_owned()).spawn(watch);
    }
}

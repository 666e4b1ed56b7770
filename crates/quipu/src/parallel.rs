//! The same work on many files, on all cores, with a progress bar when it takes long.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::args::Global;

/// Works on each file; the results come in the order of the files.
pub(crate) fn each<F: Sync, T: Send>(
    files: &[F],
    what: &'static str,
    global: &Global,
    work: impl Fn(&F) -> T + Sync,
) -> Vec<T> {
    let bar = bar(files.len(), what, global);
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(files.len().max(1));
    let run = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = files.get(at) else { return done };
            done.push((at, work(file)));
            bar.inc(1);
        }
    };
    let mut results: Vec<(usize, T)> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(run)).collect();
        handles.into_iter().filter_map(|handle| handle.join().ok()).flatten().collect()
    });
    bar.finish_and_clear();
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Drawn on stderr, only when that is a terminal and there is something to wait for.
fn bar(files: usize, what: &'static str, global: &Global) -> ProgressBar {
    if global.quiet || files < 2 {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(files as u64);
    if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} files") {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

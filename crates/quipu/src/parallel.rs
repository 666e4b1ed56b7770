//! Processes many files on all cores, with a progress bar.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;

use crate::global::GlobalArgs;

/// Calls `work` for each file and returns the results in the order of the files. A panic in
/// `work` ends the command: a missing result must not look like an empty one.
pub(crate) fn map_files<F: Sync, T: Send>(
    files: &[F],
    what: &'static str,
    global: &GlobalArgs,
    work: impl Fn(&F) -> T + Sync,
) -> Vec<T> {
    let bar = file_progress_bar(files.len(), what, global);
    let step = |file: &F| {
        let result = work(file);
        bar.inc(1);
        result
    };
    let results = files.par_iter().map(step).collect();
    bar.finish_and_clear();
    results
}

/// A progress bar on stderr; hidden with `--quiet`, for a single file, or if stderr is not a
/// terminal.
fn file_progress_bar(files: usize, what: &'static str, global: &GlobalArgs) -> ProgressBar {
    // A hidden bar has no thread that draws it.
    if global.quiet || files < 2 || !std::io::stderr().is_terminal() {
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Args;

    fn quiet() -> GlobalArgs {
        Args::parse_from(["quipu", "-q"]).global
    }

    #[test]
    fn results_come_in_the_order_of_the_files() {
        let files: Vec<u32> = (0..500).collect();
        assert_eq!(map_files(&files, "", &quiet(), |n| n * 2), files.iter().map(|n| n * 2).collect::<Vec<_>>());
    }

    #[test]
    #[should_panic(expected = "worker 3")]
    fn a_panic_of_one_worker_is_not_swallowed() {
        map_files(&[1, 2, 3, 4], "", &quiet(), |n| assert!(*n != 3, "worker {n}"));
    }
}

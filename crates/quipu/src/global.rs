//! The options that every command takes.

use std::path::PathBuf;

use clap::{ArgAction, Args as ClapArgs, ValueEnum};

#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Common options")]
pub(crate) struct GlobalArgs {
    /// Folder with the agent's sessions; may be repeated
    /// [default: $CLAUDE_CONFIG_DIR, then ~/.claude and ~/.config/claude]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) claude_dir: Vec<PathBuf>,
    /// Print one JSON document; errors are JSON on stderr
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// When to use colours; `auto` means on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_enum, default_value_t = ColorWhen::Auto, value_name = "WHEN")]
    pub(crate) color: ColorWhen,
    /// Do not page long output
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,
    /// Print nothing but results and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Also print where sessions were read from and how long it took
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    /// Print help
    #[arg(short, long, global = true, action = ArgAction::Help)]
    help: Option<bool>,
}

// Variants without documentation keep the help compact: one line an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    Auto,
    Always,
    Never,
}

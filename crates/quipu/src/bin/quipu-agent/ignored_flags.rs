//! Flags of `claude` that have no effect here: they are for terminals, browsers, other machines and features
//! that are not implemented.

use clap::Args;

use crate::print_warning;

/// Flags that are accepted with a warning.
#[derive(Debug, Args)]
pub(crate) struct IgnoredFlags {
    #[arg(long, hide = true)]
    ax_screen_reader: bool,
    #[arg(long, alias = "background", hide = true)]
    bg: bool,
    #[arg(long, hide = true)]
    brief: bool,
    #[arg(long, num_args = 1.., hide = true)]
    channels: Vec<String>,
    #[arg(long, hide = true)]
    chrome: bool,
    #[arg(long, num_args = 0..=1, hide = true)]
    cloud: Option<Option<String>>,
    #[arg(long, hide = true)]
    desktop: bool,
    #[arg(long, hide = true)]
    enable_auto_mode: bool,
    #[arg(long, hide = true)]
    environment: Option<String>,
    #[arg(long, num_args = 1.., hide = true)]
    file: Vec<String>,
    #[arg(long, num_args = 0..=1, hide = true)]
    from_pr: Option<Option<String>>,
    #[arg(long, hide = true)]
    ide: bool,
    #[arg(long, hide = true)]
    no_chrome: bool,
    #[arg(long, hide = true)]
    plugin_url: Vec<String>,
    #[arg(long, alias = "rc", num_args = 0..=1, hide = true)]
    remote_control: Option<Option<String>>,
    #[arg(long, hide = true)]
    remote_control_session_name_prefix: Option<String>,
    #[arg(long, num_args = 0..=1, hide = true)]
    teleport: Option<Option<String>>,
    #[arg(long, num_args = 0..=1, require_equals = true, hide = true)]
    tmux: Option<Option<String>>,
}

impl IgnoredFlags {
    /// Prints one warning that lists the given flags.
    pub(crate) fn warn_if_given(&self) {
        let flags = [
            ("--ax-screen-reader", self.ax_screen_reader),
            ("--bg", self.bg),
            ("--brief", self.brief),
            ("--channels", !self.channels.is_empty()),
            ("--chrome", self.chrome),
            ("--cloud", self.cloud.is_some()),
            ("--desktop", self.desktop),
            ("--enable-auto-mode", self.enable_auto_mode),
            ("--environment", self.environment.is_some()),
            ("--file", !self.file.is_empty()),
            ("--from-pr", self.from_pr.is_some()),
            ("--ide", self.ide),
            ("--no-chrome", self.no_chrome),
            ("--plugin-url", !self.plugin_url.is_empty()),
            ("--remote-control", self.remote_control.is_some()),
            ("--remote-control-session-name-prefix", self.remote_control_session_name_prefix.is_some()),
            ("--teleport", self.teleport.is_some()),
            ("--tmux", self.tmux.is_some()),
        ];
        let given: Vec<&str> = flags.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
        if !given.is_empty() {
            print_warning(&format!("not supported here, ignored: {}", given.join(", ")));
        }
    }
}

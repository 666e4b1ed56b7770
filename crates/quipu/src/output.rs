//! Prints results on stdout, through a pager if they are longer than the terminal.

use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};

use anstyle::Style;
use anyhow::Result;
use serde::Serialize;

use crate::environment;
use crate::global::{ColorWhen, GlobalArgs};

/// Properties of stdout that decide how results are printed.
#[derive(Debug)]
pub(crate) struct Output {
    /// Whether to use colours on stdout.
    pub(crate) color: bool,
    /// Width for prose: that of the terminal, within 40 to 120 columns; 100 in a pipe.
    pub(crate) width: usize,
    /// Width of the terminal; `None` in a pipe, where tables are not cut.
    pub(crate) columns: Option<usize>,
    /// Whether stdout is a terminal.
    pub(crate) is_terminal: bool,
    height: Option<usize>,
    can_page: bool,
}

impl Output {
    pub(crate) fn new(global: &GlobalArgs) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let allowed = environment::var("NO_COLOR").is_none_or(|v| v.is_empty())
            && environment::var("TERM").is_none_or(|term| term != "dumb");
        let color = match global.color {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto => is_terminal && allowed,
        };
        let choice = if color { anstream::ColorChoice::Always } else { anstream::ColorChoice::Never };
        choice.write_global();
        let size = terminal_size::terminal_size();
        Self {
            color,
            width: size.map_or(100, |(w, _)| usize::from(w.0)).clamp(40, 120),
            columns: size.filter(|_| is_terminal).map(|(w, _)| usize::from(w.0)),
            is_terminal,
            height: size.map(|(_, h)| usize::from(h.0)),
            // A terminal without cursor movement cannot page.
            can_page: is_terminal && !global.no_pager && environment::var("TERM").is_none_or(|term| term != "dumb"),
        }
    }

    /// Output without colours, pager and limit on the width.
    pub(crate) fn plain() -> Self {
        Self { color: false, width: 100, columns: None, is_terminal: false, height: None, can_page: false }
    }

    /// The given style, or no style without colours.
    pub(crate) fn style(&self, style: Style) -> Style {
        if self.color { style } else { Style::new() }
    }

    /// Prints text, through a pager if it is longer than the terminal.
    pub(crate) fn print_text(&self, text: &str) -> Result<()> {
        let long = self.height.is_some_and(|height| text.lines().count() > height);
        if !(self.can_page && long && show_in_pager(text)?) {
            self.print_bytes(text.as_bytes())?;
        }
        Ok(())
    }

    /// Prints one JSON document.
    pub(crate) fn print_json<T: Serialize + ?Sized>(&self, value: &T) -> Result<()> {
        let mut text = serde_json::to_string(value)?;
        text.push('\n');
        self.print_bytes(text.as_bytes())
    }

    /// Prints bytes unchanged and flushes stdout.
    pub(crate) fn print_bytes(&self, bytes: &[u8]) -> Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()?;
        Ok(())
    }
}

/// Shows text in `$PAGER` or `less`; false if no pager could be started.
#[expect(clippy::disallowed_methods, reason = "the pager ends with the command, which waits for it")]
fn show_in_pager(text: &str) -> io::Result<bool> {
    let chosen = environment::text_var("PAGER").unwrap_or_else(|| "less".to_owned());
    let mut words = chosen.split_whitespace();
    let Some(program) = words.next().filter(|program| *program != "cat") else { return Ok(false) };
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped());
    if environment::var("LESS").is_none() {
        // Quit if the text fits, keep colours, leave the text on the screen.
        command.env("LESS", "FRX");
    }
    if environment::var("LESSCHARSET").is_none() {
        // The text is UTF-8, whatever the locale.
        command.env("LESSCHARSET", "utf-8");
    }
    let Ok(mut child) = command.spawn() else { return Ok(false) };
    if let Some(mut stdin) = child.stdin.take() {
        match stdin.write_all(text.as_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
            _ => {}
        }
    }
    child.wait()?;
    Ok(true)
}

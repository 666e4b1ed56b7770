//! The colours: the terminal's own sixteen, which fit its background.

use anstyle::{AnsiColor, Style};

use crate::code::Tone;

pub(super) const PLAIN: Style = Style::new();
pub(super) const BOLD: Style = PLAIN.bold();
pub(super) const DIM: Style = PLAIN.dimmed();
pub(super) const GOOD: Style = AnsiColor::Green.on_default();
pub(super) const BAD: Style = AnsiColor::Red.on_default();
pub(super) const WAITING: Style = AnsiColor::Yellow.on_default();
pub(super) const YOU: Style = AnsiColor::Cyan.on_default().bold();
pub(super) const MODEL: Style = AnsiColor::Magenta.on_default().bold();
pub(super) const CODE: Style = AnsiColor::Cyan.on_default();
pub(super) const LINK: Style = AnsiColor::Blue.on_default().underline();
pub(super) const TAG: Style = AnsiColor::Blue.on_default();

/// The style of a piece of code.
pub(super) fn tone(tone: Tone) -> Style {
    match tone {
        Tone::Plain => PLAIN,
        Tone::Comment => DIM,
        Tone::Text | Tone::Added => GOOD,
        Tone::Number | Tone::Type => CODE,
        Tone::Keyword => AnsiColor::Magenta.on_default(),
        Tone::Function | Tone::Name => AnsiColor::Blue.on_default(),
        Tone::Removed => BAD,
    }
}

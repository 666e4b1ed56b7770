//! Styles, from the terminal's own sixteen colours, which suit its background.

use anstyle::{AnsiColor, Style};

use crate::highlight::TokenKind;

pub(super) const PLAIN: Style = Style::new();
pub(super) const BOLD: Style = PLAIN.bold();
pub(super) const DIM: Style = PLAIN.dimmed();
pub(super) const SUCCESS: Style = AnsiColor::Green.on_default();
pub(super) const ERROR: Style = AnsiColor::Red.on_default();
pub(super) const PENDING: Style = AnsiColor::Yellow.on_default();
pub(super) const USER: Style = AnsiColor::Cyan.on_default().bold();
pub(super) const MODEL: Style = AnsiColor::Magenta.on_default().bold();
pub(super) const CODE: Style = AnsiColor::Cyan.on_default();
pub(super) const LINK: Style = AnsiColor::Blue.on_default().underline();
pub(super) const TAG: Style = AnsiColor::Blue.on_default();

/// Style of a token of source code.
pub(super) fn token_style(kind: TokenKind) -> Style {
    match kind {
        TokenKind::Plain => PLAIN,
        TokenKind::Comment => DIM,
        TokenKind::StringLiteral | TokenKind::Added => SUCCESS,
        TokenKind::Number | TokenKind::Type => CODE,
        TokenKind::Keyword => AnsiColor::Magenta.on_default(),
        TokenKind::Function | TokenKind::Key => AnsiColor::Blue.on_default(),
        TokenKind::Removed => ERROR,
    }
}

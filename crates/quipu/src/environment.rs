//! The environment of the commands.

use std::ffi::OsString;
use std::path::PathBuf;

/// A variable; `None` if it is not set.
#[expect(clippy::disallowed_methods, reason = "the one place where the commands read variables")]
pub(crate) fn var(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// A variable as text; `None` if it is not set or not Unicode.
pub(crate) fn text_var(name: &str) -> Option<String> {
    var(name)?.into_string().ok()
}

/// The home folder of the user; `None` if it is not known.
#[expect(clippy::disallowed_methods, reason = "the one place where the commands look up the home folder")]
pub(crate) fn home_dir() -> Option<PathBuf> {
    std::env::home_dir()
}

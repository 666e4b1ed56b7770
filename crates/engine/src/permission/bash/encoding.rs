//! The encoding in which the session's shell reads commands.
//!
//! In Shift JIS, GBK and others, signs such as `|` and `{` may be the second byte of a character, so bash may join
//! them to the byte before.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Whether variables choose no encoding, ASCII or UTF-8.
pub(super) fn is_known(env: &BTreeMap<OsString, OsString>) -> bool {
    let values = ["LC_ALL", "LC_CTYPE", "LANG"].iter().filter_map(|name| env.get(OsStr::new(name)));
    let Some(locale) = values.into_iter().find(|value| !value.is_empty()) else { return true };
    let locale = locale.to_string_lossy().to_lowercase();
    let name = locale.split('@').next().unwrap_or_default();
    ["c", "posix", "utf-8", "utf8"].contains(&name)
        || name.starts_with("c.")
        || name.ends_with(".utf-8")
        || name.ends_with(".utf8")
}

//! Text that must not be shown.

use std::fmt;

/// A key, a token or a header's value: never in `Debug`, never in an error.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The text itself, to send it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// The text with every place this secret stands in masked.
    #[cfg(feature = "client")]
    pub(crate) fn mask_in(&self, text: String) -> String {
        // A short value would mask ordinary words; no key is that short.
        if self.0.len() < 8 || !text.contains(&self.0) { text } else { text.replace(&self.0, "[secret]") }
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

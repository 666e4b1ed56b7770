//! Text that must not appear in output.

use std::fmt;

/// A key, a token or the value of a header. `Debug` and errors do not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The text itself, for sending.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// `text` with every occurrence of this secret replaced by `[secret]`.
    #[cfg(feature = "client")]
    pub(crate) fn mask_in(&self, text: String) -> String {
        // Replacing a short value would mask ordinary words; no key is that short.
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

//! Runs the user's editor on a text.

use std::io::{self, Write as _};
use std::process::Command;

/// Lets the user edit a text in the given editor, and returns the new text. Blocks until the
/// editor ends. The text is in a file that only the user can read.
#[expect(clippy::disallowed_methods, reason = "the chat waits for the editor to end")]
pub(crate) fn edit(text: &str, editor: &str) -> io::Result<String> {
    let mut file = tempfile::Builder::new().prefix("quipu-input-").suffix(".json").tempfile()?;
    file.write_all(text.as_bytes())?;
    file.flush()?;
    let no_command = || io::Error::new(io::ErrorKind::InvalidInput, format!("`{editor}` is no command"));
    let mut words = shlex::split(editor).ok_or_else(no_command)?.into_iter();
    let mut command = Command::new(words.next().ok_or_else(no_command)?);
    let status = command.args(words).arg(file.path()).status()?;
    if !status.success() {
        return Err(io::Error::other(format!("`{editor}` failed: {status}")));
    }
    // Editors may replace the file.
    std::fs::read_to_string(file.path())
}

#[cfg(test)]
mod tests {
    use super::edit;

    #[test]
    fn the_command_line_may_have_arguments() {
        assert_eq!(edit("{\"a\": 1}", "sed -i s/1/2/").unwrap(), "{\"a\": 2}");
    }

    #[test]
    fn an_editor_that_fails_or_does_not_exist_is_an_error() {
        assert!(edit("x", "false").unwrap_err().to_string().starts_with("`false` failed"));
        assert!(edit("x", "").is_err() && edit("x", "no-such-editor-here").is_err());
    }
}

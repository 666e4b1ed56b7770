//! Tells what a user typed from what the program put around it.
//!
//! Slash commands, shell commands, their output, caveats, reminders and
//! notifications are recorded as tagged text inside ordinary messages:
//!
//! ```text
//! <command-name>/greet</command-name>      elements at the start,
//! <command-args>Bob</command-args>         one after another
//! and please be brief                      what the user typed
//!
//! <system-reminder>…</system-reminder>     reminders at the end, each on its own line
//! ```
//!
//! The program writes them nowhere else, so a tag in the middle of a text, in a
//! sentence, in an open code fence, or without its end is the user's own text.
//! Bodies are not escaped: an element ends at its first closing tag.

#[cfg(test)]
mod tests;

/// What kind of text the program wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextTag {
    /// The old wrapper around a command's other elements.
    LocalCommand,
    /// The command's name, usually with its slash.
    CommandName,
    /// What was shown while the command ran.
    CommandMessage,
    /// What the user typed after the command's name.
    CommandArgs,
    /// The prompt a custom command expanded to, in old files.
    CommandContents,
    /// What a command printed.
    CommandStdout,
    /// What a command printed as an error.
    CommandStderr,
    /// The note that commands are not meant for the model, tagged or (old) as a bare line.
    Caveat,
    /// A shell command that the user typed.
    BashInput,
    /// What the shell command printed.
    BashStdout,
    /// What the shell command printed as an error.
    BashStderr,
    /// A note to the model.
    SystemReminder,
    /// News of a background task.
    TaskNotification,
    /// Something the user asked to be remembered.
    UserMemoryInput,
    /// The file open in the user's editor.
    IdeOpenedFile,
    /// The text selected in the user's editor.
    IdeSelection,
}

impl TextTag {
    /// Every tag of this enum.
    pub const ALL: [Self; 16] = [
        Self::LocalCommand,
        Self::CommandName,
        Self::CommandMessage,
        Self::CommandArgs,
        Self::CommandContents,
        Self::CommandStdout,
        Self::CommandStderr,
        Self::Caveat,
        Self::BashInput,
        Self::BashStdout,
        Self::BashStderr,
        Self::SystemReminder,
        Self::TaskNotification,
        Self::UserMemoryInput,
        Self::IdeOpenedFile,
        Self::IdeSelection,
    ];

    /// Returns the name between the angle brackets.
    pub fn name(self) -> &'static str {
        match self {
            Self::LocalCommand => "local-command",
            Self::CommandName => "command-name",
            Self::CommandMessage => "command-message",
            Self::CommandArgs => "command-args",
            Self::CommandContents => "command-contents",
            Self::CommandStdout => "local-command-stdout",
            Self::CommandStderr => "local-command-stderr",
            Self::Caveat => "local-command-caveat",
            Self::BashInput => "bash-input",
            Self::BashStdout => "bash-stdout",
            Self::BashStderr => "bash-stderr",
            Self::SystemReminder => "system-reminder",
            Self::TaskNotification => "task-notification",
            Self::UserMemoryInput => "user-memory-input",
            Self::IdeOpenedFile => "ide_opened_file",
            Self::IdeSelection => "ide_selection",
        }
    }
}

/// One part of a message's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextPart<'a> {
    /// Text that the user typed.
    Typed(&'a str),
    /// Text that the program wrote.
    Tagged {
        /// Its kind.
        tag: TextTag,
        /// What is between the tags, or the whole bare caveat.
        body: &'a str,
        /// The element with its tags and the blank space that sets it apart.
        raw: &'a str,
    },
}

impl<'a> TextPart<'a> {
    /// Returns the part's exact text; those of all parts together are the message.
    pub fn raw(&self) -> &'a str {
        match *self {
            Self::Typed(text) => text,
            Self::Tagged { raw: whole, .. } => whole,
        }
    }
}

/// Splits a text into what the program wrote and what the user typed.
///
/// There is at most one typed part: elements come before it, reminders after it.
///
/// ```
/// use quipu_message::tagged_text::{TextPart, TextTag, split_parts};
///
/// let parts = split_parts("<bash-input>ls</bash-input>\nwhat is this?");
/// let (tag, body) = (TextTag::BashInput, "ls");
/// let raw = "<bash-input>ls</bash-input>\n";
/// assert_eq!(parts, [TextPart::Tagged { tag, body, raw }, TextPart::Typed("what is this?")]);
/// ```
pub fn split_parts(text: &str) -> Vec<TextPart<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((tag, body, len)) = parse_element(rest.trim_ascii_start()) {
        let end = rest.len() - rest.trim_ascii_start().len() + len;
        let (whole, after) = rest.split_at(end + blank_len(&rest[end..]));
        parts.push(TextPart::Tagged { tag, body, raw: whole });
        rest = after;
    }
    let (typed, reminders) = split_reminders(rest);
    if !typed.is_empty() {
        parts.push(TextPart::Typed(typed));
    }
    parts.extend(reminders);
    parts
}

/// Returns what the user typed outside every element; empty when that is nothing.
///
/// Commands are apart: see [`slash_command`] and [`bash_input`].
pub fn typed_text(text: &str) -> &str {
    let typed = |part| match part {
        TextPart::Typed(text) => Some(text),
        TextPart::Tagged { .. } => None,
    };
    split_parts(text).into_iter().find_map(typed).unwrap_or_default()
}

/// A slash command that the user ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InvokedCommand<'a> {
    /// Name of the command as written, usually with a slash.
    pub name: &'a str,
    /// Arguments as typed after the name.
    pub args: Option<&'a str>,
    /// Text that was shown while the command ran.
    pub message: Option<&'a str>,
    /// The prompt it expanded to.
    pub contents: Option<&'a str>,
}

impl InvokedCommand<'_> {
    /// Returns the command as the user typed it, such as `/greet Bob`.
    pub fn command_line(&self) -> String {
        match self.args.map(str::trim).filter(|args| !args.is_empty()) {
            Some(args) => format!("{} {args}", self.name),
            None => self.name.to_owned(),
        }
    }
}

/// Returns the slash command that a text records.
pub fn slash_command(text: &str) -> Option<InvokedCommand<'_>> {
    let elements = list_elements(text);
    Some(InvokedCommand {
        name: find_body(&elements, TextTag::CommandName).map(str::trim).filter(|name| !name.is_empty())?,
        args: find_body(&elements, TextTag::CommandArgs),
        message: find_body(&elements, TextTag::CommandMessage),
        contents: find_body(&elements, TextTag::CommandContents),
    })
}

/// Returns the shell command that a text records.
pub fn bash_input(text: &str) -> Option<&str> {
    find_body(&list_elements(text), TextTag::BashInput)
}

/// What a slash command or a shell command printed. Absent and empty differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CommandOutput<'a> {
    /// Its ordinary output.
    pub stdout: Option<&'a str>,
    /// Its error output.
    pub stderr: Option<&'a str>,
}

/// Returns the command output that a text records.
pub fn command_output(text: &str) -> Option<CommandOutput<'_>> {
    let elements = list_elements(text);
    let either = |a, b| find_body(&elements, a).or_else(|| find_body(&elements, b));
    let output = CommandOutput {
        stdout: either(TextTag::CommandStdout, TextTag::BashStdout),
        stderr: either(TextTag::CommandStderr, TextTag::BashStderr),
    };
    Some(output).filter(|output| *output != CommandOutput::default())
}

/// How the bare caveats of old files begin. Other paragraphs may begin with the word.
const BARE_CAVEAT_PREFIXES: [&str; 2] = [
    "Caveat: The messages below were generated by the user while running local commands",
    "Caveat: Claude doesn't see your local commands",
];

/// How the line begins that may follow a task notification.
const NOTIFICATION_TRAILER_PREFIXES: [&str; 2] =
    ["\nRead the output file to retrieve the result: ", "\nFull transcript available at: "];

/// Lists tags and bodies, with those inside the old wrapper in its place. A
/// wrapper's body cannot hold a closed wrapper, so one level is all there is.
fn list_elements(text: &str) -> Vec<(TextTag, &str)> {
    let mut elements = Vec::new();
    for part in split_parts(text) {
        match part {
            TextPart::Tagged { tag: TextTag::LocalCommand, body, .. } => {
                elements.extend(split_parts(body).into_iter().filter_map(tag_and_body));
            }
            part => elements.extend(tag_and_body(part)),
        }
    }
    elements
}

fn tag_and_body(part: TextPart<'_>) -> Option<(TextTag, &str)> {
    match part {
        TextPart::Tagged { tag, body, .. } => Some((tag, body)),
        TextPart::Typed(_) => None,
    }
}

fn find_body<'a>(elements: &[(TextTag, &'a str)], tag: TextTag) -> Option<&'a str> {
    elements.iter().find(|element| element.0 == tag).map(|element| element.1)
}

/// Reads the element that a text begins with: tag, body and length.
fn parse_element(text: &str) -> Option<(TextTag, &str, usize)> {
    if BARE_CAVEAT_PREFIXES.iter().any(|caveat| text.starts_with(caveat)) {
        let line = first_line(text);
        return Some((TextTag::Caveat, line.trim_ascii_end(), line.len()));
    }
    let (tag, inner) = parse_opening_tag(text)?;
    let (body, mut after) = inner.split_once(&format!("</{}>", tag.name()))?;
    if tag == TextTag::TaskNotification
        && NOTIFICATION_TRAILER_PREFIXES.iter().any(|pointer| after.starts_with(pointer))
    {
        after = &after[1 + first_line(&after[1..]).len()..];
    }
    // Prose on the line of the closing tag means that the user quotes the tag.
    let next = after.trim_start_matches([' ', '\t']);
    let ends = next.is_empty() || next.starts_with(['\r', '\n']) || parse_opening_tag(next).is_some();
    ends.then_some((tag, body, text.len() - after.len()))
}

/// Reads the opening tag that a text begins with, and returns what follows it.
fn parse_opening_tag(text: &str) -> Option<(TextTag, &str)> {
    let text = text.strip_prefix('<')?;
    TextTag::ALL.into_iter().find_map(|tag| Some((tag, text.strip_prefix(tag.name())?.strip_prefix('>')?)))
}

fn first_line(text: &str) -> &str {
    text.split_once('\n').map_or(text, |(line, _)| line)
}

/// Measures the blank space after an element, without the indent of a line that follows.
fn blank_len(text: &str) -> usize {
    let blank = text.len() - text.trim_ascii_start().len();
    if blank == text.len() { blank } else { text[..blank].rfind('\n').map_or(0, |at| at + 1) }
}

/// Splits off the reminders at the end of a text, each on lines of its own.
fn split_reminders(text: &str) -> (&str, Vec<TextPart<'_>>) {
    let mut reminders = Vec::new();
    let mut typed = text;
    while let Some((start, body)) = last_reminder(typed) {
        let before = typed[..start].trim_ascii_end();
        let whole = &typed[before.len()..];
        reminders.push(TextPart::Tagged { tag: TextTag::SystemReminder, body, raw: whole });
        typed = before;
    }
    if !reminders.is_empty() && ends_in_code_fence(typed) {
        return (text, Vec::new());
    }
    reminders.reverse();
    (typed, reminders)
}

/// Finds the reminder that ends a text: where its line starts, and its body.
fn last_reminder(text: &str) -> Option<(usize, &str)> {
    const OPEN: &str = "\n<system-reminder>";
    const CLOSE: &str = "</system-reminder>";
    let inner = text.trim_ascii_end().strip_suffix(CLOSE)?;
    let floor = inner.rfind(CLOSE).map_or(0, |at| at + CLOSE.len());
    let start = floor + inner[floor..].rfind(OPEN)?;
    Some((start, &inner[start + OPEN.len()..]))
}

/// Tells whether a text ends inside a Markdown code fence.
fn ends_in_code_fence(text: &str) -> bool {
    let mut open = None;
    for line in text.lines() {
        let line = line.trim_ascii_start();
        let fence = ["```", "~~~"].into_iter().find(|fence| line.starts_with(fence));
        match open {
            None => open = fence,
            Some(_) if fence == open => open = None,
            Some(_) => {}
        }
    }
    open.is_some()
}

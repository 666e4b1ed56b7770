//! The slash commands of a session, for listings.

use quipu_message::control::response::SlashCommand;

use crate::definitions::Definitions;

/// Commands that run without the model: name, description, hint for arguments.
pub(crate) const LOCAL_COMMANDS: [(&str, &str, &str); 7] = [
    ("compact", "Replace the conversation by a summary of it", "[what to keep]"),
    ("clear", "Begin a new conversation", ""),
    ("context", "Show what fills the context", ""),
    ("cost", "Show what the session used", ""),
    ("usage", "Show what the session used", ""),
    ("model", "Change the model", "[model]"),
    ("rename", "Give the session a title", "[title]"),
];

/// The names of all commands, without the slash.
pub(crate) fn command_names(definitions: &Definitions) -> Vec<String> {
    let local = LOCAL_COMMANDS.iter().map(|(name, ..)| (*name).to_owned());
    definitions.saved_prompts.keys().cloned().chain(local).collect()
}

/// All commands, for the control protocol.
pub(crate) fn list_commands(definitions: &Definitions) -> Vec<SlashCommand> {
    let row = |name: &str, description: &str, hint: &str, builtin: bool| SlashCommand {
        name: name.to_owned(),
        description: description.to_owned(),
        argument_hint: hint.to_owned(),
        builtin: builtin.then_some(true).into(),
        ..SlashCommand::default()
    };
    let saved = definitions
        .saved_prompts
        .values()
        .map(|saved| row(&saved.name, &saved.description, &saved.argument_hint, false));
    saved.chain(LOCAL_COMMANDS.iter().map(|(name, about, hint)| row(name, about, hint, true))).collect()
}

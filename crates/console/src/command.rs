//! Commands that the user types with a slash.

use quipu_sdk::control::response::InitializeResponse;

/// A command that the chat runs itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LocalCommand {
    /// Ends the chat.
    Exit,
    /// Lists commands and keys.
    Help,
    /// Changes the model, or lists the models.
    Model(Option<String>),
    /// Changes the permission mode, or lists the modes.
    Mode(Option<String>),
}

impl LocalCommand {
    /// The command of an input; `None` if the input is for the agent.
    pub(crate) fn parse(input: &str) -> Option<Self> {
        let (name, argument) = match input.trim().split_once(char::is_whitespace) {
            Some((name, argument)) => (name, Some(argument.trim().to_owned())),
            None => (input.trim(), None),
        };
        match (name, argument) {
            ("/exit" | "/quit", None) => Some(Self::Exit),
            ("/help", None) => Some(Self::Help),
            ("/model", model) => Some(Self::Model(model)),
            ("/mode", mode) => Some(Self::Mode(mode)),
            _ => None,
        }
    }
}

/// A command or an argument with its description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedChoice {
    pub(crate) name: String,
    pub(crate) description: String,
}

impl NamedChoice {
    fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self { name: name.into(), description: description.into() }
    }
}

/// The commands of a chat and the values of their arguments.
#[derive(Debug, Default)]
pub(crate) struct CommandList {
    /// Commands with the slash, sorted by name.
    pub(crate) commands: Vec<NamedChoice>,
    pub(crate) models: Vec<NamedChoice>,
    pub(crate) modes: Vec<NamedChoice>,
}

impl CommandList {
    /// The chat's own commands and those of the agent.
    pub(crate) fn new(agent: &InitializeResponse) -> Self {
        let own = [
            ("/exit", "End the chat"),
            ("/help", "List commands and keys"),
            ("/mode", "Change the permission mode"),
            ("/model", "Change the model"),
        ];
        let mut commands: Vec<_> = own.map(|(name, description)| NamedChoice::new(name, description)).into();
        for command in &agent.commands {
            let name = format!("/{}", command.name);
            if !commands.iter().any(|known| known.name == name) {
                commands.push(NamedChoice::new(name, &*command.description));
            }
        }
        commands.sort_by(|a, b| a.name.cmp(&b.name));
        let models = agent.models.get().into_iter().flatten();
        let models = models.map(|model| NamedChoice::new(&*model.value, model.description.clone())).collect();
        let modes = [
            ("default", "Asks before edits and commands"),
            ("acceptEdits", "Edits files without asking"),
            ("plan", "Reads and plans, changes nothing"),
            ("auto", "Allows what is safe without asking"),
            ("dontAsk", "Denies what would need approval"),
            ("bypassPermissions", "Allows everything"),
        ];
        let modes = modes.map(|(name, description)| NamedChoice::new(name, description)).into();
        Self { commands, models, modes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_the_chat_are_told_from_those_of_the_agent() {
        assert_eq!(LocalCommand::parse(" /exit "), Some(LocalCommand::Exit));
        assert_eq!(LocalCommand::parse("/model opus"), Some(LocalCommand::Model(Some("opus".into()))));
        assert_eq!(LocalCommand::parse("/mode"), Some(LocalCommand::Mode(None)));
        for agent in ["/compact", "/compact keep the names", "/exit now", "exit", "/modelling"] {
            assert_eq!(LocalCommand::parse(agent), None, "{agent}");
        }
    }
}

//! `[chat]` in config.toml.

use std::time::Duration;

use toml_edit::{DocumentMut, Item};

use crate::app::App;
use crate::config_file::read_document;
use crate::error::ApiError;

/// Settings of chats; the page may choose others for a chat.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChatSettings {
    /// Name of the agent, or an absolute path; the first usable one if `None`.
    pub(crate) agent: Option<String>,
    /// Model; the agent chooses if `None`.
    pub(crate) model: Option<String>,
    pub(crate) permission_mode: String,
    /// How long a chat without a page and without a turn runs.
    pub(crate) idle_time: Duration,
    /// How long a prompt waits while no page is connected.
    pub(crate) prompt_timeout: Duration,
}

impl Default for ChatSettings {
    fn default() -> Self {
        Self {
            agent: None,
            model: None,
            permission_mode: "default".to_owned(),
            idle_time: Duration::from_secs(30 * 60),
            prompt_timeout: Duration::from_secs(60),
        }
    }
}

impl ChatSettings {
    /// Reads the settings of a server. Fails if the file is not valid.
    pub(crate) fn load(app: &App) -> Result<Self, ApiError> {
        match &app.config_file {
            Some(path) => Ok(Self::from_document(&read_document(path)?)),
            None => Ok(Self::default()),
        }
    }

    /// Reads the settings; values of another type are ignored.
    fn from_document(document: &DocumentMut) -> Self {
        let mut settings = Self::default();
        let text = |name: &str| document.get("chat")?.get(name)?.as_str().map(str::to_owned);
        let number = |name: &str| as_number(document.get("chat")?.get(name)?);
        settings.agent = text("agent");
        settings.model = text("model");
        if let Some(mode) = text("permission_mode") {
            settings.permission_mode = mode;
        }
        if let Some(time) = number("idle_minutes").and_then(|minutes| Duration::try_from_secs_f64(minutes * 60.0).ok())
        {
            settings.idle_time = time;
        }
        if let Some(time) = number("prompt_timeout_seconds").and_then(|time| Duration::try_from_secs_f64(time).ok()) {
            settings.prompt_timeout = time;
        }
        settings
    }
}

fn as_number(item: &Item) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "minutes and seconds are small")]
    item.as_float().or_else(|| item.as_integer().map(|number| number as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_and_values_of_other_types_are_ignored() {
        let read = |text: &str| ChatSettings::from_document(&text.parse().unwrap());
        assert_eq!(read(""), ChatSettings::default());
        assert_eq!(read("chat = 3"), ChatSettings::default());
        assert_eq!(read("[chat]\nagent = 1\nidle_minutes = -1\nprompt_timeout_seconds = 'x'"), ChatSettings::default());
        let text = "[chat]\nagent = 'quipu-agent'\nmodel = 'opus'\npermission_mode = 'plan'\nidle_minutes = 0.5\n\
                    prompt_timeout_seconds = 5";
        let all = ChatSettings {
            agent: Some("quipu-agent".to_owned()),
            model: Some("opus".to_owned()),
            permission_mode: "plan".to_owned(),
            idle_time: Duration::from_secs(30),
            prompt_timeout: Duration::from_secs(5),
        };
        assert_eq!(read(text), all);
    }
}

//! What a document says about its session, up front.

use crate::clean::one_line;

/// Facts about a session, as far as the caller knows them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// What the session is called.
    pub title: Option<String>,
    /// Its id.
    pub session_id: Option<String>,
    /// The folder it ran in; paths under it are shown relative to it.
    pub cwd: Option<String>,
    /// The Git branch.
    pub git_branch: Option<String>,
    /// The model, or models.
    pub model: Option<String>,
    /// When it began.
    pub started: Option<String>,
    /// When it ended.
    pub ended: Option<String>,
    /// How many tokens it took.
    pub tokens: Option<String>,
    /// What it cost.
    pub cost: Option<String>,
}

impl About {
    /// The title, or a stand-in; one line, cleaned.
    pub(crate) fn heading(&self) -> String {
        let title = self.title.as_deref().map(one_line).filter(|title| !title.is_empty());
        title.unwrap_or_else(|| "Conversation".to_owned())
    }

    /// The facts there are, each with its name; cleaned.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        let all = [
            ("session", &self.session_id),
            ("folder", &self.cwd),
            ("branch", &self.git_branch),
            ("model", &self.model),
            ("started", &self.started),
            ("ended", &self.ended),
            ("tokens", &self.tokens),
            ("cost", &self.cost),
        ];
        let known = all.into_iter().filter_map(|(name, fact)| Some((name, one_line(fact.as_deref()?))));
        known.filter(|(_, fact)| !fact.is_empty()).collect()
    }

    /// Every text there is, to be masked.
    pub(crate) fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let Self { title, session_id, cwd, git_branch, model, started, ended, tokens, cost } = self;
        [title, session_id, cwd, git_branch, model, started, ended, tokens, cost].into_iter().flatten()
    }

    pub(crate) fn base(&self) -> &str {
        self.cwd.as_deref().unwrap_or_default()
    }
}

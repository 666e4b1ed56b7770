//! Completion of commands, their arguments and files while the user types.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use quipu_files::{FileKind, FileList};
use quipu_render::sanitize;
use tokio::task::JoinHandle;

use crate::command::{CommandList, NamedChoice};

/// Choices that are shown at once.
pub(crate) const MAX_CHOICES: usize = 8;
/// A list of files that is older is read again.
const MAX_FILE_LIST_AGE: Duration = Duration::from_secs(10);

/// Choices for the word before the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Completion {
    /// Byte offset at which a choice is inserted.
    pub(crate) start: usize,
    pub(crate) choices: Vec<NamedChoice>,
    pub(crate) selected: usize,
}

impl Completion {
    /// Selects the next choice, or the previous one.
    pub(crate) fn select(&mut self, forward: bool) {
        let count = self.choices.len().max(1);
        self.selected = if forward { self.selected + 1 } else { self.selected + count - 1 } % count;
    }

    /// Text of the selected choice.
    pub(crate) fn selected_text(&self) -> Option<&str> {
        self.choices.get(self.selected).map(|choice| choice.name.as_str())
    }
}

/// Completion of a command or its argument; `None` if the text before the cursor is no command.
pub(crate) fn complete_command(before: &str, commands: &CommandList) -> Option<Completion> {
    if !before.starts_with('/') {
        return None;
    }
    let (start, all) = match before.split_once(char::is_whitespace) {
        None => (0, &commands.commands),
        Some(("/model", _)) => ("/model ".len(), &commands.models),
        Some(("/mode", _)) => ("/mode ".len(), &commands.modes),
        Some(_) => return None,
    };
    let typed = before[start..].to_lowercase();
    let matching = |choice: &&NamedChoice| choice.name.to_lowercase().starts_with(&typed);
    let choices: Vec<NamedChoice> = all.iter().filter(matching).take(MAX_CHOICES).cloned().collect();
    (!choices.is_empty()).then_some(Completion { start, choices, selected: 0 })
}

/// The characters after `@` in the word before the cursor, and where the `@` is; `None` if the
/// word does not begin with one.
pub(crate) fn mention(before: &str) -> Option<(usize, &str)> {
    let start =
        before.rfind(char::is_whitespace).map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    let word = before[start..].strip_prefix('@')?;
    Some((start, word))
}

/// The files of the working folder, read when they are first needed.
#[derive(Debug)]
pub(crate) struct FileCompletion {
    folder: PathBuf,
    list: Option<(FileList, Instant)>,
    scan: Option<JoinHandle<FileList>>,
}

impl FileCompletion {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, list: None, scan: None }
    }

    /// Files and folders that match; `None` while the files are being read for the first time.
    pub(crate) fn complete(&mut self, start: usize, query: &str) -> Option<Completion> {
        if self.scan.is_none() && self.list.as_ref().is_none_or(|(_, at)| at.elapsed() > MAX_FILE_LIST_AGE) {
            let folder = self.folder.clone();
            self.scan = Some(tokio::task::spawn_blocking(move || FileList::scan(&folder)));
        }
        let (list, _) = self.list.as_ref()?;
        // A mention ends at a space, and control characters are not typed: such paths cannot be mentioned.
        let is_typable = |path: &str| !path.contains(char::is_whitespace) && sanitize(path) == path;
        let found = list.find(query, MAX_CHOICES).into_iter().filter(|found| is_typable(&found.path));
        let choice = |name: String, description: &str| NamedChoice { name, description: description.to_owned() };
        let choices: Vec<NamedChoice> = found
            .map(|found| match found.kind {
                FileKind::Folder => choice(format!("@{}/", found.path.trim_end_matches('/')), "folder"),
                FileKind::File => choice(format!("@{}", found.path), ""),
            })
            .collect();
        (!choices.is_empty()).then_some(Completion { start, choices, selected: 0 })
    }

    /// Waits until the files have been read; for ever if they are not being read. Cancel-safe.
    pub(crate) async fn scanned(&mut self) {
        let Some(scan) = &mut self.scan else { return std::future::pending().await };
        if let Ok(list) = scan.await {
            self.list = Some((list, Instant::now()));
        }
        self.scan = None;
    }
}

#[cfg(test)]
mod tests {
    use quipu_sdk::control::response::InitializeResponse;

    use super::*;

    fn commands() -> CommandList {
        let agent: InitializeResponse = serde_json::from_str(
            r#"{"commands":[{"name":"compact","description":"Summarise","argumentHint":""},
                {"name":"model","description":"theirs","argumentHint":""}],
                "models":[{"value":"opus","displayName":"Opus","description":"hard"}]}"#,
        )
        .unwrap();
        CommandList::new(&agent)
    }

    #[track_caller]
    fn check(before: &str, expected: Option<(usize, &[&str])>) {
        let found = complete_command(before, &commands());
        let found =
            found.map(|found| (found.start, found.choices.into_iter().map(|choice| choice.name).collect::<Vec<_>>()));
        assert_eq!(
            found,
            expected.map(|(start, names)| (start, names.iter().map(|name| (*name).to_owned()).collect()))
        );
    }

    #[test]
    fn commands_and_their_arguments_are_completed() {
        check("/", Some((0, &["/compact", "/exit", "/help", "/mode", "/model"])));
        check("/mo", Some((0, &["/mode", "/model"])));
        check("/model ", Some((7, &["opus"])));
        check("/mode acc", Some((6, &["acceptEdits"])));
        check("/mode ACC", Some((6, &["acceptEdits"])));
        check("/nothing", None);
        check("/compact keep", None);
        check("see /mo", None);
    }

    #[test]
    fn a_mention_is_the_word_before_the_cursor() {
        assert_eq!(mention("see @src/ma"), Some((4, "src/ma")));
        assert_eq!(mention("@"), Some((0, "")));
        assert_eq!(mention("看　@a"), Some((6, "a")));
        assert_eq!(mention("mail a@b"), None);
        assert_eq!(mention("@a b"), None);
    }

    #[tokio::test]
    async fn files_that_cannot_be_typed_are_not_offered() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["plain.txt", "two words.txt", "evil\x1b[2J.txt"] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        let mut files = FileCompletion::new(folder.path().to_owned());
        assert_eq!(files.complete(0, "txt"), None);
        files.scanned().await;
        let names: Vec<String> = files.complete(0, "txt").unwrap().choices.into_iter().map(|file| file.name).collect();
        assert_eq!(names, ["@plain.txt"]);
    }

    #[test]
    fn the_selection_goes_round() {
        let mut completion = complete_command("/mo", &commands()).unwrap();
        completion.select(false);
        assert_eq!(completion.selected_text(), Some("/model"));
        completion.select(true);
        assert_eq!(completion.selected_text(), Some("/mode"));
    }
}

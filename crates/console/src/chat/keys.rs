//! Keys of the user.

use std::io;
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use quipu_message::values::PermissionMode;
use quipu_sdk::user_message;

use super::{Chat, Next, Notice, write_text};
use crate::command::{LocalCommand, NamedChoice};
use crate::completion::{complete_command, mention};
use crate::editor::{Editor, KeyEffect};
use crate::external_editor;
use crate::prompt::{PromptStep, UserPrompt};

/// While the user is typing, keys of a new prompt count only after this time.
pub(super) const TYPING_PAUSE: Duration = Duration::from_millis(1000);

const KEYS_HELP: [(&str, &str); 9] = [
    ("Enter", "send; during a turn the prompt is queued"),
    ("Alt-Enter", "line break; also Ctrl-J, or a backslash before Enter"),
    ("Tab", "complete a /command or an @file"),
    ("Up, Down", "earlier prompts"),
    ("Ctrl-A, Ctrl-E", "start and end of the line"),
    ("Ctrl-W, Ctrl-U, Ctrl-K", "delete a word, to the start, to the end of the line"),
    ("Esc", "interrupt the turn"),
    ("Ctrl-C", "clear the input; twice: end the chat"),
    ("Ctrl-D", "end the chat"),
];

impl Chat {
    pub(super) fn handle_event(&mut self, event: Event) -> io::Result<Next> {
        let next = match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.handle_key(key)?,
            Event::Paste(text) => {
                match &mut self.prompt {
                    Some((prompt, _)) => prompt.paste(&text),
                    None => self.editor.insert(&text),
                }
                self.update_completion()
            }
            Event::Resize(columns, rows) => {
                self.resize(columns, rows)?;
                Next::Continue
            }
            _ => return Ok(Next::Continue),
        };
        if next == Next::Continue {
            self.draw()?;
        }
        Ok(next)
    }

    fn handle_key(&mut self, key: KeyEvent) -> io::Result<Next> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('c') {
            self.editor.take();
            self.completion = None;
            self.history.stop_browsing();
            let next = if self.exit_pending { Next::Exit } else { Next::Continue };
            self.exit_pending = true;
            return Ok(next);
        }
        self.exit_pending = false;
        if let Some((prompt, from)) = &mut self.prompt {
            if Instant::now() < *from {
                return Ok(Next::Continue);
            }
            let step = prompt.handle_key(key);
            return self.apply_prompt_step(step);
        }
        match key.code {
            KeyCode::Char('d') if control && self.editor.is_empty() => return Ok(Next::Exit),
            KeyCode::Esc => {
                self.escape();
                return Ok(Next::Continue);
            }
            KeyCode::Tab => {
                self.accept_completion();
                return Ok(self.update_completion());
            }
            KeyCode::Up | KeyCode::Down if self.completion.is_some() => {
                if let Some(completion) = &mut self.completion {
                    completion.select(key.code == KeyCode::Down);
                }
                return Ok(Next::Continue);
            }
            KeyCode::Enter if self.accept_completion() => return Ok(self.update_completion()),
            _ => {}
        }
        match self.editor.handle_key(key) {
            KeyEffect::Submitted => return self.submit(),
            KeyEffect::AboveFirstLine => {
                if let Some(text) = self.history.previous(self.editor.text()) {
                    self.editor = Editor::with_text(&text);
                }
                return Ok(Next::Continue);
            }
            KeyEffect::BelowLastLine => {
                if let Some(text) = self.history.next() {
                    self.editor = Editor::with_text(&text);
                }
                return Ok(Next::Continue);
            }
            KeyEffect::Edited => self.history.stop_browsing(),
            KeyEffect::Ignored => {}
        }
        Ok(self.update_completion())
    }

    /// Closes the completion, or else interrupts the turn.
    fn escape(&mut self) {
        if self.completion.take().is_some() || !self.status.is_running() {
            return;
        }
        let (handle, notices) = (self.handle.clone(), self.notices.clone());
        tokio::spawn(async move {
            if let Err(error) = handle.interrupt().await {
                let _ = notices.send(Notice { text: format!("cannot interrupt: {error}"), is_error: true });
            }
        });
    }

    /// Inserts the selected choice; false if there is none, or it is typed already.
    fn accept_completion(&mut self) -> bool {
        let Some(completion) = &self.completion else { return false };
        let Some(text) = completion.selected_text() else { return false };
        if self.editor.before_cursor()[completion.start..] == *text {
            return false;
        }
        // A folder is continued, everything else ends with a space.
        let space = if text.ends_with('/') { "" } else { " " };
        let (start, text) = (completion.start, format!("{text}{space}"));
        self.editor.replace_from(start, &text);
        true
    }

    /// Finds the choices for the word before the cursor.
    pub(super) fn update_completion(&mut self) -> Next {
        let before = self.editor.before_cursor();
        let found = complete_command(before, &self.commands).or_else(|| {
            let (start, query) = mention(before)?;
            self.files.complete(start, query)
        });
        // A command that is typed in full needs no choices.
        self.completion =
            found.filter(|found| found.choices.len() > 1 || found.selected_text() != before.get(found.start..));
        self.is_changed = true;
        Next::Continue
    }

    fn apply_prompt_step(&mut self, step: PromptStep) -> io::Result<Next> {
        match step {
            PromptStep::Open => {}
            PromptStep::Decided(decision) => return Ok(self.finish_prompt(Some(decision))),
            PromptStep::EditInput => return Ok(Next::EditInput),
            PromptStep::ShowAll => {
                if let Some((UserPrompt::Permission(prompt), _)) = &self.prompt {
                    let rows = prompt.all_rows(&self.style);
                    self.print_rows(&rows)?;
                }
            }
        }
        Ok(Next::Continue)
    }

    /// Runs the user's editor on the input of the tool call that is shown.
    pub(super) fn edit_input(&mut self) -> io::Result<()> {
        write_text(&self.screen.set_bottom(Vec::new(), None))?;
        if let Some((UserPrompt::Permission(prompt), _)) = &mut self.prompt {
            let text = serde_json::to_string_pretty(&prompt.input().to_value()).unwrap_or_default();
            match external_editor::edit(&text, &self.user_editor) {
                Ok(edited) if edited.trim() == text.trim() => {}
                Ok(edited) => prompt.set_input(&edited, &self.folder),
                Err(error) => prompt.show_notice(&format!("cannot edit the input: {error}")),
            }
        }
        self.is_changed = true;
        Ok(())
    }

    /// Sends the input to the agent, or runs the command that it is.
    fn submit(&mut self) -> io::Result<Next> {
        let text = self.editor.take();
        self.completion = None;
        if text.trim().is_empty() {
            return Ok(Next::Continue);
        }
        if let Err(error) = self.history.add(&text) {
            self.show_notice(&Notice { text: format!("cannot keep the history: {error}"), is_error: true })?;
        }
        match LocalCommand::parse(&text) {
            Some(LocalCommand::Exit) => return Ok(Next::Exit),
            Some(LocalCommand::Help) => self.show_help()?,
            Some(LocalCommand::Model(None)) => self.show_choices(&self.commands.models.clone())?,
            Some(LocalCommand::Mode(None)) => self.show_choices(&self.commands.modes.clone())?,
            Some(LocalCommand::Model(Some(model))) => self.set_model(model),
            Some(LocalCommand::Mode(Some(mode))) => self.set_mode(mode),
            None => self.send(text),
        }
        Ok(Next::Continue)
    }

    fn send(&mut self, text: String) {
        let user = user_message(text.as_str());
        let uuid = user.envelope.uuid.get().cloned();
        // Fails only after the task that sends has ended, with the agent.
        let _ = self.outbox.send(user);
        let Some(uuid) = uuid else { return };
        if self.status.is_running() {
            self.queue.push(uuid, text);
        } else {
            self.status.start(Instant::now());
            self.show_prompt(uuid, &text);
        }
    }

    fn set_model(&mut self, model: String) {
        let (handle, notices) = (self.handle.clone(), self.notices.clone());
        tokio::spawn(async move {
            let changed = handle.set_model(Some(&model)).await;
            let _ = notices.send(change_notice("model", &model, changed.map(drop)));
        });
    }

    fn set_mode(&mut self, mode: String) {
        let (handle, notices) = (self.handle.clone(), self.notices.clone());
        tokio::spawn(async move {
            let changed = handle.set_permission_mode(PermissionMode::from(mode.as_str())).await;
            let _ = notices.send(change_notice("permission mode", &mode, changed.map(drop)));
        });
    }

    fn show_help(&mut self) -> io::Result<()> {
        let commands = self.commands.commands.clone();
        self.show_choices(&commands)?;
        let keys = KEYS_HELP.map(|(name, text)| NamedChoice { name: name.to_owned(), description: text.to_owned() });
        self.show_choices(&keys)
    }

    /// Prints names with their descriptions, aligned.
    fn show_choices(&mut self, choices: &[NamedChoice]) -> io::Result<()> {
        let width = choices.iter().map(|choice| choice.name.chars().count()).max().unwrap_or_default();
        let row = |choice: &NamedChoice| format!("  {:width$}  {}", choice.name, choice.description);
        let rows: Vec<String> =
            choices.iter().map(|choice| self.style.truncate(&row(choice), anstyle::Style::new())).collect();
        self.print_rows(&rows)
    }
}

fn change_notice(what: &str, value: &str, changed: Result<(), quipu_sdk::Error>) -> Notice {
    match changed {
        Ok(()) => Notice { text: format!("{what}: {value}"), is_error: false },
        Err(error) => Notice { text: format!("cannot change the {what}: {error}"), is_error: true },
    }
}

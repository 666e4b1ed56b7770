//! What a session's file says of itself, without reading the conversation.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Deref;
use std::path::Path;

use quipu_conversation::{FirstPrompt, Said, headline, prompt, said};
use quipu_message::local_command::{bash_input, command};
use quipu_message::synthetic::{MODEL, is_automatic};
use quipu_message::turn::User;
use quipu_message::{Block, Content, Entry, Label, line::mend};

use crate::lines::{Lines, Piece};
use crate::problem::FileError;

/// At least so much is read at the beginning of a file …
const HEAD: u64 = 64 << 10;
/// … and at most so much, when nobody has said anything by then.
const LONGEST_HEAD: u64 = 1 << 20;
/// So much is read at its end: programs write titles and tags there again and again.
const TAIL: u64 = 256 << 10;

/// How much of a prompt is kept.
const LONGEST_PROMPT: usize = 200;

/// Title, tag, prompts, place and time of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outline {
    /// The last title the person gave.
    pub custom_title: Option<String>,
    /// The last title the model made up.
    pub ai_title: Option<String>,
    /// The words of the last `summary` line, in old files.
    pub summary: Option<String>,
    /// What the person asked first, or the first command when they only gave commands;
    /// on one line, at most 200 characters.
    pub first_prompt: Option<String>,
    /// What the person asked last, as the program noted it; as short.
    pub last_prompt: Option<String>,
    /// The last tag, unless it was taken away.
    pub tag: Option<String>,
    /// The last git branch.
    pub git_branch: Option<String>,
    /// The first working directory.
    pub cwd: Option<String>,
    /// The first time.
    pub started_at: Option<String>,
    /// The last time.
    pub ended_at: Option<String>,
    /// Whether nothing but a subagent's lines was found.
    pub is_side: bool,
    asked: FirstPrompt,
    has_main: bool,
    has_prompt: bool,
}

impl Outline {
    /// Reads both ends of a file. What stands further than 64 KiB from its beginning
    /// and 256 KiB from its end is not seen.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        Self::read_file(path, Self::ends)
    }

    /// Reads the labels of all lines.
    pub fn read_whole(path: &Path) -> Result<Self, FileError> {
        Self::read_file(path, |outline, file| outline.push_all(file, |_, _| false).map(drop))
    }

    /// The person's title, or else the one made up.
    pub fn title(&self) -> Option<&str> {
        self.custom_title.as_deref().or(self.ai_title.as_deref())
    }

    /// What to call the session in a list, as [`quipu_conversation::headline`] has it: its
    /// title or an old summary, or else a line of what the user asked first.
    pub fn headline(&self) -> Option<&str> {
        headline(self.title().or(self.summary.as_deref()), self.asked.text())
    }

    /// What other SDKs call the summary of a session: its title, or else its last prompt,
    /// an old summary, its first prompt.
    pub fn sdk_summary(&self) -> Option<&str> {
        let words = [&self.last_prompt, &self.summary, &self.first_prompt];
        self.title().or_else(|| words.into_iter().find_map(|words| words.as_deref()))
    }

    fn read_file(path: &Path, read: impl FnOnce(&mut Self, &mut File) -> io::Result<()>) -> Result<Self, FileError> {
        let mut outline = Self::default();
        let mut file = File::open(path).map_err(|source| FileError::Open { path: path.to_owned(), source })?;
        read(&mut outline, &mut file).map_err(|source| FileError::Read { path: path.to_owned(), offset: 0, source })?;
        Ok(outline)
    }

    fn ends(&mut self, file: &mut File) -> io::Result<()> {
        let len = file.metadata()?.len();
        let is_short = len <= HEAD + TAIL;
        let enough = |outline: &Self, read| !is_short && (read >= LONGEST_HEAD || read >= HEAD && outline.has_prompt);
        let head = self.push_all(&mut *file, enough)?;
        let mut from = len.saturating_sub(TAIL).max(head);
        while from < len {
            // From the byte before, which ends a line or is part of one that began earlier.
            file.seek(SeekFrom::Start(from - 1))?;
            let mut lines = Lines::new(&mut *file);
            let begun = lines.next()?.map_or(0, |piece| piece.size());
            if from == head || from - 1 + begun < len {
                return self.push_lines(&mut lines, |_, _| false).map(drop);
            }
            // The last line is longer than that: it began earlier.
            from = from.saturating_sub(3 * (len - from)).max(head);
        }
        Ok(())
    }

    fn push_all(&mut self, file: impl Read, enough: impl Fn(&Self, u64) -> bool) -> io::Result<u64> {
        self.push_lines(&mut Lines::new(file), enough)
    }

    /// Takes lines until there is enough; returns how far they were read.
    fn push_lines<R: Read>(&mut self, lines: &mut Lines<R>, enough: impl Fn(&Self, u64) -> bool) -> io::Result<u64> {
        let mut read = lines.offset();
        while !enough(self, read) {
            let Some(piece) = lines.next()? else { break };
            read += piece.size();
            if let Piece::Line { bytes, .. } = piece {
                // What is not UTF-8 is shown as such; the rest of the line counts.
                self.push(&String::from_utf8_lossy(bytes));
            }
        }
        Ok(read)
    }

    fn push(&mut self, text: &str) {
        let text = mend(text);
        let Ok(label) = Label::read(&text) else { return };
        let side = label.is_sidechain == Some(true);
        self.has_main |= label.uuid.is_some() && !side;
        self.is_side = (self.is_side || side) && !self.has_main;
        first(&mut self.started_at, &label.timestamp);
        last(&mut self.ended_at, &label.timestamp);
        first(&mut self.cwd, &label.cwd);
        last(&mut self.git_branch, &label.git_branch);
        match label.kind.as_deref() {
            Some("custom-title") => last(&mut self.custom_title, &label.custom_title),
            Some("ai-title") => last(&mut self.ai_title, &label.ai_title),
            Some("summary") if label.is_compact_summary != Some(true) => last(&mut self.summary, &label.summary),
            Some("tag") => self.tag = label.tag.as_deref().filter(|tag| !tag.is_empty()).map(str::to_owned),
            Some("last-prompt") => {
                if let Some(Said::Prompt { text, .. }) = label.last_prompt.as_deref().map(said)
                    && let Some(words) = short(&text)
                {
                    self.last_prompt = Some(words);
                }
            }
            Some("user") if !side && (!self.has_prompt || !self.asked.is_settled()) => {
                if let Ok(Entry::User(user)) = Entry::read(&text) {
                    self.user(&user);
                }
            }
            Some("assistant") if !side && !self.asked.is_settled() => {
                if let Ok(Entry::Assistant(line)) = Entry::read(&text)
                    && line.message.model.text() != Some(MODEL)
                {
                    self.asked.answered();
                }
            }
            _ => {}
        }
    }

    /// The first words of the person count, or their first command when they say nothing.
    fn user(&mut self, user: &User) {
        let Some(words) = prompt(user) else { return };
        self.asked.prompted(&words);
        if self.has_prompt || is_automatic(&words) {
            return;
        }
        let Some(words) = short(&words) else { return };
        let commanded = |text: &str| command(text).is_some() || bash_input(text).is_some();
        let is_command = match &user.message.content {
            Content::Text(text) => commanded(text),
            content => content.blocks().iter().filter_map(Block::text).any(commanded),
        };
        self.has_prompt = !is_command;
        if !is_command || self.first_prompt.is_none() {
            self.first_prompt = Some(words);
        }
    }
}

fn first(slot: &mut Option<String>, value: &Option<impl Deref<Target = str>>) {
    if slot.is_none() {
        last(slot, value);
    }
}

fn last(slot: &mut Option<String>, value: &Option<impl Deref<Target = str>>) {
    if let Some(value) = value.as_deref().filter(|value| !value.is_empty() && slot.as_deref() != Some(*value)) {
        *slot = Some(value.to_owned());
    }
}

/// Words on one line, cut where they are long; `None` if there are none.
fn short(text: &str) -> Option<String> {
    let line = text.replace(['\r', '\n'], " ");
    let line = line.trim();
    match line.char_indices().nth(LONGEST_PROMPT) {
        Some((end, _)) => Some(format!("{}…", line[..end].trim_end())),
        None => Some(line.to_owned()).filter(|line| !line.is_empty()),
    }
}

//! What a session's file says of itself, without reading the conversation.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Deref;
use std::path::Path;

use quipu_conversation::{FirstPrompt, UserText, classify_user_text, headline, user_prompt};
use quipu_message::synthetic::{SYNTHETIC_MODEL, is_automatic_prompt};
use quipu_message::tagged_text::{bash_input, slash_command};
use quipu_message::user_assistant::User;
use quipu_message::{Block, Content, Entry, ListingView, line::replace_lone_surrogates};

use crate::lines::{LineReader, RawLine};
use crate::problem::FileError;

/// At least so much is read at the beginning of a file …
const MIN_HEAD_BYTES: u64 = 64 << 10;
/// … and at most so much, when nobody has said anything by then.
const MAX_HEAD_BYTES: u64 = 1 << 20;
/// So much is read at its end: programs write titles and tags there again and again.
const TAIL_BYTES: u64 = 256 << 10;

/// How much of a prompt is kept.
const MAX_PROMPT_CHARS: usize = 200;

/// Title, tag, prompts, place and time of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionOverview {
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
    pub is_subagent_only: bool,
    first_prompt_search: FirstPrompt,
    has_main_entries: bool,
    has_prompt: bool,
}

impl SessionOverview {
    /// Reads both ends of a file. What stands further than 64 KiB from its beginning
    /// and 256 KiB from its end is not seen.
    pub fn read_both_ends(path: &Path) -> Result<Self, FileError> {
        Self::read_with(path, Self::push_both_ends)
    }

    /// Reads the labels of all lines.
    pub fn read_all_lines(path: &Path) -> Result<Self, FileError> {
        Self::read_with(path, |outline, file| outline.push_reader(file, |_, _| false).map(drop))
    }

    /// The person's title, or else the one made up.
    pub fn title(&self) -> Option<&str> {
        self.custom_title.as_deref().or(self.ai_title.as_deref())
    }

    /// What to call the session in a list, as [`quipu_conversation::headline`] has it: its
    /// title or an old summary, or else a line of what the user asked first.
    pub fn headline(&self) -> Option<&str> {
        headline(self.title().or(self.summary.as_deref()), self.first_prompt_search.text())
    }

    /// What other SDKs call the summary of a session: its title, or else its last prompt,
    /// an old summary, its first prompt.
    pub fn sdk_summary(&self) -> Option<&str> {
        let words = [&self.last_prompt, &self.summary, &self.first_prompt];
        self.title().or_else(|| words.into_iter().find_map(|words| words.as_deref()))
    }

    fn read_with(path: &Path, read: impl FnOnce(&mut Self, &mut File) -> io::Result<()>) -> Result<Self, FileError> {
        let mut outline = Self::default();
        let mut file = File::open(path).map_err(|source| FileError::Open { path: path.to_owned(), source })?;
        read(&mut outline, &mut file).map_err(|source| FileError::Read { path: path.to_owned(), offset: 0, source })?;
        Ok(outline)
    }

    fn push_both_ends(&mut self, file: &mut File) -> io::Result<()> {
        let len = file.metadata()?.len();
        let is_short = len <= MIN_HEAD_BYTES + TAIL_BYTES;
        let enough = |outline: &Self, read| {
            !is_short && (read >= MAX_HEAD_BYTES || read >= MIN_HEAD_BYTES && outline.has_prompt)
        };
        let head = self.push_reader(&mut *file, enough)?;
        let mut from = len.saturating_sub(TAIL_BYTES).max(head);
        while from < len {
            // From the byte before, which ends a line or is part of one that began earlier.
            file.seek(SeekFrom::Start(from - 1))?;
            let mut lines = LineReader::new(&mut *file);
            let begun = lines.next()?.map_or(0, |piece| piece.byte_len());
            if from == head || from - 1 + begun < len {
                return self.push_lines(&mut lines, |_, _| false).map(drop);
            }
            // The last line is longer than that: it began earlier.
            from = from.saturating_sub(3 * (len - from)).max(head);
        }
        Ok(())
    }

    fn push_reader(&mut self, file: impl Read, enough: impl Fn(&Self, u64) -> bool) -> io::Result<u64> {
        self.push_lines(&mut LineReader::new(file), enough)
    }

    /// Takes lines until there is enough; returns how far they were read.
    fn push_lines<R: Read>(
        &mut self,
        lines: &mut LineReader<R>,
        enough: impl Fn(&Self, u64) -> bool,
    ) -> io::Result<u64> {
        let mut read = lines.offset();
        while !enough(self, read) {
            let Some(piece) = lines.next()? else { break };
            read += piece.byte_len();
            if let RawLine::Line { bytes, .. } = piece {
                // What is not UTF-8 is shown as such; the rest of the line counts.
                self.push_line(&String::from_utf8_lossy(bytes));
            }
        }
        Ok(read)
    }

    fn push_line(&mut self, text: &str) {
        let text = replace_lone_surrogates(text);
        let Ok(label) = ListingView::read(&text) else { return };
        let side = label.is_sidechain == Some(true);
        self.has_main_entries |= label.uuid.is_some() && !side;
        self.is_subagent_only = (self.is_subagent_only || side) && !self.has_main_entries;
        set_first(&mut self.started_at, &label.timestamp);
        set_last(&mut self.ended_at, &label.timestamp);
        set_first(&mut self.cwd, &label.cwd);
        set_last(&mut self.git_branch, &label.git_branch);
        match label.kind.as_deref() {
            Some("custom-title") => set_last(&mut self.custom_title, &label.custom_title),
            Some("ai-title") => set_last(&mut self.ai_title, &label.ai_title),
            Some("summary") if label.is_compact_summary != Some(true) => set_last(&mut self.summary, &label.summary),
            Some("tag") => self.tag = label.tag.as_deref().filter(|tag| !tag.is_empty()).map(str::to_owned),
            Some("last-prompt") => {
                if let Some(UserText::Prompt { text, .. }) = label.last_prompt.as_deref().map(classify_user_text)
                    && let Some(words) = shorten_prompt(&text)
                {
                    self.last_prompt = Some(words);
                }
            }
            Some("user") if !side && (!self.has_prompt || !self.first_prompt_search.is_final()) => {
                if let Ok(Entry::User(user)) = Entry::read(&text) {
                    self.push_user(&user);
                }
            }
            Some("assistant") if !side && !self.first_prompt_search.is_final() => {
                if let Ok(Entry::Assistant(line)) = Entry::read(&text)
                    && line.message.model.text() != Some(SYNTHETIC_MODEL)
                {
                    self.first_prompt_search.record_response();
                }
            }
            _ => {}
        }
    }

    /// The first words of the person count, or their first command when they say nothing.
    fn push_user(&mut self, user: &User) {
        let Some(words) = user_prompt(user) else { return };
        self.first_prompt_search.record_prompt(&words);
        if self.has_prompt || is_automatic_prompt(&words) {
            return;
        }
        let Some(words) = shorten_prompt(&words) else { return };
        let commanded = |text: &str| slash_command(text).is_some() || bash_input(text).is_some();
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

fn set_first(slot: &mut Option<String>, value: &Option<impl Deref<Target = str>>) {
    if slot.is_none() {
        set_last(slot, value);
    }
}

fn set_last(slot: &mut Option<String>, value: &Option<impl Deref<Target = str>>) {
    if let Some(value) = value.as_deref().filter(|value| !value.is_empty() && slot.as_deref() != Some(*value)) {
        *slot = Some(value.to_owned());
    }
}

/// Words on one line, cut where they are long; `None` if there are none.
fn shorten_prompt(text: &str) -> Option<String> {
    let line = text.replace(['\r', '\n'], " ");
    let line = line.trim();
    match line.char_indices().nth(MAX_PROMPT_CHARS) {
        Some((end, _)) => Some(format!("{}…", line[..end].trim_end())),
        None => Some(line.to_owned()).filter(|line| !line.is_empty()),
    }
}

//! The commands a command may turn out to be: what deny rules look at.

use crate::permission::shell::{self, Script, Word};

/// Programs that run what their arguments say.
const WRAPPERS: [&str; 34] = [
    "env",
    "timeout",
    "nice",
    "nohup",
    "stdbuf",
    "setsid",
    "ionice",
    "chrt",
    "taskset",
    "command",
    "exec",
    "builtin",
    "sudo",
    "doas",
    "su",
    "runuser",
    "xargs",
    "parallel",
    "busybox",
    "toybox",
    "watch",
    "flock",
    "strace",
    "ltrace",
    "unshare",
    "chroot",
    "systemd-run",
    "script",
    "find",
    "trap",
    "alias",
    "eval",
    "time",
    "gdb",
];

/// Programs that take commands as text.
const SHELLS: [&str; 8] = ["sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "rbash"];

const DEEPEST: usize = 6;
/// How many commands are looked at, and how long all may be; more are not understood.
const MOST: usize = 2000;
const LONGEST: usize = 200_000;

/// All the commands that a script may run, as far as its text tells.
#[derive(Debug, Default)]
pub(super) struct Views {
    /// The commands, as [`shell::text`] writes them.
    pub(super) texts: Vec<String>,
    /// Whether it may run something its text does not tell.
    pub(super) open: bool,
    size: usize,
}

impl Views {
    /// Looks at every command of a script; none when there are too many.
    pub(super) fn of(script: &Script) -> Option<Self> {
        let mut views = Self::default();
        views.script(script, 0);
        (!views.is_full()).then_some(views)
    }

    fn is_full(&self) -> bool {
        self.texts.len() >= MOST || self.size >= LONGEST
    }

    fn push(&mut self, text: String) {
        self.size += text.len();
        self.texts.push(text);
    }

    fn script(&mut self, script: &Script, depth: usize) {
        for part in &script.parts {
            self.words(&part.words, depth);
        }
    }

    fn words(&mut self, words: &[Word], depth: usize) {
        let Some(first) = words.first().filter(|_| !self.is_full()) else { return };
        self.push(shell::text(words));
        if !first.plain {
            self.open = true;
            return;
        }
        let name = first.text.rsplit('/').next().unwrap_or_default();
        if name != first.text {
            self.named(name, &words[1..]);
        }
        if SHELLS.contains(&name) || name == "source" || name == "." {
            // Without a command or a file on its line, a shell runs what it reads.
            let given = words[1..].iter().find(|word| !word.text.starts_with('-'));
            self.open |= given.is_none_or(|word| !word.plain);
            self.inner(&words[1..], depth);
        } else if WRAPPERS.contains(&name) {
            self.open |= name == "eval" && words.iter().any(|word| !word.plain);
            for at in 1..words.len() {
                if self.is_full() {
                    return;
                }
                let rest = &words[at..];
                self.push(shell::text(rest));
                let name = rest[0].text.rsplit('/').next().unwrap_or_default();
                self.named(name, &rest[1..]);
                self.open |= !rest[0].plain && at == 1;
            }
            self.inner(&words[1..], depth);
            let plain: Vec<&str> = words[1..].iter().map(|word| word.text.as_str()).collect();
            if name == "eval" {
                self.text(&plain.join(" "), depth);
            }
        }
    }

    fn named(&mut self, name: &str, rest: &[Word]) {
        let mut words = vec![Word { text: name.to_owned(), plain: true }];
        words.extend_from_slice(rest);
        self.push(shell::text(&words));
    }

    /// Arguments that may be commands themselves.
    fn inner(&mut self, words: &[Word], depth: usize) {
        for word in words {
            let text = if word.plain { word.text.as_str() } else { word.text.trim_matches('"') };
            if !text.starts_with('-') {
                self.text(text, depth);
            }
        }
    }

    fn text(&mut self, text: &str, depth: usize) {
        if depth >= DEEPEST || self.is_full() {
            self.open = true;
            return;
        }
        // Aliases are written `name=command`.
        let command = text.split_once('=').map(|(_, command)| command);
        for text in [Some(text), command].into_iter().flatten() {
            match shell::parse(text) {
                Ok(script) => self.script(&script, depth + 1),
                Err(_) => {
                    self.open = true;
                    for text in text.split([';', '&', '|', '\n', '(', ')', '`']) {
                        self.push(text.trim().to_owned());
                    }
                }
            }
        }
    }
}

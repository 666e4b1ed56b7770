//! The commands a command may turn out to be: what deny rules look at.

use crate::permission::shell::{self, Script, Word};

/// Programs that run what their arguments say, and words that set what others run.
const WRAPPERS: &str = "\
    env timeout nice nohup stdbuf setsid ionice chrt taskset command exec builtin sudo doas su runuser xargs \
    parallel busybox toybox watch flock strace ltrace unshare chroot systemd-run script find trap alias eval \
    time gdb fd fdfind entr hyperfine ssh tmux screen setpriv nsenter bwrap firejail fakeroot proot unbuffer \
    gosu pkexec prlimit numactl setarch torsocks proxychains xvfb-run rlwrap valgrind perf start-stop-daemon \
    export declare typeset readonly local coproc \
    choom ssh-agent linux32 linux64 i386 x86_64 uname26 dbus-run-session systemd-inhibit sg capsh npx bunx \
    caffeinate cpulimit chronic eatmydata fakechroot faketime runcon direnv mise asdf";

/// Programs that run what follows one word of theirs.
const RUNNERS: [(&str, &str); 10] = [
    ("bundle", "exec"),
    ("conda", "run"),
    ("hatch", "run"),
    ("npm", "exec"),
    ("pdm", "run"),
    ("pipenv", "run"),
    ("pnpm", "exec"),
    ("poetry", "run"),
    ("uv", "run"),
    ("yarn", "exec"),
];

/// Programs that take commands as text.
const SHELLS: &str = "sh bash dash zsh ksh ash fish rbash csh tcsh mksh yash pwsh powershell";

/// Programs that take code which can run commands, or options that can; versions left off.
const INTERPRETERS: &str = "\
    awk gawk mawk nawk sed gsed perl python pypy ruby node nodejs deno bun php lua luajit tclsh expect osascript \
    vi vim nvim ex ed emacs make gmake tar rsync zip man rg split sort bc dc psql sqlite mysql openssl gpg crontab at \
    cc gcc g++ c++ clang clang++ cpp tcc lldb socat nano cpio less more lftp gnuplot julia octave guile racket \
    ipython raku ghci erl elixir groovy rscript logrotate";

/// What git runs commands for, as its arguments say.
const GIT_RUNS: &str = "config bisect submodule rebase filter-branch difftool mergetool";
/// Options of git, before what it is to do, that have a value.
pub(super) const GIT_VALUES: &str = "-C -c --git-dir --work-tree --namespace --config-env";

/// What of git takes options that name programs.
const GIT_REMOTE: &str = "archive clone fetch fetch-pack grep ls-remote pull push send-pack";

/// Parts of the shell that run commands inside their arguments, as in `let 'a[$(x)]=1'`.
const EVALUATORS: &str =
    "let test [ printf read unset mapfile readarray compgen complete hash enable wait getopts bind";

const DEEPEST: usize = 6;
/// How many commands are looked at, and how long all may be; more are not understood.
const MOST: usize = 2000;
const LONGEST: usize = 200_000;

/// All the commands that a script may run, as far as its text tells.
#[derive(Debug, Default)]
pub(super) struct Views {
    /// The commands, as [`shell::text`] writes them.
    pub(super) texts: Vec<String>,
    /// Texts in other languages, in which commands may stand anywhere.
    pub(super) code: Vec<String>,
    /// The words before the first that only the shell knows.
    pub(super) vague: Vec<String>,
    /// Whether it may run something its text does not tell.
    pub(super) open: bool,
    /// The commands, word by word.
    pub(super) commands: Vec<Vec<Word>>,
    /// Files that the shell reads or writes for them.
    pub(super) files: Vec<Word>,
    /// Those it writes.
    pub(super) written: Vec<Word>,
    /// Whether a command inside another goes to another folder.
    pub(super) moves: bool,
    size: usize,
}

impl Views {
    /// Looks at every command of a script; `None` if there are too many.
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
            self.files.extend(part.redirects.iter().map(|file| file.target.clone()));
            self.written.extend(part.redirects.iter().filter(|file| file.writes).map(|file| file.target.clone()));
            let goes = |word: &Word| is_among("cd pushd popd", &word.text);
            self.moves |= depth > 0 && part.words.first().is_some_and(goes);
            // Programs run what variables such as PAGER say, git what follows `!` in one.
            for (_, value) in part.assignments.iter().filter_map(|assignment| assignment.split_once('=')) {
                if value.contains('!') {
                    self.code(value);
                }
                match shell::parse(value) {
                    Ok(value) => value.parts.iter().for_each(|part| self.inner(&part.words, depth)),
                    Err(_) => self.code(value),
                }
            }
        }
        let reads = |name: &str| is_among(SHELLS, name) || is_interpreter(name);
        let is_sed = |word: &Word| is_among("sed gsed", &program(word));
        let runs_sed = script.parts.iter().filter_map(|part| part.words.first()).any(is_sed);
        if script.parts.iter().filter_map(|part| part.words.first()).any(|word| reads(&program(word))) {
            script.inputs.iter().for_each(|input| self.code(input));
            script.inputs.iter().filter(|_| runs_sed).for_each(|input| self.sed(input));
        }
    }

    fn code(&mut self, text: &str) {
        self.size += text.len();
        self.code.push(text.to_owned());
    }

    fn words(&mut self, words: &[Word], depth: usize) {
        let Some(first) = words.first().filter(|_| !self.is_full()) else { return };
        self.push(shell::text(words));
        self.commands.push(words.to_vec());
        if !first.plain {
            self.open = true;
            return;
        }
        if let Some(at) = words.iter().position(|word| !word.plain) {
            self.vague.push(shell::text(&words[..at]));
        }
        let name = program(first);
        let name = name.as_str();
        if name != first.text {
            self.named(name, &words[1..]);
        }
        if name == "git" {
            self.git(&words[1..]);
        } else if is_interpreter(name) {
            // A bare word is a file or a target.
            let is_code = |word: &&Word| word.text.contains(|c: char| !c.is_alphanumeric() && !"-_./".contains(c));
            words[1..].iter().filter(is_code).for_each(|word| self.code(&word.text));
            if is_among("sed gsed", name) {
                words[1..].iter().for_each(|word| self.sed(&word.text));
            }
        } else if is_among(SHELLS, name) || name == "source" || name == "." {
            self.open |= !is_told(&words[1..]);
            self.inner(&words[1..], depth);
        } else if is_among(EVALUATORS, name) {
            words[1..].iter().for_each(|word| self.code(&word.text));
        } else if is_wrapper(name, &words[1..]) {
            self.open |= name == "eval" && words.iter().any(|word| !word.plain);
            // What xargs reads may be the command of what it runs.
            let runs = |word: &Word| {
                let name = program(word);
                is_among(WRAPPERS, &name) || is_among(SHELLS, &name) || is_interpreter(&name)
            };
            self.open |= is_among("xargs parallel", name) && words[1..].iter().any(runs);
            self.moves |= is_among("env builtin command", name) && words[1..].iter().any(goes_elsewhere);
            for at in 1..words.len() {
                if self.is_full() {
                    return;
                }
                let rest = &words[at..];
                self.push(shell::text(rest));
                self.named(&program(&rest[0]), &rest[1..]);
                self.open |= !rest[0].plain && at == 1;
                if rest[0].plain && program(&rest[0]) == "git" {
                    self.git(&rest[1..]);
                }
            }
            self.inner(&words[1..], depth);
            let plain: Vec<&str> = words[1..].iter().map(|word| word.text.as_str()).collect();
            if name == "eval" {
                self.text(&plain.join(" "), depth);
            }
        }
    }

    /// Files that code for sed reads and writes: their names may follow `r`, `R`, `w` and
    /// `W` without a space, and go on to the end of the line.
    fn sed(&mut self, code: &str) {
        for (at, command) in code.match_indices(['r', 'R', 'w', 'W']) {
            let name = code[at + 1..].lines().next().unwrap_or_default().trim_start();
            self.size += name.len();
            if self.is_full() {
                return;
            }
            let name = Word { text: name.to_owned(), plain: true };
            if command.eq_ignore_ascii_case("w") {
                self.written.push(name.clone());
            }
            self.files.push(name);
        }
    }

    /// What git does, whatever options stand before it, and what it is told to run.
    fn git(&mut self, given: &[Word]) {
        let mut words = given;
        while let [option, rest @ ..] = words {
            if !option.text.starts_with('-') {
                break;
            }
            words = rest;
            if let ([value, rest @ ..], true) = (rest, is_among(GIT_VALUES, &option.text)) {
                if option.text == "-c" {
                    self.setting(&value.text);
                }
                words = rest;
            }
        }
        if words.len() < given.len() {
            self.named("git", words);
        }
        // Names of programs for the other side, pagers, and settings by way of variables.
        self.open |= given.iter().any(|word| word.text.starts_with("--config-env"));
        if words.first().is_some_and(|word| is_among(GIT_REMOTE, &word.text)) {
            words[1..].iter().for_each(|word| self.code(option_value(&word.text)));
        }
        if words.first().is_some_and(|word| is_among(GIT_RUNS, &word.text)) {
            let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
            self.setting(&texts[1..].join("="));
            self.code(&texts.join(" "));
        }
    }

    /// A setting of git, which may be a command or another name for one of its own.
    fn setting(&mut self, text: &str) {
        self.code(text);
        if let Some((_, value)) = text.split_once('=').filter(|(name, _)| name.contains("alias.")) {
            self.code(&format!("git {value}"));
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
            // What debuggers and editors give to a shell.
            if text.starts_with('!') {
                self.code(text);
            }
            if !text.starts_with('-') {
                self.text(text, depth);
            } else if text.contains(char::is_whitespace) {
                // A whole command inside an option: `-Srm x`, `--exec=rm x`.
                self.code(text);
                self.code(text.get(2..).unwrap_or_default());
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

/// Whether a shell is told on its own line what to run: by `-c`, or by a file. Anything
/// else makes it run what it reads.
fn is_told(words: &[Word]) -> bool {
    let is_option = |word: &&Word| word.text.starts_with(['-', '+']);
    let options: Vec<&Word> = words.iter().take_while(is_option).collect();
    let known = options.iter().all(|option| {
        let letters = option.text.strip_prefix('-').unwrap_or("?");
        !letters.is_empty() && letters.chars().all(|c| "celuvx".contains(c)) || option.text == "--login"
    });
    let given = words.get(options.len());
    let is_file = |word: &Word| word.plain && !word.text.starts_with("/dev/") && !word.text.starts_with("/proc/");
    known && given.is_some_and(is_file)
}

/// Whether a program runs what its arguments say.
fn is_wrapper(name: &str, words: &[Word]) -> bool {
    let told = |word: &str| words.iter().any(|given| given.text == word);
    is_among(WRAPPERS, name)
        || name.starts_with("ld-")
        || name == "ld.so"
        || RUNNERS.iter().any(|(runner, word)| *runner == name && told(word))
}

/// Whether a word makes a command run in another folder.
fn goes_elsewhere(word: &Word) -> bool {
    is_among("cd pushd popd", &word.text) || word.text.starts_with("-C") || word.text.starts_with("--chdir")
}

/// What an option is set to, when that stands in the same word.
fn option_value(word: &str) -> &str {
    match word.split_once('=') {
        Some((_, value)) if word.starts_with("--") => value,
        _ if word.starts_with('-') && !word.starts_with("--") => word.get(2..).unwrap_or_default(),
        _ => word,
    }
}

/// The program a word names: without its folder, and as file systems that do not tell
/// letters apart would find it.
fn program(word: &Word) -> String {
    word.text.rsplit('/').next().unwrap_or_default().to_lowercase()
}

fn is_among(words: &str, name: &str) -> bool {
    words.split(' ').any(|word| word == name)
}

fn is_interpreter(name: &str) -> bool {
    is_among(INTERPRETERS, name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'))
}

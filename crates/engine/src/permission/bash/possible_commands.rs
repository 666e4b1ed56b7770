//! Every command that a script may run in the end, for comparison with deny and ask rules.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::path::without_dots;
use crate::permission::path_pattern::expand_braces;
use crate::permission::shell::{self, Script, SimpleCommand, Word};

/// Programs that run their arguments as a command, and builtins that define commands.
const WRAPPERS: &str = "\
    env timeout nice nohup stdbuf setsid ionice chrt taskset command exec builtin sudo doas su runuser xargs \
    parallel busybox toybox watch flock strace ltrace unshare chroot systemd-run script find trap alias eval \
    time gdb fd fdfind entr hyperfine ssh tmux screen setpriv nsenter bwrap firejail fakeroot proot unbuffer \
    gosu pkexec prlimit numactl setarch torsocks proxychains xvfb-run rlwrap valgrind perf start-stop-daemon \
    export declare typeset readonly local coproc \
    choom ssh-agent linux32 linux64 i386 x86_64 uname26 dbus-run-session systemd-inhibit sg capsh npx bunx \
    caffeinate cpulimit chronic eatmydata fakechroot faketime runcon direnv mise asdf \
    uclampset pipesz scp sftp nix-shell just jobs logsave ifne pee aa-exec \
    fakeroot-sysv fakeroot-tcp debconf gpg-agent";

/// Those that add words from their input, or names of files, to the command.
const INPUT_WRAPPERS: &str = "xargs parallel find fd fdfind";

/// Programs that run the words after a certain argument.
const RUNNERS: [(&str, &str); 18] = [
    ("bundle", "exec"),
    ("conda", "run"),
    ("hatch", "run"),
    ("ip", "exec"),
    // npm accepts its commands cut short.
    ("npm", "env"),
    ("npm", "ex"),
    ("npm", "exe"),
    ("npm", "exec"),
    ("npm", "x"),
    ("pdm", "run"),
    ("pipenv", "run"),
    ("pixi", "run"),
    ("pnpm", "dlx"),
    ("pnpm", "exec"),
    ("poetry", "run"),
    ("rye", "run"),
    ("uv", "run"),
    ("yarn", "exec"),
];

/// Programs that take commands as text.
const SHELLS: &str = "sh bash dash zsh ksh ash fish rbash csh tcsh mksh yash pwsh powershell";

/// Programs that take code or options which can run commands, without version numbers.
const INTERPRETERS: &str = "\
    awk gawk mawk nawk sed gsed perl python pypy ruby node nodejs deno bun php lua luajit tclsh expect osascript \
    vi vim nvim view vimdiff rvim rview gvim ex ed emacs make gmake tar rsync zip man rg split sort bc dc psql sqlite mysql openssl gpg crontab at \
    cc gcc g++ c++ clang clang++ cpp tcc lldb socat nano cpio less more lftp gnuplot julia octave guile racket \
    ipython raku ghci erl elixir groovy rscript logrotate apt apt-get dpkg go cargo pdb mariadb m4 bsdtar install wget";

/// Interpreters that run their standard input if they are given neither code nor a file, or `-`.
const STDIN_INTERPRETERS: &str = "\
    perl python pypy ruby node nodejs deno bun php lua luajit tclsh expect osascript julia guile raku \
    awk gawk mawk nawk sed gsed make gmake ed ex at batch crontab sqlite psql mysql mariadb gdb lldb pdb octave \
    gnuplot ghci erl iex groovysh rscript r irb pry ipython jshell ocaml sbcl clisp m4 dc ftp lftp sftp";

/// Git subcommands that run commands given as arguments.
const GIT_RUNNING_SUBCOMMANDS: &str = "config bisect submodule rebase filter-branch difftool mergetool for-each-repo \
    daemon instaweb merge-index remote-ext send-email";
/// Options of git before the subcommand that take a value.
pub(super) const GIT_VALUE_OPTIONS: &str =
    "-C -c --attr-source --config-env --git-dir --namespace --shallow-file --super-prefix --work-tree";
/// Options of git before the subcommand that take no value. Another one may hide which word is the subcommand.
const GIT_PLAIN_OPTIONS: &str = "-P -h -p -v --bare --exec-path --glob-pathspecs --help --html-path --icase-pathspecs \
    --info-path --literal-pathspecs --man-path --no-advice --no-lazy-fetch --no-optional-locks --no-pager \
    --no-replace-objects --noglob-pathspecs --paginate --version";

/// What the variables begin with that contain settings for git.
const GIT_SETTINGS_PREFIX: &str = "GIT_CONFIG";

/// Variables that choose which settings git reads.
const GIT_FOLDER_VARIABLES: [&str; 5] = ["HOME", "XDG_CONFIG_HOME", "GIT_DIR", "GIT_COMMON_DIR", "GIT_EXEC_PATH"];

/// Wrappers that start a shell if they are given no command, with the number of operands before the command.
const SHELL_STARTERS: [(&str, usize); 23] = [
    ("aa-exec", 0),
    ("capsh", 0),
    ("chroot", 1),
    ("fakechroot", 0),
    ("fakeroot", 0),
    ("fakeroot-sysv", 0),
    ("fakeroot-tcp", 0),
    ("firejail", 0),
    ("i386", 0),
    ("linux32", 0),
    ("linux64", 0),
    ("newgrp", 1),
    ("nsenter", 0),
    ("parallel", 0),
    ("proot", 0),
    ("runuser", 1),
    ("script", 1),
    ("setarch", 1),
    ("sg", 1),
    ("ssh", 1),
    ("su", 1),
    ("unshare", 0),
    ("x86_64", 0),
];

/// How many letters before a command in the same option are followed: `env -iS'rm x'`.
const MAX_LETTERS_BEFORE_COMMAND: usize = 8;

/// Git subcommands with options that name programs.
const GIT_REMOTE_SUBCOMMANDS: &str = "archive clone fetch fetch-pack grep ls-remote pull push send-pack";

/// Builtins that evaluate their arguments, as in `let 'a[$(x)]=1'`.
const EVALUATORS: &str =
    "let test [ printf read unset mapfile readarray compgen complete hash enable wait getopts bind";

/// Those of them with an option for a command.
const CALLBACK_BUILTINS: &str = "mapfile readarray compgen complete";

/// Builtins that set variables to what they read, and programs that make words of it.
const READERS: &str = "read mapfile readarray xargs parallel";

const MAX_NESTING: usize = 6;
/// Limits on number and total size of commands; a script beyond them counts as not parsed.
const MAX_COMMANDS: usize = 2000;
const MAX_TOTAL_BYTES: usize = 200_000;
/// Maximum number of words that braces may mean in all of a script.
const MAX_BRACE_WORDS: usize = 5000;

/// All commands that a script may run, as far as its text shows.
#[derive(Debug, Default)]
pub(super) struct PossibleCommands {
    /// The commands as [`shell::format_words`] formats them.
    pub(super) texts: Vec<String>,
    /// Code for interpreters, which may contain commands anywhere.
    pub(super) foreign_code: Vec<String>,
    /// For each command, the words before the first one that the shell expands.
    pub(super) known_prefixes: Vec<String>,
    /// Whether it may run something that the text does not show.
    pub(super) runs_unknown: bool,
    /// Whether it runs code that is not seen: from standard input, or a text that cannot be parsed.
    pub(super) runs_hidden_code: bool,
    /// The commands, word by word.
    pub(super) commands: Vec<Vec<Word>>,
    /// Files of redirections.
    pub(super) redirect_files: Vec<Word>,
    /// Files of redirections that write.
    pub(super) written_files: Vec<Word>,
    /// Values of variables and words of loops, which may be names of files.
    pub(super) values: Vec<Word>,
    /// Whether a nested command runs in another folder.
    pub(super) changes_folder: bool,
    /// Whether it does so by other means than options of git.
    pub(super) starts_elsewhere: bool,
    total_bytes: usize,
}

impl PossibleCommands {
    /// Takes a text that cannot be parsed as code.
    pub(super) fn from_code(text: &str) -> Self {
        Self { foreign_code: vec![text.to_owned()], ..Self::default() }
    }

    /// Collects the possible commands of a script; `None` if there are too many, or too many words in braces.
    pub(super) fn from_script(script: &Script) -> Option<Self> {
        let words = script.commands.iter().flat_map(|part| &part.words).chain(&script.loop_words);
        let with_braces = words.filter(|word| word.text.contains('{'));
        let count = |word: &Word| match expand_braces(&word.text) {
            Some(words) => words.len(),
            // The shell expands it to more words than can be compared; a text in quotes, such as JSON, stays one.
            None => {
                if word.is_literal {
                    1
                } else {
                    MAX_BRACE_WORDS + 1
                }
            }
        };
        if with_braces.map(count).sum::<usize>() > MAX_BRACE_WORDS {
            return None;
        }
        let mut possible = Self::default();
        possible.add_script(script, 0);
        (!possible.is_full()).then_some(possible)
    }

    fn is_full(&self) -> bool {
        self.texts.len() >= MAX_COMMANDS || self.total_bytes >= MAX_TOTAL_BYTES
    }

    fn push_text(&mut self, text: String) {
        self.total_bytes += text.len();
        self.texts.push(text);
    }

    fn add_script(&mut self, script: &Script, depth: usize) {
        self.values.extend(script.loop_words.iter().cloned());
        for part in &script.commands {
            self.add_words(&part.words, depth);
            self.redirect_files.extend(part.redirects.iter().map(|file| file.target.clone()));
            self.written_files
                .extend(part.redirects.iter().filter(|file| file.is_write).map(|file| file.target.clone()));
            let goes = |word: &Word| contains_word("cd pushd popd", &word.text);
            let changes = depth > 0 && part.words.first().is_some_and(goes);
            self.starts_elsewhere |= changes;
            self.changes_folder |= changes;
            // Programs run the values of variables such as PAGER; git runs what follows `!`.
            for (name, value) in part.assignments.iter().filter_map(|assignment| assignment.split_once('=')) {
                self.runs_unknown |= name.starts_with(GIT_SETTINGS_PREFIX);
                let plain = value.replace(['\'', '"', '\\'], "");
                self.values.push(Word { text: plain, is_literal: true });
                // `PERL5DB='system"x"'`, `TAR_OPTIONS=-Ix`
                value
                    .split(' ')
                    .filter(|word| word.starts_with('-'))
                    .for_each(|word| self.add_code(option_value(word)));
                if value.contains(['!', '"', '(']) {
                    self.add_code(value);
                }
                match shell::parse(value) {
                    Ok(value) => value.commands.iter().for_each(|part| self.add_arguments(&part.words, depth)),
                    Err(_) => self.add_code(value),
                }
            }
        }
        let sets_variable =
            |part: &SimpleCommand| part.words.first().is_some_and(|word| contains_word(READERS, &word.text));
        if script.commands.iter().any(sets_variable) {
            let words = script.stdin_texts.iter().flat_map(|text| text.split_whitespace());
            self.values.extend(words.map(|word| Word { text: word.to_owned(), is_literal: true }));
        }
        self.runs_unknown |= chooses_git_settings(script);
        let reads = |name: &str| contains_word(SHELLS, name) || is_interpreter(name);
        let is_sed = |word: &Word| contains_word("sed gsed", &program_name(word));
        let runs_sed = script.commands.iter().filter_map(|part| part.words.first()).any(is_sed);
        if script.commands.iter().filter_map(|part| part.words.first()).any(|word| reads(&program_name(word))) {
            script.stdin_texts.iter().for_each(|input| self.add_code(input));
            script.stdin_texts.iter().for_each(|input| self.add_code(&without_recipe_marks(input)));
            script.stdin_texts.iter().filter(|_| runs_sed).for_each(|input| self.sed(input));
        }
    }

    fn add_code(&mut self, text: &str) {
        self.total_bytes += text.len();
        self.foreign_code.push(text.to_owned());
    }

    fn add_words(&mut self, words: &[Word], depth: usize) {
        let Some(first) = words.first().filter(|_| !self.is_full()) else { return };
        self.push_text(shell::format_words(words));
        self.commands.push(words.to_vec());
        if !first.is_literal {
            self.runs_unknown = true;
            self.runs_hidden_code |= depth == 0;
            return;
        }
        let name = program_name(first);
        // `/usr/lib/git-core/git-push`
        if let Some(subcommand) = name.strip_prefix("git-") {
            let subcommand = Word { text: subcommand.to_owned(), is_literal: true };
            self.add_named("git", &[&[subcommand], &words[1..]].concat());
        }
        let name = name.as_str();
        if let Some(at) = words.iter().position(|word| !word.is_literal) {
            self.add_known_prefix(&words[..at]);
        }
        if name != first.text {
            self.add_named(name, &words[1..]);
        }
        // `run-parts` runs everything in a folder.
        // Among the words of `setarch` these are no programs.
        let is_program = depth == 0 || !contains_word("i386 x86_64", name);
        let starts_shell = is_program && starts_shell(name, &words[1..]);
        let is_hidden = runs_stdin(name, &words[1..]) || name == "run-parts" || starts_shell;
        self.runs_unknown |= is_hidden;
        self.runs_hidden_code |= is_hidden;
        if name == "git" {
            self.add_git(&words[1..]);
        } else if is_interpreter(name) {
            // A bare word is a file or a target, or the value of an option.
            let is_code = |word: &Word| word.text.contains(|c: char| !c.is_alphanumeric() && !"-_./".contains(c));
            let is_option = |word: &Word| word.text.starts_with('-');
            // `tar cIf rm x`: the values of several options follow.
            let has_bundle = is_tar(name) && words.get(1).is_some_and(|word| word.text.contains(['I', 'F']));
            for pair in words.windows(2) {
                if has_bundle || is_option(&pair[0]) || is_option(&pair[1]) || is_code(&pair[1]) {
                    self.add_code(&pair[1].text);
                    self.add_code(option_value(&pair[1].text));
                    commands_in_option(&pair[1].text).for_each(|text| self.add_code(text));
                }
            }
            if name == "split" {
                self.add_option_commands(&words[1..], depth);
            }
            if contains_word("make gmake", name) {
                words[1..].iter().for_each(|word| self.add_code(&without_recipe_marks(&word.text)));
            }
            if contains_word("sed gsed", name) {
                words[1..].iter().for_each(|word| self.sed(&word.text));
            } else if contains_word(STDIN_INTERPRETERS, without_version(name)) && !contains_word("make gmake", name) {
                // Code may run the words after it: `perl -e 'exec @ARGV' rm x`.
                let code = words[1..].iter().position(is_code).map_or(words.len(), |at| at + 2);
                if code < words.len() {
                    let texts: Vec<&str> = words[1..].iter().map(|word| word.text.as_str()).collect();
                    self.add_code(&texts.join(" "));
                }
                for at in code..words.len() {
                    if self.is_full() {
                        return;
                    }
                    self.push_text(shell::format_words(&words[at..]));
                    self.add_named(&program_name(&words[at]), &words[at + 1..]);
                }
            }
        } else if contains_word(SHELLS, name) || name == "source" || name == "." {
            // Without a file `.` is an error; it may be a folder among the words of a wrapper.
            let is_error = words.len() == 1 && !contains_word(SHELLS, name);
            let is_hidden = !is_error && !has_explicit_script(&words[1..]);
            self.runs_unknown |= is_hidden;
            self.runs_hidden_code |= is_hidden;
            self.add_arguments(&words[1..], depth);
        } else if contains_word(EVALUATORS, name) {
            words[1..].iter().for_each(|word| self.add_code(&word.text));
            if contains_word(CALLBACK_BUILTINS, name) {
                self.add_option_commands(&words[1..], depth);
            }
        } else if is_wrapper(name, &words[1..]) {
            if contains_word("gdb ssh scp sftp", name) {
                words[1..].iter().for_each(|word| self.add_code(&word.text));
            }
            self.runs_unknown |= name == "eval" && words.iter().any(|word| !word.is_literal)
                || words.iter().any(|word| word.text.starts_with(GIT_SETTINGS_PREFIX));
            // The input of xargs may become the command that it runs.
            let runs = |word: &Word| {
                let name = program_name(word);
                contains_word(WRAPPERS, &name) || contains_word(SHELLS, &name) || is_interpreter(&name)
            };
            self.runs_unknown |= contains_word("xargs parallel", name) && words[1..].iter().any(runs);
            // The options of the command come after it: `env git -C src status`.
            let command =
                words[1..].iter().position(|word| program_name(word) == "git").map_or(words.len(), |at| at + 1);
            self.starts_elsewhere |=
                words[1..command].iter().any(changes_folder) || may_change_folder(name, &words[1..command]);
            self.changes_folder |= words[1..].iter().any(changes_folder) || may_change_folder(name, &words[1..]);
            // `env -S 'rm\_x'`, `export PERL5DB='system"x"'`
            let is_code = |word: &&Word| {
                word.text.contains('\\') || word.text.contains('=') && word.text.contains(['"', '(', '\''])
            };
            words[1..].iter().filter(is_code).for_each(|word| self.add_code(&word.text));
            let options = words[1..].iter().take_while(|word| word.text.starts_with('-')).count();
            if contains_word("builtin command", name) {
                // `command . /dev/stdin`
                self.add_words(&words[1 + options..], depth);
            }
            for at in 1..words.len() {
                if self.is_full() {
                    return;
                }
                let rest = &words[at..];
                // `env -iSrm x`
                if at <= options && rest[0].is_literal {
                    texts_after_letters(&rest[0].text).for_each(|name| self.add_named(name, &rest[1..]));
                }
                self.push_text(shell::format_words(rest));
                self.commands.push(rest.to_vec());
                self.add_named(&program_name(&rest[0]), &rest[1..]);
                // `env -Srm x`
                let value = option_value(&rest[0].text);
                if rest[0].is_literal && value != rest[0].text && !value.is_empty() {
                    self.add_code(value);
                    self.add_named(value, &rest[1..]);
                }
                if contains_word(INPUT_WRAPPERS, name) && rest[0].is_literal {
                    self.add_known_prefix(words_before_input(words, rest));
                }
                self.runs_unknown |= !rest[0].is_literal && at == 1;
                if rest[0].is_literal && program_name(&rest[0]) == "git" {
                    self.add_git(&rest[1..]);
                }
            }
            self.add_arguments(&words[1..], depth);
            let plain: Vec<&str> = words[1..].iter().map(|word| word.text.as_str()).collect();
            if name == "eval" {
                self.add_text(&plain.join(" "), depth);
            }
        }
    }

    /// Adds words that are followed by unknown ones.
    fn add_known_prefix(&mut self, words: &[Word]) {
        let Some((first, rest)) = words.split_first() else { return };
        self.known_prefixes.push(shell::format_words(words));
        let name = Word { text: program_name(first), is_literal: true };
        self.known_prefixes.push(shell::format_words(&[std::slice::from_ref(&name), rest].concat()));
    }

    /// Adds the commands that a sed script runs, and the files that it reads and writes: names follow `r`, `R`, `w`
    /// and `W`, with or without a space, up to the end of the line.
    fn sed(&mut self, code: &str) {
        for (at, command) in code.match_indices(['r', 'R', 'w', 'W']) {
            let name = code[at + 1..].lines().next().unwrap_or_default().trim_start();
            self.total_bytes += name.len();
            if self.is_full() {
                return;
            }
            let name = Word { text: name.to_owned(), is_literal: true };
            if command.eq_ignore_ascii_case("w") {
                self.written_files.push(name.clone());
            }
            self.redirect_files.push(name);
        }
        self.sed_commands(code);
    }

    /// Adds the texts that a sed script runs: what follows the command `e`, and the replacement of `s` with the flag `e`.
    fn sed_commands(&mut self, code: &str) {
        // An address may be before the command: `1e`, `/x/Ie`.
        let is_command = |at: &usize| !code[..*at].ends_with(|c: char| c.is_alphabetic() && !"IM".contains(c));
        for at in code.match_indices('e').map(|(at, _)| at).filter(is_command) {
            if self.is_full() {
                return;
            }
            self.add_code(code[at + 1..].lines().next().unwrap_or_default());
        }
        for (at, _) in code.match_indices('s') {
            let mut rest = code[at + 1..].chars();
            let Some(sign) = rest.next().filter(|sign| !sign.is_alphanumeric()) else { continue };
            let mut parts = rest.as_str().split(sign).skip(1);
            let (replacement, flags) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            self.total_bytes += replacement.len() + flags.len();
            if self.is_full() {
                return;
            }
            if flags.chars().take_while(|c| c.is_alphanumeric()).any(|c| c == 'e') {
                self.add_code(replacement);
            }
        }
    }

    /// Adds a git command without its leading options, and the commands it may run.
    fn add_git(&mut self, given: &[Word]) {
        let mut words = given;
        while let [option, rest @ ..] = words {
            if !option.text.starts_with('-') {
                break;
            }
            words = rest;
            self.runs_unknown |= !is_known_git_option(&option.text);
            // Settings of another folder may define an alias.
            let foreign = ["--git-dir", "--exec-path="];
            self.runs_unknown |= foreign.iter().any(|start| option.text.starts_with(start));
            let starts = ["-C", "--work-tree", "--git-dir"];
            self.changes_folder |= starts.iter().any(|start| option.text.starts_with(start));
            if let ([value, rest @ ..], true) = (rest, contains_word(GIT_VALUE_OPTIONS, &option.text)) {
                if option.text == "-c" {
                    self.add_git_setting(&value.text);
                }
                words = rest;
            }
        }
        if words.len() < given.len() {
            self.add_named("git", words);
            if let Some(at) = words.iter().position(|word| !word.is_literal) {
                let git = Word { text: "git".to_owned(), is_literal: true };
                self.add_known_prefix(&[std::slice::from_ref(&git), &words[..at]].concat());
            }
        }
        // Programs for the remote side, pagers, and configuration through variables.
        self.runs_unknown |= given.iter().any(|word| word.text.starts_with("--config-env"));
        if words.first().is_some_and(|word| contains_word(GIT_REMOTE_SUBCOMMANDS, &word.text)) {
            for word in &words[1..] {
                self.add_code(option_value(&word.text));
                commands_in_option(&word.text).for_each(|text| self.add_code(text));
            }
        }
        if words.first().is_some_and(|word| contains_word(GIT_RUNNING_SUBCOMMANDS, &word.text)) {
            let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
            self.add_git_setting(&texts[1..].join("="));
            self.add_code(&texts.join(" "));
            for text in &texts {
                self.add_code(option_value(text));
                commands_in_option(text).for_each(|text| self.add_code(text));
            }
            // `for-each-repo` runs git.
            let operands = texts[1..].iter().position(|text| !text.starts_with('-'));
            self.add_code(&format!("git {}", operands.map_or(String::new(), |at| texts[at + 1..].join(" "))));
        }
    }

    /// Adds a git setting, which may be a command. An alias is another name for commands with their options,
    /// and an included file may define one.
    fn add_git_setting(&mut self, text: &str) {
        self.add_code(text);
        let lower = text.to_lowercase();
        let defines_alias =
            ["alias", "help.autocorrect", "include.", "includeif."].iter().any(|name| lower.contains(name));
        self.runs_unknown |= defines_alias;
        if let Some((_, value)) = text.rsplit_once('=').filter(|_| defines_alias) {
            self.add_code(&format!("git {value}"));
        }
    }

    fn add_named(&mut self, name: &str, rest: &[Word]) {
        let mut words = vec![Word { text: name.to_owned(), is_literal: true }];
        words.extend_from_slice(rest);
        self.push_text(shell::format_words(&words));
    }

    /// Adds arguments that may be commands themselves.
    fn add_arguments(&mut self, words: &[Word], depth: usize) {
        for word in words {
            let text = if word.is_literal { word.text.as_str() } else { word.text.trim_matches('"') };
            // Debuggers and editors pass text after `!` to a shell.
            if text.starts_with('!') {
                self.add_code(text);
            }
            if !text.starts_with('-') {
                self.add_text(text, depth);
            } else if text.contains(|c: char| c.is_whitespace() || "<>|&;".contains(c)) {
                // A whole command inside an option: `-Srm x`, `--exec=rm x`.
                self.add_code(text);
                self.add_code(text.get(2..).unwrap_or_default());
                self.add_text(option_value(text), depth);
                commands_in_option(text).for_each(|text| self.add_text(text, depth));
            }
        }
    }

    /// Adds arguments of which some are commands for a shell, also in the same word as their option: `-C'rm x'`, `-Crm`.
    fn add_option_commands(&mut self, words: &[Word], depth: usize) {
        self.add_arguments(words, depth);
        for option in words.iter().filter(|word| word.text.starts_with('-')) {
            self.add_named(option_value(&option.text), &[]);
            texts_after_letters(&option.text).for_each(|name| self.add_named(name, &[]));
        }
    }

    fn add_text(&mut self, text: &str, depth: usize) {
        if depth >= MAX_NESTING || self.is_full() {
            self.runs_unknown = true;
            return;
        }
        // Aliases are written `name=command`.
        let command = text.split_once('=').map(|(_, command)| command);
        for text in [Some(text), command].into_iter().flatten() {
            match shell::parse(text) {
                Ok(script) => self.add_script(&script, depth + 1),
                Err(_) => {
                    self.runs_unknown = true;
                    self.runs_hidden_code = true;
                    self.add_code(text);
                    for text in text.split([';', '&', '|', '\n', '(', ')', '`']) {
                        self.push_text(text.trim().to_owned());
                    }
                }
            }
        }
    }
}

impl PossibleCommands {
    /// Whether git may run, by any of the commands.
    pub(super) fn may_run_git(&self) -> bool {
        let is_git = |text: &String| text.split(' ').next().is_some_and(|name| name.rsplit('/').next() == Some("git"));
        self.texts.iter().any(is_git) || self.foreign_code.iter().any(|code| code.contains("git"))
    }

    /// Whether a program adds words from its input to a command.
    pub(super) fn takes_words_from_input(&self) -> bool {
        let is_one =
            |words: &Vec<Word>| words.first().is_some_and(|first| contains_word(INPUT_WRAPPERS, &program_name(first)));
        self.commands.iter().any(is_one)
    }

    /// Returns the folders, relative to the current one, that options tell git to run in; `None` if they name a
    /// repository in another way.
    pub(super) fn git_folders(&self) -> Option<Vec<PathBuf>> {
        let mut folders = Vec::new();
        let is_git = |words: &&Vec<Word>| words.first().is_some_and(|first| program_name(first) == "git");
        for words in self.commands.iter().filter(is_git) {
            let mut folder = PathBuf::new();
            let mut rest = words[1..].iter();
            while let Some(option) = rest.next().filter(|word| word.text.starts_with('-')) {
                let names = ["--git-dir", "--work-tree", "--namespace", "--exec-path", "--shallow-file"];
                match option.text.as_str() {
                    "-C" => folder.push(&rest.next().filter(|word| word.is_literal)?.text),
                    text if names.iter().any(|name| text.starts_with(name)) || !option.is_literal => return None,
                    text if !is_known_git_option(text) => return None,
                    text if contains_word(GIT_VALUE_OPTIONS, text) => drop(rest.next()),
                    _ => {}
                }
            }
            folders.push(folder);
        }
        Some(folders)
    }
}

/// Returns the words of a command, which is the end of a wrapper's words, that come before those from
/// the wrapper's input: before `{}`, the text that `-I` names, or `:::`. Otherwise all of them, because
/// the input is added at the end.
fn words_before_input<'a>(wrapper: &[Word], command: &'a [Word]) -> &'a [Word] {
    let named = wrapper.windows(2).filter(|pair| pair[0].text == "-I").map(|pair| pair[1].text.as_str());
    let joined =
        wrapper.iter().filter_map(|word| word.text.strip_prefix("--replace=").or_else(|| word.text.strip_prefix("-I")));
    let marks: Vec<&str> = named.chain(joined).chain(["{}", ":::"]).filter(|mark| !mark.is_empty()).collect();
    let is_input = |word: &Word| marks.iter().any(|mark| word.text.contains(mark));
    &command[..command.iter().position(is_input).unwrap_or(command.len())]
}

/// Whether the arguments of a shell contain its script: `-c` or a file. Otherwise it runs
/// its standard input.
fn has_explicit_script(words: &[Word]) -> bool {
    let is_option = |word: &&Word| word.text.starts_with(['-', '+']);
    let options: Vec<&Word> = words.iter().take_while(is_option).collect();
    let known = options.iter().all(|option| {
        let letters = option.text.strip_prefix('-').unwrap_or("?");
        !letters.is_empty() && letters.chars().all(|c| "celuvx".contains(c)) || option.text == "--login"
    });
    let given = words.get(options.len());
    known && given.is_some_and(|word| word.is_literal && !may_name_device(&word.text))
}

/// Whether a path may lead to a device or a descriptor of a process, such as standard input.
fn may_name_device(path: &str) -> bool {
    let is_one = |name: &OsStr| name == "dev" || name == "proc";
    let path = Path::new(path);
    if path.is_absolute() {
        return without_dots(path).iter().nth(1).is_some_and(is_one);
    }
    // The current folder may be `/dev` or `/proc/self/fd`.
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let is_descriptor = name == "stdin" || !name.is_empty() && name.chars().all(|c| c.is_ascii_digit());
    is_descriptor || path.iter().any(|name| name == "..") && path.iter().any(is_one)
}

/// Whether an interpreter runs code from its standard input: it is given nothing but options
/// without code, or `-`. `fc` runs what the shell remembers.
fn runs_stdin(name: &str, words: &[Word]) -> bool {
    let is_one = |name: &str| contains_word(STDIN_INTERPRETERS, name);
    if name != "fc" && !is_one(name) && !is_one(without_version(name)) {
        return false;
    }
    let is_stdin = |word: &Word| {
        let value = option_value(&word.text);
        word.text == "-" || word.text.starts_with('-') && value == "-" || may_name_device(value)
    };
    let shows = ["--version", "--help", "-V", "-v", "-h", "-l"];
    let is_query = |word: &Word| shows.contains(&word.text.as_str());
    let is_bare = words.iter().all(|word| word.text.starts_with('-') && !word.text.contains(char::is_whitespace));
    let takes_input = !contains_word("make gmake", name);
    words.iter().any(is_stdin) || takes_input && (is_bare || name == "fc") && !words.iter().any(is_query)
}

/// Whether a program starts a shell on its standard input because it is given no command.
fn starts_shell(name: &str, words: &[Word]) -> bool {
    let is_option = |word: &Word| word.text.starts_with('-') && word.text != "--";
    let has_letter = |letters: &[char]| {
        words.iter().any(|word| is_option(word) && !word.text.starts_with("--") && word.text.contains(letters))
    };
    let is_told = |option: &str| words.iter().any(|word| word.text.starts_with(option));
    // A word after an option may be its value.
    let is_operand = |at: &usize| !words[*at].text.starts_with('-') && (*at == 0 || !is_option(&words[*at - 1]));
    let operands = (0..words.len()).filter(is_operand).count();
    match name {
        "sudo" | "doas" => operands == 0 && (has_letter(&['s', 'i']) || is_told("--shell") || is_told("--login")),
        "runuser" | "script" | "sg" | "su" if has_letter(&['c']) || is_told("--c") || is_told("--session-command") => {
            false
        }
        _ => SHELL_STARTERS.iter().any(|(starter, before)| *starter == name && operands <= *before),
    }
}

/// Whether an option of git before the subcommand is known, with a value in the same word only if it is a long one.
pub(super) fn is_known_git_option(option: &str) -> bool {
    let name = if option.starts_with("--") { option.split('=').next().unwrap_or(option) } else { option };
    contains_word(GIT_VALUE_OPTIONS, name) || contains_word(GIT_PLAIN_OPTIONS, name)
}

/// Whether a script runs git and sets a variable that chooses which settings git reads.
fn chooses_git_settings(script: &Script) -> bool {
    let is_set = |text: &str| text.split_once('=').is_some_and(|(name, _)| GIT_FOLDER_VARIABLES.contains(&name));
    let words = || script.commands.iter().flat_map(|part| &part.words);
    let mut assignments = script.commands.iter().flat_map(|part| &part.assignments);
    words().any(|word| program_name(word) == "git")
        && (assignments.any(|assignment| is_set(assignment)) || words().any(|word| is_set(&word.text)))
}

/// Returns the texts in an option that may be commands, after other letters: `-iSrm x`.
fn commands_in_option(option: &str) -> impl Iterator<Item = &str> {
    let has_command = option.contains(|c: char| c.is_whitespace() || "<>|&;".contains(c));
    texts_after_letters(option).filter(move |_| has_command)
}

/// Returns what follows each of the first letters of a short option but the first.
fn texts_after_letters(option: &str) -> impl Iterator<Item = &str> {
    let letters = option.strip_prefix('-').filter(|letters| !letters.starts_with('-')).unwrap_or_default();
    let ends = letters.char_indices().skip(2).take(MAX_LETTERS_BEFORE_COMMAND);
    ends.map(|(at, _)| &letters[at..])
}

/// Returns code of make without the signs before commands that are not parts of them: `-rm x`, `@rm x`, `$Arm x`.
fn without_recipe_marks(code: &str) -> String {
    let is_mark = |c: char| c.is_whitespace() || "-@+".contains(c);
    let code: String = code.split('$').enumerate().fold(String::new(), |mut code, (at, part)| {
        // The name of a variable is one character unless it is in brackets.
        let mut rest = part.chars();
        let is_short = at > 0 && rest.next().is_some_and(char::is_alphanumeric);
        code.push(' ');
        code.push_str(if is_short { rest.as_str() } else { part });
        code
    });
    let commands: Vec<&str> = code.split(['\n', ';']).skip(1).map(|line| line.trim_start_matches(is_mark)).collect();
    commands.join("\n")
}

/// Whether a program runs its arguments as a command.
fn is_wrapper(name: &str, words: &[Word]) -> bool {
    let told = |word: &str| words.iter().any(|given| given.text == word);
    contains_word(WRAPPERS, name)
        || name.starts_with("ld-")
        || name == "ld.so"
        || RUNNERS.iter().any(|(runner, word)| *runner == name && told(word))
}

/// Whether a program is tar, whose options may be one word without a dash: `tar cIf rm x`.
pub(super) fn is_tar(name: &str) -> bool {
    contains_word("tar bsdtar", name)
}

/// Whether a word makes a command run in another folder.
fn changes_folder(word: &Word) -> bool {
    let starts = ["-C", "-D", "--chdir", "--cwd", "--directory", "--wd", "--working-directory", "-execdir", "-okdir"];
    contains_word("cd pushd popd", &word.text) || starts.iter().any(|start| word.text.starts_with(start))
}

/// Whether an option of a wrapper may be one that changes the folder, cut short or after other letters: `--c=src`,
/// `-iCsrc`.
fn may_change_folder(wrapper: &str, words: &[Word]) -> bool {
    let is_option = |word: &&Word| word.text.starts_with('-');
    let may_change = |word: &Word| match word.text.strip_prefix("--") {
        Some(name) => name.starts_with(['c', 'd', 'p', 'w']),
        None => word.text.contains(['C', 'D', 'w']),
    };
    match RUNNERS.iter().any(|(runner, _)| *runner == wrapper) {
        true => words.iter().filter(is_option).any(may_change),
        false => words.iter().take_while(is_option).any(may_change),
    }
}

/// Returns the value of an option in the same word, or the word itself.
fn option_value(word: &str) -> &str {
    match word.split_once('=') {
        Some((_, value)) if word.starts_with("--") => value,
        _ if word.starts_with('-') && !word.starts_with("--") => word.get(2..).unwrap_or_default(),
        _ => word,
    }
}

/// Returns the name of the program: without its folder and in lower case, because some file
/// systems ignore case.
pub(super) fn program_name(word: &Word) -> String {
    word.text.rsplit('/').next().unwrap_or_default().to_lowercase()
}

fn contains_word(words: &str, name: &str) -> bool {
    words.split(' ').any(|word| word == name)
}

fn is_interpreter(name: &str) -> bool {
    contains_word(INTERPRETERS, name) || contains_word(INTERPRETERS, without_version(name))
}

fn without_version(name: &str) -> &str {
    // `vim.basic`
    let name = name.split('.').next().unwrap_or(name);
    // `gcc-12`
    name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('-')
}

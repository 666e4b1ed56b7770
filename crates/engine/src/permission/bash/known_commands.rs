//! Commands whose effect is known from their words alone.
//!
//! The lists are closed: an option that is not in them makes the command unknown, and an
//! unknown command is asked about.

use super::possible_commands::program_name;
use crate::permission::shell::Word;

pub(super) mod git;

/// Effect of a known command on the paths among its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandEffect {
    /// Reads them or does not use them.
    ReadOnly,
    /// Changes them.
    ChangesFiles,
}

/// A command with its short and long options. A value in the same word as its option may
/// contain digits and punctuation, but no path.
struct KnownCommand(&'static str, &'static str, &'static [&'static str]);

const COLOR_OPTION: &str = "--color";

const GREP_OPTIONS: &[&str] = &[
    COLOR_OPTION,
    "--after-context",
    "--before-context",
    "--context",
    "--count",
    "--exclude",
    "--exclude-dir",
    "--extended-regexp",
    "--files-with-matches",
    "--files-without-match",
    "--fixed-strings",
    "--ignore-case",
    "--include",
    "--invert-match",
    "--line-number",
    "--line-regexp",
    "--max-count",
    "--no-filename",
    "--no-messages",
    "--only-matching",
    "--perl-regexp",
    "--quiet",
    "--recursive",
    "--text",
    "--with-filename",
    "--word-regexp",
];

/// Options of ripgrep that neither run programs nor name files.
const RIPGREP_OPTIONS: &[&str] = &[
    COLOR_OPTION,
    "--after-context",
    "--before-context",
    "--context",
    "--count",
    "--files",
    "--files-with-matches",
    "--files-without-match",
    "--fixed-strings",
    "--glob",
    "--heading",
    "--hidden",
    "--ignore-case",
    "--line-number",
    "--max-count",
    "--max-depth",
    "--multiline",
    "--no-filename",
    "--no-heading",
    "--no-ignore",
    "--no-line-number",
    "--only-matching",
    "--smart-case",
    "--sort",
    "--stats",
    "--type",
    "--type-list",
    "--type-not",
    "--with-filename",
    "--word-regexp",
];

/// Commands that only read.
const READ_COMMANDS: [KnownCommand; 57] = [
    KnownCommand(":", "", &[]),
    KnownCommand("base64", "diw", &["--decode", "--wrap"]),
    KnownCommand("basename", "asz", &[]),
    KnownCommand("cat", "AbeEnstTuv", &["--number", "--show-all"]),
    KnownCommand("cksum", "", &[]),
    KnownCommand("cmp", "bilns", &[]),
    KnownCommand("column", "cnostx", &[]),
    KnownCommand("comm", "123z", &[]),
    KnownCommand("cut", "bcdfnsz", &["--characters", "--complement", "--delimiter", "--fields", "--output-delimiter"]),
    KnownCommand("df", "ahHikmT", &[]),
    KnownCommand("diff", "abBcCdEiqstuUwyZ", &[COLOR_OPTION, "--brief", "--side-by-side", "--unified"]),
    KnownCommand("dirname", "z", &[]),
    KnownCommand("du", "0abcdhkmsx", &["--max-depth"]),
    KnownCommand("egrep", "aABcCeEFGhHilLmnoPqrsvwxyzZ", GREP_OPTIONS),
    KnownCommand("exit", "", &[]),
    KnownCommand("false", "", &[]),
    KnownCommand("fgrep", "aABcCeEFGhHilLmnoPqrsvwxyzZ", GREP_OPTIONS),
    KnownCommand("file", "bhi", &["--brief", "--mime", "--mime-type"]),
    KnownCommand("fold", "bsw", &[]),
    KnownCommand("free", "bghkmt", &[]),
    KnownCommand("grep", "aABcCeEFGhHilLmnoPqrsvwxyzZ", GREP_OPTIONS),
    KnownCommand("head", "cnqvz", &["--bytes", "--lines"]),
    KnownCommand("hexdump", "Cnsv", &[]),
    KnownCommand("id", "gGnruz", &[]),
    KnownCommand("join", "12aeijotv", &[]),
    KnownCommand(
        "ls",
        "1aAbBcCdfFgGhiIklmnNopqQrRsStTuUvwxXZ",
        &[
            COLOR_OPTION,
            "--all",
            "--almost-all",
            "--directory",
            "--full-time",
            "--group-directories-first",
            "--human-readable",
            "--inode",
            "--recursive",
            "--reverse",
            "--size",
            "--sort",
            "--time",
        ],
    ),
    KnownCommand("md5sum", "btz", &[]),
    KnownCommand("nl", "abdfhilnpstvw", &[]),
    KnownCommand("nproc", "", &["--all"]),
    KnownCommand("od", "aAbcdDefFhHiIjlLNoOsStvwxX", &[]),
    KnownCommand("paste", "dsz", &[]),
    KnownCommand("printenv", "0", &[]),
    KnownCommand("printf", "", &[]),
    KnownCommand("pwd", "LP", &[]),
    KnownCommand("readlink", "efmnqz", &[]),
    KnownCommand("realpath", "emqsz", &[]),
    KnownCommand("rev", "", &[]),
    KnownCommand("rg", "ABCcFegHiIlmnNoPSstTUuvwx0", RIPGREP_OPTIONS),
    KnownCommand("seq", "fsw", &[]),
    KnownCommand("sha1sum", "btz", &[]),
    KnownCommand("sha256sum", "btz", &[]),
    KnownCommand("sha512sum", "btz", &[]),
    KnownCommand("sleep", "", &[]),
    KnownCommand(
        "sort",
        "bcCdfghikmMnrRstuVz",
        &["--key", "--numeric-sort", "--reverse", "--unique", "--version-sort"],
    ),
    KnownCommand("stat", "cft", &["--format", "--printf"]),
    KnownCommand("strings", "aefnt", &[]),
    KnownCommand("tac", "brs", &[]),
    KnownCommand("tail", "cfFnqvz", &["--bytes", "--lines"]),
    KnownCommand("tr", "cCdst", &[]),
    KnownCommand("tree", "aACdDfFghiILnNpPrsStuvx", &["--dirsfirst", "--gitignore", "--noreport"]),
    KnownCommand("true", "", &[]),
    KnownCommand("uname", "amnoprsv", &[]),
    KnownCommand("uniq", "cdDfisuwz", &["--count", "--repeated", "--unique"]),
    KnownCommand("uptime", "ps", &[]),
    KnownCommand("wc", "clLmw", &["--bytes", "--chars", "--lines", "--words"]),
    KnownCommand("which", "as", &[]),
    KnownCommand("whoami", "", &[]),
];

/// Commands that change the files they name, and nothing else.
const CHANGE_COMMANDS: [KnownCommand; 6] = [
    KnownCommand("cp", "afiInprRuv", &[]),
    KnownCommand("mkdir", "pv", &[]),
    KnownCommand("mv", "finuv", &[]),
    KnownCommand("rm", "dfiIrRv", &[]),
    KnownCommand("rmdir", "pv", &[]),
    KnownCommand("touch", "acm", &[]),
];

/// Options of `find` that neither run nor write anything.
const FIND_OPTIONS: &str = "-a -and -empty -iname -ipath -ls -maxdepth -mindepth -mmin -mtime -name -newer -not -o -or -path \
                    -perm -print -print0 -prune -regex -size -type -wholename";

/// Operators of `test` and `[`.
const TEST_OPTIONS: &str = "-a -b -c -d -e -ef -eq -f -g -G -ge -gt -h -k -L -le -lt -n -N -ne -nt -o -O -ot -p -r -s -S -t -u \
                    -w -x -z";

/// Commands that read names and attributes of files, but not their contents.
const ATTRIBUTE_COMMANDS: &str = "[ basename cd dirname df du echo exit false find id ls printf pwd readlink realpath seq sleep \
                          stat test true uname which whoami :";

/// Filters with their short options whose value may be the next word.
const VALUE_OPTIONS: [(&str, &str); 9] = [
    ("column", "cos"),
    ("cut", "bcdf"),
    ("egrep", "ABCem"),
    ("fgrep", "ABCem"),
    ("fold", "w"),
    ("grep", "ABCem"),
    ("head", "cn"),
    ("sort", "kt"),
    ("tail", "cn"),
];

/// Commands that search folders or take file names from their input.
const SEARCH_COMMANDS: &str = "ack ag cpio fd fdfind parallel pax rg rgrep ripgrep tar ugrep xargs zip";

/// Returns the effect of a command; `None` if its words do not show it.
pub(super) fn command_effect(words: &[Word]) -> Option<CommandEffect> {
    let (first, rest) = words.split_first()?;
    if words.iter().any(|word| !word.is_literal || word.text.contains("=~") || word.text.contains(":~")) {
        return None;
    }
    let options = options(rest);
    // A path inside an option would not be checked.
    if options.iter().any(|option| option.contains(['/', '~']) || option.contains("..")) {
        return None;
    }
    // These have no end of options: `find -- . -delete` deletes, `test -- -a -v x[y]` evaluates `y`.
    let all = |list: &str| dashed_words(rest).all(|word| contains_word(list, word));
    let find = |list: &'static [KnownCommand]| list.iter().find(|known| known.0 == first.text);
    let reads = match first.text.as_str() {
        // It prints whatever it is given.
        "echo" => true,
        "date" => is_date_query(rest),
        "git" => git::is_read_only(rest),
        "find" => all(FIND_OPTIONS),
        "test" | "[" => all(TEST_OPTIONS),
        "command" | "type" => finds_programs(words),
        "jq" => is_jq_query(rest),
        "sed" => prints_lines(rest),
        _ if sets_variables(words) => false,
        // It reads options from such a file.
        "strings" if operands(rest).iter().any(|name| name.starts_with('@')) => false,
        _ if is_version_query(words) => true,
        // A second name is where it writes.
        "uniq" if operands(rest).len() > 1 => false,
        _ => find(&READ_COMMANDS).is_some_and(|known| options.iter().all(|option| known.accepts_option(option))),
    };
    let changes = find(&CHANGE_COMMANDS).is_some_and(|known| options.iter().all(|option| known.accepts_option(option)));
    if reads { Some(CommandEffect::ReadOnly) } else { changes.then_some(CommandEffect::ChangesFiles) }
}

/// Whether a command that only reads may run without a sandbox, beside one that a rule allows. Its options
/// alone must show what it does: expressions of `find`, `test` and `printf` are languages of their own, and
/// git may be used only if a rule allows git too.
pub(super) fn is_plain(words: &[Word], allows_git: bool) -> bool {
    let Some((first, rest)) = words.split_first() else { return true };
    match first.text.as_str() {
        "cd" | "echo" => true,
        "git" => allows_git && rest.first().is_some_and(|word| contains_word(git::PLAIN_SUBCOMMANDS, &word.text)),
        "test" => is_file_test(rest),
        "[" => rest.split_last().is_some_and(|(last, rest)| last.text == "]" && is_file_test(rest)),
        "printenv" | "printf" | "rg" | "strings" => false,
        "sed" => prints_lines(rest),
        name => READ_COMMANDS.iter().any(|known| known.0 == name),
    }
}

/// Whether the operands of a command that only reads are files to read.
pub(super) fn takes_files(name: &str) -> bool {
    // The second name of `uniq` is where it writes, and a name may be a format of `printf` that sets a variable.
    !["printf", "uniq"].contains(&name) && READ_COMMANDS.iter().any(|known| known.0 == name)
}

/// Whether a command shows names and attributes of files, but not their contents.
pub(super) fn shows_attributes_only(name: &str) -> bool {
    contains_word(ATTRIBUTE_COMMANDS, name)
}

/// Whether a command is a builtin that only prints where programs are: `command -v`, `type`.
pub(super) fn finds_programs(words: &[Word]) -> bool {
    let Some((first, rest)) = words.split_first() else { return false };
    let is_name = |word: &Word| word.is_literal && !word.text.starts_with('-');
    match first.text.as_str() {
        "command" => {
            matches!(rest, [option, names @ ..] if ["-v", "-V"].contains(&option.text.as_str()) && names.iter().all(is_name))
        }
        "type" => rest.iter().all(|word| is_name(word) || ["-a", "-p", "-t"].contains(&word.text.as_str())),
        _ => false,
    }
}

/// Whether a command prints the version of a program, which may be one that the project chooses.
pub(super) fn is_version_query(words: &[Word]) -> bool {
    matches!(words, [program, option]
        if option.text == "--version" && contains_word("cargo go node npm python3 rustc", &program.text))
}

/// Whether a word that the shell expands stays a pattern for names in a search: `--include=*.rs`.
pub(super) fn is_search_pattern(command: &str, text: &str) -> bool {
    let pattern = ["--include=", "--exclude=", "--exclude-dir="].iter().find_map(|option| text.strip_prefix(option));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-*?".contains(c);
    contains_word("egrep fgrep grep", command) && pattern.is_some_and(|pattern| pattern.chars().all(is_plain))
}

/// Whether words of `sed` print lines by number: `-n '2,5p' FILE`.
fn prints_lines(words: &[Word]) -> bool {
    let is_number = |text: &str| text == "$" || !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_print = |text: &str| {
        let range = text.trim().strip_suffix('p');
        range.is_some_and(|range| range.split(',').count() <= 2 && range.split(',').all(is_number))
    };
    match words {
        [option, script, files @ ..] => {
            let has_options = files.iter().any(|word| word.text.starts_with('-'));
            option.text == "-n" && script.text.split(';').all(is_print) && !has_options
        }
        _ => false,
    }
}

/// Whether words of `jq` filter their input without reading modules.
fn is_jq_query(words: &[Word]) -> bool {
    let filter = operands(words).first().copied().unwrap_or_default();
    let known =
        KnownCommand("jq", "acCeMnrsSj", &["--compact-output", "--raw-output", "--slurp", "--sort-keys", "--tab"]);
    options(words).iter().all(|option| known.accepts_option(option))
        && !["import", "include", "modulemeta"].iter().any(|word| filter.contains(word))
}

/// Whether words of `test` ask about one file.
fn is_file_test(words: &[Word]) -> bool {
    let words = if words.first().is_some_and(|word| word.text == "!") { &words[1..] } else { words };
    matches!(words, [operator, _] if contains_word("-d -e -f -h -L -r -s -w -x", &operator.text))
}

/// Whether a command is `printf` and sets a variable: by `-v`, or by `%n`, which stores how many
/// characters were printed.
pub(super) fn sets_variables(words: &[Word]) -> bool {
    let is_modifier = |c: char| c.is_ascii_digit() || "-+ #'.*$hjlLqtzI".contains(c);
    let stores_count = |text: &str| {
        let mut conversions = text.split('%').skip(1);
        conversions.any(|rest| rest.trim_start_matches(is_modifier).starts_with('n'))
    };
    let Some((first, rest)) = words.split_first() else { return false };
    first.text == "printf" && rest.iter().any(|word| word.text.starts_with("-v") || stores_count(&word.text))
}

impl KnownCommand {
    fn accepts_option(&self, option: &str) -> bool {
        match option.strip_prefix("--") {
            Some(_) => self.2.contains(&option.split('=').next().unwrap_or(option)),
            None => option[1..].chars().all(|c| self.1.contains(c) || c.is_ascii_digit() || "+-,;:|%= ".contains(c)),
        }
    }
}

/// Returns the words that may be options, also after `--`, which may be the value of an option: `grep -e -- -r`.
fn options(words: &[Word]) -> Vec<&str> {
    dashed_words(words).filter(|text| *text != "--").collect()
}

/// Returns all words that start with a dash, also after `--`.
fn dashed_words(words: &[Word]) -> impl Iterator<Item = &str> {
    words.iter().map(|word| word.text.as_str()).filter(|text| text.starts_with('-') && *text != "-")
}

/// Returns the words that may name files: those that are not options, and all after `--`.
pub(super) fn operands(words: &[Word]) -> Vec<&str> {
    let mut found = Vec::new();
    let mut only_operands = false;
    for text in words.iter().map(|word| word.text.as_str()) {
        if text == "--" && !only_operands {
            only_operands = true;
        } else if only_operands || !text.starts_with('-') || text == "-" {
            found.push(text);
        }
    }
    found
}

/// Whether a command may show the contents of files it does not name, because a folder is
/// among its words or it searches the current one.
pub(super) fn may_search_files(words: &[Word], is_folder: impl Fn(&str) -> bool) -> bool {
    let Some((first, rest)) = words.split_first() else { return false };
    let name = program_name(first);
    if name == "git" {
        return git::may_show_contents(rest);
    }
    let runs = |word: &Word| word.text.starts_with("-exec") || word.text.starts_with("-ok");
    if contains_word(SEARCH_COMMANDS, &name) || (name == "find" && rest.iter().any(runs)) {
        return true;
    }
    if contains_word(ATTRIBUTE_COMMANDS, &name) {
        return false;
    }
    let greps = name.ends_with("grep") && options(rest).iter().any(|option| is_recursive(option));
    greps || operands(rest).into_iter().any(is_folder)
}

/// Whether an option of `grep` may make it search folders: `-r`, `-d recurse`, also cut short: `--rec`.
fn is_recursive(option: &str) -> bool {
    match option.strip_prefix("--") {
        Some(name) => name.starts_with('r') || name.starts_with('d'),
        None => option.contains(['d', 'r', 'R']),
    }
}

/// Whether a command that only reads may follow links inside the folders it names, out of the
/// session's folders. The paths that it names are checked, but not the files inside them.
pub(super) fn may_follow_links(words: &[Word], is_folder: impl Fn(&str) -> bool) -> bool {
    words.split_first().is_some_and(|(first, rest)| first.text == "diff" && operands(rest).into_iter().any(is_folder))
}

/// Whether a command that only reads may show the contents of a file that it names, or goes to a
/// folder. Filters that read their input do not: `head -n 5`, `grep x`.
pub(super) fn may_show_named_files(words: &[Word]) -> bool {
    let Some((first, rest)) = words.split_first() else { return false };
    let name = first.text.as_str();
    if name != "cd" && (contains_word(ATTRIBUTE_COMMANDS, name) || ["date", "git", "tr"].contains(&name)) {
        return false;
    }
    let values = VALUE_OPTIONS.iter().find(|(command, _)| *command == name).map_or("", |(_, options)| options);
    // The next word may be the value of a long option, whatever it looks like: `--exclude -A`.
    let has_long_option = options(rest).iter().any(|option| option.starts_with("--") && !option.contains('='));
    let values = if has_long_option { "" } else { values };
    let takes_value = |word: &Word| {
        let mut letters = word.text.strip_prefix('-').unwrap_or_default().chars();
        letters.next().is_some_and(|letter| values.contains(letter)) && letters.next().is_none()
    };
    let end = rest.iter().position(|word| word.text == "--").unwrap_or(rest.len());
    let mut named = rest.len().saturating_sub(end + 1);
    let mut before = rest[..end].iter();
    while let Some(word) = before.next() {
        if takes_value(word) {
            before.next();
        } else if !word.text.starts_with('-') {
            named += 1;
        }
    }
    let has_pattern_option = options(rest).iter().any(|option| !option.starts_with("--") && option.contains('e'));
    // The script of `sed`, which only prints lines here, is no file either.
    let patterns = usize::from(name == "sed" || name.ends_with("grep") && !has_pattern_option);
    let searches_folder = name.ends_with("grep") && options(rest).iter().any(|option| is_recursive(option));
    named > patterns || searches_folder
}

/// Whether a command may copy or move links: `cp -r`, and `mv` or `git mv` of anything but a file.
/// Names later in the script may then refer to other files.
pub(super) fn may_move_links(words: &[Word], is_file: impl Fn(&str) -> bool) -> bool {
    let Some((first, rest)) = words.split_first() else { return false };
    let sources = operands(rest);
    let sources = sources.split_last().map_or(&[][..], |(_, sources)| sources);
    match program_name(first).as_str() {
        "mv" => !sources.iter().all(|name| is_file(name)),
        "git" => {
            let moved = sources.iter().position(|word| *word == "mv").map(|at| &sources[at + 1..]);
            moved.is_some_and(|moved| !moved.iter().all(|name| is_file(name)))
        }
        "cp" => options(rest).iter().any(|option| option.contains(['a', 'r', 'R'])),
        _ => false,
    }
}

/// Returns the files that a command makes in a folder which it names last or with `-t`: `cp a/b x` may make `x/b`.
pub(super) fn copied_names(words: &[Word]) -> Vec<String> {
    let Some((first, rest)) = words.split_first() else { return Vec::new() };
    if !contains_word("cp install ln mv rsync scp", &program_name(first)) {
        return Vec::new();
    }
    let named = operands(rest);
    // `-vt` may come before the folder, in the same word or not.
    let after_letter = |option: &'_ str| option.match_indices('t').map(|(at, _)| at + 1).collect::<Vec<_>>();
    let joined = options(rest).into_iter().flat_map(|option| match option.strip_prefix("--") {
        Some(long) => long.split_once('=').map(|(_, folder)| folder).into_iter().collect::<Vec<_>>(),
        None => after_letter(option).into_iter().map(|at| &option[at..]).collect(),
    });
    let follows = rest.windows(2).filter(|pair| pair[0].text.starts_with('-')).map(|pair| pair[1].text.as_str());
    let ends = [named.first().copied(), named.last().copied()];
    let folders: Vec<&str> =
        joined.chain(follows).chain(ends.into_iter().flatten()).filter(|folder| !folder.is_empty()).collect();
    let names = named.iter().filter_map(|name| name.trim_end_matches('/').rsplit('/').next());
    names.flat_map(|name| folders.iter().map(move |folder| format!("{folder}/{name}"))).collect()
}

/// Programs besides [`READ_COMMANDS`] and [`CHANGE_COMMANDS`] that write the files they are given.
const WRITE_COMMANDS: &str = "\
    bsdtar bzip2 cpio csplit curl dd find gunzip gzip iconv install ln patch rename rsync scp script sed shred shuf sponge \
    split tar tee truncate unlink unxz unzip wget xxd xz zip zstd";

/// Git subcommands whose operands are no files that they write in the working folder.
const GIT_NOT_WRITING: &str = "\
    add annotate blame branch cat-file check-ignore commit describe diff fetch for-each-ref grep log ls-files ls-tree \
    merge-base name-rev pull push reflog remote reset rev-list rev-parse shortlog show status tag";

/// Options of git before a file that it writes.
const GIT_OUTPUT_OPTIONS: [&str; 3] = ["--output", "--output-directory", "-o"];

/// Returns the names of files in a command that it may change, if the program is known: all unless it only reads, and
/// of git those for its output.
pub(super) fn changed_names(words: &[Word]) -> Vec<String> {
    let Some((first, rest)) = words.split_first() else { return Vec::new() };
    let name = program_name(first);
    let texts = || rest.iter().map(|word| word.text.as_str());
    if name == "git" {
        let is_output = |word: &Word| GIT_OUTPUT_OPTIONS.contains(&word.text.as_str());
        let follows = rest.windows(2).filter(|pair| is_output(&pair[0])).map(|pair| pair[1].text.as_str());
        let joined = texts().filter_map(|text| text.strip_prefix("--output").or(text.strip_prefix("-o")));
        let is_writer = !git::subcommand(rest).is_some_and(|name| contains_word(GIT_NOT_WRITING, name));
        let named = texts().filter(|_| is_writer);
        return follows.chain(joined).chain(named).map(str::to_owned).collect();
    }
    match is_write_command(&name) && command_effect(words) != Some(CommandEffect::ReadOnly) {
        true => texts().map(str::to_owned).collect(),
        false => Vec::new(),
    }
}

fn is_write_command(name: &str) -> bool {
    contains_word(WRITE_COMMANDS, name) || READ_COMMANDS.iter().chain(&CHANGE_COMMANDS).any(|known| known.0 == name)
}

/// Whether [`changed_names`] knows the program, and it does not only read.
pub(super) fn may_write_files(words: &[Word]) -> bool {
    let Some(first) = words.first() else { return false };
    let name = program_name(first);
    (name == "git" || is_write_command(&name)) && command_effect(words) != Some(CommandEffect::ReadOnly)
}

/// Whether the words of a program are code in which names of files may be.
pub(super) fn runs_script(words: &[Word]) -> bool {
    words.first().is_some_and(|first| program_name(first) == "sed")
}

/// Whether a command removes files that it does not name, among which may be files with deny rules.
pub(super) fn removes_folders(words: &[Word], is_folder: impl Fn(&str) -> bool) -> bool {
    let Some((first, rest)) = words.split_first() else { return false };
    match program_name(first).as_str() {
        "rm" => operands(rest).into_iter().any(is_folder),
        "find" => !dashed_words(rest).all(|word| contains_word(FIND_OPTIONS, word)),
        "git" => match operands(rest).as_slice() {
            ["clean", ..] => true,
            ["rm", names @ ..] => names.iter().any(|name| is_folder(name) || name.contains(['*', '?', '['])),
            _ => false,
        },
        _ => false,
    }
}

/// Whether `date` only prints the date instead of setting the clock.
fn is_date_query(words: &[Word]) -> bool {
    let mut words = words.iter().map(|word| word.text.as_str());
    while let Some(word) = words.next() {
        let shows = word.starts_with('+')
            || ["-u", "-R", "-I", "--utc", "--iso-8601", "--rfc-email"].contains(&word)
            || ["-I", "--iso-8601=", "--rfc-3339=", "--date=", "-d"].iter().any(|start| word.starts_with(start));
        if !shows || (word == "-d" && words.next().is_none()) {
            return false;
        }
    }
    true
}

fn contains_word(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}

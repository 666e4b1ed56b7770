//! Commands whose effect is known from their words alone.
//!
//! The lists are closed: an option that is not in them makes the command unknown, and an
//! unknown command is asked about.

use crate::permission::shell::Word;

pub(super) mod git;

/// What a known command does with the paths among its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    /// Reads them, or nothing at all.
    Reads,
    /// Changes them.
    Changes,
}

/// A command with the letters of its options and its long options. Values that stand in
/// the same word as their option may hold digits and marks, but no path.
struct Known(&'static str, &'static str, &'static [&'static str]);

const COLOR: &str = "--color";

const GREP: &[&str] = &[
    COLOR,
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

/// Commands that only read.
const READ: [Known; 45] = [
    Known(":", "", &[]),
    Known("basename", "asz", &[]),
    Known("cat", "AbeEnstTuv", &["--number", "--show-all"]),
    Known("cksum", "", &[]),
    Known("cmp", "bilns", &[]),
    Known("column", "cnostx", &[]),
    Known("comm", "123z", &[]),
    Known("cut", "bcdfnsz", &["--characters", "--complement", "--delimiter", "--fields", "--output-delimiter"]),
    Known("df", "ahHikmT", &[]),
    Known("diff", "abBcCdEiqstuUwyZ", &[COLOR, "--brief", "--side-by-side", "--unified"]),
    Known("dirname", "z", &[]),
    Known("du", "0abcdhkmsx", &["--max-depth"]),
    Known("egrep", "aABcCeEFGhHilLmnoPqrsvwxyzZ", GREP),
    Known("exit", "", &[]),
    Known("false", "", &[]),
    Known("fgrep", "aABcCeEFGhHilLmnoPqrsvwxyzZ", GREP),
    Known("file", "bhi", &["--brief", "--mime", "--mime-type"]),
    Known("fold", "bsw", &[]),
    Known("grep", "aABcCeEFGhHilLmnoPqrsvwxyzZ", GREP),
    Known("head", "cnqvz", &["--bytes", "--lines"]),
    Known("id", "gGnruz", &[]),
    Known("join", "12aeijotv", &[]),
    Known(
        "ls",
        "1aAbBcCdfFgGhiIklmnNopqQrRsStTuUvwxXZ",
        &[
            COLOR,
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
    Known("md5sum", "btz", &[]),
    Known("nl", "bdfhilnpsvw", &[]),
    Known("paste", "dsz", &[]),
    Known("printf", "", &[]),
    Known("pwd", "LP", &[]),
    Known("readlink", "efmnqz", &[]),
    Known("realpath", "emqsz", &[]),
    Known("rev", "", &[]),
    Known("seq", "fsw", &[]),
    Known("sha256sum", "btz", &[]),
    Known("sleep", "", &[]),
    Known("sort", "bcCdfghikmMnrRstuVz", &["--key", "--numeric-sort", "--reverse", "--unique", "--version-sort"]),
    Known("stat", "cft", &["--format", "--printf"]),
    Known("tac", "brs", &[]),
    Known("tail", "cfFnqvz", &["--bytes", "--lines"]),
    Known("tr", "cCdst", &[]),
    Known("true", "", &[]),
    Known("uname", "amnoprsv", &[]),
    Known("uniq", "cdDfisuwz", &["--count", "--repeated", "--unique"]),
    Known("wc", "clLmw", &["--bytes", "--chars", "--lines", "--words"]),
    Known("which", "as", &[]),
    Known("whoami", "", &[]),
];

/// Commands that change the files they name, and nothing else.
const CHANGE: [Known; 6] = [
    Known("cp", "afiInprRuv", &[]),
    Known("mkdir", "pv", &[]),
    Known("mv", "finuv", &[]),
    Known("rm", "dfiIrRv", &[]),
    Known("rmdir", "pv", &[]),
    Known("touch", "acm", &[]),
];

/// What `find` may be told without running or writing anything.
const FIND: &str = "-a -and -empty -iname -ipath -ls -maxdepth -mindepth -mmin -mtime -name -newer -not -o -or -path \
                    -perm -print -print0 -prune -regex -size -type -wholename";

/// What `test` and `[` may ask.
const TEST: &str = "-a -b -c -d -e -ef -eq -f -g -G -ge -gt -h -k -L -le -lt -n -N -ne -nt -o -O -ot -p -r -s -S -t -u \
                    -w -x -z";

/// Commands that look at names and attributes of files, and not at what files hold.
const ATTRIBUTES: &str = "[ basename cd dirname df du echo exit false find id ls printf pwd readlink realpath seq sleep \
                          stat test true uname which whoami :";

/// Commands that look through folders, or at whatever files they are told of, by themselves.
const SEARCHERS: &str = "ack ag fd fdfind parallel rg rgrep ripgrep tar ugrep xargs zip";

/// What a command does; `None` if that is not known from its words.
pub(super) fn does(words: &[Word]) -> Option<Does> {
    let (first, rest) = words.split_first()?;
    if words.iter().any(|word| !word.plain || word.text.contains("=~") || word.text.contains(":~")) {
        return None;
    }
    let options = options(rest);
    // A path inside an option would escape the look at paths.
    if options.iter().any(|option| option.contains(['/', '~']) || option.contains("..")) {
        return None;
    }
    let all = |list: &str| options.iter().all(|option| is_among(list, option));
    let find = |list: &'static [Known]| list.iter().find(|known| known.0 == first.text);
    let reads = match first.text.as_str() {
        // It prints whatever it is given.
        "echo" => true,
        "date" => is_question(rest),
        "git" => git::reads(rest),
        "find" => all(FIND),
        "test" | "[" => all(TEST),
        // A second name is where it writes.
        "uniq" if operands(rest).len() > 1 => false,
        _ => find(&READ).is_some_and(|known| options.iter().all(|option| known.takes(option))),
    };
    let changes = find(&CHANGE).is_some_and(|known| options.iter().all(|option| known.takes(option)));
    if reads { Some(Does::Reads) } else { changes.then_some(Does::Changes) }
}

impl Known {
    fn takes(&self, option: &str) -> bool {
        match option.strip_prefix("--") {
            Some(_) => self.2.contains(&option.split('=').next().unwrap_or(option)),
            None => option[1..].chars().all(|c| self.1.contains(c) || c.is_ascii_digit() || "+-,;:|%= ".contains(c)),
        }
    }
}

/// The words that are options: those before `--` that begin with a dash.
fn options(words: &[Word]) -> Vec<&str> {
    let before = words.iter().map(|word| word.text.as_str()).take_while(|text| *text != "--");
    before.filter(|text| text.starts_with('-') && *text != "-").collect()
}

/// The words that may name files: those that are no options, and all after `--`.
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

/// Whether a command may show what files hold that it does not name, when a folder is
/// among its words or none is.
pub(super) fn searches(words: &[Word], is_folder: impl Fn(&str) -> bool) -> bool {
    let Some((first, rest)) = words.split_first() else { return false };
    if first.text == "git" {
        return git::shows_contents(rest);
    }
    let runs = |word: &Word| word.text.starts_with("-exec") || word.text.starts_with("-ok");
    if is_among(SEARCHERS, &first.text) || (first.text == "find" && rest.iter().any(runs)) {
        return true;
    }
    if is_among(ATTRIBUTES, &first.text) {
        return false;
    }
    // `-d recurse`, and long options cut short: `--rec`.
    let recursive = |option: &&str| match option.strip_prefix("--") {
        Some(name) => name.starts_with('r') || name.starts_with('d'),
        None => option.contains(['d', 'r', 'R']),
    };
    let greps = first.text.ends_with("grep") && options(rest).iter().any(recursive);
    greps || operands(rest).into_iter().any(is_folder)
}

/// Whether a command copies or moves what may be or hold links: `cp -r`, and `mv` of
/// anything. Names that stand later in the text may then lead elsewhere.
pub(super) fn moves_links(words: &[Word], is_file: impl Fn(&str) -> bool) -> bool {
    let Some((first, rest)) = words.split_first() else { return false };
    let sources = operands(rest);
    let sources = sources.split_last().map_or(&[][..], |(_, sources)| sources);
    match first.text.as_str() {
        "mv" => !sources.iter().all(|name| is_file(name)),
        "cp" => options(rest).iter().any(|option| option.contains(['a', 'r', 'R'])),
        _ => false,
    }
}

/// Whether `date` only shows one: any other word sets the clock.
fn is_question(words: &[Word]) -> bool {
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

fn is_among(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}

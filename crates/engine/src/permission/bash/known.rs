//! Commands whose effect is known from their words alone.

use crate::permission::shell::Word;

/// What a known command does with the paths among its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    /// Reads them, or nothing at all.
    Reads,
    /// Changes them.
    Changes,
}

/// A command with the options under which it is no longer what it seems: single
/// letters, and beginnings of long options, as short as programs accept them.
struct Known(&'static str, &'static str, &'static [&'static str]);

/// Commands that only read.
const READ: [Known; 47] = [
    Known(":", "", &[]),
    Known("[", "vR", &[]),
    Known("basename", "", &[]),
    Known("cat", "", &[]),
    Known("cksum", "", &[]),
    Known("cmp", "", &[]),
    Known("column", "", &[]),
    Known("comm", "", &[]),
    Known("cut", "", &[]),
    Known("date", "sf", &["--s", "--f"]),
    Known("df", "", &[]),
    Known("diff", "r", &["--r"]),
    Known("dirname", "", &[]),
    Known("du", "", &["--f"]),
    Known("echo", "", &[]),
    Known("egrep", "R", &["--de"]),
    Known("exit", "", &[]),
    Known("false", "", &[]),
    Known("fgrep", "R", &["--de"]),
    Known("file", "Cmfz", &["--c", "--m", "--f", "--u"]),
    Known("fold", "", &[]),
    Known("grep", "R", &["--de"]),
    Known("head", "", &[]),
    Known("id", "", &[]),
    Known("join", "", &[]),
    Known("ls", "", &[]),
    Known("md5sum", "", &[]),
    Known("nl", "", &[]),
    Known("paste", "", &[]),
    Known("printf", "v", &[]),
    Known("pwd", "", &[]),
    Known("readlink", "", &[]),
    Known("realpath", "", &[]),
    Known("rev", "", &[]),
    Known("seq", "", &[]),
    Known("sha256sum", "", &[]),
    Known("sleep", "", &[]),
    Known("sort", "oT", &["--o", "--t", "--co", "--f"]),
    Known("stat", "", &[]),
    Known("tac", "", &[]),
    Known("tail", "", &[]),
    Known("test", "vR", &[]),
    Known("tr", "", &[]),
    Known("true", "", &[]),
    Known("wc", "", &["--f"]),
    Known("which", "", &[]),
    Known("whoami", "", &[]),
];

/// Commands that change the files they name, and nothing else.
const CHANGE: [Known; 6] = [
    Known("cp", "LHsl", &["--"]),
    Known("mkdir", "", &["--"]),
    Known("mv", "", &["--"]),
    Known("rm", "", &["--"]),
    Known("rmdir", "", &["--"]),
    Known("touch", "r", &["--"]),
];

/// Questions to git that change nothing.
const GIT: [&str; 8] = ["status", "diff", "log", "show", "rev-parse", "ls-files", "blame", "shortlog"];
/// Options that make git write files or run programs.
const GIT_NOT: [&str; 7] = ["--out", "--ext", "--textc", "--no-in", "--open", "--he", "--exec"];
/// Questions to git that are questions in this form only.
const GIT_EXACT: [&str; 7] =
    ["branch", "branch --show-current", "branch -a", "remote", "remote -v", "stash list", "tag"];

/// What `find` may be told without running or writing anything.
const FIND: [&str; 24] = [
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-type",
    "-maxdepth",
    "-mindepth",
    "-size",
    "-empty",
    "-mtime",
    "-mmin",
    "-newer",
    "-not",
    "-o",
    "-or",
    "-a",
    "-and",
    "-print",
    "-print0",
    "-prune",
    "-ls",
    "-regex",
    "-perm",
];

/// What a command does; none when that is not known from its words.
pub(super) fn does(words: &[Word]) -> Option<Does> {
    let (first, rest) = words.split_first()?;
    if words.iter().any(|word| !word.plain || word.text.contains("=~") || word.text.contains(":~")) {
        return None;
    }
    let options = || rest.iter().map(|word| word.text.as_str()).filter(|text| text.starts_with('-') && *text != "-");
    // A path inside an option would escape the look at paths.
    if options().any(|option| option.contains(['/', '~']) || option.contains("..")) {
        return None;
    }
    let has_none_of = |known: &Known| {
        !options().any(|option| match option.strip_prefix("--") {
            Some(_) => known.2.iter().any(|not| option.starts_with(not)),
            None => option.chars().any(|letter| known.1.contains(letter)),
        })
    };
    let find = |list: &'static [Known]| list.iter().find(|known| known.0 == first.text);
    match first.text.as_str() {
        "git" => reads_git(rest).then_some(Does::Reads),
        "find" => options().all(|option| FIND.contains(&option)).then_some(Does::Reads),
        // A second name is where it writes.
        "uniq" => (rest.iter().filter(|word| is_name(&word.text)).count() <= 1).then_some(Does::Reads),
        _ => match (find(&READ), find(&CHANGE)) {
            (Some(known), _) if has_none_of(known) => Some(Does::Reads),
            (_, Some(known)) if has_none_of(known) => Some(Does::Changes),
            _ => None,
        },
    }
}

/// Whether a word may be the name of a file; what follows `--` may always be one.
fn is_name(word: &str) -> bool {
    !word.starts_with('-') || word == "-" || word == "--"
}

/// Whether a command looks into folders by itself.
pub(super) fn descends(words: &[Word]) -> bool {
    let greps = words.first().is_some_and(|word| word.text.ends_with("grep"));
    greps && words.iter().any(|word| word.text.starts_with('-') && (word.text.contains('r') || word.text == "--"))
}

fn reads_git(words: &[Word]) -> bool {
    let text = words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>();
    let asks = text.first().is_some_and(|command| GIT.contains(command));
    let quiet = !text.iter().any(|word| GIT_NOT.iter().any(|not| word.starts_with(not)) || word.starts_with("-O"));
    (asks && quiet) || GIT_EXACT.contains(&text.join(" ").as_str())
}

//! Finds commands of hooks, helpers and MCP servers that run Python without a script. Python then imports modules from the
//! current folder: `python3 -c 'import json'` runs a `json.py` of the session.

use std::path::Path;

/// The variable that makes Python not import from the current folder, with its value.
const SAFE_PATH: (&str, &str) = ("PYTHONSAFEPATH", "1");

/// Returns the variable to set for a command that starts in `cwd`; `None` if it runs no Python without a script, or a
/// module of the folder, or if the variable is set.
pub(crate) fn safe_path(
    command: &str,
    cwd: &Path,
    is_set: impl Fn(&str) -> bool,
) -> Option<(&'static str, &'static str)> {
    let segments = command.split([';', '|', '&', '\n', '(', ')', '`']);
    let runs_code = segments.into_iter().any(|segment| runs_code(&segment.split_whitespace().collect::<Vec<_>>(), cwd));
    (runs_code && !is_set(SAFE_PATH.0)).then_some(SAFE_PATH)
}

/// Whether words run Python without a script, and without a module that the folder contains.
fn runs_code(words: &[&str], cwd: &Path) -> bool {
    let Some(at) = words.iter().position(|word| is_python(word)) else { return false };
    let mut rest = words[at + 1..].iter();
    while let Some(word) = rest.next() {
        let option = word.strip_prefix('-').filter(|option| !option.starts_with('-')).unwrap_or_default();
        match *word {
            "-" => return true,
            "-W" | "-X" | "--check-hash-based-pycs" => drop(rest.next()),
            _ if option.starts_with(|c: char| !c.is_ascii_alphabetic()) || word.starts_with("--") => {}
            _ if option.contains('m') => {
                let attached = option.split_once('m').map(|(_, module)| module).filter(|module| !module.is_empty());
                let module = attached.or(rest.next().copied()).unwrap_or_default();
                let package = module.split('.').next().unwrap_or_default();
                return !cwd.join(package).exists() && !cwd.join(format!("{package}.py")).exists();
            }
            _ if option.contains('c') => return true,
            _ if !option.is_empty() => {}
            _ => return word.starts_with('<'),
        }
    }
    true
}

/// Whether a word is Python: `/usr/bin/python3`, `"$PYTHON"`, `${PY:-python3}`.
fn is_python(word: &str) -> bool {
    let name = word.rsplit(['/', '-', '=']).next().unwrap_or_default();
    let name = name.trim_matches(['"', '\'', '$', '{', '}']).to_ascii_lowercase();
    name.starts_with("python") || name.starts_with("pypy")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, expected: bool) {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp.path().join("tools")).unwrap();
        assert_eq!(safe_path(command, temp.path(), |_| false).is_some(), expected, "{command}");
        assert_eq!(safe_path(command, temp.path(), |_| true), None, "{command}");
    }

    #[test]
    fn python_without_a_script_does_not_import_from_the_folder() {
        for command in [
            "python3 -c 'import json'",
            "cat | /usr/bin/python3.12 -Ic \"x\"",
            "python -u -c x",
            "python3 -X utf8 -c x",
            "python3 -m json.tool",
            "python3 -mjson.tool",
            "python3 - <<'EOF'\nimport json\nEOF",
            "python3 <<'EOF'\nimport json\nEOF",
            "python3 --version && python3 -c x",
            "$PYTHON -c x",
            "sh -c 'python3 -c x'",
            "f=$(python3 -c 'import json'); echo $f",
            "echo \"$(cat | python3 -c x)\"",
            "f=`python3 -c x`",
            "set -e\npython3 -c x",
            "${PY:-python3} -c x",
            "echo 'import json' | python3\ntrue",
        ] {
            check(command, true);
        }
    }

    #[test]
    fn scripts_and_modules_of_the_folder_find_their_modules() {
        for command in [
            "python3 scripts/h.py -c x",
            "python3 -u ~/h.py",
            "python3 \"$CLAUDE_PROJECT_DIR\"/scripts/h.py",
            "python3 -m tools.check",
            "python3 -um tools",
            "sh -c x",
            "pytest -m slow",
        ] {
            check(command, false);
        }
    }
}

//! Finds commands of hooks, helpers and MCP servers that run Python without a script. Python then imports modules from the
//! current folder.

use super::command_words::{is_python, program_name, split_commands};

/// Whether a command runs Python without a script: code, a module or standard input. Python then imports modules from the
/// current folder.
pub(crate) fn runs_python_without_script(words: &[String]) -> bool {
    let runs = |command: &[String]| {
        let Some(at) = command.iter().position(|word| is_python(program_name(word))) else {
            // A variable may be Python.
            return matches!(command, [program, option, ..] if program.starts_with('$') && is_code_option(option));
        };
        let mut rest = command[at + 1..].iter();
        while let Some(word) = rest.next() {
            match word.as_str() {
                "-W" | "-X" | "--check-hash-based-pycs" => drop(rest.next()),
                option if is_code_option(option) => return true,
                option if option.starts_with('-') => {}
                _ => return false,
            }
        }
        true
    };
    let nested =
        |word: &String| word.contains(char::is_whitespace) && split_commands(word).iter().any(|line| runs(line));
    runs(words) || words.iter().any(nested)
}

/// As [`runs_python_without_script`], for a command line.
pub(crate) fn line_runs_python_without_script(line: &str) -> bool {
    split_commands(line).iter().any(|command| runs_python_without_script(command))
}

/// Whether an option of Python is followed by code or a module.
fn is_code_option(option: &str) -> bool {
    option.starts_with('-') && !option.starts_with("--") && option.contains(['c', 'm']) || option == "-"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_without_a_script_is_seen() {
        for command in [
            "python3 -c 'import json'",
            "cat | /usr/bin/python3.12 -Ic \"x\"",
            "python -u -c x",
            "python3 -X utf8 -c x",
            "python3 -m json.tool",
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
            assert!(line_runs_python_without_script(command), "{command}");
        }
        for command in ["python3 scripts/h.py -c x", "python3 -u ~/h.py", "sh -c x", "pytest -m slow"] {
            assert!(!line_runs_python_without_script(command), "{command}");
        }
    }
}

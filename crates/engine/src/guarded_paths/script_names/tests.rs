use super::*;

/// Checks which of the files a command may run. They are in the folder of a session, and need not exist.
#[track_caller]
fn check(command: &str, run: &[&str], not_run: &[&str]) {
    let root = Path::new("/home/u/My Project");
    let variable = |name: &str| match name {
        "CLAUDE_PROJECT_DIR" => Some(root.display().to_string()),
        "HOME" => Some("/home/u".to_owned()),
        _ => None,
    };
    let mut names = ScriptNames::default();
    names.add_line(command, CommandContext { home: Path::new("/home/u"), variable: &variable });
    let may_run = |file: &&str| names.may_run(&root.join(file), &[root.to_owned()]);
    let missed: Vec<_> = run.iter().filter(|file| !may_run(file)).collect();
    let excess: Vec<_> = not_run.iter().filter(|file| may_run(file)).collect();
    assert!(missed.is_empty() && excess.is_empty(), "{command}: missed {missed:?}, excess {excess:?}");
}

#[test]
fn a_file_is_found_however_a_command_names_it() {
    for command in [
        "scripts/h.sh",
        "./scripts/h.sh 2>&1 | tee",
        "\"$CLAUDE_PROJECT_DIR\"/scripts/h.sh",
        "\"${CLAUDE_PROJECT_DIR}/scripts/h.sh\"",
        "\"${CLAUDE_PROJECT_DIR:-.}/scripts/h.sh\" --fix",
        "bash \"${HOOK_DIR:-scripts}/h.sh\"",
        "~/'My Project'/scripts/h.sh",
        "\"$HOME/My Project/scripts/h.sh\"",
        "$(git rev-parse --show-toplevel)/scripts/h.sh",
        "\"$(git rev-parse --show-toplevel)/scripts/h.sh\"",
        "sh `pwd`/scripts/h.sh",
        "$ROOT/scripts/h.sh",
        "$HK/h.sh",
        "bash $'scripts/h.sh'",
        "sh -c 'exec scripts/h.sh'",
        "node --require=scripts/h.sh",
        "NODE_OPTIONS='--require ./scripts/h.sh' node x",
        "bash -x scripts/h.sh",
        "cd scripts && ./h.sh",
        "cd \"$CLAUDE_PROJECT_DIR/scripts\"; sh h.sh",
        "cd \"$(git rev-parse --show-toplevel)\" && cd scripts && sh h.sh",
        "out=$(bash scripts/h.sh); echo \"$out\"",
        "if ! out=$(scripts/h.sh 2>&1); then exit 2; fi",
        "bash -c \"$(cat scripts/h.sh)\"",
        "set -e\nbash scripts/h.sh",
        "x=`bash scripts/h.sh`",
        "cat scripts/h.sh | bash",
        "trap 'bash scripts/h.sh' EXIT",
        "${BASH:-bash} scripts/h.sh",
        "setsid -w ./scripts/h.sh",
        "</dev/null ./scripts/h.sh",
        "S=scripts/h.sh; [ -f \"$S\" ] && sh \"$S\"",
        "D=$CLAUDE_PROJECT_DIR/scripts; bash $D/h.sh",
        "D=scripts/x; bash $D/../h.sh",
        "uv run --directory scripts h.sh",
        "BASH_ENV=scripts/h.sh bash",
        "PATH=$PWD/scripts:$PATH; h.sh",
        // Any file of the folder is run.
        "for f in scripts/*.sh; do sh $f; done",
        "for f in scripts/*; do \"$f\"; done",
        "for h in a b; do \"scripts/$h.sh\"; done",
        "F=scripts/*.sh; for f in $F; do sh $f; done",
        "ls scripts/*.sh | xargs -n1 bash",
        "ls scripts | xargs -n1 bash",
        "find scripts -name '*.sh' -exec sh {} \\;",
        "find . -name '*.sh' -exec sh {} \\;",
        "run-parts scripts",
        "python3 scripts",
        "scripts/{h,i}.sh",
        "bash scripts/[h].sh",
        "bash scripts/?.sh",
        "export PATH=scripts:$PATH; runme",
    ] {
        check(command, &["scripts/h.sh"], &["other/g.py", "README.md"]);
    }
    check("for f in ./*.sh; do bash $f; done", &["x.sh"], &["src/a.rs"]);
    check("find . -name '*.hook' -exec bash {} \\;", &["x.hook", "a/b/x.hook"], &["src/a.rs"]);
    check("bash 'my hooks/x y.sh'", &["my hooks/x y.sh"], &["other.sh"]);
    check("sh 'my-s(1)/x.sh'", &["my-s(1)/x.sh"], &[]);
    check("sh packages/@acme/x.sh a,b/y.sh", &["packages/@acme/x.sh", "a,b/y.sh"], &["other/x.sh"]);
    for command in
        ["bash lint", "python3 lint", "mise x -- ./lint", "perl lint", "exec lint", "make -f lint", "runme lint"]
    {
        check(command, &["lint"], &["src/lint", "lint.md"]);
    }
    check("node x", &["x.js", "x.ts"], &["sub/x.js"]);
    check("node scripts/x", &["scripts/x.mjs"], &["x.js"]);
    check("node .", &["index.js", "package.json"], &["sub/index.js"]);
    check("node ./tools", &["tools/index.js"], &["node_modules/tools/index.js"]);
    check("python3 -m pkg.check", &["pkg/check.py", "pkg/check/__main__.py"], &["check.py"]);
    check("fastmcp run srv.py:mcp", &["srv.py"], &[]);
    check("awk -f x.awk; Rscript x.R; java -jar t/x.jar", &["x.awk", "x.R", "t/x.jar"], &[]);
    // A folder on the way could be made as a link.
    check("sh scripts/lib/h.sh", &["scripts", "scripts/lib"], &["lib"]);
    // A shell gets data.
    for command in [
        "bash notes.txt",
        ". ./notes.txt",
        "set -a; . ./notes.txt; set +a",
        "bash < notes.txt",
        "X=notes.txt; sh $X",
        "for i in notes.txt; do sh $i; done",
        "cat notes.txt | sh",
        "tail -n +2 notes.txt | bash -s",
        "eval \"$(cat notes.txt)\"",
        "$(cat notes.txt)",
        "while read l; do eval \"$l\"; done < notes.txt",
        "xargs -a notes.txt -n1 touch",
    ] {
        check(command, &["notes.txt"], &["other.txt"]);
    }
    check("node ./tools", &["tools/package.json"], &["package.json"]);
    check("python3 -c 'from tools import check'", &["tools/check.py"], &["src/x.py"]);
    check("python3 -c \"runpy.run_module('tools.check')\"", &["tools/check.py"], &["src/x.py"]);
    check("sh /proc/self/cwd/tools/hook; bash -c '~+/tools/other'", &["tools/hook", "tools/other"], &["hook"]);
}

#[test]
fn files_that_a_command_only_reads_are_left_out() {
    let sources = ["src/a.ts", "src/b.rs", "README.md", "package.json", "src/x.py", "a.sh"];
    for command in [
        "npx prettier --write .",
        "npx prettier --write \"src/**/*.md\" src",
        "eslint 'src/**/*.{ts,tsx}'",
        "bash -c 'npx eslint \"src/**/*.ts\"'",
        "bash scripts/h.sh src/*.ts",
        "[[ $f == src/*.rs ]] && cargo fmt",
        "[ -f package.json ] && npm run lint",
        "cat README.md",
        "echo 'update README.md' >> README.md",
        "tsc -p package.json",
        "python3 -c 'import json'",
        "jq -r .tool_input.file_path",
        "f=$(jq -r .file_path); case $f in *.rs) rustfmt $f;; esac",
        "f=$(jq -r .file_path); case \"$f\" in *.ts) npx eslint --fix \"$f\";; esac",
        "LOG=logs/out.txt; echo x >> $LOG",
        "cd src && npm run lint",
        "case \"$f\" in *.py) black \"$f\";; *.ts|*.js) npx prettier --write \"$f\";; esac",
        "case \"$(jq -r .tool_input.file_path)\" in */src/*) npm test;; esac",
        "find src -name '*.ts' -exec npx prettier --write {} +",
        "find . -name '*.py' | xargs ruff check",
        "jq . package.json",
        "ruff check src && black src",
    ] {
        check(command, &[], &sources);
    }
}

#[test]
fn folders_modules_and_data_are_found_however_they_are_run() {
    for command in ["cd hooks.d && for s in *; do sh $s; done", "cd hooks.d; for s in ./*; do . $s; done"] {
        check(command, &["hooks.d/10-a", "hooks.d/x.sh", "hooks.d/notes.md"], &["src/10-a"]);
    }
    for command in ["python3 -mtools.check", "python3 -um tools.check", "python3 -Im tools.check x"] {
        check(command, &["tools/check.py", "tools/check/__main__.py"], &["tools/other.py"]);
    }
    check("node ./", &["index.js"], &["other.js"]);
    for command in [
        "f=env.txt; . ./$f",
        "command . ./env.txt",
        "bash -O extglob env.txt",
        "bash 0<env.txt",
        "bash /dev/stdin <env.txt",
        "nohup sh -x env.txt",
    ] {
        check(command, &["env.txt"], &["other.txt"]);
    }
    check("python3 tools/x.py env.txt", &["tools/x.py"], &["env.txt"]);
}

#[test]
fn links_to_scripts_are_followed() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("real")).unwrap();
    for name in ["real/h", "c.sh", "data.md"] {
        std::fs::write(root.join(name), "").unwrap();
    }
    for (target, link) in
        [("real", "scripts"), ("../c.sh", "real/c.sh"), ("c.sh", "x.sh"), ("c.sh", "y.txt"), (".", "p")]
    {
        std::os::unix::fs::symlink(target, root.join(link)).unwrap();
    }
    let check = |command: &str, expected: &[&str]| {
        let mut names = ScriptNames::default();
        names.add_line(command, CommandContext { home: &root, variable: &|_| None });
        let mut found = names.linked_paths(&[&root]);
        found.sort();
        found.dedup();
        assert_eq!(found, expected.iter().map(|name| root.join(name)).collect::<Vec<_>>(), "{command}");
        assert!(
            expected
                .iter()
                .all(|name| names.may_run(&root.join(name), std::slice::from_ref(&root)) || *name == "real/c.sh"),
            "{command}"
        );
    };
    check("bash scripts/h", &["scripts/h"]);
    check("for f in scripts/*.sh; do sh $f; done", &["real/c.sh", "scripts"]);
    check("run-parts scripts", &["real/c.sh", "scripts"]);
    check("PATH=scripts:$PATH h", &["real/c.sh", "scripts"]);
    check("for f in *.sh; do sh $f; done", &["x.sh"]);
    let mut names = ScriptNames::default();
    names.add_line("for f in real/*/*.sh; do sh $f; done", CommandContext { home: &root, variable: &|_| None });
    assert!(names.may_run(&root.join("real/c.sh"), std::slice::from_ref(&root)));
    assert!(!names.may_run(&root.join("y.txt"), std::slice::from_ref(&root)));
    check("cd scripts && sh c.sh", &["scripts/c.sh"]);
    check("eslint scripts/*.sh; cat y.txt", &[]);
}

#[test]
fn what_is_run_as_code_is_no_data_whatever_its_ending() {
    for command in [
        "./x.txt",
        "chmod +x x.txt; ./x.txt",
        "BASH_ENV=x.txt bash -c true",
        "BASH_ENV=\"$PWD/x.txt\" bash -c true",
        "export BASH_ENV=x.txt; bash -c true",
        "ENV=x.txt sh -i",
        ". \"$ROOT/x.txt\"",
    ] {
        check(command, &["x.txt"], &["y.txt"]);
    }
    check("ruby -r./lib/foo x.rb", &["lib/foo.rb", "x.rb"], &["lib/bar.rb"]);
    check("lua -l foo x.lua", &["foo.lua"], &[]);
    check("cat \"$ROOT/x.txt\" | wc -l", &[], &["x.txt"]);
}

#[test]
fn what_a_start_up_file_loads_is_found() {
    let text = "# . not/this\nalias build='make x.sh'\n[ -f env.sh ] && . env.sh\nif true; then source ~/other/e; fi\n\
                for f in ~/work/rc.d/*.sh; do . \"$f\"; done";
    let root = Path::new("/home/u/work");
    let mut names = ScriptNames::default();
    names.add_loaded(text, CommandContext { home: Path::new("/home/u"), variable: &|_| None });
    let may_run = |file: &str| names.may_run(&root.join(file), &[root.to_owned()]);
    assert!(may_run("env.sh") && may_run("rc.d/a.sh") && !may_run("x.sh") && !may_run("make"));
}

#[test]
fn a_worktree_has_the_same_scripts() {
    check("bash scripts/a.sh", &["scripts/a.sh", ".claude/worktrees/w/scripts/a.sh"], &[".claude/worktrees/w/b.sh"]);
}

#[test]
fn a_shell_or_interpreter_runs_data_too() {
    for command in [
        "for f in hk.d/*; do . \"$f\"; done",
        "for f in hk.d/*.txt; do bash \"$f\"; done",
        "ls hk.d/*.txt | xargs -n1 sh",
        "find hk.d -type f -exec sh {} \\;",
        "python3 hk.d/1.txt",
        "perl -w hk.d/1.txt",
    ] {
        check(command, &["hk.d/1.txt"], &["other/2.txt"]);
    }
    check("for f in docs/*.md; do markdownlint \"$f\"; done", &[], &["docs/a.md"]);
    check("find docs -name '*.md' -exec sh -c 'wc -l {}' \\;", &[], &["docs/a.md"]);
    check("node -e 'require(\"./srv\")'", &["srv.js", "srv/index.js"], &["srv/other.js"]);
}

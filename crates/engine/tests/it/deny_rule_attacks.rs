//! Attempts to run commands and to reach files that deny rules name, as tables.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use quipu_engine::testing::permission::{PermissionMode, hidden_file_filter};
use quipu_engine::testing::tool::TargetPath;
use serde_json::json;

use crate::permission_attacks::workspace_with_links;
use crate::{TestWorkspace, decision_word, output_text, parse_rules};

/// All of these run `rm` or `git push`, one way or another.
#[test]
fn deny_rules_match_disguised_commands() {
    let (workspace, _outside) = workspace_with_links();
    let rules = ["allow Bash", "deny Bash(rm:*)", "deny Bash(git push:*)"];
    let refused = [
        "rm x",
        "rm",
        "'rm' x",
        "\"rm\" x",
        "\\rm x",
        "r\"\"m x",
        "r\\\nm x",
        "/bin/rm x",
        "../../bin/rm x",
        "X=1 rm x",
        "a; rm x",
        "a && rm x",
        "a || rm x",
        "a | rm x",
        "a & rm x",
        "a\nrm x",
        "(rm x)",
        "{ rm x; }",
        "! rm x",
        "if a; then rm x; fi",
        "for i in 1; do rm $i; done",
        "a $(rm x)",
        "a `rm x`",
        "a \"$(rm x)\"",
        "a <(rm x)",
        "a <<E\n$(rm x)\nE",
        "env rm x",
        "env A=1 rm x",
        "env -u A rm x",
        "env -S 'rm x'",
        "timeout 5 rm x",
        "timeout -k 1 5 rm x",
        "nice -n 1 rm x",
        "nohup rm x",
        "xargs rm",
        "a | xargs -n1 rm",
        "sh -c 'rm x'",
        "git -c protocol.ext.allow=always ls-remote 'ext::sh -c rm% x'",
        "bash -c \"rm x\"",
        "bash -lc 'a; rm x'",
        "/bin/sh -c 'rm x'",
        "sh -c \"sh -c 'rm x'\"",
        "eval rm x",
        "eval 'rm x'",
        "eval \"a; rm x\"",
        "command rm x",
        "exec rm x",
        "builtin rm x",
        "sudo rm x",
        "sudo -u me rm x",
        "doas rm x",
        "stdbuf -oL rm x",
        "setsid rm x",
        "busybox rm x",
        "find . -exec rm {} +",
        "find . -name x -execdir rm {} ;",
        "watch 'rm x'",
        "trap 'rm x' EXIT",
        "alias x='rm y'",
        "su -c 'rm x'",
        "env timeout 5 nice sh -c 'rm x'",
        "git push",
        "git push origin main",
        "git 'push' -f",
        "bash -c 'git push'",
        // not understood, and still recognised
        "f() { rm x; }; f",
        "case x in x) rm x;; esac",
        "[[ x ]] && rm x",
        "((1)) && rm x",
        "time rm x",
        "rm x $((1))",
        "rm ${x:-y}",
        "$'\\x72m' x",
    ];
    for command in refused {
        for mode in [PermissionMode::Default, PermissionMode::BypassPermissions] {
            assert_eq!(workspace.bash_decision(mode, &rules, command), "deny", "{mode} {command}");
        }
    }
    // What hides its command cannot be compared with the rules, so even bypass asks.
    for command in [
        "$x y",
        "$(echo rm) x",
        "`echo rm` x",
        "echo 'rm x' | sh",
        "eval $x",
        "bash < x",
        "r?m x",
        "env $x y",
        "bash -c $x",
        "$'\\x72'$x y",
        "sh -c 'sh -c \"sh -c \\\"$x\\\"\"'",
    ] {
        assert_eq!(workspace.bash_decision(PermissionMode::BypassPermissions, &rules, command), "ask", "{command}");
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &rules, command), "ask", "{command}");
        assert_eq!(workspace.bash_decision(PermissionMode::BypassPermissions, &[], command), "allow", "{command}");
    }
    for command in [
        "echo rm",
        "bash build.sh",
        "git pull",
        "grep rm x",
        "npm run rm",
        "git commit -m 'rm x'",
        "rmdir x",
        "git pushx",
    ] {
        assert_eq!(workspace.bash_decision(PermissionMode::BypassPermissions, &rules, command), "allow", "{command}");
    }
}

/// Ways to `rm` or `git push` that go through other programs' options, variables and code.
#[test]
fn deny_rules_match_commands_that_other_programs_run() {
    let (workspace, _outside) = workspace_with_links();
    let rules = ["allow Bash", "deny Bash(rm:*)", "deny Bash(git push:*)"];
    let refused = [
        // options of git, and arguments, in code
        "perl -e 'system \"git -C . push origin main\"'",
        "node -e 'spawn(\"git\", [\"-C\", \".\", \"push\"])'",
        "perl -e 'system \"git\", @ARGV' push origin main",
        "npm run env -- rm x",
        // options that hold a whole command
        "env -S'rm x'",
        "env '-Srm x'",
        "env --split-string='rm x'",
        "xargs --replace=% rm %",
        "tar cf x.tar --checkpoint=1 --checkpoint-action='exec=rm x' .",
        "rsync -e 'rm x' a b:",
        "fd -x rm",
        "fd . -X /bin/rm",
        "parallel 'rm {}' ::: x",
        "hyperfine 'rm x'",
        "entr rm x",
        "ssh localhost rm x",
        "tmux new-session 'rm x'",
        "setpriv --reuid=1 rm x",
        "/lib64/ld-linux-x86-64.so.2 /bin/rm x",
        "pwsh -c 'rm x'",
        "csh -c 'rm x'",
        "mksh -c 'rm x'",
        // code of other languages
        "awk 'BEGIN { system(\"rm x\") }'",
        "gawk 'BEGIN { print | \"rm x\" }'",
        "sed '1e rm x' a",
        "sed -n '/x/{s//rm y/;e}' a",
        "sed '1erm x' a",
        "sed '/x/Ie git push' a",
        "sed 1egit\\ push a",
        "perl -e 'system(\"rm\", \"x\")'",
        "perl -e '`rm x`'",
        // escapes in them
        r#"awk 'BEGIN { system(":\012rm x") }'"#,
        r#"perl -e 'system ":\x0arm x"'"#,
        r#"perl -e 'system ":\x{a}git\x{20}push"'"#,
        r#"perl -e 'system "\Lrm x"'"#,
        r#"perl -e 'system "\LRM x"'"#,
        r#"perl -e 'system "\Erm x"'"#,
        r#"python3 -c 'import os; os.system("\x72m x")'"#,
        // words after them
        "perl -e 'exec @ARGV' rm x",
        "perl -e 'exec @ARGV' git push",
        "python3 -c 'import os, sys; os.execvp(sys.argv[1], sys.argv[1:])' rm x",
        "awk 'BEGIN { system(ARGV[1] \" \" ARGV[2]) }' rm x",
        "make --eval='all:;@$Arm x'",
        "python3 -c 'import os; os.system(\"rm x\")'",
        "python3 -c \"import os; os.execvp('rm', ['rm', 'x'])\"",
        "node -e 'require(\"child_process\").execSync(\"rm x\")'",
        "ruby -e 'exec \"rm x\"'",
        "php -r 'system(\"rm x\");'",
        "vim -c '!rm x' a",
        "make -f - <<E\nall:\n\trm x\nE",
        "python3 <<E\nimport os; os.system('rm x')\nE",
        "python3 <<'E'\nimport os; os.system('rm x')\nE",
        "bash <<'E'\nrm x\nE",
        "bash <<< 'rm x'",
        "tee run.sh <<'E' | sh\nrm x\nE",
        // variables that programs run
        "PAGER='rm x' git log",
        "GIT_SSH_COMMAND='rm x' git fetch",
        "PAGER=rm git log",
        "export PAGER='rm x'",
        "declare -x PAGER='rm x'",
        // git's own ways
        "git -C . push",
        "git -c a.b=c push",
        "git --no-pager push origin main",
        "git --shallow-file '' push origin main",
        "git for-each-repo --config=reg.repo push origin main",
        "git rebase -fx'git push' HEAD~1",
        "/usr/lib/git-core/git-push origin main",
        "git --git-dir=.git push",
        "git --git-dir .git --work-tree . push",
        "git -c alias.x='!rm y' x",
        "git -c alias.p=push p",
        "git -c core.pager='rm x' log",
        "git config alias.x '!rm y'",
        "git bisect run rm x",
        "git submodule foreach 'rm x'",
        "git rebase -x 'rm x' main",
        "git rebase --exec='rm x' main",
        "git remote-ext x rm",
        "git merge-index rm -a",
        "git send-email --sendmail-cmd=rm a",
        // values of options
        "env -Srm x",
        "env --split-string=rm x",
        "env -Sgit push",
        "split --filter rm x",
        "tar cf x.tar -I rm in",
        "mapfile -c1 -C 'rm x;' a < in",
        "mapfile -c1 -C'rm x;' a < in",
        "mapfile -c1 -Crm a < in",
        "readarray -tC'rm x' -c1 a < in",
        "compgen -aC'rm x' a",
        "compgen -W'$(rm x)'",
        "split --filter='rm x' in",
        "tar cIf rm x.tar in",
        "tar cfI x.tar rm in",
        "TAR_OPTIONS=-Irm tar cf x.tar in",
        "TAR_OPTIONS=--use-compress-program=rm tar cf x.tar in",
        "install -s --strip-program=rm in x",
        "wget --use-askpass rm http://127.0.0.1/",
        "tar cf x.tar -Irm in",
        "man -P rm ls",
        "ssh -o 'ProxyCommand rm x' h",
        "ssh -oProxyCommand=rm h",
        "ip netns exec n rm x",
        "jobs -x rm x",
        "view -c '!rm x' a",
        "vim.basic -c '!rm x' a",
        // names
        "RM x",
        "Git push",
        "command -p rm x",
        "exec -a y rm x",
        "fakeroot-sysv rm x",
        "gcc-12 -wrapper rm x.c",
        "git -c ALIAS.p='!rm x' p",
    ];
    let slipped: Vec<String> = refused
        .iter()
        .flat_map(|command| {
            [PermissionMode::Default, PermissionMode::BypassPermissions]
                .map(|mode| (mode, workspace.bash_decision(mode, &rules, command), *command))
        })
        .filter(|(_, decision, _)| *decision != "deny")
        .map(|(mode, decision, command)| format!("{mode} {decision} {command}"))
        .collect();
    assert!(slipped.is_empty(), "{slipped:#?}");
}

/// The word at the position of a denied word is unknown, so the user is asked.
#[test]
fn a_word_that_only_the_shell_knows_may_be_a_denied_one() {
    let (workspace, _outside) = workspace_with_links();
    let rules = ["allow Bash(git:*)", "allow Bash(npm:*)", "deny Bash(git push:*)", "deny Bash(npm * --force)"];
    for command in ["git $x", "git \"$x\"", "git pus?", "git $x push", "git {push,}", "npm $x", "npm ci $x"] {
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &rules, command), "ask", "{command}");
        assert_eq!(workspace.bash_decision(PermissionMode::BypassPermissions, &rules, command), "ask", "{command}");
    }
    for command in ["git log $x", "npm ci", "git -C . log", "git commit -m \"$x\""] {
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &rules, command), "allow", "{command}");
    }
    let rules = ["allow Bash", "deny Bash(git push:*)", "deny Bash(npm publish)"];
    for command in [
        "/usr/bin/git $x",
        "git -C . $x",
        "git --no-pager $x",
        "echo push | xargs git",
        "echo push | xargs -n1 /usr/bin/git",
        "echo push | xargs -I % git %",
        "parallel git ::: push",
        "find push -exec git {} +",
        "npm publish $x",
        "run-parts bin",
        "git -c Alias.p=log p",
        "git -c 'alias.p=-p log' p",
        "git config --local alias.p log",
        "git -c include.path=x p",
        "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.p GIT_CONFIG_VALUE_0=log git p",
        "env GIT_CONFIG_GLOBAL=x git p",
        "export GIT_CONFIG_GLOBAL=x; git p",
        "echo x | bash //dev/stdin",
        "source //dev/stdin <<< x",
        "echo x | bash /x/../dev/stdin",
        "echo x | bash ../../../../dev/stdin",
        "echo x | python3 /proc/self/fd/0",
        "echo x | sqlite3",
        "echo x | gdb",
    ] {
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &rules, command), "ask", "{command}");
        assert_eq!(workspace.bash_decision(PermissionMode::BypassPermissions, &rules, command), "ask", "{command}");
    }
    assert_eq!(workspace.bash_decision(PermissionMode::Default, &rules, "bash dev/build.sh"), "allow");
    let rules = ["allow Bash", "deny Bash(rm:*)", "deny Bash(git push:*)"];
    for command in [
        "/usr/bin/git log $x",
        "git -C . log $x",
        "ls | xargs git add",
        "git -C . log",
        "git -c color.ui=never log",
        "git config user.name me",
        "python3 build.py",
        "make farm",
        "make rm",
        "sed -n 1,5p a.txt",
        "sed s/rm/x/ a.txt",
        "awk '{print $1}' a.txt",
        "cat > notes.md <<'E'\nrm x\nE",
        "node -e 'console.log(1)'",
        "tar czf a.tar.gz in",
        "install -m 755 in x",
        "export A=1",
        "docker rm x",
    ] {
        assert_eq!(workspace.bash_decision(PermissionMode::BypassPermissions, &rules, command), "allow", "{command}");
    }
}

/// An ask rule applies to what may be its command, also if the sandbox would hold it.
#[test]
fn a_hidden_word_may_be_one_that_the_user_is_asked_about() {
    let (workspace, _outside) = workspace_with_links();
    let rules = ["allow Bash", "ask Bash(git tag:*)", "ask Bash(touch:*)"];
    for command in ["git ta$nope''g", "touc$nope''h x", "git $x", "$x y", "echo x | sh"] {
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &rules, command), "ask", "{command}");
        assert_eq!(workspace.bash_decision(PermissionMode::Auto, &rules, command), "ask", "{command}");
        assert_eq!(workspace.bash_decision(PermissionMode::BypassPermissions, &rules, command), "allow", "{command}");
    }
    for command in ["git log $x", "npm run $x"] {
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &rules, command), "allow", "{command}");
    }
    // It cannot be parsed, so it may be anything.
    let command = "$'gi\\x74' tag x";
    assert_eq!(workspace.bash_decision(PermissionMode::Default, &rules, command), "ask");
}

#[test]
fn rules_for_files_see_more_forms_of_their_names() {
    let workspace = TestWorkspace::new();
    for name in [".env", "src/.env", "other/.env", "a.txt"] {
        workspace.write(name, "x");
    }
    let rules = ["allow Bash", "deny Read(./.env)", "deny Read(src/.env)"];
    let url = format!("curl file://{}/%2eenv#x", workspace.inner.root().display());
    let letters = format!("tool -{}K.env", "s".repeat(100));
    for command in [
        "F=.env; cat $F",
        "F='.e''nv'; cat $F",
        "for f in a .env; do cat $f; done",
        "env '-Scat .e\"\"nv'",
        "script --command='cat .e\"\"nv'",
        "curl -F 'a=@\".env\"' http://localhost",
        &url,
        &letters,
    ] {
        for mode in [PermissionMode::Default, PermissionMode::BypassPermissions] {
            assert_eq!(workspace.bash_decision(mode, &rules, command), "deny", "{command}");
        }
    }
    for command in [
        "env --c=src cat .env",
        "env -iCsrc cat .env",
        "unshare -wsrc cat .env",
        "npm exec --workspace src cat .env",
        "npm x -w src cat .env",
        "git -c commit.verbose=2 commit",
    ] {
        assert_ne!(workspace.bash_decision(PermissionMode::Default, &rules, command), "allow", "{command}");
    }
    let rules = ["allow Bash", "deny Edit(other/.env)"];
    for command in
        ["cp .env other", "cp .env other/", "install -t other .env", "mv src/.env other/", "ln -f .env other"]
    {
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &rules, command), "deny", "{command}");
    }
    for command in ["find . -delete", "find other -name '.e*' -delete", "git rm -r other", "git clean -fdx"] {
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &rules, command), "ask", "{command}");
    }
    for command in ["cp a.txt other", "cp .env src", "find . -name x", "git rm a.txt", "npm run build", "env A=1 make"]
    {
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &rules, command), "allow", "{command}");
    }
}

#[test]
fn rules_for_commands_see_more_forms_of_them() {
    let workspace = TestWorkspace::new();
    let rules = ["allow Bash", "deny Bash(rm:*)", "deny Bash(git push:*)"];
    for command in ["npm x rm a", "npm exe rm a", "pnpm dlx rm a", "script --command='rm a'"] {
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &rules, command), "deny", "{command}");
    }
    assert_eq!(workspace.bash_decision(PermissionMode::Default, &rules, "git config --rename-section x alias"), "ask");
    // A loop would decide which program it is.
    let rules = ["allow Bash($tool/run:*)"];
    let command = "for tool in /tmp/x; do $tool/run; done";
    assert_eq!(workspace.bash_decision(PermissionMode::Default, &rules, command), "ask");
}

/// Every command that is not decided as expected in one of the modes.
fn slipped(workspace: &TestWorkspace, rules: &[&str], expected: &str, commands: &[&str]) -> Vec<String> {
    let modes = [PermissionMode::Default, PermissionMode::BypassPermissions];
    let decided = commands.iter().flat_map(|command| {
        modes.map(|mode| (mode, workspace.bash_decision(mode, rules, command), command.to_owned()))
    });
    let wrong = decided.filter(|(_, decision, _)| *decision != expected);
    wrong.map(|(mode, decision, command)| format!("{mode} {decision} {command}")).collect()
}

#[test]
fn words_of_denied_commands_are_found_in_code_whatever_is_around_them() {
    let workspace = TestWorkspace::new();
    let rules = ["allow Bash", "deny Bash(git push:*)", "deny Bash(reboot:*)"];
    let refused = [
        "sed 's/.*/git push/e' f",
        "sed 's#.*#git push#e' f",
        "sed -n '2s+x+git push+ge' f",
        "sed 's/.*/reboot/e' f",
        "awk 'BEGIN{print\"git push\"|\"sh\"}'",
        "awk 'BEGIN{system(\"git push\\n\")}'",
        "awk 'BEGIN{system(\"git\\tpush\")}'",
        "perl -e 'system\"git push\"'",
        "perl -e 'system qq/git push/'",
        "perl -e 'exec qw/git push/'",
        "perl -e 'exec qw/reboot/'",
        "perl -e 'exec q#git push#'",
        "python3 -c 'import subprocess;subprocess.run(\"git push\".split())'",
        "python3 -c 'import subprocess;subprocess.run([\"git\",\"push\"])'",
        "node -e 'require(\"child_process\").execSync(\"git push\\n\")'",
        "make --eval='x: ; -git push' x",
        "make --eval='x: ; @reboot' x",
        "make -f - <<E\nall:\n\t-reboot\nE",
        "perl -e 'system(\"git\", \"push\")'",
        "env -S 'git\\_push'",
        // letters before the command
        "env -iS'git push'",
        "env -vS'git push'",
        "env -iSgit push",
        "script -qc'git push' /dev/null",
        "tar -cI'git push' -f t.tar f",
        "git grep -nO'git push' f",
        "su -lc'git push'",
        "find . -exec env -iS'git push' ';'",
    ];
    assert_eq!(slipped(&workspace, &rules, "deny", &refused), Vec::<String>::new());
    let usual = [
        "sed s/reboot/x/ f",
        "sed 's#reboot#x#' f",
        "perl -pe s/reboot/x/ f",
        "python3 -c 'print(\"pushed\")'",
        "sed 's/git/a b/' f",
        "awk '{print $1}' git.txt",
        "make git-push",
        "tar -czf reboot.tar f",
        "git log --grep='a b'",
        "env -i make",
        "script -qc 'make' /dev/null",
        "sort -rm a b",
    ];
    assert_eq!(slipped(&workspace, &rules, "allow", &usual), Vec::<String>::new());
}

#[test]
fn a_rule_with_the_folder_of_a_program_holds_in_every_folder() {
    let workspace = TestWorkspace::new();
    let rules = ["allow Bash", "deny Bash(./deploy.sh:*)", "deny Bash(/opt/tools/*)"];
    let refused = [
        "./deploy.sh now",
        "bash deploy.sh",
        ". deploy.sh",
        "././deploy.sh",
        "src/../deploy.sh",
        "/project/deploy.sh x",
        "cd src && ../deploy.sh",
    ];
    assert_eq!(slipped(&workspace, &rules, "deny", &refused), Vec::<String>::new());
    assert_eq!(slipped(&workspace, &rules, "allow", &["make", "cat deploy.sh.md"]), Vec::<String>::new());
}

#[test]
fn shells_and_settings_that_are_not_seen_are_asked_about() {
    let workspace = TestWorkspace::new();
    let rules = ["allow Bash", "deny Bash(git push:*)"];
    let hidden = [
        "echo 'git push' | unshare",
        "echo 'git push' | unshare -r",
        "echo 'git push' | linux32",
        "echo 'git push' | linux64",
        "echo 'git push' | setarch x86_64",
        "echo 'git push' | nsenter -t 1 -m",
        "echo 'git push' | fakeroot",
        "echo 'git push' | script",
        "echo 'git push' | script -q /dev/null",
        "echo 'git push' | su",
        "echo 'git push' | su - me",
        "echo 'git push' | chroot /x",
        "echo 'git push' | sg me",
        "echo 'git push' | newgrp",
        "echo 'git push' | parallel",
        "echo 'git push' | parallel -j 2",
        "echo 'git push' | sudo -s",
        "echo 'git push' | sudo -u me -i",
        "echo 'git push' | doas -s",
        "echo 'git push' | sudo su",
        "echo 'git push' | ssh host",
        "echo 'git push' | runuser me",
        "echo 'git push' | capsh --",
        // settings of git
        "HOME=h git p",
        "env HOME=h git p",
        "XDG_CONFIG_HOME=h git p",
        "GIT_DIR=oth/.git git p",
        "export HOME=h; git p",
        "git --git-dir=oth/.git p",
        "git --git-dir oth/.git p",
        // options that may take a value
        "git --unknown x p",
        "git -c help.autoCorrect=1 psuh",
        "echo x | m4",
        "git -Cx p",
    ];
    assert_eq!(slipped(&workspace, &rules, "ask", &hidden), Vec::<String>::new());
    let usual = [
        "unshare make",
        "linux32 make",
        "setarch x86_64 make",
        "fakeroot make",
        "script -c make log",
        "su me -c make",
        "runuser me -c make",
        "ssh host make",
        "chroot x make",
        "ls | parallel echo",
        "sudo make",
        "HOME=h npm test",
        "env HOME=h make",
        "git p",
        "git -C . log",
    ];
    assert_eq!(slipped(&workspace, &rules, "allow", &usual), Vec::<String>::new());
}

#[test]
fn names_of_denied_files_are_found_in_code_and_beside_variables() {
    let workspace = TestWorkspace::new();
    for name in [".env", "prod.conf", "sub/prod.conf", "f"] {
        workspace.write(name, "x");
    }
    let rules = ["allow Bash", "deny Read(.env)"];
    let refused = [
        "awk 'BEGIN{system(\"cat .env\\n\")}'",
        "python3 -c 'import os;os.system(\"cat .env\\n\")'",
        "sed 's#.*#cat .env#e' f",
        "sed 's/.*/cat .env/e' f",
        "perl -e 'open F,q#.env#;print <F>'",
        "perl -e 'open F,q/.env/;print <F>'",
        "env -S 'cat\\_.env'",
        "echo `for f in .env; do cat $f; done`",
        "cat <<E\n$(for f in .env; do cat $f; done)\nE",
        "cat $PWD\"/.env\"",
        "cat $PWD/'.env'",
        "cat \".env\"$x",
        "cat \"${x}\"'.env'",
        "cat < $PWD/\".env\"",
        "cat .env\\\n",
        "cat .e\\\nnv",
        "cat .e\"\"nv; ((1))",
    ];
    assert_eq!(slipped(&workspace, &rules, "deny", &refused), Vec::<String>::new());
    let usual = ["python3 -c 'print(\"a.env\\n\")'", "sed 's#a#b#' f", "awk '{print}' f"];
    assert_eq!(slipped(&workspace, &rules, "allow", &usual), Vec::<String>::new());
    let rules = ["allow Bash", "deny Edit(./prod.conf)"];
    let refused =
        ["cp -vt. sub/prod.conf", "mv -vft. sub/prod.conf", "cp -vt . sub/prod.conf f", "cp f -t . sub/prod.conf"];
    assert_eq!(slipped(&workspace, &rules, "deny", &refused), Vec::<String>::new());
    assert_eq!(slipped(&workspace, &rules, "allow", &["cp -vt sub f", "cp f sub"]), Vec::<String>::new());
}

#[test]
fn deny_rules_match_every_link_to_a_file_and_its_target() {
    let workspace = TestWorkspace::new();
    workspace.write("conf/real", "x");
    workspace.write("store/key", "x");
    workspace.write("deep/conf/real", "x");
    let links = [("conf/real", ".env"), (".env", "one"), ("one", "two"), (".", "same"), ("store", "secrets")];
    for (target, link) in links.into_iter().chain([("secrets", "also"), ("conf/real", "deep/.env")]) {
        symlink(target, workspace.path(link)).unwrap();
    }
    let rules = ["deny Read(.env)", "deny Read(secrets/**)", "allow Bash(cat:*)"];
    for path in [".env", "one", "two", "same/two", "same/.env", "conf/real", "also/key", "secrets/key", "store/key"] {
        for tool in ["Read", "Edit", "Grep"] {
            let input = json!({"file_path": path, "path": path, "pattern": "x"});
            let input = if tool == "Grep" { json!({"path": path, "pattern": "x"}) } else { input };
            let decision = workspace.evaluate(PermissionMode::AcceptEdits, &rules, tool, &input);
            assert_eq!(decision_word(&decision), "deny", "{tool} {path}");
        }
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &rules, &format!("cat {path}")), "deny", "{path}");
    }
    // What the links led to stays protected without them.
    for link in [".env", "secrets"] {
        std::fs::remove_file(workspace.path(link)).unwrap();
    }
    symlink("a.txt", workspace.path(".env")).unwrap();
    for path in [".env", "conf/real", "store/key", "a.txt"] {
        let decision = workspace.evaluate(PermissionMode::AcceptEdits, &rules, "Read", &json!({"file_path": path}));
        assert_eq!(decision_word(&decision), "deny", "{path}");
    }
    // A link that is not in the session's folder itself hides only its own name.
    let input = json!({"file_path": "deep/conf/real"});
    assert_eq!(decision_word(&workspace.evaluate(PermissionMode::Default, &rules, "Read", &input)), "allow");
}

#[test]
fn deny_rules_match_targets_of_links_however_they_are_written() {
    let workspace = TestWorkspace::new();
    // A name that is not UTF-8 can be found by a search.
    let odd = workspace.inner.root().join(OsStr::from_bytes(b"conf/odd\xff"));
    for path in [workspace.path("store/key.pem"), workspace.path("conf/real"), odd.clone()] {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "SECRET").unwrap();
    }
    symlink("store", workspace.path("secrets")).unwrap();
    symlink("conf/real", workspace.path(".env")).unwrap();
    symlink(&odd, workspace.path(".key")).unwrap();
    let check = |pattern: &str, path: PathBuf| {
        let rules = parse_rules(&[&format!("deny Read({pattern})")]);
        let hidden = hidden_file_filter(&rules, &workspace.inner)();
        assert!(hidden(&TargetPath::new(path)), "{pattern}");
        assert!(!hidden(&TargetPath::new(workspace.path("other"))), "{pattern}");
    };
    for pattern in ["secrets/*", "secrets/*.pem", "secrets/", "{secrets,a}/**", "{a,{secrets,b}}/*.pem"] {
        check(pattern, workspace.path("store/key.pem"));
    }
    check("{.env,key}", workspace.path("conf/real"));
    symlink("conf/real", workspace.path("[id]")).unwrap();
    symlink("store", workspace.path("s t")).unwrap();
    check("[[]id]", workspace.path("conf/real"));
    check("\\[id]", workspace.path("conf/real"));
    check("s[ ]t/*.pem", workspace.path("store/key.pem"));
    check(".env{,.local}", workspace.path("conf/real"));
    check(".key", odd.clone());
    check("./.key", odd);
}

#[test]
fn deny_rules_match_every_alternative_and_character_class() {
    let workspace = TestWorkspace::new();
    let check = |pattern: &str, names: &[&str], others: &[&str]| {
        let rules = parse_rules(&[&format!("deny Read({pattern})")]);
        let hidden = hidden_file_filter(&rules, &workspace.inner)();
        for name in names {
            assert!(hidden(&TargetPath::new(workspace.path(name))), "{pattern}: {name}");
        }
        for name in others {
            assert!(!hidden(&TargetPath::new(workspace.path(name))), "{pattern}: {name}");
        }
    };
    check(".env{,.local}", &[".env", "sub/.env", ".env.local", ".env{,.local}"], &[".env.example"]);
    check("package{,-lock}.json", &["package.json", "package-lock.json"], &["packages.json"]);
    check("secrets{,/old}/**", &["secrets/a", "sub/secrets/a", "secrets/old/a"], &["a"]);
    check("{,.}{env,key}", &["env", ".env", "sub/.key"], &["envs"]);
    check(".en[[:alpha:]]", &[".env"], &[".en1"]);
    check("key[![:digit:][:punct:]]", &["keys"], &["key1", "key-"]);
    check("a[[:punct:]]b", &["a!b", "a]b", "a~b"], &["a1b"]);
    check("[[:punct:]x]*", &["_key", "sub/_key", "sub/xkey"], &["key"]);
    // What brackets exclude is excluded only in the case in which it is written.
    check("[!A-Z]ey.pem", &["key.pem", "sub/key.pem"], &["Key.pem", "1/ey.pem"]);
    check("[![:upper:]]ey", &["key"], &["Key", "ey"]);
    check("key[a-z0-9-_]*", &["key-prod", "keya"], &["key."]);
    check("key[[:alnum:]-_]*", &["key-1", "KEYX"], &["key."]);
    check("[\\[]id[\\]]/**", &["[id]/secret"], &["id/secret"]);
    check("***/.env", &[".env", "sub/.env"], &["env"]);
    check("{.env, key, secrets/**}", &[".env", "key", "secrets/a"], &["a"]);
    check(&format!("{}z", "[!b]*".repeat(1000)), &["any"], &[]);
    // Characters, not bytes.
    check("[äö]x", &["äx", "öx", "Äx"], &["üx", "ax"]);
    check("[a文]x", &["ax", "文x"], &["bx"]);
    check("[à-ü].key", &["ä.key"], &["ab.key"]);
    check("?.key", &["ä.key", "文.key", "😀.key", "a.key"], &["ab.key", "äa.key", ".key"]);
    check("[!a].key", &["ä.key", "b.key"], &["a.key"]);
    check("[!ä].key", &["ö.key", "b.key"], &[]);
    check("{a,?}.p[eé]m", &["é.pem", "a.pém"], &["ab.pem"]);
    check("[id]{x}?", &["i{x}é", "dxa"], &["[id]x"]);
}

#[tokio::test]
async fn patterns_with_many_braces_do_not_overflow_the_stack() {
    let workspace = TestWorkspace::new();
    let nested = format!("{}a{}", "{".repeat(50_000), "}".repeat(50_000));
    for (tool, input) in [
        ("Glob", json!({"pattern": nested})),
        ("Grep", json!({"pattern": "x", "glob": nested})),
        ("Grep", json!({"pattern": "x", "glob": format!("*.rs {nested}")})),
    ] {
        let output = output_text(&workspace.run_tool(tool, input).await);
        assert!(output.contains("too many braces"), "{tool}: {output}");
    }
    // It is not known which files a deny rule names, so it names all; an allow rule names none.
    for (rule, expected) in [("deny", "deny"), ("allow", "ask")] {
        let rules = [format!("{rule} Edit({nested})")];
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        let input = json!({"file_path": workspace.path("b"), "content": ""});
        let decision = workspace.evaluate(PermissionMode::Default, &rules, "Write", &input);
        assert_eq!(decision_word(&decision), expected);
    }
}

use super::parse;

/// The commands in a text, each with `!` before words that the shell changes.
fn parse_commands(command: &str) -> Vec<String> {
    let parts = parse(command).unwrap_or_else(|e| panic!("{command}: {e}")).commands;
    let show = |part: &super::SimpleCommand| {
        let words = part.words.iter().map(|w| if w.is_literal { w.quoted() } else { format!("!{}", w.text) });
        let set = part.assignments.iter().map(|a| format!("set {a}"));
        let files = part.redirects.iter().map(|r| format!("{}{}", if r.is_write { ">" } else { "<" }, r.target.text));
        set.chain(words).chain(files).collect::<Vec<_>>().join(" ")
    };
    parts.iter().map(show).collect()
}

#[test]
fn every_command_of_a_text_is_found() {
    let check = |command: &str, expected: &[&str]| assert_eq!(parse_commands(command), expected, "{command}");
    check("a b; c && d || e | f & g\nh", &["a b", "c", "d", "e", "f", "g", "h"]);
    check("a |& b", &["a", "b"]);
    check("(a; b) && { c; }", &["a", "b", "c"]);
    check("a $(b `c` \"$(d)\")", &["c", "d", "b !`c` !\"$(d)\"", "a !$(b `c` \"$(d)\")"]);
    check("a <(b) >(c)", &["b", "c", "a !<(b) !>(c)"]);
    check("if a; then b; elif c; then d; else e; fi", &["a", "b", "c", "d", "e"]);
    check("for i in 1 $(z); do a $i; done", &["z", "a !$i"]);
    check("while a\ndo b\ndone", &["a", "b"]);
    check("! a", &["a"]);
    check("X=1 Y='2 3' a", &["set X=1 set Y='2 3' a"]);
    check("X=$(a)", &["a", "set X=$(a)"]);
    check("a # ; b\nc #d", &["a", "c"]);
    check("a#b", &["'a#b'"]);
    check("a \\\n b \\\n c", &["a b c"]);
}

#[test]
fn quotes_are_taken_off_and_expansions_seen() {
    let check = |command: &str, expected: &str| assert_eq!(parse_commands(command), [expected], "{command}");
    check(r#"'a' "b" c\d e''f"#, "a b cd ef");
    check(r#"a "b c" '$x' "\$y""#, "a 'b c' '$x' '$y'");
    check("a $x ${y} \"$z\" $1 $?", "a !$x !${y} !\"$z\" !$1 !$?");
    check("a * b? [c] {d,e} ~/f", "a !* !b? ![c] !{d,e} !~/f");
    check("[ a = b ]", "[ a = b ]");
    check("find . -exec x {} +", "find . -exec x {} +");
    check("a $ b", "a '$' b");
    check("a ''", "a ''");
}

#[test]
fn redirections_name_their_files() {
    let check = |command: &str, expected: &str| assert_eq!(parse_commands(command), [expected], "{command}");
    check("a > f 2>&1", "a >f");
    check("a >>f <g 2>/dev/null", "a >f <g >/dev/null");
    check("a &> f", "a >f");
    check("a &>>f", "a >f");
    check("a >| f", "a >f");
    check("a 2>&- 3<&0", "a");
    check("a >&2 <f", "a <f");
    check("> f", ">f");
    check("a <<< word", "a");
}

#[test]
fn here_documents_hide_nothing() {
    assert_eq!(parse_commands("cat <<EOF\nhi $(a)\nEOF\nb"), ["a", "cat", "b"]);
    assert_eq!(parse_commands("cat <<'EOF' > f\nhi $(a)\nEOF\n"), ["cat >f"]);
    assert_eq!(parse_commands("cat <<-EOF\n\tx\n\tEOF\nb"), ["cat", "b"]);
    assert_eq!(parse_commands("a \"$(cat <<'E'\n) ' \"\nE\n)\""), ["cat", "a !\"$(cat <<'E'\n) ' \"\nE\n)\""]);
}

#[test]
fn what_is_not_understood_is_an_error() {
    let texts = [
        "a 'b",
        "a \"b",
        "a `b",
        "a $(b",
        "(a",
        "a)",
        "a \\",
        "a b\\\nc",
        "a $\\\n(b)",
        "a <<E\nE\\\nE\nE",
        "a <<E \\\n\nE",
        "f() { b; }",
        "function f { b; }",
        "x=(a b)",
        "((1))",
        "a $((1))",
        "a ${x:-$(b)}",
        "a ${x@P}",
        "a $'\\x72m'",
        "a $\"b\"",
        "case a in b) c;; esac",
        "[[ a ]]",
        "coproc a",
        "a <<EOF\nb",
        "a <<$x\n",
        "a[0]=b c",
        "for PATH in /x; do a; done",
        "for npm_config_userconfig in x; do npm test; done",
        "a\u{a0}b",
        "a\u{200b}",
        "a\rb",
        "a\0b",
        "a >",
        "a <&$x",
        "select x in a; do b; done",
        "a $[1]",
        "time a",
        "a {x}<b",
        "a <> b",
        "a >&b",
        "a >& 1",
        "a >&-b",
        "a 2>&--b",
        "a 2>&-''",
        "a 2>&12",
        "a 12>b",
        "a 2147483648>b",
        "a <<E\nEx\nE",
        "a $(b <<'E'\nE)\nE\n)",
        "a <<-E\n\tE)\n\tE",
        "a <<''\nb\n\n",
        "a <<'E F'\nb\nE F",
        "a {x}>&1",
        "a \u{3041}\\' b '",
        "a \u{3041}`b`",
    ];
    for text in texts {
        assert!(parse(text).is_err(), "{text}: {:?}", parse(text));
    }
    assert!(parse(&"$(".repeat(100)).is_err());
    assert!(parse(&"(".repeat(100_000)).is_err());
}

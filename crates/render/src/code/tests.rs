use proptest::prelude::*;

use super::{Language, Tone, highlight};

/// A text's pieces that are not plain, each with the initial of its tone.
fn shown(language: &str, text: &str) -> String {
    let lines = highlight(text, Language::named(language));
    let pieces = lines.into_iter().flatten().filter(|(tone, _)| *tone != Tone::Plain);
    pieces.map(|(tone, text)| format!("{tone:?}:{text}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn code_is_told_apart() {
    assert_eq!(
        shown("rust", "// hi\nfn main() -> &'a X { let x: Vec<u8> = f(\"a\\\"b\", 'c', '\\n', 0x1f); println!(); }"),
        "Comment:// hi Keyword:fn Function:main Keyword:let Type:Vec Function:f Text:\"a\\\"b\" Text:'c' Text:'\\n' \
         Number:0x1f Function:println"
    );
    assert_eq!(
        shown("py", "def f(a):\n    \"\"\"say\n    hi\"\"\"\n    return None # x"),
        "Keyword:def Function:f Text:\"\"\"say Text:    hi\"\"\" Keyword:return Number:None Comment:# x"
    );
    assert_eq!(shown("sh", "echo \"a # b\" $# # c"), "Keyword:echo Text:\"a # b\" Comment:# c");
    assert_eq!(shown("json", "{\"a\": [1, \"b\", true]}"), "Name:\"a\" Number:1 Text:\"b\" Number:true");
    assert_eq!(shown("sql", "SELECT a from b -- c"), "Keyword:SELECT Keyword:from Comment:-- c");
    assert_eq!(
        shown("html", "<!-- x --><a href=\"y\">z</a>"),
        "Comment:<!-- x --> Keyword:<a Name:href Text:\"y\" Keyword:> Keyword:</a>"
    );
    assert_eq!(shown("diff", "@@ 1\n-a\n+b\n c"), "Function:@@ 1 Removed:-a Added:+b");
    assert_eq!(shown("toml", "[a-b]\nc-d = \"e\" # f"), "Name:c-d Text:\"e\" Comment:# f");
    assert_eq!(
        shown("ts", "/* a\nb */ const x = `c\n${d}`;"),
        "Comment:/* a Comment:b */ Keyword:const Text:`c Text:${d}`"
    );
}

#[test]
fn files_are_known_by_name() {
    assert_eq!(Language::of_path("/a/b.rs"), Language::named("rust"));
    assert_eq!(Language::of_path("C:\\x\\Makefile"), Language::named("sh"));
    assert_eq!(Language::of_path("notes.unheardof"), None);
    assert_eq!(Language::named("TypeScript,ignore"), Language::named("ts"));
}

proptest! {
    #[test]
    fn every_character_comes_out_again(
        word in prop::sample::select(vec!["rust", "ts", "py", "sh", "json", "yaml", "css", "html", "sql", "hs", "diff"]),
        text in "([a-zA-Z0-9_é抽'\"`\\\\/*<>!#:=(){}\\[\\]. -]|\n){0,120}",
    ) {
        let joined: Vec<String> = highlight(&text, Language::named(word))
            .iter().map(|line| line.iter().map(|piece| piece.1).collect()).collect();
        prop_assert_eq!(joined, text.lines().map(str::to_owned).collect::<Vec<_>>());
    }
}

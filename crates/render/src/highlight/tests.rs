use proptest::prelude::*;

use super::{Language, TokenKind, highlight};

/// A text's pieces that are not plain, each with the initial of its tone.
fn highlighted(language: &str, text: &str) -> String {
    let lines = highlight(text, Language::from_name(language));
    let pieces = lines.into_iter().flatten().filter(|(tone, _)| *tone != TokenKind::Plain);
    pieces.map(|(tone, text)| format!("{tone:?}:{text}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn code_is_recognized() {
    assert_eq!(
        highlighted(
            "rust",
            "// hi\nfn main() -> &'a X { let x: Vec<u8> = f(\"a\\\"b\", 'c', '\\n', 0x1f); println!(); }"
        ),
        "Comment:// hi Keyword:fn Function:main Keyword:let Type:Vec Function:f StringLiteral:\"a\\\"b\" StringLiteral:'c' StringLiteral:'\\n' \
         Number:0x1f Function:println"
    );
    assert_eq!(
        highlighted("py", "def f(a):\n    \"\"\"say\n    hi\"\"\"\n    return None # x"),
        "Keyword:def Function:f StringLiteral:\"\"\"say StringLiteral:    hi\"\"\" Keyword:return Number:None Comment:# x"
    );
    assert_eq!(highlighted("sh", "echo \"a # b\" $# # c"), "Keyword:echo StringLiteral:\"a # b\" Comment:# c");
    assert_eq!(highlighted("json", "{\"a\": [1, \"b\", true]}"), "Key:\"a\" Number:1 StringLiteral:\"b\" Number:true");
    assert_eq!(highlighted("sql", "SELECT a from b -- c"), "Keyword:SELECT Keyword:from Comment:-- c");
    assert_eq!(
        highlighted("html", "<!-- x --><a href=\"y\">z</a>"),
        "Comment:<!-- x --> Keyword:<a Key:href StringLiteral:\"y\" Keyword:> Keyword:</a>"
    );
    assert_eq!(highlighted("diff", "@@ 1\n-a\n+b\n c"), "Function:@@ 1 Removed:-a Added:+b");
    assert_eq!(highlighted("toml", "[a-b]\nc-d = \"e\" # f"), "Key:c-d StringLiteral:\"e\" Comment:# f");
    assert_eq!(
        highlighted("ts", "/* a\nb */ const x = `c\n${d}`;"),
        "Comment:/* a Comment:b */ Keyword:const StringLiteral:`c StringLiteral:${d}`"
    );
}

#[test]
fn files_are_known_by_name() {
    assert_eq!(Language::from_path("/a/b.rs"), Language::from_name("rust"));
    assert_eq!(Language::from_path("C:\\x\\Makefile"), Language::from_name("sh"));
    assert_eq!(Language::from_path("notes.unheardof"), None);
    assert_eq!(Language::from_name("TypeScript,ignore"), Language::from_name("ts"));
}

proptest! {
    #[test]
    fn every_character_comes_out_again(
        word in prop::sample::select(vec!["rust", "ts", "py", "sh", "json", "yaml", "css", "html", "sql", "hs", "diff"]),
        text in "([a-zA-Z0-9_é抽'\"`\\\\/*<>!#:=(){}\\[\\]. -]|\n){0,120}",
    ) {
        let joined: Vec<String> = highlight(&text, Language::from_name(word))
            .iter().map(|line| line.iter().map(|piece| piece.1).collect()).collect();
        prop_assert_eq!(joined, text.lines().map(str::to_owned).collect::<Vec<_>>());
    }
}

//! The languages that the highlighter knows, and how each differs from the others.

use super::TokenKind;

/// A known language; an index into [`GRAMMARS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Language(usize);

impl Language {
    /// Language of a fenced code block, from a name such as `rust` or `py`.
    pub(crate) fn from_name(word: &str) -> Option<Self> {
        let word = word.split([',', ' ', '{']).next().unwrap_or_default().to_ascii_lowercase();
        GRAMMARS.iter().position(|grammar| list_contains(grammar.names, &word)).map(Self)
    }

    /// Language of a file, from its extension or name.
    pub(crate) fn from_path(path: &str) -> Option<Self> {
        let name = path.rsplit(['/', '\\']).next()?;
        Self::from_name(name.rsplit_once('.').map_or(name, |(_, extension)| extension))
    }

    pub(super) fn grammar(self) -> &'static Grammar {
        &GRAMMARS[self.0]
    }
}

/// Whether a list separated by spaces contains a word.
pub(super) fn list_contains(list: &str, word: &str) -> bool {
    !word.is_empty() && list.split(' ').any(|other| other == word)
}

/// Syntax of a language.
pub(super) struct Grammar {
    /// Names in fenced code blocks and file extensions, separated by spaces.
    names: &'static str,
    /// Keywords, separated by spaces.
    pub(super) keywords: &'static str,
    /// Delimiters that begin a comment to the end of the line.
    pub(super) line_comments: &'static [&'static str],
    /// Comments and strings that may span lines: kind, opening and closing delimiter; longer
    /// opening delimiters first.
    pub(super) multiline_spans: &'static [(TokenKind, &'static str, &'static str)],
    /// Quote characters of strings that end on their line.
    pub(super) quotes: &'static str,
    /// Whether words may contain dashes.
    pub(super) allows_dashes: bool,
    /// Whether words before `(` are calls and words in `CamelCase` types.
    pub(super) has_calls_and_types: bool,
    pub(super) rules: SyntaxRules,
}

/// Rules that only some languages need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SyntaxRules {
    Standard,
    /// Lifetimes and macros.
    Rust,
    /// Keywords in upper or lower case, as in SQL.
    CaseInsensitive,
    /// Keys before `:` or `=`, as in YAML and TOML.
    KeyValue,
    /// Tags, as in HTML.
    Markup,
    /// Lines coloured by their first character.
    Diff,
}

const BLOCK_COMMENT: (TokenKind, &str, &str) = (TokenKind::Comment, "/*", "*/");

const DEFAULT_GRAMMAR: Grammar = Grammar {
    names: "",
    keywords: "",
    line_comments: &["//"],
    multiline_spans: &[BLOCK_COMMENT],
    quotes: "\"'",
    allows_dashes: false,
    has_calls_and_types: true,
    rules: SyntaxRules::Standard,
};

static GRAMMARS: [Grammar; 16] = [
    Grammar {
        names: "rust rs",
        keywords: "as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move \
            mut pub ref return self Self static struct super trait type unsafe use where while",
        multiline_spans: &[
            BLOCK_COMMENT,
            (TokenKind::StringLiteral, "r#\"", "\"#"),
            (TokenKind::StringLiteral, "\"", "\""),
        ],
        quotes: "'",
        rules: SyntaxRules::Rust,
        ..DEFAULT_GRAMMAR
    },
    Grammar {
        names: "js jsx ts tsx mjs cjs mts cts javascript typescript vue svelte gleam",
        keywords: "abstract as async await break case catch class const continue default delete do else enum export extends \
            finally for from function get if implements import in instanceof interface keyof let namespace new of \
            private protected public readonly return satisfies set static super switch this throw try type typeof \
            var void while yield",
        multiline_spans: &[BLOCK_COMMENT, (TokenKind::StringLiteral, "`", "`")],
        ..DEFAULT_GRAMMAR
    },
    Grammar {
        names: "py python python3 pyi",
        keywords: "and as assert async await break case class continue def del elif else except finally for from global if \
            import in is lambda match nonlocal not or pass raise return self try while with yield",
        line_comments: &["#"],
        multiline_spans: &[(TokenKind::StringLiteral, "\"\"\"", "\"\"\""), (TokenKind::StringLiteral, "'''", "'''")],
        ..DEFAULT_GRAMMAR
    },
    Grammar {
        names: "sh bash zsh fish shell console shellsession dockerfile makefile make mk",
        keywords: "if then elif else fi for in do done while until case esac function return exit export local set unset \
            source cd echo FROM RUN COPY ADD ENV ARG CMD ENTRYPOINT WORKDIR EXPOSE USER",
        line_comments: &["#"],
        multiline_spans: &[],
        allows_dashes: true,
        has_calls_and_types: false,
        ..DEFAULT_GRAMMAR
    },
    Grammar {
        names: "go golang",
        keywords: "break case chan const continue default defer else fallthrough for func go goto if import interface map \
            package range return select struct switch type var",
        multiline_spans: &[BLOCK_COMMENT, (TokenKind::StringLiteral, "`", "`")],
        ..DEFAULT_GRAMMAR
    },
    Grammar {
        names: "c h cc cpp cxx hpp c++ cs csharp java kt kts kotlin swift scala dart php groovy gradle m mm zig proto",
        keywords: "abstract auto break case catch char class companion const constexpr continue data default defer delete \
            do double else enum extends extension final finally float for foreach fun func function guard if \
            implements import in inline int interface internal is let long message namespace new object operator \
            override package private protected protocol public return sealed short signed sizeof static struct super \
            switch template this throw throws try typedef typename union unsigned using val var virtual void \
            volatile when where while",
        multiline_spans: &[BLOCK_COMMENT, (TokenKind::StringLiteral, "\"\"\"", "\"\"\"")],
        ..DEFAULT_GRAMMAR
    },
    Grammar {
        names: "json jsonc json5 jsonl ndjson ipynb",
        quotes: "\"",
        has_calls_and_types: false,
        rules: SyntaxRules::KeyValue,
        ..DEFAULT_GRAMMAR
    },
    Grammar {
        names: "yaml yml toml ini cfg conf env properties lock editorconfig",
        line_comments: &["#", ";"],
        multiline_spans: &[(TokenKind::StringLiteral, "\"\"\"", "\"\"\"")],
        quotes: "\"",
        allows_dashes: true,
        has_calls_and_types: false,
        rules: SyntaxRules::KeyValue,
        ..DEFAULT_GRAMMAR
    },
    Grammar {
        names: "css scss less",
        allows_dashes: true,
        has_calls_and_types: false,
        rules: SyntaxRules::KeyValue,
        ..DEFAULT_GRAMMAR
    },
    Grammar {
        names: "html htm xml svg xhtml plist xsl",
        line_comments: &[],
        multiline_spans: &[(TokenKind::Comment, "<!--", "-->")],
        rules: SyntaxRules::Markup,
        ..DEFAULT_GRAMMAR
    },
    Grammar {
        names: "sql psql sqlite mysql",
        keywords: "add all alter and as asc begin between by case check commit constraint create cross database default \
            delete desc distinct drop else end exists explain foreign from full group having if in index inner \
            insert into is join key left like limit not null offset on or order outer over partition primary \
            references returning right rollback select set table then union unique update using values view when \
            where with",
        line_comments: &["--"],
        rules: SyntaxRules::CaseInsensitive,
        ..DEFAULT_GRAMMAR
    },
    Grammar {
        names: "rb ruby rake gemfile cr",
        keywords: "alias and begin break case class def do else elsif end ensure false for if in module next not or require \
            rescue return self super then unless until when while yield",
        line_comments: &["#"],
        multiline_spans: &[],
        ..DEFAULT_GRAMMAR
    },
    Grammar {
        names: "ex exs elixir jl julia r pl perl nix",
        keywords: "alias and case cond def defmodule defp do else end fn for function if import in let module my not or \
            quote require return struct sub unless use using when while with",
        line_comments: &["#"],
        multiline_spans: &[(TokenKind::StringLiteral, "\"\"\"", "\"\"\"")],
        quotes: "\"",
        ..DEFAULT_GRAMMAR
    },
    Grammar {
        names: "lua hs haskell elm",
        keywords: "and case class data deriving do else elseif end for function if import in instance let local module \
            newtype not of or qualified repeat return then type until where while",
        line_comments: &["--"],
        multiline_spans: &[(TokenKind::Comment, "{-", "-}")],
        quotes: "\"",
        ..DEFAULT_GRAMMAR
    },
    Grammar {
        names: "tf hcl graphql gql bicep",
        keywords: "data enum extend fragment input interface locals module mutation on output provider query resource \
            schema subscription terraform type union variable",
        line_comments: &["#", "//"],
        ..DEFAULT_GRAMMAR
    },
    Grammar { names: "diff patch", rules: SyntaxRules::Diff, ..DEFAULT_GRAMMAR },
];

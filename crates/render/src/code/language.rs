//! The languages the scanner knows, and how each differs from the others.

use super::Tone;

/// A language by the word after a fence, or by a file's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Language(usize);

impl Language {
    /// The language a fence names, such as `rust` or `py`.
    pub(crate) fn named(word: &str) -> Option<Self> {
        let word = word.split([',', ' ', '{']).next().unwrap_or_default().to_ascii_lowercase();
        GRAMMARS.iter().position(|grammar| has(grammar.names, &word)).map(Self)
    }

    /// The language of a file.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let name = path.rsplit(['/', '\\']).next()?;
        Self::named(name.rsplit_once('.').map_or(name, |(_, extension)| extension))
    }

    pub(super) fn grammar(self) -> &'static Grammar {
        &GRAMMARS[self.0]
    }
}

/// Whether a list parted by spaces holds a word.
pub(super) fn has(list: &str, word: &str) -> bool {
    !word.is_empty() && list.split(' ').any(|other| other == word)
}

/// How a language is written.
pub(super) struct Grammar {
    /// The words after a fence and the file endings, parted by spaces.
    names: &'static str,
    /// The words with a meaning of their own, parted by spaces.
    pub(super) keywords: &'static str,
    /// What begins a comment to the end of the line.
    pub(super) comments: &'static [&'static str],
    /// What goes on over lines, with its start and end; longer starts first.
    pub(super) spans: &'static [(Tone, &'static str, &'static str)],
    /// What begins and ends a string on one line.
    pub(super) quotes: &'static str,
    /// Whether words may hold dashes.
    pub(super) dashes: bool,
    /// Whether words before `(` are calls and words in `CamelCase` types.
    pub(super) calls: bool,
    pub(super) rules: Rules,
}

/// What a language does unlike the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rules {
    Usual,
    /// Lifetimes and macros.
    Rust,
    /// Keywords in either case.
    AnyCase,
    /// Keys before `:` or `=`.
    Keys,
    /// Tags.
    Markup,
    /// Lines told by their first character.
    Diff,
}

const BLOCK: (Tone, &str, &str) = (Tone::Comment, "/*", "*/");

const USUAL: Grammar = Grammar {
    names: "",
    keywords: "",
    comments: &["//"],
    spans: &[BLOCK],
    quotes: "\"'",
    dashes: false,
    calls: true,
    rules: Rules::Usual,
};

static GRAMMARS: [Grammar; 16] = [
    Grammar {
        names: "rust rs",
        keywords: "as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move \
            mut pub ref return self Self static struct super trait type unsafe use where while",
        spans: &[BLOCK, (Tone::Text, "r#\"", "\"#"), (Tone::Text, "\"", "\"")],
        quotes: "'",
        rules: Rules::Rust,
        ..USUAL
    },
    Grammar {
        names: "js jsx ts tsx mjs cjs mts cts javascript typescript vue svelte gleam",
        keywords: "abstract as async await break case catch class const continue default delete do else enum export extends \
            finally for from function get if implements import in instanceof interface keyof let namespace new of \
            private protected public readonly return satisfies set static super switch this throw try type typeof \
            var void while yield",
        spans: &[BLOCK, (Tone::Text, "`", "`")],
        ..USUAL
    },
    Grammar {
        names: "py python python3 pyi",
        keywords: "and as assert async await break case class continue def del elif else except finally for from global if \
            import in is lambda match nonlocal not or pass raise return self try while with yield",
        comments: &["#"],
        spans: &[(Tone::Text, "\"\"\"", "\"\"\""), (Tone::Text, "'''", "'''")],
        ..USUAL
    },
    Grammar {
        names: "sh bash zsh fish shell console shellsession dockerfile makefile make mk",
        keywords: "if then elif else fi for in do done while until case esac function return exit export local set unset \
            source cd echo FROM RUN COPY ADD ENV ARG CMD ENTRYPOINT WORKDIR EXPOSE USER",
        comments: &["#"],
        spans: &[],
        dashes: true,
        calls: false,
        ..USUAL
    },
    Grammar {
        names: "go golang",
        keywords: "break case chan const continue default defer else fallthrough for func go goto if import interface map \
            package range return select struct switch type var",
        spans: &[BLOCK, (Tone::Text, "`", "`")],
        ..USUAL
    },
    Grammar {
        names: "c h cc cpp cxx hpp c++ cs csharp java kt kts kotlin swift scala dart php groovy gradle m mm zig proto",
        keywords: "abstract auto break case catch char class companion const constexpr continue data default defer delete \
            do double else enum extends extension final finally float for foreach fun func function guard if \
            implements import in inline int interface internal is let long message namespace new object operator \
            override package private protected protocol public return sealed short signed sizeof static struct super \
            switch template this throw throws try typedef typename union unsigned using val var virtual void \
            volatile when where while",
        spans: &[BLOCK, (Tone::Text, "\"\"\"", "\"\"\"")],
        ..USUAL
    },
    Grammar { names: "json jsonc json5 jsonl ndjson ipynb", quotes: "\"", calls: false, rules: Rules::Keys, ..USUAL },
    Grammar {
        names: "yaml yml toml ini cfg conf env properties lock editorconfig",
        comments: &["#", ";"],
        spans: &[(Tone::Text, "\"\"\"", "\"\"\"")],
        quotes: "\"",
        dashes: true,
        calls: false,
        rules: Rules::Keys,
        ..USUAL
    },
    Grammar { names: "css scss less", dashes: true, calls: false, rules: Rules::Keys, ..USUAL },
    Grammar {
        names: "html htm xml svg xhtml plist xsl",
        comments: &[],
        spans: &[(Tone::Comment, "<!--", "-->")],
        rules: Rules::Markup,
        ..USUAL
    },
    Grammar {
        names: "sql psql sqlite mysql",
        keywords: "add all alter and as asc begin between by case check commit constraint create cross database default \
            delete desc distinct drop else end exists explain foreign from full group having if in index inner \
            insert into is join key left like limit not null offset on or order outer over partition primary \
            references returning right rollback select set table then union unique update using values view when \
            where with",
        comments: &["--"],
        rules: Rules::AnyCase,
        ..USUAL
    },
    Grammar {
        names: "rb ruby rake gemfile cr",
        keywords: "alias and begin break case class def do else elsif end ensure false for if in module next not or require \
            rescue return self super then unless until when while yield",
        comments: &["#"],
        spans: &[],
        ..USUAL
    },
    Grammar {
        names: "ex exs elixir jl julia r pl perl nix",
        keywords: "alias and case cond def defmodule defp do else end fn for function if import in let module my not or \
            quote require return struct sub unless use using when while with",
        comments: &["#"],
        spans: &[(Tone::Text, "\"\"\"", "\"\"\"")],
        quotes: "\"",
        ..USUAL
    },
    Grammar {
        names: "lua hs haskell elm",
        keywords: "and case class data deriving do else elseif end for function if import in instance let local module \
            newtype not of or qualified repeat return then type until where while",
        comments: &["--"],
        spans: &[(Tone::Comment, "{-", "-}")],
        quotes: "\"",
        ..USUAL
    },
    Grammar {
        names: "tf hcl graphql gql bicep",
        keywords: "data enum extend fragment input interface locals module mutation on output provider query resource \
            schema subscription terraform type union variable",
        comments: &["#", "//"],
        ..USUAL
    },
    Grammar { names: "diff patch", rules: Rules::Diff, ..USUAL },
];

//! Rules for some files only: Markdown files in `.claude/rules` whose front matter has `paths`.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use quipu_files::has_too_many_braces;
use serde::{Deserialize, Deserializer};

use super::InstructionFile;
use crate::definitions::{list_or_text, split_front_matter};

/// A rule that the model gets when a matching file is read or changed.
#[derive(Debug, Clone)]
pub(crate) struct PathRule {
    /// The file of the rule, and the files it imports.
    pub(crate) files: Vec<InstructionFile>,
    /// The folder that patterns are relative to.
    root: PathBuf,
    globs: GlobSet,
}

impl PathRule {
    /// A rule from a file and its imports; gives the files back if the first has no `paths`. Invalid
    /// patterns match nothing.
    pub(super) fn from_files(mut files: Vec<InstructionFile>, root: &Path) -> Result<Self, Vec<InstructionFile>> {
        let Some((globs, body)) = files.first().and_then(|rule| parse_paths(&rule.content)) else { return Err(files) };
        files[0].content = body;
        let mut set = GlobSetBuilder::new();
        let globs = globs.iter().filter(|glob| !has_too_many_braces(glob));
        for glob in globs.filter_map(|glob| GlobBuilder::new(glob).literal_separator(true).build().ok()) {
            set.add(glob);
        }
        match set.build() {
            Ok(globs) => Ok(Self { files, root: root.to_owned(), globs }),
            Err(_) => Err(files),
        }
    }

    /// Whether a pattern matches the file.
    pub(crate) fn applies_to(&self, file: &Path) -> bool {
        file.strip_prefix(&self.root).is_ok_and(|path| self.globs.is_match(path))
    }
}

#[derive(Deserialize)]
struct RuleFrontMatter {
    #[serde(default)]
    paths: Option<GlobList>,
}

/// Patterns as a list, or as one string with commas.
struct GlobList(Vec<String>);

impl<'de> Deserialize<'de> for GlobList {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        list_or_text(d, split_globs).map(Self)
    }
}

/// The patterns in the front matter of a rule, and the text after it; `None` if there are no patterns.
fn parse_paths(text: &str) -> Option<(Vec<String>, String)> {
    let (head, body) = split_front_matter(text)?;
    let front: RuleFrontMatter = serde_saphyr::from_str(head).ok()?;
    let globs = front.paths?.0;
    (!globs.is_empty()).then(|| (globs, body.to_owned()))
}

/// Splits patterns at commas; a comma inside braces is part of a pattern.
fn split_globs(text: &str) -> Vec<String> {
    let (mut globs, mut depth) = (vec![String::new()], 0_usize);
    for c in text.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                globs.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = globs.last_mut() {
            last.push(c);
        }
    }
    globs.into_iter().map(|glob| glob.trim().to_owned()).filter(|glob| !glob.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use quipu_message::hook::MemoryType;

    use super::*;

    fn check(head: &str, matching: &[&str], others: &[&str]) {
        let content = format!("---\n{head}\n---\nBody.");
        let file = InstructionFile { path: PathBuf::from("/p/.claude/rules/a.md"), kind: MemoryType::Project, content };
        let rule = PathRule::from_files(vec![file], Path::new("/p")).unwrap();
        assert_eq!(rule.files[0].content, "Body.");
        matching.iter().for_each(|path| assert!(rule.applies_to(&Path::new("/p").join(path)), "{path}"));
        others.iter().for_each(|path| assert!(!rule.applies_to(&Path::new("/p").join(path)), "{path}"));
    }

    #[test]
    fn patterns_select_the_files_of_a_rule() {
        check("paths: src/**/*.{ts,tsx}, *.md", &["src/a.ts", "src/x/b.tsx", "README.md"], &["a.ts", "docs/x.md"]);
        check(
            "paths:\n  - \"src/api/**\"\n  - lib/*.rs",
            &["src/api/x/y", "lib/a.rs"],
            &["src/b", "lib/x/a.rs", "/q/lib/a.rs"],
        );
        // Compiling the first pattern would overflow the stack.
        let nested = format!("{}{}", "{".repeat(50_000), "}".repeat(50_000));
        check(&format!("paths:\n  - \"{nested}\"\n  - lib/*.rs"), &["lib/a.rs"], &["src/b"]);
    }

    #[test]
    fn a_rule_without_paths_is_for_all() {
        for content in ["Plain.", "---\ndescription: x\n---\nBody.", "---\npaths: []\n---\nBody."] {
            let file = InstructionFile {
                path: PathBuf::from("/a.md"),
                kind: MemoryType::Project,
                content: content.to_owned(),
            };
            assert!(PathRule::from_files(vec![file], Path::new("/")).is_err(), "{content}");
        }
    }
}

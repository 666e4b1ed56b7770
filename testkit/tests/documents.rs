//! The documents name files that exist, show no hidden lines, and are the same in both languages.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The documents of the repository, except the changelog, which keeps the names of the past.
fn documents() -> Vec<PathBuf> {
    let root = quipu_testkit::repository_root();
    let mut pages =
        quipu_testkit::files_under(&root.join("docs"), |path| path.extension().is_some_and(|ext| ext == "md"));
    let names = ["README.md", "README.zh.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"];
    pages.extend(names.map(|name| root.join(name)));
    pages
}

/// `a/{b,c}.rs` as `a/b.rs` and `a/c.rs`.
fn expand_braces(text: &str) -> Vec<String> {
    let Some((before, rest)) = text.split_once('{') else { return vec![text.to_owned()] };
    let Some((choices, after)) = rest.split_once('}') else { return vec![text.to_owned()] };
    choices.split(',').map(|choice| format!("{before}{choice}{after}")).collect()
}

/// The texts between single backticks in a line of Markdown.
fn code_spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

#[test]
fn every_source_file_that_a_document_names_exists() {
    let root = quipu_testkit::repository_root();
    let is_source = |path: &Path| path.extension().is_some_and(|ext| ext == "rs");
    let mut known = BTreeSet::new();
    for folder in ["crates", "testkit"] {
        let files = quipu_testkit::files_under(&root.join(folder), is_source);
        known.extend(files.iter().map(|path| format!("/{}", path.strip_prefix(&root).unwrap().display())));
    }
    let mut missing = Vec::new();
    // The page about formats has the files of example sessions in it.
    for page in documents().into_iter().filter(|page| !page.ends_with("wire.md")) {
        for (number, line) in fs::read_to_string(&page).unwrap().lines().enumerate() {
            let named = code_spans(line).filter(|span| span.ends_with(".rs") && !span.contains([' ', '*', '(', '<']));
            for name in named.flat_map(expand_braces) {
                if !known.iter().any(|path| path.ends_with(&format!("/{name}"))) {
                    let page = page.file_name().unwrap().display();
                    missing.push(format!("{page}:{}: {name}", number + 1));
                }
            }
        }
    }
    assert!(missing.is_empty(), "no such files:\n{}", missing.join("\n"));
}

/// `Type::method` in a code span, as its parts.
fn named_method(span: &str) -> Option<(&str, &str)> {
    let (owner, rest) = span.split_once("::")?;
    let name = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()?;
    let is_type = owner.starts_with(|c: char| c.is_ascii_uppercase()) && !owner.contains(' ');
    let is_method = name.starts_with(|c: char| c.is_ascii_lowercase());
    (is_type && is_method).then_some((owner, name))
}

#[test]
fn every_method_that_a_document_names_exists() {
    let sources = quipu_testkit::files_under(&quipu_testkit::repository_root().join("crates"), |path| {
        path.extension().is_some_and(|ext| ext == "rs")
    });
    let sources: String = sources.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let mut missing = Vec::new();
    for page in documents() {
        for (number, line) in fs::read_to_string(&page).unwrap().lines().enumerate() {
            for (owner, name) in code_spans(line).filter_map(named_method) {
                // Setters of the SDK's options are declared by a macro: `flag name`, `some name(…)`.
                let defined = ["fn", "set", "some", "push", "flag", "extend"];
                if !defined.iter().any(|keyword| {
                    let definition = format!("{keyword} {name}");
                    sources.match_indices(&definition).any(|(start, text)| {
                        !sources[start + text.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
                    })
                }) {
                    let page = page.file_name().unwrap().display();
                    missing.push(format!("{page}:{}: {owner}::{name}", number + 1));
                }
            }
        }
    }
    assert!(missing.is_empty(), "no such methods:\n{}", missing.join("\n"));
}

#[test]
fn no_rust_example_has_lines_that_only_rustdoc_hides() {
    let mut found = Vec::new();
    for page in documents() {
        let mut in_rust = false;
        for (number, line) in fs::read_to_string(&page).unwrap().lines().enumerate() {
            if line.starts_with("```") {
                in_rust = line.starts_with("```rust");
            } else if in_rust && (line == "#" || line.starts_with("# ")) {
                found.push(format!("{}:{}: {line}", page.file_name().unwrap().display(), number + 1));
            }
        }
    }
    assert!(found.is_empty(), "shown on the web as they are:\n{}", found.join("\n"));
}

/// The first column of a README's tables: commands and crates.
fn first_cells(readme: &str) -> Vec<String> {
    let text = fs::read_to_string(quipu_testkit::repository_root().join(readme)).unwrap();
    let cells = text.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let cells = cells.filter(|cell| cell.contains('`'));
    cells.map(|cell| code_spans(cell).collect::<Vec<_>>().join(", ")).collect()
}

#[test]
fn both_readmes_have_the_same_commands_and_crates() {
    assert_eq!(first_cells("README.md"), first_cells("README.zh.md"));
}

//! The listed differences: `docs/compat.md` has one block for each recording.

use std::fs;

/// The recordings that have differences listed.
pub(super) fn listed() -> Vec<String> {
    blocks().into_iter().map(|(name, _)| name).collect()
}

/// What is listed for a recording.
pub(super) fn of(name: &str) -> String {
    blocks().into_iter().find(|(known, _)| known == name).map(|(_, block)| block).unwrap_or_default()
}

/// Each `### name` heading with the `diff` block under it.
fn blocks() -> Vec<(String, String)> {
    let text = fs::read_to_string(quipu_testkit::repository_root().join("docs/compat.md")).unwrap_or_default();
    let sections = text.split("\n### ").skip(1);
    sections
        .filter_map(|section| {
            let name = section.lines().next()?.trim().to_owned();
            let block = section.split("```diff\n").nth(1)?.split("\n```").next()?;
            Some((name, block.to_owned()))
        })
        .collect()
}

/// What only they say (`-`) and what only we say (`+`), in order.
pub(super) fn difference(theirs: &[String], ours: &[String]) -> String {
    // The longest common subsequence, the plain way: the lists are short.
    let (n, m) = (theirs.len(), ours.len());
    let mut longest = vec![vec![0_usize; m + 1]; n + 1];
    for i in (0..n).rev() {
        for j in (0..m).rev() {
            longest[i][j] =
                if theirs[i] == ours[j] { longest[i + 1][j + 1] + 1 } else { longest[i + 1][j].max(longest[i][j + 1]) };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < n || j < m {
        if i < n && j < m && theirs[i] == ours[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == m || i < n && longest[i + 1][j] >= longest[i][j + 1] {
            lines.push(format!("- {}", theirs[i]));
            i += 1;
        } else {
            lines.push(format!("+ {}", ours[j]));
            j += 1;
        }
    }
    lines.join("\n")
}

//! Writes the index of an archive of many conversations, as an HTML page or as Markdown.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::SessionDetails;
use crate::html::Html;
use crate::markdown;
use crate::sanitize::sanitize_line;

/// One conversation in an archive, with its columns as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArchiveItem {
    /// Path of its file relative to the index, with `/` between folders.
    pub file: String,
    /// Title of the session.
    pub title: String,
    /// Name of its project.
    pub project: String,
    /// Time of its last entry.
    pub last_active: String,
    /// Number of turns.
    pub turns: String,
    /// Cost of its API calls.
    pub cost: String,
}

const COLUMNS: [&str; 4] = ["last", "title", "turns", "cost"];

/// Writes the index as an HTML page without scripts and external resources. Conversations are
/// grouped by project, in the order given.
pub fn archive_html(title: &str, archived: &[ArchiveItem]) -> String {
    let about = SessionDetails { title: Some(title.to_owned()), ..SessionDetails::default() };
    let mut body = String::new();
    for project in group_by_project(archived) {
        let name = Html::escape_line(&project[0].project);
        body.push_str(&format!("<section class=\"prose\">\n<h2>{name}</h2>\n<table>\n<thead><tr>"));
        COLUMNS.iter().for_each(|column| body.push_str(&format!("<th>{column}</th>")));
        body.push_str("</tr></thead>\n<tbody>\n");
        for one in project {
            let [last, title, turns, cost] =
                [&one.last_active, &one.title, &one.turns, &one.cost].map(|t| Html::escape_line(t));
            let link = format!("<a href=\"{}\">{title}</a>", encode_href(&one.file));
            body.push_str(&format!("<tr><td>{last}</td><td>{link}</td><td>{turns}</td><td>{cost}</td></tr>\n"));
        }
        body.push_str("</tbody>\n</table>\n</section>\n");
    }
    Html { details: about, ..Html::default() }.wrap_page(&body)
}

/// Writes the index as Markdown, in the same order as [`archive_html`].
pub fn archive_markdown(title: &str, archived: &[ArchiveItem]) -> String {
    let mut text = format!("# {}\n", markdown::escape_markdown(&sanitize_line(title)));
    for project in group_by_project(archived) {
        text.push_str(&format!("\n## {}\n\n", markdown::escape_markdown(&sanitize_line(&project[0].project))));
        text.push_str(&format!("| {} |\n|---|---|--:|--:|\n", COLUMNS.join(" | ")));
        for one in project {
            let cell = |text: &str| markdown::escape_markdown(&sanitize_line(text));
            let link = format!("[{}]({})", cell(&one.title), encode_href(&one.file));
            text.push_str(&format!(
                "| {} | {link} | {} | {} |\n",
                cell(&one.last_active),
                cell(&one.turns),
                cell(&one.cost)
            ));
        }
    }
    text
}

/// Groups conversations by project, in the order of each project's first conversation.
fn group_by_project(archived: &[ArchiveItem]) -> Vec<Vec<&ArchiveItem>> {
    let mut projects: Vec<Vec<&ArchiveItem>> = Vec::new();
    for one in archived {
        match projects.iter_mut().find(|project| project[0].project == one.project) {
            Some(project) => project.push(one),
            None => projects.push(vec![one]),
        }
    }
    projects
}

/// A relative path, percent-encoded for the `href` of a link.
fn encode_href(file: &str) -> String {
    const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');
    format!("./{}", utf8_percent_encode(file, ENCODED))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archived() -> Vec<ArchiveItem> {
        let one = |file: &str, title: &str, project: &str| ArchiveItem {
            file: file.to_owned(),
            title: title.to_owned(),
            project: project.to_owned(),
            turns: "2".to_owned(),
            ..ArchiveItem::default()
        };
        vec![one("a/1.html", "Tides", "a"), one("b/2.html", "x | <b>y</b>", "b"), one("a/ü \"3.html", "Ebb", "a")]
    }

    #[test]
    fn sessions_are_listed_by_project_with_links_to_their_files() {
        let page = archive_html("All of it", &archived());
        let places: Vec<usize> =
            ["<h1>All of it</h1>", "<h2>a</h2>", "./a/1.html", "./a/%C3%BC%20%223.html", "<h2>b</h2>"]
                .map(|text| page.find(text).unwrap_or_else(|| panic!("{text} in {page}")))
                .to_vec();
        assert!(places.is_sorted(), "{places:?}");
        assert!(page.contains("x | &lt;b&gt;y&lt;/b&gt;") && !page.contains("<b>"));
    }

    #[test]
    fn titles_cannot_break_the_table_of_the_markdown_list() {
        let text = archive_markdown("All", &archived());
        assert_eq!(text.lines().filter(|line| line.starts_with("| ")).count(), 2 + 3);
        let row = text.lines().find(|line| line.contains("b/2.html")).unwrap();
        assert!(row.contains("x \\| ") && !row.contains("<b>"), "{row}");
    }
}

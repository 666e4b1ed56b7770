//! Search against a plain scan of what the screen shows: nothing may be missing.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use quipu_conversation::price::Prices;
use quipu_conversation::{Conversation, ScreenItem};
use quipu_index::{Catalogue, Pattern, Query, SearchHits, SearchTerms, hits_in_line, matching_lines};
use quipu_message::{Block, Content};
use quipu_transcript::{find, load_session};
use serde_json::Value;
use tempfile::tempdir;

/// Words, identifiers in any case, paths, signs, Chinese and emoji. Each is found in the
/// demo sessions.
const QUERIES: [&str; 62] = [
    // Words.
    "tide",
    "Harbour",
    "CURVE",
    "gauge",
    "metres",
    "gannet OR tide",
    "believable",
    "1",
    "f64",
    "sam",
    "Bash",
    "cancelled",
    // Titles, queued prompts, system lines, hooks.
    "smooth",
    "\"CI saw it only once\"",
    "\"tide curve\"",
    "Sonnet",
    "PostToolUse",
    "overloaded",
    "compacted",
    // Identifiers.
    "toradians",
    "to_radians",
    "TORADIANS",
    "toRadians",
    "to_radians()",
    "systemtime",
    "SystemTime",
    "SYSTEM_TIME",
    "unixepoch",
    "UNIX_EPOCH",
    "next_high",
    "nexthigh",
    "NextHigh",
    "hourssinceepoch",
    "hours_since_epoch",
    "there_is_always_a_next_high",
    "as_secs_f64",
    "posttooluse",
    "INTO_ITER",
    // Paths.
    "src/harmonics.rs",
    "SRC/NEXT.RS",
    "data/harbours.toml",
    "web/src/chart.ts",
    "/home/sam/tidepool/notebooks/gauge.py",
    "notebooks/clean.ipynb",
    "draw.py",
    // Signs.
    "f64::MAX",
    "->",
    "=>",
    "--oneline",
    "1%",
    "SystemTime::now",
    "cos()",
    "@src",
    "f64::",
    "harbours.toml",
    // Chinese and emoji.
    "抽奖",
    "公平",
    "抽",
    "种子",
    "年会抽奖脚本",
    "🎉",
    "→",
];

#[test]
fn what_the_screen_shows_of_the_demo_is_found() {
    let dir = tempdir().unwrap();
    let shown = compare(&quipu_testkit::fixture("demo"), &dir.path().join("cache"), &QUERIES);
    let unused: Vec<_> = QUERIES.iter().filter(|query| !shown.contains(**query)).collect();
    assert!(unused.is_empty(), "nowhere on the screen: {unused:?}");
}

#[test]
fn what_the_screen_shows_of_real_sessions_is_found() {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let dir = tempdir().unwrap();
    let folder = dir.path().join("projects/-corpus");
    fs::create_dir_all(&folder).unwrap();
    let files = quipu_testkit::files_under(&shared.join("corpus/data"), |path| {
        // These hand-written files use one id for several messages.
        let is_made_up = path.to_string_lossy().contains("golden_fixtures");
        !is_made_up
            && path.extension().is_some_and(|ext| ext == "jsonl")
            && fs::metadata(path).is_ok_and(|meta| meta.len() < 600_000)
    });
    for (n, file) in files.iter().enumerate() {
        fs::copy(file, folder.join(format!("s{n:03}.jsonl"))).unwrap();
    }
    let queries = [
        "readcommitted",
        "sessionid",
        "SESSION_ID",
        "sessionId",
        "exit",
        "wingman",
        "C++",
        "#104",
        "50%",
        "🚀",
        "✅",
        "package.json",
        "src/main.rs",
        "@anthropic",
        "2026-02-12",
        "--help",
        "=>",
        "Found",
        "callback",
        "Todo",
        "npm",
        "NullPointerException",
        "const",
        "中文",
        "git commit",
        "\"exit code\"",
        "WebSearch",
        "tests/",
    ];
    let shown = compare(dir.path(), &dir.path().join("cache"), &queries);
    assert!(shown.len() > 15, "{shown:?}");
}

/// Compares search with a scan of the items of every session, and returns the queries that
/// the scan found somewhere.
fn compare(dir: &Path, cache: &Path, queries: &[&'static str]) -> BTreeSet<&'static str> {
    let mut catalogue = Catalogue::open(cache, &[dir.to_owned()], Prices::bundled()).unwrap();
    catalogue.refresh(&|_, _| ()).unwrap();
    catalogue.index_text(&|_, _| ()).unwrap();
    let conversations = searched_sessions(dir);
    let mut shown = BTreeSet::new();
    for query in queries {
        let hits = search(&catalogue, dir, query).hits;
        assert!(hits.iter().all(|hit| hit.snippet.contains('«')), "{query}");
        let mut opened: HashMap<&Path, HashSet<usize>> = HashMap::new();
        for hit in &hits {
            let conversation = conversations.iter().find(|conversation| conversation.path == hit.path).unwrap();
            opened
                .entry(&conversation.path)
                .or_default()
                .extend(conversation.conversation.items_at_line(&conversation.items, hit.line));
        }
        let (mut found, mut missing) = (HashSet::new(), Vec::new());
        for conversation in &conversations {
            for (n, item) in conversation.items.iter().enumerate() {
                let texts = texts(item, &conversation.agents);
                let Some(text) = texts.into_iter().find(|text| is_shown(query, text)) else { continue };
                shown.insert(*query);
                if opened.get(&*conversation.path).is_some_and(|items| items.contains(&n)) {
                    found.insert(text);
                } else {
                    missing.push((text, format!("{}:{}", conversation.path.display(), item.line)));
                }
            }
            if conversation.conversation.title().is_some_and(|title| is_shown(query, title)) {
                assert!(
                    hits.iter().any(|hit| hit.path == conversation.path),
                    "{query} is a title of {}",
                    conversation.path.display()
                );
                shown.insert(*query);
            }
        }
        // A copy of a session is found once.
        missing.retain(|(text, _)| !found.contains(text));
        assert!(missing.is_empty(), "{query} is shown but not found: {missing:.300?}");
    }
    shown
}

fn search(catalogue: &Catalogue, dir: &Path, text: &str) -> SearchHits {
    let (terms, query) = (SearchTerms::parse(text).unwrap(), Query::default());
    let found = catalogue.search(&terms, &query).unwrap();
    if terms.has_words() && !found.is_incomplete {
        return found;
    }
    let pattern = Pattern::from_terms(terms);
    let (histories, _) = find::list_session_files(&find::list_project_folders(&[dir.to_owned()]).0, &());
    let hits = histories.iter().flat_map(|history| {
        let places = matching_lines(history, &pattern).0;
        places.iter().flat_map(|place| hits_in_line(history, place, &pattern, &query)).collect::<Vec<_>>()
    });
    SearchHits { hits: hits.collect(), ..SearchHits::default() }
}

struct SearchedSession {
    path: PathBuf,
    conversation: Conversation,
    items: Vec<ScreenItem>,
    /// Subagents with files of their own, which are read by themselves.
    agents: HashSet<String>,
}

fn searched_sessions(dir: &Path) -> Vec<SearchedSession> {
    let (histories, _) = find::list_session_files(&find::list_project_folders(&[dir.to_owned()]).0, &());
    let files = histories.into_iter().flat_map(|history| history.files);
    let read = files.map(|file| {
        let conversation = load_session(&file.path).unwrap();
        let agents = find::list_subagents(&file.path).into_iter().map(|agent| agent.agent_id.to_string()).collect();
        SearchedSession { items: conversation.for_ui(), conversation, path: file.path, agents }
    });
    read.collect()
}

/// All that an item shows.
fn texts(item: &ScreenItem, agents: &HashSet<String>) -> Vec<String> {
    fn strings(value: &Value, out: &mut Vec<String>) {
        match value {
            Value::String(text) => out.push(text.clone()),
            Value::Number(number) => out.push(number.to_string()),
            Value::Array(items) => items.iter().for_each(|item| strings(item, out)),
            Value::Object(fields) => fields.values().for_each(|value| strings(value, out)),
            _ => {}
        }
    }
    // What announces a branch is no text of the session.
    if item.kind == quipu_conversation::ItemKind::Branch {
        return Vec::new();
    }
    let mut out: Vec<String> = item.text.clone().into_iter().collect();
    let Some(tool) = &item.tool else { return out };
    out.push(tool.name.to_string());
    strings(&tool.input.to_value(), &mut out);
    match &tool.result {
        Some(Content::Text(text)) => out.push(text.clone()),
        Some(Content::Blocks(blocks)) => out.extend(blocks.iter().filter_map(Block::text).map(str::to_owned)),
        Some(Content::Other(json)) => strings(&json.to_value(), &mut out),
        None => tool.output.iter().for_each(|output| strings(&output.to_value(), &mut out)),
    }
    if let Some(side) = &tool.subagent
        && side.agent_id.as_ref().is_none_or(|id| !agents.contains(id.as_str()))
    {
        out.extend(side.items.iter().flat_map(|item| texts(item, agents)));
    }
    out
}

/// A plain scan, written apart from the search: without case, identifiers also without
/// underscores, where no letter or digit of the same kind stands beside it.
fn is_shown(query: &str, text: &str) -> bool {
    query.split(" OR ").any(|query| {
        let query = query.trim_matches('"').to_lowercase();
        let plain = text.to_lowercase();
        let joined = |text: &str| text.replace('_', "");
        let is_identifier = query.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let all_words = |text: &str| query.split(' ').all(|word| occurs_in(word, text));
        occurs_in(&query, &plain)
            || is_identifier && occurs_in(&joined(&query), &joined(&plain))
            || query == "git commit" && all_words(&plain)
    })
}

fn occurs_in(query: &str, text: &str) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() && c.is_ascii());
    text.match_indices(query).any(|(at, found)| {
        let (before, after) = (text[..at].chars().next_back(), text[at + found.len()..].chars().next());
        !(is_letter(before) && is_letter(found.chars().next())
            || is_letter(after) && is_letter(found.chars().next_back()))
    })
}

//! A session that is not held whole shows what loading it shows.

use std::fs;
use std::path::{Path, PathBuf};

use quipu_conversation::{ScreenItem, Skeleton, UiOptions};
use quipu_testkit as kit;
use quipu_transcript::{
    FileSkeleton, LiveSession, OpenSession, SessionFollower, SessionSkeleton, load_file, load_session,
};

const ALL: UiOptions = UiOptions { include_hidden: true, include_branches: true, leave_out_subagents: false };

fn check(path: &Path) {
    let expected = load_session(path).unwrap().for_ui_with(ALL);
    let session = SessionSkeleton::open(path).unwrap();
    let view = session.view();
    assert_eq!(view.items(0..view.len(), ALL), expected, "{}", path.display());

    let mut past = Vec::new();
    SessionSkeleton::open_file(path).unwrap().view().visit_past_requests(|part| past.push(part));
    assert_eq!(past, load_file(path).unwrap().past_requests(), "{}", path.display());

    // Stored after the first half of its lines, and continued.
    let continued = SessionSkeleton::open_with(path, |path| {
        let (_folder, half) = first_half(path);
        let stored = FileSkeleton::read(&half)?;
        let skeleton = stored_copy(&stored.skeleton);
        let mut file = FileSkeleton::from_stored(skeleton, stored.offset, stored.lines);
        file.read_on(path)?;
        Ok(file)
    });
    let continued = continued.unwrap();
    // Problems have the path of the file they were found in, which items do not show.
    assert_eq!(continued.view().items(0..view.len(), ALL), expected, "{}", path.display());
}

/// The skeleton after it was stored and read.
fn stored_copy(skeleton: &Skeleton) -> Skeleton {
    assert!(skeleton.is_storable());
    let mut bytes = Vec::new();
    skeleton.store(&mut bytes).unwrap();
    Skeleton::read_stored(&mut &bytes[..]).unwrap()
}

/// A file with the first half of the lines of another.
fn first_half(path: &Path) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let half = folder.path().join("half.jsonl");
    let bytes = fs::read(path).unwrap();
    let lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
    fs::write(&half, lines[..lines.len() / 2].concat()).unwrap();
    (folder, half)
}

#[test]
fn following_from_the_tail_shows_the_items_of_following_from_the_start() {
    let Some(shared) = kit::shared_dir() else { return };
    let mut files = kit::corpus_files(&shared, &["session"]);
    files.extend(kit::recorded_files(&shared).into_iter().filter(|path| !path.ends_with("stdout.jsonl")));
    // Whether a result counts as an update depends on where a read of the file ends, and so do the ids
    // of the item.
    let last_items = |follower: SessionFollower| {
        let items = LiveSession::new(follower).read_to_end(10).unwrap();
        items
            .into_iter()
            .map(|item| (ScreenItem { uuid: None, derived_from: None, ..item.item }, item.agent))
            .collect::<Vec<_>>()
    };
    let mut skipped = 0;
    for path in &files {
        let session = SessionSkeleton::open(path).unwrap();
        let Some((line, offset)) = session.view().tail_start(40) else { continue };
        skipped += offset;
        let from_tail = last_items(SessionFollower::open_at(path, line, offset).unwrap());
        let from_start = last_items(SessionFollower::open(path).unwrap());
        assert_eq!(from_tail, from_start, "{}", path.display());
    }
    assert!(skipped > 20_000_000, "{skipped} bytes were not read");
}

#[test]
fn sessions_with_subagents_show_the_same_if_they_are_not_held_whole() {
    let Some(shared) = kit::shared_dir() else { return };
    // A stream ends with messages that are being written, which are not stored.
    let is_session = |path: &PathBuf| path.file_name().is_some_and(|name| name != "stdout.jsonl");
    let files: Vec<PathBuf> = kit::recorded_files(&shared).into_iter().filter(is_session).collect();
    assert!(files.len() > 50, "{} files", files.len());
    files.iter().for_each(|path| check(path));
}

#[test]
fn our_own_files_show_the_same_if_they_are_not_held_whole() {
    let is_session = |path: &Path| path.extension().is_some_and(|ext| ext == "jsonl");
    for folder in ["demo", "broken"] {
        let files = kit::files_under(&kit::fixture(folder), is_session);
        assert!(!files.is_empty(), "{folder}");
        files.iter().for_each(|path| check(path));
    }
}

#[test]
fn a_session_is_up_to_date_until_one_of_its_files_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let line = "{\"type\":\"user\",\"uuid\":\"a\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n";
    fs::write(&path, line).unwrap();
    let mut session = OpenSession::open(&path, FileSkeleton::read).unwrap();
    assert!(session.is_up_to_date());
    let subagent = folder.path().join("s/subagents/agent-1.jsonl");
    fs::create_dir_all(subagent.parent().unwrap()).unwrap();
    for (path, text) in [(&path, line.repeat(2)), (&subagent, line.to_owned()), (&subagent, line.repeat(3))] {
        fs::write(path, text).unwrap();
        assert!(!session.is_up_to_date());
        assert!(session.update(FileSkeleton::read).unwrap());
        assert!(session.is_up_to_date());
    }
    fs::remove_file(&path).unwrap();
    assert!(!session.is_up_to_date());
}

#[test]
fn a_line_that_is_still_being_written_is_shown_and_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let line =
        |uuid: &str| format!(r#"{{"type":"user","uuid":"{uuid}","message":{{"role":"user","content":"{uuid}"}}}}"#);
    let texts = |file: FileSkeleton| -> Vec<String> {
        let mut file = Some(file);
        let session = SessionSkeleton::open_with(&path, |_| Ok(file.take().unwrap())).unwrap();
        let items = session.view().tail(9, UiOptions::default(), |_| ());
        items.into_iter().filter_map(|item| item.text).collect()
    };
    fs::write(&path, format!("{}\n{}", line("a"), line("b"))).unwrap();
    let file = FileSkeleton::read(&path).unwrap();
    assert_eq!((file.lines, file.offset), (1, line("a").len() as u64 + 1));
    let stored = stored_copy(&file.skeleton);
    let (offset, lines) = (file.offset, file.lines);
    assert_eq!(texts(file), ["a", "b"]);

    fs::write(&path, format!("{}\n{}\n{}\n", line("a"), line("b"), line("c"))).unwrap();
    let mut file = FileSkeleton::from_stored(stored, offset, lines);
    file.read_on(&path).unwrap();
    assert_eq!(texts(file), ["a", "b", "c"]);
}

//! Published sessions: the API has as many items as `quipu show --json`.

use std::fs;

use quipu_transcript::load_session;

use crate::client::TestServer;
use crate::session::all_items;

#[test]
fn published_sessions_have_the_same_number_of_items() {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let files = quipu_testkit::corpus_files(&shared, &["session"]);
    assert!(files.len() > 20, "{} files", files.len());
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("projects/-corpus");
    fs::create_dir_all(&project).unwrap();
    for (n, file) in files.iter().enumerate() {
        fs::copy(file, project.join(format!("s{n}.jsonl"))).unwrap();
    }
    let server = TestServer::start(folder.path());
    for (n, file) in files.iter().enumerate() {
        let items = all_items(&server, &format!("s{n}"), 500);
        assert_eq!(items.len(), load_session(file).unwrap().for_ui().len(), "{}", file.display());
    }
}

//! Copies of files before a session changed them.

use std::fs;

use quipu_transcript::FileBackups;

#[test]
fn the_first_backup_of_a_file_is_the_file_before_the_session() {
    let dir = tempfile::tempdir().unwrap();
    let (project, history) = (dir.path().join("projects/-srv-app"), dir.path().join("file-history/s1"));
    fs::create_dir_all(&project).unwrap();
    fs::create_dir_all(&history).unwrap();
    fs::write(history.join("aa@v1"), "first").unwrap();
    fs::write(history.join("aa@v2"), "second").unwrap();
    fs::write(dir.path().join("secret"), "not a backup").unwrap();
    let lines = [
        r#"{"type":"file-history-snapshot","messageId":"m","snapshot":{"messageId":"m","trackedFileBackups":{"a.txt":{"backupFileName":"aa@v1","version":1}}}}"#,
        r#"{"type":"file-history-delta","trackingPath":"a.txt","backup":{"backupFileName":"aa@v2","version":2}}"#,
        r#"{"type":"file-history-delta","trackingPath":"/etc/new","backup":{"backupFileName":null,"version":1}}"#,
        r#"{"type":"file-history-delta","trackingPath":"gone","backup":{"backupFileName":"zz@v1","version":1}}"#,
        r#"{"type":"file-history-delta","trackingPath":"evil","backup":{"backupFileName":"../../secret","version":1}}"#,
    ];
    let session = project.join("s1.jsonl");
    fs::write(&session, lines.join("\n") + "\n").unwrap();
    let backups = FileBackups::read(&session);
    let first = |path| backups.original_content(path, "/srv/app");
    assert_eq!(first("/srv/app/a.txt"), Some(Some("first".to_owned())));
    assert_eq!(first("/etc/new"), Some(None));
    assert_eq!((first("/srv/app/gone"), first("/srv/app/evil"), first("/srv/app/other")), (None, None, None));
}

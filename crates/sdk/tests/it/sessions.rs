//! Sessions on disk, as programs manage them.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use quipu_conversation::Conversation;
use quipu_message::{Entry, SessionId};
use quipu_sdk::sessions::{ForkOptions, ListOptions, SessionError, SessionInfo, Sessions};
use quipu_transcript::{Check, Durability, Entries, EnvelopeDefaults, Recorder, TranscriptState, load_session};
use tempfile::TempDir;

const TIDE: &str = "05ef09b2-9c3d-4897-965b-0c47c2889d7b";
const OLD: &str = "7dc934ad-8100-4f16-9ba9-44fe9c2d9a4e";
const NEW: &str = "aaaaaaaa-0000-4000-8000-000000000000";

/// A copy of the demo sessions, written one minute after another in the order of their ids.
fn demo() -> (TempDir, Sessions) {
    let dir = tempfile::tempdir().unwrap();
    for from in quipu_testkit::files_under(&quipu_testkit::fixture("demo"), |_| true) {
        let to = dir.path().join(from.strip_prefix(quipu_testkit::fixture("demo")).unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(&from, &to).unwrap();
    }
    let sessions = Sessions::new(dir.path());
    let mut files: Vec<PathBuf> = list(&sessions).into_iter().map(|info| info.path).collect();
    files.sort_by_key(|path| path.file_name().map(|name| name.to_owned()));
    for (minute, path) in files.iter().enumerate() {
        written_at(path, 60 * minute as u64);
    }
    (dir, sessions)
}

fn written_at(path: &Path, second: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000 + second);
    File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
}

fn list(sessions: &Sessions) -> Vec<SessionInfo> {
    let (listed, errors) = sessions.list(&ListOptions::default());
    assert!(errors.is_empty(), "{errors:?}");
    listed
}

fn ids(listed: &[SessionInfo]) -> Vec<&str> {
    listed.iter().map(|info| info.id.as_str().split('-').next().unwrap()).collect()
}

/// A project folder with one session of these lines.
fn session(lines: &str) -> (TempDir, Sessions, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("projects/-home-sam-app").join(format!("{NEW}.jsonl"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, lines).unwrap();
    let sessions = Sessions::new(dir.path());
    (dir, sessions, path)
}

fn user(uuid: &str, parent: Option<&str>, text: &str) -> String {
    let (text, parent) = (serde_json::json!(text), serde_json::json!(parent));
    format!(
        "{{\"type\":\"user\",\"uuid\":\"{uuid}\",\"parentUuid\":{parent},\"sessionId\":\"{NEW}\",\"cwd\":\"/home/sam/app\",\
         \"gitBranch\":\"main\",\"timestamp\":\"2026-11-14T12:00:00.000Z\",\"message\":{{\"role\":\"user\",\"content\":{text}}}}}\n"
    )
}

fn texts(entries: &[Entry]) -> Vec<String> {
    let text = |entry: &Entry| match entry {
        Entry::User(line) => line.message.content.to_text(),
        Entry::Assistant(line) => line.message.content.to_text(),
        other => panic!("{} is not said", other.kind()),
    };
    entries.iter().map(text).collect()
}

fn new() -> SessionId {
    NEW.into()
}

#[test]
fn sessions_are_listed_newest_first_by_title_prompt_tag_branch_and_place() {
    let (_dir, sessions) = demo();
    let listed = list(&sessions);
    assert_eq!(ids(&listed), ["eeaa8ea9", "7dc934ad", "449527a5", "25d0a370", "1efa34bf", "05ef09b2"]);
    let tide = &listed[5];
    assert_eq!((tide.summary.as_str(), tide.title.as_deref()), ("tide command", Some("tide command")));
    assert!(tide.is_titled && tide.first_prompt.as_deref().unwrap().starts_with("I want a small command `tide`"));
    assert!(tide.first_prompt.as_deref().unwrap().chars().count() <= 201);
    assert_eq!(tide.last_prompt.as_deref(), Some("Do the phase check, then open a pull request."));
    assert_eq!(tide.cwd.as_deref(), Some("/home/sam/tidepool"));
    assert_eq!((tide.project.as_str(), tide.bytes), ("-home-sam-tidepool", 146_580));
    assert_eq!(tide.created_at.as_deref().map(|time| &time[..4]), Some("2026"));
    // Both ways to read a file say the same.
    for info in &listed {
        assert_eq!(*info, sessions.info(&info.id).unwrap());
    }
    let titles: Vec<_> = listed.iter().map(|info| (info.summary.as_str(), info.is_titled)).collect();
    assert_eq!(titles[1], ("Cleaning the gauge readings of Kelp Harbour", false));
    assert_eq!(titles[3], ("年会抽奖脚本：为什么总是他", false));
}

#[test]
fn a_page_of_the_list_is_a_part_of_it() {
    let (_dir, sessions) = demo();
    let page = |limit, offset| {
        let (listed, errors) = sessions.list(&ListOptions { limit, offset });
        assert!(errors.is_empty());
        ids(&listed).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(page(Some(2), 0), ["eeaa8ea9", "7dc934ad"]);
    assert_eq!(page(Some(2), 4), ["1efa34bf", "05ef09b2"]);
    assert_eq!(page(None, 5), ["05ef09b2"]);
    assert!(page(Some(0), 0).is_empty() && page(Some(3), 6).is_empty());
}

#[test]
fn a_project_has_the_sessions_of_its_directory() {
    let (_dir, sessions) = demo();
    let of =
        |dir: &str| ids(&list(&sessions.clone().in_project(dir))).into_iter().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(of("/home/sam/tidepool"), ["7dc934ad", "1efa34bf", "05ef09b2"]);
    assert_eq!(of("/home/sam/抽奖"), ["25d0a370"]);
    assert!(of("/home/sam").is_empty());
    let web = sessions.in_directory("/home/sam/shoreline-web");
    assert_eq!(web.info(&TIDE.into()).unwrap_err().code(), "session.not_found");
    assert_eq!(ids(&list(&web)), ["eeaa8ea9", "449527a5"]);
}

#[test]
fn a_long_directory_is_found_under_another_hash() {
    let (dir, sessions, path) = session(&user("a", None, "hi"));
    let deep = format!("/home/sam/{}", "deep/".repeat(50));
    let name = quipu_transcript::find::project_folder_name(deep.trim_end_matches('/'));
    let other = dir.path().join("projects").join(format!("{}-another", &name[..200]));
    fs::rename(path.parent().unwrap(), &other).unwrap();
    assert_eq!(ids(&list(&sessions.in_project(&deep))), ["aaaaaaaa"]);
}

#[test]
fn a_project_has_the_sessions_of_its_worktrees() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let (main, side) = (root.join("main"), root.join("side"));
    let made = main.join(".git/worktrees/side");
    fs::create_dir_all(&made).unwrap();
    fs::create_dir_all(main.join("app")).unwrap();
    fs::create_dir_all(&side).unwrap();
    fs::write(side.join(".git"), format!("gitdir: {}\n", made.display())).unwrap();
    fs::write(made.join("commondir"), "../..\n").unwrap();
    fs::write(made.join("gitdir"), format!("{}\n", side.join(".git").display())).unwrap();
    let config = root.join("config");
    for (n, place) in [&main, &side, &main.join("app"), &root.join("stranger")].into_iter().enumerate() {
        let folder =
            config.join("projects").join(quipu_transcript::find::project_folder_name(&place.to_string_lossy()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{n}.jsonl"));
        fs::write(&path, user("a", None, "hi").replace("\"cwd\":\"/home/sam/app\",", "")).unwrap();
        written_at(&path, n as u64);
    }
    let of = |place: &Path| {
        let listed = list(&Sessions::new(&config).in_project(place));
        listed.into_iter().map(|info| (info.id.to_string(), info.cwd.unwrap())).collect::<Vec<_>>()
    };
    let at = |n: &str, place: &Path| (n.to_owned(), place.display().to_string());
    assert_eq!(of(&main), [at("1", &side), at("0", &main)]);
    assert_eq!(of(&side), [at("1", &side), at("0", &main)]);
    assert_eq!(of(&main.join("app")), [at("2", &main.join("app")), at("1", &side), at("0", &main)]);
    assert_eq!(ids(&list(&Sessions::new(&config).in_directory(&main))), ["0"]);
    // One worktree is no other place.
    fs::remove_dir_all(&made).unwrap();
    assert_eq!(of(&main.join("app")), [at("2", &main.join("app"))]);
}

#[test]
fn ids_lead_to_no_other_folder() {
    let (dir, sessions) = demo();
    fs::write(dir.path().join("outside.jsonl"), user("a", None, "secret")).unwrap();
    let code = |result: Result<(), SessionError>| result.unwrap_err().code();
    for bad in ["", "..", ".", "../../outside", "a/b", "a\\b", "/etc/passwd", "x\0y", "-rf", "C:x", &"a".repeat(300)] {
        let id = SessionId::from(bad);
        assert_eq!(code(sessions.info(&id).map(drop)), "session.bad_id", "{bad:?}");
        assert_eq!(code(sessions.load(&id).map(drop)), "session.bad_id");
        assert_eq!(code(sessions.messages(&id).map(drop)), "session.bad_id");
        assert_eq!(code(sessions.rename(&id, "x")), "session.bad_id");
        assert_eq!(code(sessions.tag(&id, None)), "session.bad_id");
        assert_eq!(code(sessions.delete(&id)), "session.bad_id");
        assert_eq!(code(sessions.fork(&id, &ForkOptions::default()).map(drop)), "session.bad_id");
        assert_eq!(code(sessions.subagents(&id).map(drop)), "session.bad_id");
    }
    assert!(dir.path().join("outside.jsonl").exists());
    let tide = TIDE.into();
    for agent in ["..", "../../../../outside", "agent-2d98ce6"] {
        assert_eq!(code(sessions.subagent_messages(&tide, &agent.into()).map(drop)), "session.no_subagent");
    }
    assert_eq!(code(sessions.info(&NEW.into()).map(drop)), "session.not_found");
}

#[test]
fn a_session_is_renamed_and_its_tag_set_and_removed() {
    let (_dir, sessions) = demo();
    let id = OLD.into();
    let path = sessions.info(&id).unwrap().path;
    let before = fs::read_to_string(&path).unwrap();
    sessions.rename(&id, "  Gauges \n").unwrap();
    sessions.tag(&id, Some(" re\u{200b}lease\u{202e} ")).unwrap();
    let info = sessions.info(&id).unwrap();
    assert_eq!((info.title.as_deref(), info.is_titled, info.tag.as_deref()), (Some("Gauges"), true, Some("release")));
    assert_eq!(list(&sessions)[0], info);
    assert_eq!(sessions.load(&id).unwrap().title(), Some("Gauges"));
    sessions.tag(&id, None).unwrap();
    assert_eq!(sessions.info(&id).unwrap().tag, None);
    let added = format!(
        "{{\"type\":\"custom-title\",\"customTitle\":\"Gauges\",\"sessionId\":\"{OLD}\"}}\n\
         {{\"type\":\"tag\",\"tag\":\"release\",\"sessionId\":\"{OLD}\"}}\n\
         {{\"type\":\"tag\",\"tag\":\"\",\"sessionId\":\"{OLD}\"}}\n"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), before + &added);
    assert_eq!(sessions.rename(&id, " \n").unwrap_err().code(), "session.no_title");
    assert_eq!(sessions.tag(&id, Some("\u{200b} ")).unwrap_err().code(), "session.no_tag");
}

#[test]
fn a_torn_line_is_set_aside_before_a_title_is_written() {
    let (_dir, sessions, path) = session(&(user("a", None, "hi") + "{\"type\":\"assistant\",\"mess"));
    sessions.rename(&new(), "Whole").unwrap();
    assert_eq!(sessions.info(&new()).unwrap().title.as_deref(), Some("Whole"));
    assert_eq!(texts(&sessions.messages(&new()).unwrap()), ["hi"]);
    let conversation = sessions.load(&new()).unwrap();
    assert_eq!(
        conversation.problems().iter().map(|problem| (problem.line, problem.kind.code())).collect::<Vec<_>>(),
        [(2, "line.not_json")]
    );
    assert!(fs::read_to_string(path).unwrap().contains("\"mess\n{\"type\":\"custom-title\""));
}

#[test]
fn empty_files_are_no_sessions_but_can_be_deleted() {
    let (dir, sessions, path) = session("");
    assert!(list(&sessions).is_empty());
    assert_eq!(sessions.info(&new()).unwrap_err().code(), "session.not_found");
    assert_eq!(sessions.rename(&new(), "x").unwrap_err().code(), "session.not_found");
    // The session itself is in another project.
    let real = dir.path().join("projects/-real").join(format!("{NEW}.jsonl"));
    fs::create_dir_all(real.parent().unwrap()).unwrap();
    fs::write(&real, user("a", None, "hi")).unwrap();
    written_at(&real, 0);
    assert_eq!(sessions.info(&new()).unwrap().path, real);
    sessions.delete(&new()).unwrap();
    assert!(!path.exists() && !real.exists());
    assert_eq!(sessions.delete(&new()).unwrap_err().code(), "session.not_found");
}

#[test]
fn files_without_anything_to_show_are_not_listed() {
    let mode = "{\"type\":\"mode\",\"mode\":\"normal\"}\n";
    let (_dir, sessions, path) = session(mode);
    assert!(list(&sessions).is_empty());
    assert_eq!(sessions.info(&new()).unwrap().summary, "");
    fs::write(&path, user("a", None, "hi").replace("\"type\":\"user\"", "\"type\":\"user\",\"isSidechain\":true"))
        .unwrap();
    assert!(list(&sessions).is_empty());
    // A command is better than nothing, words are better than a command.
    let command = user("a", None, "<command-name>/greet</command-name>\n<command-args>Bob</command-args>");
    fs::write(&path, user("z", None, "<tick>09:00</tick>") + &command).unwrap();
    assert_eq!(list(&sessions)[0].summary, "/greet Bob");
    fs::write(&path, command + &user("b", Some("a"), &format!("the\nwhole {}", "tide ".repeat(60)))).unwrap();
    let summary = &list(&sessions)[0].summary;
    assert!(summary.starts_with("the whole tide") && summary.ends_with("tide…"), "{summary}");
}

#[test]
fn of_a_large_file_both_ends_are_read_and_of_one_session_everything() {
    let filler = |n: usize| user(&format!("f{n}"), None, &"x".repeat(10_000));
    let title = format!("{{\"type\":\"custom-title\",\"customTitle\":\"Deep\",\"sessionId\":\"{NEW}\"}}\n");
    let tag = |tag: &str| format!("{{\"type\":\"tag\",\"tag\":\"{tag}\",\"sessionId\":\"{NEW}\"}}\n");
    let mut lines = user("a", None, "first words") + &tag("early");
    (0..30).for_each(|n| lines += &filler(n));
    lines += &title;
    (30..90).for_each(|n| lines += &filler(n));
    lines += &user("b", None, "last").replace("\"gitBranch\":\"main\"", "\"gitBranch\":\"topic\"");
    let (_dir, sessions, path) = session(&lines);
    let brief = &list(&sessions)[0];
    assert_eq!((brief.summary.as_str(), brief.tag.as_deref()), ("first words", Some("early")));
    assert_eq!(brief.git_branch.as_deref(), Some("topic"));
    assert_eq!(sessions.info(&new()).unwrap().title.as_deref(), Some("Deep"));
    // A last line longer than what is read of an end is read whole.
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    let long = format!("{{\"type\":\"custom-title\",\"pad\":\"{}\",\"customTitle\":\"Long\"}}", "y".repeat(900_000));
    file.write_all(long.as_bytes()).unwrap();
    assert_eq!(list(&sessions)[0].title.as_deref(), Some("Long"));
    // A first prompt that comes late is still the first.
    let mut late = String::new();
    (0..40).for_each(|n| late += &filler(n).replace("\"type\":\"user\"", "\"type\":\"user\",\"isMeta\":true"));
    fs::write(&path, late + &user("b", None, "at last")).unwrap();
    assert_eq!(list(&sessions)[0].first_prompt.as_deref(), Some("at last"));
}

#[test]
fn half_surrogate_pairs_are_read_and_kept() {
    let odd = user("a", None, "cut @ here").replace('@', "\\ud83d");
    let title = "{\"type\":\"ai-title\",\"aiTitle\":\"odd \\udc00\"}\n";
    let (_dir, sessions, path) = session(&(odd + title));
    assert_eq!(list(&sessions)[0].title.as_deref(), Some("odd \u{fffd}"));
    assert_eq!(list(&sessions)[0].first_prompt.as_deref(), Some("cut \u{fffd} here"));
    assert_eq!(texts(&sessions.messages(&new()).unwrap()), ["cut \u{fffd} here"]);
    let fork = sessions.fork(&new(), &ForkOptions::default()).unwrap();
    let copy = fs::read_to_string(path.with_file_name(format!("{fork}.jsonl"))).unwrap();
    assert!(copy.contains("cut \\ud83d here"), "{copy}");
    assert_eq!(sessions.info(&fork).unwrap().title.as_deref(), Some("odd \u{fffd} (fork)"));
    sessions.rename(&new(), "mended").unwrap();
    assert!(fs::read_to_string(path).unwrap().contains("odd \\udc00"));
}

#[test]
fn messages_are_those_of_the_branch_and_since_the_compaction() {
    let (_dir, sessions) = demo();
    let id = TIDE.into();
    let messages = sessions.messages(&id).unwrap();
    let sent_texts = texts(&messages);
    assert!(sent_texts[0].starts_with("This session is being continued"), "{}", sent_texts[0]);
    assert_eq!(sent_texts.len(), 11, "{sent_texts:?}");
    assert!(!sent_texts.iter().any(|text| text.contains("ASCII curve under the table")));
    // The whole path has what was compacted, too.
    assert!(sessions.load(&id).unwrap().path().len() > messages.len());
    for info in list(&sessions) {
        let messages = sessions.messages(&info.id).unwrap();
        assert!(!messages.is_empty(), "{}", info.summary);
        assert!(messages.iter().all(|entry| matches!(entry, Entry::User(_) | Entry::Assistant(_))));
    }
}

#[test]
fn subagents_are_listed_and_read() {
    let (dir, sessions) = demo();
    let id = TIDE.into();
    let found = sessions.subagents(&id).unwrap();
    let [one] = &found[..] else { panic!("{found:?}") };
    assert_eq!((one.agent_id.as_str(), one.agent_type.as_deref()), ("a3bbbbd40f64dd15d", Some("Explore")));
    assert_eq!(one.tool_use_id.as_ref().unwrap().as_str(), "toolu_01u4U8x1bKZyiN4RDBoscnns");
    let messages = sessions.subagent_messages(&id, &one.agent_id).unwrap();
    assert!(messages.len() > 2 && !texts(&messages)[0].is_empty());
    // In a folder below, and beside the session as older versions had it.
    let project = dir.path().join("projects/-home-sam-tidepool");
    let nested = project.join(TIDE).join("subagents/workflows/run-1");
    fs::create_dir_all(&nested).unwrap();
    fs::copy(&one.path, nested.join("agent-deep.jsonl")).unwrap();
    fs::write(nested.join("agent-deep.meta.json"), r#"{"parentAgentId":"a3bbbbd40f64dd15d"}"#).unwrap();
    fs::copy(&one.path, project.join("agent-beside.jsonl")).unwrap();
    let found = sessions.subagents(&id).unwrap();
    let names: Vec<_> = found.iter().map(|file| file.agent_id.as_str()).collect();
    assert_eq!(names, ["a3bbbbd40f64dd15d", "deep", "beside"]);
    assert_eq!(found[1].parent_agent_id.as_ref().unwrap().as_str(), "a3bbbbd40f64dd15d");
    for agent in ["deep", "beside"] {
        assert_eq!(sessions.subagent_messages(&id, &agent.into()).unwrap().len(), messages.len());
    }
    assert_eq!(sessions.subagents(&OLD.into()).unwrap().len(), 1);
}

#[test]
fn a_deleted_session_takes_its_subagents_with_it_and_nothing_else() {
    let (dir, sessions) = demo();
    let project = dir.path().join("projects/-home-sam-tidepool");
    let agent = sessions.subagents(&TIDE.into()).unwrap().remove(0).path;
    fs::copy(agent, project.join("agent-beside.jsonl")).unwrap();
    fs::write(project.join("agent-beside.meta.json"), "{}").unwrap();
    sessions.delete(&TIDE.into()).unwrap();
    let left = quipu_testkit::files_under(&project, |_| true);
    let left: Vec<_> = left.iter().map(|path| path.strip_prefix(&project).unwrap().to_str().unwrap()).collect();
    let (old, old_agent) = (format!("{OLD}.jsonl"), format!("{OLD}/subagents/agent-2d98ce6.jsonl"));
    assert_eq!(left, ["1efa34bf-6374-460f-8194-49e38c3f2f78.jsonl", &old_agent, &old]);
    assert!(!project.join(TIDE).exists());
    assert_eq!(list(&sessions).len(), 5);
}

#[test]
fn a_session_is_not_deleted_during_a_write_and_its_recorder_fails_later() {
    let (_dir, sessions, path) = session(&user("a", None, "hi"));
    let writer = File::options().append(true).open(&path).unwrap();
    writer.lock().unwrap();
    assert_eq!(sessions.delete(&new()).unwrap_err().code(), "delete.busy");
    assert!(path.exists());
    drop(writer);
    let mut recorder = Recorder::resume(&path, EnvelopeDefaults::default(), Durability::default()).unwrap();
    sessions.delete(&new()).unwrap();
    let Ok(said) = Entry::read(&user("b", Some("a"), "still there?")) else { panic!("a user line") };
    assert_eq!(recorder.record(&[said]).unwrap_err().code(), "append.deleted");
    assert!(!path.exists());
}

#[test]
fn a_fork_is_the_same_conversation_under_other_ids() {
    let (_dir, sessions) = demo();
    for info in list(&sessions) {
        let before = fs::read(&info.path).unwrap();
        let fork = sessions.fork(&info.id, &ForkOptions::default()).unwrap();
        let forked = sessions.info(&fork).unwrap();
        let title = info.title.as_ref().or(info.first_prompt.as_ref()).unwrap();
        assert_eq!(forked.title, Some(format!("{title} (fork)")));
        assert_eq!((&forked.first_prompt, &forked.cwd), (&info.first_prompt, &info.cwd));
        assert_eq!(texts(&sessions.messages(&fork).unwrap()), texts(&sessions.messages(&info.id).unwrap()));
        let (old, new) = (sessions.load(&info.id).unwrap(), sessions.load(&fork).unwrap());
        assert_eq!(old.for_api(), new.for_api(), "{title}");
        assert_eq!(old.branches().len(), new.branches().len());
        let names = |conversation: &Conversation| -> Vec<String> {
            conversation.path().iter().filter_map(|node| node.uuid()).map(ToString::to_string).collect()
        };
        assert!(names(&old).iter().all(|uuid| !names(&new).contains(uuid)));
        let text = fs::read_to_string(&forked.path).unwrap();
        let mark = format!("\"forkedFrom\":{{\"sessionId\":\"{}\",\"messageUuid\":\"", info.id);
        let copies = text.lines().filter(|line| line.contains(&mark)).count();
        assert_eq!(copies, TranscriptState::read(&forked.path).unwrap().uuids.len());
        let report = Check { roundtrip: true }.run(Entries::open(&forked.path).unwrap(), "fork");
        assert_eq!((report.malformed, report.roundtrip_failures), (0, 0));
        assert_eq!(fs::read(&info.path).unwrap(), before);
    }
}

#[test]
fn what_was_withdrawn_stays_withdrawn_in_a_fork() {
    let half = user("b", Some("a"), "half");
    let tombstone = format!("{{\"type\":\"tombstone\",\"message\":{}}}\n", half.trim_end());
    let (_dir, sessions, _) = session(&(user("a", None, "one") + &half + &tombstone + &user("c", Some("a"), "two")));
    assert_eq!(texts(&sessions.messages(&new()).unwrap()), ["one", "two"]);
    let fork = sessions.fork(&new(), &ForkOptions::default()).unwrap();
    assert_eq!(texts(&sessions.messages(&fork).unwrap()), ["one", "two"]);
    assert_eq!(sessions.load(&fork).unwrap().branches().len(), 0);
}

#[test]
fn a_fork_at_a_line_has_the_path_to_it_and_its_own_title() {
    let lines = user("a", None, "one") + &user("b", Some("a"), "two") + &user("c", Some("a"), "three");
    let replaced = format!("{{\"type\":\"content-replacement\",\"sessionId\":\"{NEW}\",\"replacements\":[1]}}\n");
    let (_dir, sessions, path) = session(&(lines + &replaced));
    let at = |uuid: &str| ForkOptions { up_to: Some(uuid.into()), title: Some(" Mine ".to_owned()) };
    let fork = sessions.fork(&new(), &at("b")).unwrap();
    assert_eq!(texts(&sessions.messages(&fork).unwrap()), ["one", "two"]);
    assert_eq!(sessions.info(&fork).unwrap().title.as_deref(), Some("Mine"));
    let text = fs::read_to_string(path.with_file_name(format!("{fork}.jsonl"))).unwrap();
    assert!(
        text.contains(&format!("{{\"type\":\"content-replacement\",\"sessionId\":\"{fork}\",\"replacements\":[1]}}"))
    );
    assert_eq!(sessions.fork(&new(), &at("nowhere")).unwrap_err().code(), "append.no_entry");
    fs::write(&path, "{\"type\":\"mode\",\"mode\":\"normal\"}\n").unwrap();
    assert_eq!(sessions.fork(&new(), &ForkOptions::default()).unwrap_err().code(), "append.nothing_to_fork");
    assert_eq!(
        quipu_testkit::files_under(path.parent().unwrap(), |_| true).len(),
        2,
        "a fork that fails leaves no file"
    );
}

#[test]
fn a_folder_that_cannot_be_read_is_named_and_the_rest_is_listed() {
    let (dir, sessions) = demo();
    // A folder with a session's name is no session.
    fs::create_dir(dir.path().join("projects/-home-sam---").join(format!("{NEW}.jsonl"))).unwrap();
    assert_eq!(list(&sessions).len(), 6);
    let broken = tempfile::tempdir().unwrap();
    fs::write(broken.path().join("projects"), "not a folder").unwrap();
    let both = Sessions::from_dirs([dir.path().to_owned(), broken.path().to_owned()]);
    let (listed, errors) = both.list(&ListOptions::default());
    assert_eq!(
        (listed.len(), errors.iter().map(|error| error.code()).collect::<Vec<_>>()),
        (6, vec!["file.cannot_open"])
    );
    assert!(list(&Sessions::new(dir.path().join("nowhere"))).is_empty());
    assert!(list(&Sessions::default()).is_empty());
}

#[test]
fn every_real_session_is_listed_read_renamed_and_forked() {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().join("projects/-corpus");
    fs::create_dir_all(&project).unwrap();
    let mut files = quipu_testkit::corpus_files(&shared, &["session"]);
    files.extend(
        quipu_testkit::recorded_files(&shared)
            .into_iter()
            .filter(|path| path.to_string_lossy().contains("/transcript")),
    );
    files.extend(quipu_testkit::files_under(&quipu_testkit::fixture("broken"), |path| {
        path.extension().is_some_and(|ext| ext == "jsonl")
    }));
    let sessions = Sessions::new(dir.path());
    let mut message_count = 0;
    for (n, from) in files.iter().enumerate() {
        let id = SessionId::from(format!("session-{n}"));
        let path = project.join(format!("{id}.jsonl"));
        fs::copy(from, &path).unwrap();
        let name = from.display();
        if fs::metadata(&path).unwrap().len() == 0 {
            continue;
        }
        let messages = sessions.messages(&id).unwrap();
        message_count += messages.len();
        sessions.rename(&id, "Mine").unwrap();
        sessions.tag(&id, Some("corpus")).unwrap();
        let info = sessions.info(&id).unwrap();
        assert_eq!((info.title.as_deref(), info.tag.as_deref()), (Some("Mine"), Some("corpus")), "{name}");
        let listed = list(&sessions).into_iter().find(|listed| listed.id == id);
        assert!(info.summary == "Mine" && listed.is_none_or(|listed| listed == info), "{name}");
        assert_eq!(sessions.messages(&id).unwrap().len(), messages.len(), "{name}");
        match sessions.fork(&id, &ForkOptions::default()) {
            Ok(fork) => {
                let (old, new) = (load_session(&path).unwrap(), sessions.load(&fork).unwrap());
                assert_eq!(old.for_api(), new.for_api(), "{name}");
                sessions.delete(&fork).unwrap();
            }
            Err(error) => assert_eq!(error.code(), "append.nothing_to_fork", "{name}"),
        }
        sessions.delete(&id).unwrap();
    }
    assert!(files.len() > 60 && message_count > 1000, "{} files, {message_count} messages", files.len());
    assert!(quipu_testkit::files_under(dir.path(), |path| fs::metadata(path).unwrap().len() > 0).is_empty());
}

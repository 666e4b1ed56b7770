//! Which session to run, and what its transcript holds.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use quipu_conversation::{Conversation, Node, clear_microcompacted, since_compaction};
use quipu_message::attachment::Attachment;
use quipu_message::bookkeeping::CostState;
use quipu_message::user_assistant::User;
use quipu_message::{Block, Content, Entry, SessionId, Uuid, synthetic};
use quipu_transcript::{Entries, Fork, SessionOverview, find};

use crate::clock::new_id;
use crate::error::EngineError;
use crate::options::{Options, ResumeMode};
use crate::path::{TargetPath, resolve};
use crate::queue_replay::QueueReplay;

/// The session to run, and what its transcript holds.
pub(crate) struct ResumePoint {
    pub(crate) id: SessionId,
    pub(crate) path: PathBuf,
    pub(crate) context: Vec<Node>,
    pub(crate) resume_uuid: Option<Uuid>,
    pub(crate) cost_state: Option<CostState>,
    pub(crate) title: Option<String>,
    /// The model that was chosen for the last answer.
    pub(crate) model: Option<String>,
    pub(crate) turn_count: u64,
    /// The entries about file backups.
    pub(crate) checkpoint_entries: Vec<Entry>,
    /// Hashes in the log of API calls.
    pub(crate) logged_hashes: HashSet<String>,
    /// Prompts that were not answered when the session ended.
    pub(crate) unanswered_prompts: Vec<Content>,
    /// A sentence for each invalid line.
    pub(crate) problems: Vec<String>,
    pub(crate) is_resumed: bool,
}

impl ResumePoint {
    /// Finds the session to resume and reads it, or chooses an id for a new one. A fork is copied here.
    pub(crate) fn choose(options: &Options, config: &Path, cwd: &Path) -> Result<Self, EngineError> {
        let folder = config.join("projects").join(find::project_folder_name(&cwd.to_string_lossy()));
        let given = options.session_id.as_deref();
        if let Some(id) = given
            && uuid::Uuid::parse_str(id).is_err()
        {
            return Err(EngineError::InvalidSessionId { id: id.to_owned() });
        }
        let from = match &options.resume_mode {
            ResumeMode::New => None,
            ResumeMode::Continue => latest_session(&folder, |_| true),
            ResumeMode::Resume(spec) => match find_session_file(spec, cwd, options.fork)? {
                Some(path) => Some(path),
                None => Some(find_session(config, &folder, spec)?),
            },
        };
        if let (Some(_), Some(_), false) = (given, &from, options.fork) {
            let reason = "a session that goes on keeps its id; add --fork-session".to_owned();
            return Err(EngineError::InvalidFlag { flag: "--session-id", reason });
        }
        let new_session_id = || given.map_or_else(|| SessionId::from(new_id().as_str()), SessionId::from);
        let new_path = |id: &SessionId| folder.join(format!("{id}.jsonl"));
        let Some(from) = from else {
            let id = new_session_id();
            let path = new_path(&id);
            if path.exists() {
                return Err(EngineError::SessionIdInUse { id: id.to_string() });
            }
            return Ok(Self::new(id, path));
        };
        let at = options.resume_at.as_deref().map(Uuid::from);
        if !options.fork {
            let id = from.file_stem().unwrap_or_default().to_string_lossy();
            // Files of the session are in folders that are named by its id.
            if ["", ".", ".."].contains(&&*id) {
                return Err(EngineError::InvalidSessionId { id: id.into_owned() });
            }
            let id = SessionId::from(&*id);
            return Self::read_session(id, from, at, options.resume_drops_turn.as_deref());
        }
        let id = new_session_id();
        let to = new_path(&id);
        if to.exists() {
            return Err(EngineError::SessionIdInUse { id: id.to_string() });
        }
        let old = Self::read_session(id.clone(), from.clone(), at.clone(), options.resume_drops_turn.as_deref())?;
        let prompt = new_id();
        Fork { from: &from, to: &to, session_id: &id, prompt_id: prompt.as_str(), last_uuid: at.as_ref() }.run()?;
        // Unanswered prompts stay with the old session.
        Ok(Self { path: to, unanswered_prompts: Vec::new(), logged_hashes: HashSet::new(), ..old })
    }

    fn new(id: SessionId, path: PathBuf) -> Self {
        Self {
            id,
            path,
            context: Vec::new(),
            logged_hashes: HashSet::new(),
            resume_uuid: None,
            cost_state: None,
            title: None,
            model: None,
            turn_count: 0,
            checkpoint_entries: Vec::new(),
            unanswered_prompts: Vec::new(),
            problems: Vec::new(),
            is_resumed: false,
        }
    }

    /// Reads a transcript, up to the entry `at` if one is given. With `dropping`, fails if more than the
    /// turn of that prompt follows it.
    fn read_session(
        id: SessionId,
        path: PathBuf,
        at: Option<Uuid>,
        dropping: Option<&str>,
    ) -> Result<Self, EngineError> {
        let mut conversation = Conversation::default();
        let (mut costs, mut checkpoints, mut problems) = (None, Vec::new(), Vec::new());
        let mut waiting = QueueReplay::default();
        let mut logged = HashSet::new();
        for read in Entries::open(&path)? {
            let located = match read {
                Ok(located) => located,
                Err(problem) => {
                    if problem.kind.is_line() && !problem.kind.is_harmless() {
                        problems.push(format!("line {} of the session file: {}", problem.line, problem.message));
                    }
                    continue;
                }
            };
            waiting.read_entry(&located.entry);
            match located.entry {
                Entry::CostState(state) => costs = Some(*state),
                Entry::ApiRequestShape(line) => _ = logged.insert(line.shape_hash),
                Entry::ApiRequestBlob(line) => _ = logged.insert(line.hash),
                entry @ (Entry::FileHistorySnapshot(_) | Entry::FileHistoryDelta(_)) => checkpoints.push(entry),
                entry => conversation.push(located.line, entry),
            }
        }
        let nodes = match &at {
            None => conversation.path(),
            Some(line) => conversation
                .path_to(line)
                .ok_or_else(|| EngineError::EntryNotFound { id: id.to_string(), uuid: line.to_string() })?,
        };
        if let (Some(line), Some(prompt)) = (&at, dropping) {
            check_drops_only(&conversation.path(), line, prompt)?;
        }
        let mut context = since_compaction(&nodes).into_iter().cloned().collect();
        clear_microcompacted(&mut context);
        let turns = conversation.turns().len() as u64;
        let title = conversation.title().map(str::to_owned);
        let model = last_model(&nodes);
        // Resuming at an earlier entry drops everything after it.
        let waiting = if at.is_some() { Vec::new() } else { waiting.into_unanswered() };
        Ok(Self {
            id,
            path,
            context,
            resume_uuid: at,
            cost_state: costs,
            title,
            model,
            turn_count: turns,
            checkpoint_entries: checkpoints,
            logged_hashes: logged,
            unanswered_prompts: waiting,
            problems,
            is_resumed: true,
        })
    }
}

/// Path of the session file that `--resume` names by its path; `None` if there is no such file.
///
/// The file may come from someone else, together with its folder. It is appended to unless the session is
/// forked, so then it must not be a link, and no link of the working folder may lead to it.
fn find_session_file(spec: &str, cwd: &Path, is_fork: bool) -> Result<Option<PathBuf>, EngineError> {
    let path = Path::new(spec);
    if !spec.ends_with(".jsonl") || !path.is_file() {
        return Ok(None);
    }
    if is_fork {
        return Ok(Some(path.to_owned()));
    }
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| cwd.join(path));
    let working_folders = [absolute(Path::new(".")), cwd.to_owned()].map(|folder| resolve(&folder).unwrap_or(folder));
    // Links of the system above the working folder are none of the path.
    let target = TargetPath::new(working_folders[0].join(path));
    let is_inside = |link: &PathBuf| working_folders.iter().any(|folder| link.starts_with(folder));
    let leads_elsewhere = target.given.is_symlink()
        || if path.is_absolute() { target.links.iter().any(is_inside) } else { !target.links.is_empty() };
    target.real.filter(|_| !leads_elsewhere).map(Some).ok_or_else(|| EngineError::InvalidFlag {
        flag: "--resume",
        reason: format!("{spec} is a link or leads through one; add --fork-session to continue it in a new file"),
    })
}

/// Path of the session that `--resume` names by its id or title.
fn find_session(config: &Path, folder: &Path, spec: &str) -> Result<PathBuf, EngineError> {
    let here = folder.join(format!("{spec}.jsonl"));
    if here.is_file() && !spec.contains('/') {
        return Ok(here);
    }
    let (sessions, _) = find::list_sessions(&[config.to_owned()]);
    if let Some(session) = sessions.into_iter().find(|session| session.id.as_str() == spec) {
        return Ok(session.path);
    }
    if uuid::Uuid::parse_str(spec).is_ok() {
        return Err(EngineError::SessionNotFound { id: spec.to_owned() });
    }
    let has_title = |path: &PathBuf| {
        let outline = SessionOverview::read_both_ends(path).ok();
        outline.is_some_and(|outline| outline.title().is_some_and(|title| title.trim() == spec.trim()))
    };
    latest_session(folder, has_title).ok_or_else(|| EngineError::TitleNotFound { title: spec.to_owned() })
}

/// Fails if anything but the turn of `prompt` follows an entry.
fn check_drops_only(path: &[&Node], line: &Uuid, prompt: &str) -> Result<(), EngineError> {
    let after = path.iter().skip_while(|node| node.uuid() != Some(line)).skip(1);
    for node in after {
        let uuid = node.uuid().map(Uuid::as_str).unwrap_or_default();
        let reason = match &node.entry {
            Entry::User(user) if uuid != prompt && is_user_prompt(user) => format!("{uuid} is another prompt"),
            Entry::Attachment(line) if matches!(line.attachment, Attachment::QueuedCommand(_)) => {
                format!("{uuid} was said while that turn ran")
            }
            _ => continue,
        };
        return Err(EngineError::ResumeDropsMore { reason });
    }
    Ok(())
}

/// Whether a `user` entry is a prompt, not a tool result or a note.
fn is_user_prompt(user: &User) -> bool {
    let answers = |block: &Block| matches!(block, Block::ToolResult(_));
    !user.is_meta.is_true() && !user.message.content.blocks().iter().any(answers)
}

/// The model that was chosen for the last answer, whichever model gave it; `None` without an answer.
fn last_model(path: &[&Node]) -> Option<String> {
    path.iter()
        .rev()
        .find_map(|node| match &node.entry {
            Entry::Assistant(line) => {
                let answered = line.message.model.text().filter(|model| *model != synthetic::SYNTHETIC_MODEL)?;
                Some(line.requested_model.text().unwrap_or(answered))
            }
            _ => None,
        })
        .map(str::to_owned)
}

/// Path of the last changed transcript of a folder among those that `is_wanted`.
fn latest_session(folder: &Path, is_wanted: impl Fn(&PathBuf) -> bool) -> Option<PathBuf> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sessions = files.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|ext| ext == "jsonl"));
    sessions.filter(is_wanted).max_by_key(|path| path.metadata().and_then(|meta| meta.modified()).ok())
}

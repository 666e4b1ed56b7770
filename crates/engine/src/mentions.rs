//! Attachments of a prompt: files that it mentions with `@`, and the paths of its images.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use quipu_message::attachment::{self, Attachment};
use quipu_message::tool::ReadKind;
use quipu_message::tool::output::{ReadFileOutput, ReadOutput};
use quipu_message::{Block, Entry, Image, Json, Maybe, ToolName, factory};

use crate::attachments::rendered_attachment;
use crate::clock::Clock;
use crate::input::Prompt;
use crate::path::{TargetPath, resolve_without_links};
use crate::private_file;
use crate::safe_file;
use crate::session::Session;

/// The most bytes of a mentioned file; a larger one is not attached.
const MAX_FILE_BYTES: u64 = 256 * 1024;

/// The most names of a mentioned folder that are attached.
const MAX_FOLDER_ENTRIES: usize = 1000;

/// The entries to record with a prompt: its mentioned files, and the paths of its images.
pub(crate) fn prompt_attachments(session: &Session, prompt: &Prompt) -> Vec<Entry> {
    let mut attachments = if prompt.verbatim { Vec::new() } else { file_attachments(session, &prompt.text()) };
    let images = prompt.content.blocks().iter().filter_map(|block| match block {
        Block::Image(image) => Some(&**image),
        _ => None,
    });
    for (index, image) in images.enumerate() {
        attachments.extend(save_image(session, image, index + 1));
    }
    attachments
}

/// Attachments for the files and folders that a text mentions.
pub(crate) fn file_attachments(session: &Session, text: &str) -> Vec<Entry> {
    mentioned_paths(text).into_iter().filter_map(|path| file_attachment(session, path)).collect()
}

/// The paths that a text mentions: `@path` at the start of a word.
fn mentioned_paths(text: &str) -> Vec<&str> {
    let words = text.split_whitespace().filter_map(|word| word.strip_prefix('@'));
    let end = |c: char| matches!(c, ',' | '.' | ';' | ':' | '!' | '?' | ')' | '"' | '\'');
    words.map(|path| path.trim_end_matches(end)).filter(|path| !path.is_empty()).collect()
}

/// The attachment of a file or folder; `None` if it does not exist, is not text, or may not be read.
fn file_attachment(session: &Session, name: &str) -> Option<Entry> {
    let target = TargetPath::new(session.workspace.absolute(name));
    let (path, real) = (target.given.clone(), target.real.clone()?);
    if !session.workspace.contains(&real) || session.workspace.hidden_files()(&target) {
        return None;
    }
    if real.is_dir() {
        return Some(folder_attachment(session, &real, name));
    }
    let bytes = safe_file::read(&real, MAX_FILE_BYTES).ok()?;
    let content = String::from_utf8(bytes).ok()?;
    session.workspace.mark_seen(&path, content.as_bytes());
    // The list of used tools is for information only.
    let _ = session.record_tool_used(&ToolName::Read);
    let numbered: String = content.split('\n').enumerate().map(|(n, line)| format!("{}\t{line}\n", n + 1)).collect();
    let lines = content.split('\n').count() as u64;
    let shown = path.display().to_string();
    let file = ReadFileOutput {
        file_path: Maybe::Value(shown.clone()),
        content: Maybe::Value(content),
        num_lines: Maybe::Value(lines),
        start_line: Maybe::Value(1),
        total_lines: Maybe::Value(lines),
        ..ReadFileOutput::default()
    };
    let file = ReadOutput { kind: ReadKind::Text, file, ..ReadOutput::default() };
    let attached = attachment::File {
        filename: Maybe::Value(shown.clone()),
        content: Maybe::Value(Json::from_serialize(&file)),
        display_path: Maybe::Value(name.to_owned()),
        ..attachment::File::default()
    };
    let text = format!("The user mentions {shown}, which contains:\n{numbered}");
    Some(rendered_attachment(Attachment::File(Box::new(attached)), vec![text]))
}

fn folder_attachment(session: &Session, path: &Path, name: &str) -> Entry {
    let hidden = session.workspace.hidden_files();
    let entries =
        fs::read_dir(path).into_iter().flatten().flatten().filter(|entry| !hidden(&TargetPath::new(entry.path())));
    let mut names: Vec<String> =
        entries.take(MAX_FOLDER_ENTRIES).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let text = format!("The user mentions the folder {}, which contains:\n{}", path.display(), names.join("\n"));
    let attached = attachment::Directory { path: Maybe::Value(name.to_owned()), ..attachment::Directory::default() };
    rendered_attachment(Attachment::Directory(Box::new(attached)), vec![text])
}

/// Saves a pasted image, so that tools can read it. Returns the entry that names its path.
fn save_image(session: &Session, image: &Image, number: usize) -> Option<Entry> {
    let data = image.source.data.text()?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(data).ok()?;
    let kind = image.source.media_type.text().and_then(|kind| kind.strip_prefix("image/")).unwrap_or("png");
    let kind: String = kind.chars().filter(char::is_ascii_alphanumeric).collect();
    let (folder, name) = session.scratch_folder();
    // Commands may write to the folder if it is inside the session's.
    let path = resolve_without_links(&folder, &name.join(format!("images/{number}.{kind}")))?;
    private_file::write_file(&path, &bytes).ok()?;
    let text = format!("[Image: source: {}]", path.display());
    let mut user = factory::meta_user(vec![Block::new_text(text)], &mut Clock);
    user.prompt_id = session.prompt_id();
    Some(Entry::User(Box::new(user)))
}

#[cfg(test)]
mod tests {
    use super::mentioned_paths;

    #[test]
    fn a_mention_is_a_word_that_begins_with_an_at_sign() {
        assert_eq!(mentioned_paths("see @note.txt, @src/lib.rs. mail a@b.c"), ["note.txt", "src/lib.rs"]);
        assert!(mentioned_paths("@ alone").is_empty());
    }
}

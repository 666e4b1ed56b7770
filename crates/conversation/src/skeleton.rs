//! A conversation that is not held whole: of each entry the place in its file, its links and a
//! few flags. Entries are read when a window shows them.

use std::borrow::Cow;

use quipu_message::line::replace_lone_surrogates;
use quipu_message::structure_view::StructureView;
use quipu_message::{AgentId, Entry, ReadError, ToolUseId};

use crate::conversation::Conversation;
use crate::id_key::IdKey;
use crate::node::Place;
use crate::problem::Problem;
use crate::sidechain::Routing;

mod compact_node;
mod message_facts;
mod stored;
mod view;

use compact_node::CompactNode;
pub use view::{SkeletonBranch, SkeletonTurn, SkeletonView};

/// Reads lines that a [`Skeleton`] knows the place of.
pub trait EntryReader {
    /// The text of a line; `None` if it cannot be read. `file` is 0 for the session file and
    /// otherwise the number that [`Skeleton::attach_subagent`] was given.
    fn read(&self, file: u32, offset: u64, length: u32) -> Option<String>;
}

/// What a [`Skeleton`] needs of a line. Reading it takes most of the time, and lines can be read in
/// parallel before they are added in order.
#[derive(Debug)]
pub struct LineFacts<'a> {
    view: StructureView<'a>,
    node: CompactNode,
}

impl<'a> LineFacts<'a> {
    /// Reads a line that begins at `offset`. `None` if the whole entry is needed:
    /// [`Skeleton::push_line`] adds the line then.
    pub fn read(line: u64, offset: u64, text: &'a str) -> Option<Self> {
        match replace_lone_surrogates(text) {
            Cow::Borrowed(readable) => Self::from_readable(line, offset, text.len(), readable),
            Cow::Owned(_) => None,
        }
    }

    fn from_readable(line: u64, offset: u64, length: usize, readable: &'a str) -> Option<Self> {
        let view = StructureView::read(readable).ok()?;
        let node = CompactNode::from_view(place(line, offset, length), &view)?;
        Some(Self { view, node })
    }
}

fn place(line: u64, offset: u64, length: usize) -> Place {
    Place { line, offset, length: u32::try_from(length).unwrap_or(u32::MAX), nesting: 0 }
}

/// The structure of a session: path, branches, turns and tool calls, in about sixty bytes for
/// each entry.
///
/// It is a [`Conversation`] whose nodes know only where their entry is: the same reducer, tree and
/// screen builder work on both, so that a [window](SkeletonView::items) has the items of
/// [`Conversation::for_ui`].
///
/// ```
/// use quipu_conversation::{EntryReader, Skeleton, UiOptions};
/// struct Text(&'static str);
/// impl EntryReader for Text {
///     fn read(&self, _: u32, offset: u64, length: u32) -> Option<String> {
///         self.0.get(offset as usize..)?.get(..length as usize).map(str::to_owned)
///     }
/// }
/// let file = Text(r#"{"type":"user","uuid":"a","parentUuid":null,"message":{"role":"user","content":"hi"}}"#);
/// let mut skeleton = Skeleton::default();
/// skeleton.push_line(1, 0, file.0, &file)?;
/// let view = skeleton.view(&file);
/// assert_eq!(view.turns().len(), 1);
/// assert_eq!(view.items(0..view.len(), UiOptions::default())[0].text.as_deref(), Some("hi"));
/// # Ok::<(), quipu_message::ReadError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Skeleton {
    conversation: Conversation<CompactNode>,
}

impl Skeleton {
    /// Adds one line. `offset` is that of its first byte in the file. The reader is used only if an
    /// earlier entry has the same UUID. Fails if the line is not an entry.
    pub fn push_line(
        &mut self,
        line: u64,
        offset: u64,
        text: &str,
        reader: &(dyn EntryReader + 'static),
    ) -> Result<(), ReadError> {
        let readable = replace_lone_surrogates(text);
        match LineFacts::from_readable(line, offset, text.len(), &readable) {
            Some(facts) => self.push_facts(facts, reader),
            None => self.conversation.push_entry(place(line, offset, text.len()), Entry::read(text)?, reader),
        }
        Ok(())
    }

    /// Adds a line whose facts were read before.
    pub fn push_facts(&mut self, facts: LineFacts<'_>, reader: &(dyn EntryReader + 'static)) {
        let LineFacts { view, node } = facts;
        let view = &view;
        let conversation = &mut self.conversation;
        if conversation.session_id.is_none() {
            conversation.session_id = view.session_id.as_deref().map(Into::into);
        }
        let side = Routing::from_view(view).sidechain(&conversation.sidechain_by_line);
        let uuid = view.uuid.as_deref().map(IdKey::new);
        let conversation = match side {
            Some(key) => conversation.sidechain_mut(key, uuid),
            None => conversation,
        };
        conversation.agent_by_call.extend(message_facts::started_subagent(view));
        conversation.add_unless_known(node, reader);
    }

    /// Adds a problem, to be shown at its line.
    pub fn push_problem(&mut self, problem: Problem) {
        self.conversation.push_problem(problem);
    }

    /// Adds the skeleton of a subagent that has its own file. It is shown below `call`, the tool
    /// call that started it, if that is known. The [reader](EntryReader::read) is given `file` for
    /// its lines.
    pub fn attach_subagent(&mut self, agent: &AgentId, call: Option<&ToolUseId>, mut subagent: Skeleton, file: u32) {
        set_file(&mut subagent.conversation, file);
        self.conversation.attach_subagent(agent, call, subagent.conversation);
    }

    /// The skeleton together with its files.
    pub fn view<'a>(&'a self, reader: &'a (dyn EntryReader + 'static)) -> SkeletonView<'a> {
        SkeletonView::new(&self.conversation, reader)
    }
}

fn set_file(conversation: &mut Conversation<CompactNode>, file: u32) {
    conversation.file = file;
    conversation.sidechains.values_mut().for_each(|sidechain| set_file(sidechain, file));
}

//! Options of a chat.

use std::fmt;
use std::path::PathBuf;

use quipu_conversation::LiveItem;
use quipu_conversation::price::Prices;
use quipu_render::{ScreenSize, Terminal};

/// Options of a chat on a terminal.
pub struct ChatOptions {
    /// The agent, its session and its settings. Callbacks for permissions and messages are set by
    /// the chat.
    pub agent: quipu_sdk::Options,
    /// Working folder of the agent.
    pub folder: PathBuf,
    /// How the conversation looks. Its width follows from the size of the terminal.
    pub style: Terminal,
    /// Size of the terminal.
    pub size: ScreenSize,
    /// File of earlier inputs; `None` keeps none.
    pub history_file: Option<PathBuf>,
    /// Command line of the user's editor, for editing the input of tool calls.
    pub editor: String,
    /// Prices for the cost of the running turn.
    pub prices: Prices,
    /// The last items of the session that is resumed, which are shown first.
    pub recent_items: Vec<LiveItem>,
}

impl fmt::Debug for ChatOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatOptions").field("folder", &self.folder).field("size", &self.size).finish_non_exhaustive()
    }
}

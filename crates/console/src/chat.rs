//! A chat on a terminal: keys, messages of the agent, and what is drawn.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crossterm::event::{Event, EventStream};
use futures_util::StreamExt as _;
use quipu_conversation::{LiveConversation, LiveItem};
use quipu_message::ToolUseId;
use quipu_message::user_assistant::User;
use quipu_render::{LiveScreen, ScreenSize, SessionContext, Terminal};
use quipu_sdk::{Client, Decision, Handle};
use tokio::sync::{mpsc, oneshot};

use crate::command::CommandList;
use crate::completion::{Completion, FileCompletion};
use crate::editor::Editor;
use crate::error::ChatError;
use crate::history::History;
use crate::options::ChatOptions;
use crate::prompt::{INTERRUPT_REASON, PendingRequest, UserPrompt};
use crate::queue::PromptQueue;
use crate::terminal_mode::KeyMode;
use crate::turn_status::TurnStatus;

mod draw;
mod keys;
mod messages;

/// Time between two redraws while text is streamed.
const FRAME_TIME: Duration = Duration::from_millis(40);
/// Time between two redraws of the status line.
const STATUS_TIME: Duration = Duration::from_secs(1);
/// How long a turn may take to end when the chat ends.
const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(2);

/// How a chat ended.
#[derive(Debug)]
pub struct ChatOutcome {
    /// Id of the session, to resume it; `None` if nothing was said.
    pub session_id: Option<String>,
    /// Why the agent ended by itself; `None` if the user ended the chat.
    pub error: Option<quipu_sdk::Error>,
}

/// A chat that is running.
struct Chat {
    folder: PathBuf,
    style: Terminal,
    screen: LiveScreen,
    context: Rc<SessionContext>,
    live: LiveConversation,
    /// Items that are not shown yet.
    new_items: Vec<LiveItem>,
    line_number: u64,
    editor: Editor,
    user_editor: String,
    history: History,
    commands: CommandList,
    files: FileCompletion,
    completion: Option<Completion>,
    requests: VecDeque<PendingRequest>,
    /// The prompt for the first request, and from when on its keys count.
    prompt: Option<(UserPrompt, Instant)>,
    status: TurnStatus,
    queue: PromptQueue,
    call_starts: HashMap<ToolUseId, Instant>,
    handle: Handle,
    outbox: mpsc::UnboundedSender<User>,
    notices: mpsc::UnboundedSender<Notice>,
    /// Whether the last key was Ctrl-C: the next one ends the chat.
    exit_pending: bool,
    session_id: Option<String>,
    is_changed: bool,
    last_draw: Instant,
}

/// A line for the user that is not part of the conversation.
#[derive(Debug)]
struct Notice {
    text: String,
    is_error: bool,
}

/// Whether the chat continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Continue,
    /// The user's editor needs the terminal.
    EditInput,
    Exit,
}

/// Runs a chat on the terminal until the user or the agent ends it, or `ended` is ready. The mode
/// of the terminal is restored in every case.
pub async fn run_chat(options: ChatOptions, ended: impl Future<Output = ()>) -> Result<ChatOutcome, ChatError> {
    let mut ended = std::pin::pin!(ended);
    let (request_sender, mut requests) = mpsc::unbounded_channel();
    let (notices, mut notice_receiver) = mpsc::unbounded_channel();
    let agent = with_callbacks(options.agent.clone(), request_sender, notices.clone());
    let connecting = Client::connect(agent);
    let mut client = tokio::select! {
        connected = connecting => connected?,
        () = &mut ended => return Ok(ChatOutcome { session_id: None, error: None }),
    };
    let mut keys = Some(KeyInput::open()?);
    let mut chat = Chat::new(options, &client, notices);
    let error = loop {
        chat.draw_if_due().map_err(ChatError::Terminal)?;
        let wake = chat.next_redraw();
        let next = tokio::select! {
            // In this order: a request is shown below the messages that came before it.
            biased;
            () = &mut ended => Next::Exit,
            event = next_event(&mut keys) => match event {
                Some(Ok(event)) => chat.handle_event(event).map_err(ChatError::Terminal)?,
                // The terminal has gone away.
                Some(Err(_)) | None => Next::Exit,
            },
            received = client.next_received() => match received {
                Ok(Some(received)) => {
                    chat.receive(received);
                    Next::Continue
                }
                Ok(None) => break None,
                Err(error) => break Some(error),
            },
            Some(request) = requests.recv() => chat.add_request(request),
            Some(notice) = notice_receiver.recv() => chat.show_notice(&notice).map_err(ChatError::Terminal)?,
            () = chat.files.scanned() => chat.update_completion(),
            () = withdrawn(&mut chat.requests) => chat.finish_prompt(None),
            () = sleep_until(wake) => Next::Continue,
        };
        match next {
            Next::Continue => {}
            Next::Exit => {
                chat.interrupt_before_exit().await;
                break None;
            }
            Next::EditInput => {
                // Nothing else may read the terminal or change its mode meanwhile.
                drop(keys.take());
                chat.edit_input().map_err(ChatError::Terminal)?;
                keys = Some(KeyInput::open()?);
            }
        }
    };
    let outcome = chat.finish(error).map_err(ChatError::Terminal);
    drop(keys);
    // The agent may still have to write; its exit status does not matter any more.
    let _ = client.close().await;
    outcome
}

/// Options with the callbacks of the chat: requests of the agent are sent to the given channels.
fn with_callbacks(
    options: quipu_sdk::Options,
    requests: mpsc::UnboundedSender<PendingRequest>,
    notices: mpsc::UnboundedSender<Notice>,
) -> quipu_sdk::Options {
    options
        .include_partial_messages()
        .replay_prompts()
        .can_use_tool(move |call, _| {
            let requests = requests.clone();
            async move {
                let (reply, decision) = oneshot::channel();
                // Without a chat to decide, the call is denied.
                let _ = requests.send(PendingRequest { call, reply });
                decision.await.unwrap_or_else(|_| Decision::interrupt(INTERRUPT_REASON))
            }
        })
        .on_stderr(move |line| {
            let _ = notices.send(Notice { text: format!("agent: {line}"), is_error: false });
        })
}

/// Keys of the terminal, in the mode in which they can be read one by one.
struct KeyInput {
    events: EventStream,
    _mode: KeyMode,
}

impl KeyInput {
    fn open() -> Result<Self, ChatError> {
        let mode = KeyMode::enter().map_err(ChatError::Terminal)?;
        Ok(Self { events: EventStream::new(), _mode: mode })
    }
}

async fn next_event(keys: &mut Option<KeyInput>) -> Option<io::Result<Event>> {
    match keys {
        Some(keys) => keys.events.next().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

/// Waits until the agent withdraws the request that is shown; for ever if none is shown.
async fn withdrawn(requests: &mut VecDeque<PendingRequest>) {
    match requests.front_mut() {
        Some(request) => request.reply.closed().await,
        None => std::future::pending().await,
    }
}

impl Chat {
    fn new(options: ChatOptions, client: &Client, notices: mpsc::UnboundedSender<Notice>) -> Self {
        let ChatOptions { agent: _, folder, style, size, history_file, editor, prices, recent_items } = options;
        let style = Terminal { width: text_width(size), ..style };
        let screen = LiveScreen::new(style.clone(), Some(size));
        let base_folder = Some(folder.display().to_string());
        let now = Instant::now();
        let mut chat = Self {
            screen,
            context: Rc::new(SessionContext { base_folder, ..SessionContext::default() }),
            live: LiveConversation::default(),
            new_items: Vec::new(),
            line_number: 0,
            editor: Editor::default(),
            user_editor: editor,
            history: History::load(history_file),
            commands: CommandList::new(client.initialize_response()),
            files: FileCompletion::new(folder.clone()),
            completion: None,
            requests: VecDeque::new(),
            prompt: None,
            status: TurnStatus::new(prices),
            queue: PromptQueue::default(),
            call_starts: HashMap::new(),
            handle: client.handle(),
            outbox: send_prompts(client.handle(), notices.clone()),
            notices,
            exit_pending: false,
            session_id: None,
            is_changed: true,
            last_draw: now.checked_sub(FRAME_TIME).unwrap_or(now),
            folder,
            style,
        };
        chat.show_start(client.initialize_response(), recent_items);
        chat
    }

    /// Shows the prompt of a permission request after those that wait already.
    fn add_request(&mut self, request: PendingRequest) -> Next {
        self.requests.push_back(request);
        self.show_next_prompt();
        Next::Continue
    }

    /// Ends the prompt that is shown: with a decision, or because it was withdrawn.
    fn finish_prompt(&mut self, decision: Option<Decision>) -> Next {
        if let Some(request) = self.requests.pop_front() {
            if let Some(call) = request.call.tool_use_id.get() {
                // The time that the user took does not count as that of the tool.
                self.call_starts.insert(call.clone(), Instant::now());
            }
            if let Some(decision) = decision {
                // If it was withdrawn in the meantime, the decision is not needed.
                let _ = request.reply.send(decision);
            }
        }
        self.prompt = None;
        self.show_next_prompt();
        Next::Continue
    }

    fn show_next_prompt(&mut self) {
        self.is_changed = true;
        if self.prompt.is_none()
            && let Some(request) = self.requests.front()
        {
            // Keys that were meant for the input must not decide.
            let pause = if self.editor.is_empty() { Duration::ZERO } else { keys::TYPING_PAUSE };
            self.prompt = Some((UserPrompt::new(&request.call, &self.folder), Instant::now() + pause));
        }
    }

    /// Lets a running turn end before the agent is closed, so that its file is complete.
    async fn interrupt_before_exit(&mut self) {
        // Requests that wait are denied.
        self.requests.clear();
        if self.status.is_running() {
            let _ = tokio::time::timeout(INTERRUPT_TIMEOUT, self.handle.interrupt()).await;
        }
    }

    /// Prints what is left and removes the rows at the bottom.
    fn finish(mut self, error: Option<quipu_sdk::Error>) -> io::Result<ChatOutcome> {
        self.prompt = None;
        self.draw()?;
        let text = self.screen.finish(&self.context);
        write_text(&text)?;
        Ok(ChatOutcome { session_id: self.session_id, error })
    }
}

/// Sends prompts to the agent in order, in a task, so that an agent that does not read does not
/// stop the chat.
fn send_prompts(handle: Handle, notices: mpsc::UnboundedSender<Notice>) -> mpsc::UnboundedSender<User> {
    let (outbox, mut prompts) = mpsc::unbounded_channel::<User>();
    tokio::spawn(async move {
        while let Some(prompt) = prompts.recv().await {
            if let Err(error) = handle.send_message(prompt).await {
                let _ = notices.send(Notice { text: format!("the prompt was not sent: {error}"), is_error: true });
            }
        }
    });
    outbox
}

/// Writes text to the terminal at once. In the mode in which keys are read, a line break does not
/// return to the first column.
fn write_text(text: &str) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    let mut stdout = io::stdout().lock();
    // Terminals that know these marks show the text in one step.
    write!(stdout, "\x1b[?2026h{}\x1b[?2026l", text.replace('\n', "\r\n"))?;
    stdout.flush()
}

/// Width of text on a terminal of this size.
fn text_width(size: ScreenSize) -> usize {
    size.columns.clamp(24, 120)
}

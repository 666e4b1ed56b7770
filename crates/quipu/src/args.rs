//! The command line: subcommands, options and their help texts, as clap parses them.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgAction, Args as ClapArgs, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use jiff::tz::TimeZone;

use crate::chat_args::ChatArgs;
use crate::filter::FilterArgs;
use crate::global::GlobalArgs;
use crate::part_args::PartArgs;
use crate::time::parse_time_zone;
use crate::token_limit::TokenLimit;
use crate::trace::TraceArgs;

/// Reads, counts and explains the conversations of Claude-Code-style agents.
#[derive(Debug, Parser)]
#[command(name = "quipu", version, about, after_help = EXAMPLES)]
#[command(disable_help_flag = true, disable_version_flag = true, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    /// Print the version
    #[arg(short = 'V', long, action = ArgAction::Version)]
    version: Option<bool>,
    /// The command to run; without one, an overview is printed
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

const EXAMPLES: &str = "\
Examples:
  quipu                                                    an overview
  quipu ls                                                 the latest sessions
  quipu show latest                                        read a conversation
  quipu follow latest                                      watch it as it happens
  quipu chat                                               chat with an agent
  quipu search 'tide table'                                find what was said
  quipu usage                                              tokens and cost by day
  claude -p hi --output-format stream-json --verbose | quipu show -
  quipu check                                              check all sessions of this machine
  quipu completions zsh > ~/.zfunc/_quipu";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List sessions with time, project, turns, tokens, cost and title
    #[command(after_help = LS_EXAMPLES, visible_alias = "list")]
    Ls(LsArgs),
    /// Read a conversation
    #[command(after_help = SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// Find what was said, done or returned
    #[command(after_help = SEARCH_EXAMPLES, visible_alias = "find")]
    Search(SearchArgs),
    /// Count tokens and cost by day, session, model, project, tool, turn and more
    #[command(after_help = USAGE_EXAMPLES)]
    Usage(UsageArgs),
    /// Show statistics of sessions: length, turns, context, tools, hours
    #[command(after_help = STATS_EXAMPLES)]
    Stats(StatsArgs),
    /// Count the files, pages, symbols and more that were attached to prompts
    #[command(after_help = CONTEXTS_EXAMPLES)]
    Contexts(ContextsArgs),
    /// Write a conversation to a file to share, or many to a folder
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportArgs),
    /// Show the file changes of a session, one diff per file
    #[command(after_help = DIFF_EXAMPLES)]
    Diff(DiffArgs),
    /// Explain where time, tokens and money of a session went, and what would have been cheaper
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(ExplainArgs),
    /// Find credentials in transcripts: kind and line, never the value
    #[command(after_help = SECRETS_EXAMPLES)]
    Secrets(SecretsArgs),
    /// Watch conversations as they happen
    #[command(after_help = FOLLOW_EXAMPLES)]
    Follow(FollowArgs),
    /// Read, follow, search and count sessions in a web page on this machine
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// Chat with an agent in the terminal
    #[command(after_help = crate::chat_args::EXAMPLES)]
    Chat(ChatArgs),
    /// Print the command that resumes a session
    #[command(after_help = RESUME_EXAMPLES)]
    Resume(ResumeArgs),
    /// Give a session a title
    #[command(after_help = "Example:\n  quipu rename 05ef09b2 'Tide tables in UTC'")]
    Rename(RenameArgs),
    /// Give a session a tag, or print the one it has
    #[command(after_help = "Examples:\n  quipu tag 05ef09b2 done\n  quipu tag 05ef09b2 --clear")]
    Tag(TagArgs),
    /// Delete a session with its subagents; its usage stays in the reports
    #[command(after_help = RM_EXAMPLES)]
    Rm(RmArgs),
    /// Print a status line for Claude Code: model, cost, block and context
    #[command(after_help = STATUSLINE_EXAMPLES)]
    Statusline,
    /// Check session files: what is in them, what is unknown, what is broken
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckArgs),
    /// Check the setup: session folders, index, prices, programs and sandbox
    #[command(
        after_help = "Examples:\n  quipu doctor\n  quipu doctor --json | jq '.checks[] | select(.status != \"ok\")'"
    )]
    Doctor,
    /// Show the API calls of captures and sessions
    #[command(after_help = crate::trace::EXAMPLES)]
    Trace(TraceArgs),
    /// Run a mock API server that answers from a script or a recording
    #[command(after_help = ANSWER_EXAMPLES)]
    Answer(AnswerArgs),
    /// Record the API calls of a command, or of programs that use the printed address
    #[cfg(feature = "capture")]
    #[command(after_help = CAPTURE_EXAMPLES)]
    Capture(CaptureArgs),
    /// Play recorded API calls: send recorded responses to a command
    #[command(after_help = REPLAY_EXAMPLES)]
    Replay(ReplayArgs),
    /// Print a completion script for a shell
    #[command(after_help = "Example:\n  quipu completions bash > ~/.local/share/bash-completion/completions/quipu")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Sessions for shells to complete: id, tab, title
    #[command(hide = true)]
    CompleteSessions,
    /// Print the help of the program or of a command
    Help {
        /// The command
        command: Option<String>,
    },
    /// Print the manual page
    #[command(after_help = "Examples:\n  quipu man | man -l -\n  quipu man show | man -l -")]
    Man {
        /// The command to describe [default: the whole program]
        command: Option<String>,
    },
}

impl Command {
    /// Whether the command reads or writes sessions, so that a `--claude-dir` that does not exist
    /// is an error.
    pub(crate) fn uses_sessions(&self) -> bool {
        if matches!(self, Self::Serve(serve) if serve.demo) {
            return false;
        }
        use Command::{Answer, CompleteSessions, Completions, Doctor, Help, Man, Replay};
        #[cfg(feature = "capture")]
        if matches!(self, Self::Capture(_)) {
            return false;
        }
        !matches!(
            self,
            Answer(_) | Completions { .. } | CompleteSessions | Doctor | Help { .. } | Man { .. } | Replay(_)
        )
    }

    /// Whether the command works on all sessions rather than on one that is named.
    pub(crate) fn uses_all_sessions(&self) -> bool {
        match self {
            Self::Ls(_) | Self::Usage(_) | Self::Stats(_) | Self::Contexts(_) | Self::Search(_) => true,
            Self::Check(check) => check.paths.is_empty(),
            Self::Export(export) => export.all,
            Self::Secrets(secrets) => secrets.sessions.is_empty(),
            _ => false,
        }
    }
}

const CHECK_EXAMPLES: &str = "\
Examples:
  quipu check                              every session of this machine
  quipu check --roundtrip session.jsonl    check that no data would be lost
  quipu check --json . | jq .kinds         count lines by type
  some-agent | quipu check -               check a live stream

Exit status: 0 if the check ran, 1 on a round-trip failure or, with --strict, on any problem.";

#[derive(Debug, ClapArgs)]
pub(crate) struct CheckArgs {
    /// Files, folders (searched for *.jsonl) or `-` for standard input
    /// [default: all sessions]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Check that every line can be read and written back byte for byte
    #[arg(long)]
    pub(crate) roundtrip: bool,
    /// Fail on any problem
    #[arg(long)]
    pub(crate) strict: bool,
    /// Repair files; keeps a backup of each and reports every change
    #[arg(long, conflicts_with_all = ["roundtrip", "strict"])]
    pub(crate) repair: bool,
}

const LS_EXAMPLES: &str = "\
Examples:
  quipu ls                                  the latest sessions
  quipu ls .                                those of the current folder
  quipu ls -p tidepool --since 'last week'  those of a project, since last week
  quipu ls --sort cost -n 10                the most expensive
  quipu ls --json | jq '.[].session_id'";

#[derive(Debug, ClapArgs)]
pub(crate) struct LsArgs {
    /// The same as --project; `.` lists the sessions of the current folder
    #[arg(value_name = "PROJECT", conflicts_with = "project")]
    pub(crate) folder: Option<String>,
    /// Sort order: latest, most expensive, most tokens or most turns first
    #[arg(long, value_enum, default_value_t = SortBy::Time)]
    pub(crate) sort: SortBy,
    /// List at most N sessions [default: all with --json, 30 otherwise]
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    #[command(flatten)]
    pub(crate) filters: FilterArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortBy {
    Time,
    Cost,
    Tokens,
    Turns,
}

const USAGE_EXAMPLES: &str = "\
Examples:
  quipu usage                          by day
  quipu usage monthly --since 2026-09-01
  quipu usage model --since 7d
  quipu usage block                    five-hour blocks, and the time left in the active one
  quipu usage block --token-limit max  each block as a percentage of the largest one
  quipu usage tool --project tidepool  which tools cost most
  quipu usage turn --session latest    each turn of a session
  quipu usage --json | jq .totals.cost_usd

Each API message counts once: copies in resumed and forked sessions add nothing, and \
subagents count for the session that started them. `quipu ls` shows what each session \
holds, copies included. Usage of deleted session files stays counted.

Prices are bundled; add or replace them in ~/.config/quipu/prices.toml (docs/prices.md). \
Claude Code before 2.1.100 recorded far too few output tokens for many messages.";

#[derive(Debug, ClapArgs)]
pub(crate) struct UsageArgs {
    /// What to group by
    #[arg(value_enum, default_value_t = UsageGroup::Daily, value_name = "BY")]
    pub(crate) group: UsageGroup,
    /// Time zone of the days, such as Europe/Berlin or +09:00 [default: the local one]
    #[arg(long, value_name = "ZONE", value_parser = parse_time_zone, allow_hyphen_values = true)]
    pub(crate) timezone: Option<TimeZone>,
    /// Also split each row by model
    #[arg(long)]
    pub(crate) breakdown: bool,
    /// With `block`: token limit of a block, such as 500k or 2M; `max` is the most that an earlier
    /// block used
    #[arg(long, value_name = "TOKENS|max")]
    pub(crate) token_limit: Option<TokenLimit>,
    /// Count only the files that exist, without the index
    #[arg(long)]
    pub(crate) no_index: bool,
    #[command(flatten)]
    pub(crate) filters: FilterArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum UsageGroup {
    /// Days
    Daily,
    /// Weeks, by their Monday
    Weekly,
    /// Months
    Monthly,
    /// Sessions, the most expensive first
    Session,
    /// Models, the most expensive first
    Model,
    /// Projects, the most expensive first
    Project,
    /// Five-hour blocks, with the time left in the active one
    Block,
    /// Tools; a message that calls several is shared equally among them
    Tool,
    /// The main conversation and the types of subagents
    Agent,
    /// Turns, numbered as in `show --turn`
    Turn,
}

const STATS_EXAMPLES: &str = "\
Examples:
  quipu stats                         all sessions
  quipu stats -p . --since 30d        those of the current folder, of a month
  quipu stats --json | jq .tools      how many messages call each tool

The length of a session is from its first entry to its last. Tools are counted by the messages \
that call them, hours and weekdays by the messages sent then, in local time.";

#[derive(Debug, ClapArgs)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    pub(crate) filters: FilterArgs,
}

const CONTEXTS_EXAMPLES: &str = "\
Examples:
  quipu contexts                      what is attached most often
  quipu contexts -p tidepool --since 30d
  quipu contexts --json | jq -r '.[].block'   each as the text that attaches it to a prompt";

#[derive(Debug, ClapArgs)]
pub(crate) struct ContextsArgs {
    #[command(flatten)]
    pub(crate) filters: FilterArgs,
}

const STATUSLINE_EXAMPLES: &str = "\
Reads the JSON that Claude Code sends on standard input. In ~/.claude/settings.json:

  {\"statusLine\": {\"type\": \"command\", \"command\": \"quipu statusline\"}}

The cost of the session is counted from its transcript. The costs of today and of the block \
come from the index, which `quipu statusline` does not update: any other command does.";

const SEARCH_EXAMPLES: &str = "\
Examples:
  quipu search harbour tide                both words, anywhere in one message
  quipu search '\"the tide turns\"'          these words in this order
  quipu search 'tide OR ebb -harbour'      one of two words, without a third
  quipu search getUserById --tool Edit     an identifier, in edits only
  quipu search 抽奖 --role user --since 30d
  quipu search --exact 'index.html?v=2'    exactly this text
  quipu search --regex 'E0[0-9]{3}' --json
  quipu show 05ef09b2:34 --around 5        read on from a hit

Case does not matter, and identifiers are found by their parts and as a whole: `user` and \
`getuserbyid` find getUserById and get_user_by_id. Punctuation matters: C++, #104, \
src/tide.rs. A * at the end of a word finds all words that begin with it. Quote a query with \
-word in it, or write -- before it, so that the word is not read as an option.

Searches what was said, what tools were called with and what they returned. Words that only \
`quipu show` adds, such as `12 lines` or `nothing found`, are not found.

Exit status: 0 with a hit, 1 without one.";

#[derive(Debug, ClapArgs)]
pub(crate) struct SearchArgs {
    /// What to search for
    #[arg(value_name = "QUERY", required = true, num_args = 1..)]
    pub(crate) query: Vec<String>,
    /// Search for exactly this text, case and punctuation included; reads the files, not the
    /// index
    #[arg(long, conflicts_with = "regex")]
    pub(crate) exact: bool,
    /// Search for a regular expression; reads the files, not the index
    #[arg(long)]
    pub(crate) regex: bool,
    /// Only text of this role
    #[arg(long, value_enum)]
    pub(crate) role: Option<RoleArg>,
    /// Only calls and results of this tool, such as Bash
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Show at most N hits
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) filters: FilterArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleArg {
    /// What the user typed
    User,
    /// The model: answers, thinking and tool calls
    Assistant,
    /// The model's thinking alone
    Thinking,
    /// Tools: their calls and their results
    Tool,
    /// The program: notices, hooks, summaries, titles, texts for the model alone
    System,
}

const EXPORT_EXAMPLES: &str = "\
Examples:
  quipu export latest --to session.html --redact
  quipu export 05ef09b2 --to turn.md --turn 2 --no-thinking
  quipu export latest --to - --as html | ssh host 'cat > session.html'
  quipu export --all --to archive                    every session, with an index
  quipu export --all -p tidepool --since 30d --only-prompts --as markdown --to prompts

--redact masks what `quipu secrets` finds, and e-mail addresses and home folders. Read the \
result before you share it.";

#[derive(Debug, ClapArgs)]
pub(crate) struct ExportArgs {
    /// A session: its id or a unique prefix of it, `latest`, PROJECT/ID, `agent-ID`, a file, or
    /// `-` for standard input
    #[arg(value_name = "SESSION", required_unless_present = "all", conflicts_with = "all")]
    pub(crate) session: Option<String>,
    /// Export every session that the filters select, each to its own file, with an index
    #[arg(long, conflicts_with_all = ["turn", "tail"])]
    pub(crate) all: bool,
    /// The file to write, or `-` for standard output; with --all a folder
    #[arg(long, value_name = "FILE")]
    pub(crate) to: PathBuf,
    /// The format [default: by the file's extension (.html, .md, .json); Markdown for `-`, HTML
    /// with --all]
    #[arg(long = "as", value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<ExportFormat>,
    /// Mask credentials, e-mail addresses and home folders
    #[arg(long)]
    pub(crate) redact: bool,
    #[command(flatten)]
    pub(crate) parts: PartArgs,
    #[command(flatten)]
    pub(crate) filters: FilterArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    Html,
    Markdown,
    Json,
}

impl From<ExportFormat> for quipu_render::ExportFormat {
    fn from(format: ExportFormat) -> Self {
        match format {
            ExportFormat::Html => Self::Html,
            ExportFormat::Markdown => Self::Markdown,
            ExportFormat::Json => Self::Json,
        }
    }
}

const DIFF_EXAMPLES: &str = "\
Examples:
  quipu diff latest                        changes of the latest session
  quipu diff latest --stat                 number of lines in each file
  quipu diff 05ef09b2 > change.patch       apply it elsewhere with `git apply change.patch`

Shows the changes made with Write, Edit, MultiEdit and NotebookEdit, also by subagents. Of \
what shell commands changed, only `rm FILE` of such a file is known.";

#[derive(Debug, ClapArgs)]
pub(crate) struct DiffArgs {
    /// A session: its id or a unique prefix of it, `latest`, PROJECT/ID, `agent-ID`, or a file
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
    /// Show only the number of lines added and removed in each file
    #[arg(long)]
    pub(crate) stat: bool,
}

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  quipu explain latest                     where the latest session's time and money went
  quipu explain latest --as html > why.html
  quipu explain latest --json | jq .advice
  quipu explain 05ef09b2 --capture calls.jsonl

Time is assigned from the times of the entries: the time before a tool result to its tool, the \
time before a response to the model. Costs are those of `quipu usage`. The prompt cache is \
explained from the captured API calls of the session, if `quipu capture` recorded any, or from those \
that newer session files record; in older files the calls are derived from the entries.";

#[derive(Debug, ClapArgs)]
pub(crate) struct ExplainArgs {
    /// A session: its id or a unique prefix of it, `latest`, PROJECT/ID, `agent-ID`, or a file
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
    /// Read the API calls from a capture of this session instead of the session file
    #[arg(long, value_name = "FILE")]
    pub(crate) capture: Option<PathBuf>,
    /// Format of the output
    #[arg(long = "as", value_name = "FORMAT")]
    pub(crate) form: Option<ExplainFormat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExplainFormat {
    Text,
    Json,
    Html,
}

const SECRETS_EXAMPLES: &str = "\
Examples:
  quipu secrets                            search every session
  quipu secrets latest                     search one, with its subagents
  quipu secrets --json | jq '.[].path'

Finds tokens of well-known services, private keys, passwords and keys by the names of their \
variables, and long random values. `quipu export --redact` masks the same. Prints the first \
four characters and the length of each, and the line that holds it.

Exit status: 0 if nothing was found, 1 on findings or if a file could not be read.";

#[derive(Debug, ClapArgs)]
pub(crate) struct SecretsArgs {
    /// Sessions: ids, unique prefixes of ids, `latest`, or files [default: all]
    #[arg(value_name = "SESSION")]
    pub(crate) sessions: Vec<String>,
}

const ANSWER_EXAMPLES: &str = "\
Examples:
  quipu answer script.yaml                    on a free port; prints the address
  quipu answer script.yaml --listen 127.0.0.1:4778
  quipu answer api.jsonl                      play recorded calls again
  ANTHROPIC_BASE_URL=http://127.0.0.1:4778 ANTHROPIC_API_KEY=any claude -p hi

A script is a list of rules; the shortest is `- reply: Hello`. docs/answer.md has the rest. \
Ctrl-C stops the server.";

#[derive(Debug, ClapArgs)]
pub(crate) struct AnswerArgs {
    /// The script: YAML, JSON, or recorded calls (api.jsonl)
    #[arg(value_name = "SCRIPT")]
    pub(crate) script: PathBuf,
    /// The loopback address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
}

#[cfg(feature = "capture")]
const CAPTURE_EXAMPLES: &str = "\
Examples:
  quipu capture -- claude -p 'explain this repository'
  quipu capture --out run.capture -- claude
  quipu capture --listen 127.0.0.1:4779          until Ctrl-C, for programs started elsewhere
  quipu capture --upstream https://gateway.example -- claude

The command runs with ANTHROPIC_BASE_URL set to a proxy on this machine, which forwards calls \
unchanged and records them. Exits with the status of the command. Credentials are not stored. \
Without --out, captures are kept in the data folder up to 2 GB, the oldest are removed first. \
docs/capture.md describes the file.";

#[cfg(feature = "capture")]
#[derive(Debug, ClapArgs)]
pub(crate) struct CaptureArgs {
    /// The address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Where calls are forwarded to [default: $ANTHROPIC_BASE_URL, or the Anthropic API]
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,
    /// A new file for the capture [default: one in the data folder]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// The command to run and its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

const REPLAY_EXAMPLES: &str = "\
Examples:
  quipu replay run.capture -- claude -p 'explain this repository'
  quipu replay run.capture --check -- ./run-agent.sh    a captured run as a test
  quipu replay run.capture --lenient --listen 127.0.0.1:4780

The command runs with ANTHROPIC_BASE_URL set to a server on this machine. Each recorded call is \
played once, to a request that is the same; headers, metadata and the session id may differ. \
docs/capture.md has the rules.

Exit status: that of the command; with --check 1 if the run differs from the recorded one.";

#[derive(Debug, ClapArgs)]
pub(crate) struct ReplayArgs {
    /// The capture
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The loopback address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Respond to requests that differ, with the next recorded call of their kind
    #[arg(long)]
    pub(crate) lenient: bool,
    /// Fail with the first difference from the recorded run
    #[arg(long)]
    pub(crate) check: bool,
    /// The command to run and its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

const FOLLOW_EXAMPLES: &str = "\
Examples:
  quipu follow                    the latest session, and each newer one when it starts
  quipu follow 05ef09b2 --full    one session, with thinking and long results
  quipu follow --all              every session, and which ones wait for you
  quipu follow --json | jq -c 'select(.kind == \"tool\") | .tool.name'

With --json each item is one line with its session_id; a tool call comes again with its \
result. Items of a subagent also have an agent_id, and lines that say that a session waits \
have waiting_for: question, plan, permission or prompt. Files do not say whether a shell \
command runs or waits for a permission: both are shown as running.";

#[derive(Debug, ClapArgs)]
pub(crate) struct FollowArgs {
    /// A session: its id or a unique prefix of it, PROJECT/ID, a file, or `latest`, which
    /// switches to a newer session when it starts
    #[arg(value_name = "SESSION", default_value = "latest")]
    pub(crate) session: String,
    /// Follow every session, and show which ones wait for you and for what
    #[arg(long, conflicts_with_all = ["session", "tail"])]
    pub(crate) all: bool,
    /// Show thinking and long results in full
    #[arg(long)]
    pub(crate) full: bool,
    /// Number of earlier items to show first
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) tail: usize,
}

const SERVE_EXAMPLES: &str = "\
Examples:
  quipu serve                              your sessions
  quipu serve --demo                       bundled sessions, to look around
  quipu serve --listen 127.0.0.1:8080      on another port
  quipu --json serve --no-open | jq -r .url

The page and its data stay on this machine: the server listens on a loopback address, and the \
address it prints has a token that requests need. From another machine, use `ssh -L \
4777:127.0.0.1:4777 HOST`. Ctrl-C stops the server. docs/serve.md has more.";

#[derive(Debug, ClapArgs)]
pub(crate) struct ServeArgs {
    /// The loopback address to listen on; port 0 takes a free one
    /// [default: 127.0.0.1:4777, or the next free port]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// Show bundled sessions instead of yours
    #[arg(long, conflicts_with = "claude_dir")]
    pub(crate) demo: bool,
    /// Open the page in a browser [default: on a desktop, if stdout is a terminal]
    #[arg(long, overrides_with = "no_open")]
    pub(crate) open: bool,
    /// Do not open a browser
    #[arg(long, overrides_with = "open")]
    pub(crate) no_open: bool,
}

const RESUME_EXAMPLES: &str = "\
Examples:
  quipu resume                    the latest session of this folder
  quipu resume 05ef09b2 --run     resume it now
  eval \"$(quipu resume 05ef09b2)\"";

#[derive(Debug, ClapArgs)]
pub(crate) struct ResumeArgs {
    /// A session: its id or a unique prefix of it, `latest`, PROJECT/ID, or a file
    /// [default: the latest of this folder, or else of all]
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Run the command instead of printing it
    #[arg(long, conflicts_with = "json")]
    pub(crate) run: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RenameArgs {
    /// A session: its id or a unique prefix of it, `latest`, PROJECT/ID, or a file
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
    /// The new title
    #[arg(value_name = "TITLE")]
    pub(crate) title: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TagArgs {
    /// A session: its id or a unique prefix of it, `latest`, PROJECT/ID, or a file
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
    /// The new tag, which replaces the current one
    #[arg(value_name = "TAG")]
    pub(crate) tag: Option<String>,
    /// Remove the tag
    #[arg(long, conflicts_with = "tag")]
    pub(crate) clear: bool,
}

const RM_EXAMPLES: &str = "\
Examples:
  quipu rm 05ef09b2
  quipu rm 05ef09b2 --yes         without confirmation

Deletes the session's file, its subagents, and the file checkpoints and tasks kept for it. \
This cannot be undone. A session that an agent is writing to is not deleted.";

#[derive(Debug, ClapArgs)]
pub(crate) struct RmArgs {
    /// A session: its id or a unique prefix of it, PROJECT/ID, or a file
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
    /// Delete without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
}

const SHOW_EXAMPLES: &str = "\
Examples:
  quipu show latest                             on the screen, paged when long
  quipu show session.jsonl --tail 20            only the end
  quipu show 05ef09b2:34 --around 5             a search hit, with 5 items before and after
  quipu show agent-a3bbbbd4                     a subagent's own conversation
  quipu show latest --branch all                also the branches abandoned by a rewind
  quipu show session.jsonl --as html > s.html   a page to share
  quipu show session.jsonl --view api --json    the messages that would be sent
  quipu show -                                  a live stream from standard input";

#[derive(Debug, ClapArgs)]
pub(crate) struct ShowArgs {
    /// A session: its id or a unique prefix of it, `latest`, PROJECT/ID, `agent-ID`, a file, or
    /// `-` for standard input; with `:LINE` after it, only what that line of its file says
    #[arg(value_name = "SESSION[:LINE]")]
    pub(crate) session: String,
    /// With :LINE, also N items before and after it
    #[arg(long, value_name = "N", conflicts_with_all = ["turn", "tail"])]
    pub(crate) around: Option<usize>,
    /// What to show: the conversation, the messages for the API, or the raw lines of the file,
    /// which --tail then counts
    #[arg(long, value_enum, default_value_t = ShowView::Screen)]
    pub(crate) view: ShowView,
    /// Output format [default: text; json with --json]
    #[arg(long = "as", value_enum, value_name = "FORM")]
    pub(crate) form: Option<ShowFormat>,
    #[command(flatten)]
    pub(crate) parts: PartArgs,
    /// Only the Nth branch that was abandoned by a rewind, counted from 1 in the order of the
    /// file; `all` shows each where it begins
    #[arg(long, value_name = "N|all", conflicts_with = "turn")]
    pub(crate) branch: Option<BranchChoice>,
    /// Show thinking and long results in full, hooks that succeeded silently, and texts that
    /// only the model gets
    #[arg(long)]
    pub(crate) full: bool,
}

/// Value of `--branch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BranchChoice {
    All,
    Number(usize),
}

impl std::str::FromStr for BranchChoice {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match (text, text.parse()) {
            ("all", _) => Ok(Self::All),
            (_, Ok(number)) if number > 0 => Ok(Self::Number(number)),
            _ => Err("expected a number from 1 on, or `all`"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShowView {
    Screen,
    Api,
    Raw,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShowFormat {
    Text,
    Markdown,
    Html,
    Json,
}

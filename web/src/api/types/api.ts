// Generated from the types of the server by a test of crates/server; do not edit.

/** Kinds of activity of a session. */
export type ActivityState = "new" | "working" | "tool" | "permission" | "question" | "plan" | "prompt" | "ended";

/** One piece of advice. */
export interface Advice {
  /** What the advice is about. */
  kind: AdviceKind;
  /** Name of the cause, the policy or the tool. */
  subject?: string | null;
  /** Number of misses or API calls, or percentage of the busy time. */
  number?: number | null;
  /** What to do, and why. */
  text: string;
  /** What it would have saved in this session, in US dollars; 0 if it only saves time. */
  saves_usd: number;
}

/** What a piece of advice is about. */
export type AdviceKind = "cache_miss" | "policy" | "large_context" | "waiting" | "retries" | "hooks" | "slow_tool";

/** An agent as clients see it. */
export interface AgentInfo {
  name: string;
  /** Path of the program; `None` if it was not found. */
  path: string | null;
  /** Its version; `None` until a chat was started with it. */
  version: string | null;
  usable: boolean;
  /** Why it cannot be used. */
  reason: string | null;
  /** Folder that it always works in; `None` if the user chooses one. */
  cwd: string | null;
}

/** One part of a request: the system prompt, the tools, a kind of context, the history or the question. */
export interface AnatomyPart {
  /** Name of the part, for example `tools` or `tools of MCP server github`. */
  part: string;
  /** Estimated tokens: the part's share of the bytes, scaled to the recorded prompt size. */
  tokens: number;
  /** Bytes of the part as JSON. */
  bytes: number;
  /** Whether the part differs from the same part of the previous call. A history that only grew does not differ. */
  changed: boolean;
}

/** One branch. */
export interface BranchRow {
  /** Id of the branch. */
  id: string;
  /** Kind of the branch, such as `main` or `subagent`. */
  kind: string;
  /** Id of the branch that it left. */
  parent: string | null;
  /** Id of the last call of the parent before the fork. */
  forked_at: string | null;
  /** Why the branch began. */
  reason: string;
  /** Id of the subagent, for its branch. */
  agent_id: string | null;
  /** Ids of the calls. */
  calls: string[];
}

/** What the prompt cache did for each call, and what it would have done under other policies. */
export interface CacheDocument {
  calls: CacheRow[];
  what_if: PolicyRow[];
}

/** What the prompt cache did. */
export interface CacheReport {
  /** Misses by cause. */
  by_cause: Record<string, CauseReport>;
  /** Number of API calls that the analysis knows. Older session files do not record all. */
  calls: number;
  /** What these calls cost as the server counted them, in US dollars. */
  billed_usd: number;
  /** What the same calls would have cost under other policies. */
  what_if: PolicyReport[];
}

/** One call in the shape of `quipu trace cache --json`. */
export interface CacheRow {
  /** Id of the call. */
  call: string;
  /** Id of its branch. */
  branch: string;
  /** Id of its session. */
  session_id: string | null;
  /** Tokens read from the cache; null if the response has no usage. */
  read: number | null;
  /** Tokens written to the cache; null if the response has no usage. */
  written: number | null;
  /** Tokens that it should have read. */
  expected_read: number;
  /** Whether `expected_read` is an estimate. */
  is_estimate: boolean;
  /** The miss; null if it read what it should. */
  miss: MissRow | null;
  /** The server's own diagnosis; null if the response has none. */
  server_diagnosis: DiagnosisRow | null;
}

/** The differences between the requests of two calls, in the shape of `quipu trace diff --json`. */
export interface CallDiff {
  /** Id of the earlier call. */
  from: string;
  /** Id of the later call. */
  to: string;
  /** What the two requests do not share. */
  differences: Difference[];
}

/** Which calls of a session to show. */
export interface CallParams {
  source?: Source;
}

/** One call and the parts of its request. */
export interface CallRow {
  /** Id of the call. */
  id: string;
  /** Time of the request, as ISO 8601. */
  started_at: string | null;
  /** Milliseconds from the request to the end of the response. */
  duration_ms: number | null;
  /** Model of the request, or else of the response. */
  model: string | null;
  /** HTTP status; `None` if there was no response. */
  status: number | null;
  /** Id of the branch. */
  branch: string | null;
  /** Number of the turn in its session, from 1. */
  turn: number | null;
  /** Token counts of the response. */
  usage: Tokens | null;
  /** Cost in US dollars; `None` if it is not known. */
  cost_usd: number | null;
  /** The parts of the request. */
  anatomy: AnatomyPart[];
}

/** The calls of a session, and where they come from. */
export interface CallsDocument {
  /** Sessions with their branches and turns. */
  sessions: SessionCallRows[];
  /** All calls, in order of time. */
  calls: CallRow[];
  /** Whether the calls are those of captures. */
  is_captured: boolean;
  /** Whether the session has captures. */
  has_captures: boolean;
}

/** Misses of one cause. */
export interface CauseReport {
  /** Number of misses. */
  misses: number;
  /** Tokens that were not read from the cache. */
  tokens: number;
  /** What they cost more than a read, in US dollars. */
  cost_usd: number;
  /** What to do about it. */
  advice: string;
}

/** What happened to a part of a request. */
export type Change = "added" | "removed" | "changed" | "moved";

/** What happened to a file. */
export type ChangeStatus = "created" | "modified" | "deleted";

/** A chat: an agent process and the session it works in. */
export interface Chat {
  /** Id of the chat, for `/api/chats/{id}`. */
  id: string;
  /** Key of the session, for `/api/sessions/{key}`. Its file exists after the first message. */
  key: string;
  session_id: string;
  /** Folder that the agent works in. */
  cwd: string;
  /** Name of the agent, or its path. */
  agent: string;
  /** Version of the agent; `None` until it has started. */
  agent_version: string | null;
  /** Model; `None` until the agent has reported it. */
  model: string | null;
  permission_mode: string;
  state: ChatPhase;
  /** Why it ended; `None` while the agent runs. */
  ended: ChatEnd | null;
  /** When the chat was started, as ISO 8601. */
  started_at: string;
  /** When the running turn was started; `None` if none is running. */
  turn_started_at: string | null;
  /** Cost in US dollars, as the agent counts it. During a turn, what is known so far. */
  cost_usd: number;
  tokens: ChatTokens;
  /** Messages that the agent has not begun to work on. */
  queued: QueuedMessage[];
  /** What the user has to decide. */
  prompts: Prompt[];
  /** Slash commands of the agent. */
  commands: ChatCommand[];
  models: ChatModel[];
  /** Permission modes that can be set. */
  modes: string[];
  /** Task list of the model. */
  todos: ChatTodo[];
  /** UUID of the last entry that is still part of the conversation, after a rewind and until the next message; the session file still shows what follows it. */
  rewound_to: string | null;
  /** Where the API calls of the chat are captured; `None` if they are not. */
  capture: ChatCapture | null;
}

export interface ChatCapture {
  /** Path of the capture file. */
  path: string;
  /** Calls that were captured so far. */
  calls: number;
}

export interface ChatCommand {
  /** Name without the slash. */
  name: string;
  description: string;
  argument_hint: string;
}

/** Why a chat ended. */
export interface ChatEnd {
  reason: EndReason;
  /** A sentence for the user. */
  message: string;
  /** Last lines that the agent wrote to stderr. */
  stderr: string[];
}

/** One line of `/api/chats/{id}/events`. */
export type ChatEvent = {
  type: "snapshot";
  chat: Chat;
  partial: PartialBlock[];
  notes: Note[];
} | {
  type: "chat";
  chat: Chat;
} | {
  type: "block_start";
  block: PartialBlock;
} | {
  type: "delta";
  message_id: string;
  index: number;
  text: string;
} | {
  type: "block_end";
  message_id: string;
  index: number;
} | {
  type: "message_end";
  message_id: string;
} | {
  type: "withdrawn";
  message_id: string;
} | {
  type: "tool_progress";
  tool_use_id: string;
  elapsed_ms: number;
  text: string | null;
} | {
  type: "note";
  level: NoteLevel;
  text: string;
} | {
  type: "ping";
};

export interface ChatModel {
  /** Name to set. */
  value: string;
  display_name: string;
  description: string;
}

/** What an agent is doing. */
export type ChatPhase = "idle" | "running" | "ended" | "starting" | "compacting";

/** What a new chat can be started with. */
export interface ChatSetup {
  agents: AgentInfo[];
  /** The agent of a chat that names none; `None` if none can be used. */
  default_agent: string | null;
  /** `None` if the agent chooses. */
  default_model: string | null;
  default_permission_mode: string;
  /** Folders of recent sessions that exist, the latest first. */
  folders: string[];
  cwd: string | null;
  /** Whether `cwd` is trusted; if not, a chat in it needs `trust`. */
  is_trusted: boolean;
}

export interface ChatTodo {
  content: string;
  /** `pending`, `in_progress` or `completed`. */
  status: string;
  /** The task in the present continuous. */
  active_form: string | null;
}

export interface ChatTokens {
  /** Tokens sent, including those read from the prompt cache. */
  input: number;
  output: number;
}

/** Totals of a period and of the one before, which has the same length. */
export interface Comparison {
  current: UsageFields;
  previous: UsageFields;
  previous_since: string | null;
}

export interface ContextParams {
  /** The folder, as an absolute path; it must be trusted, because git runs in it. */
  cwd: string;
  kind: ContextSource;
  /** The commit, for `git_commit`. */
  arg?: string | null;
}

/** Prompt size of one API call. */
export interface ContextReport {
  /** Turn of the call, from 1. */
  turn: number;
  /** Line of its first entry. */
  line: number;
  /** Tokens of the whole prompt. */
  tokens: number;
  /** Of those, read from the cache. */
  cache_read: number;
}

export type ContextSource = "git_diff" | "git_commit";

/** A text to attach to a message. */
export interface ContextText {
  label: string;
  text: string;
  /** Whether the end of the text was cut off. */
  is_cut: boolean;
}

export interface Day {
  cost_usd: number;
  messages: number;
  /** Sessions with a message on that day. */
  sessions: number;
}

export interface DayCell {
  day: string;
  cost_usd: number;
  messages: number;
}

export interface DeleteReply {
  deleted: boolean;
}

/** What the server reported about a miss. */
export interface DiagnosisRow {
  /** Kind of the difference. */
  type: string | null;
  /** Tokens that were missed. */
  missed_tokens: number | null;
}

/** Which calls of a session to show. */
export interface DiffParams {
  /** Id of the earlier call; the one before `b` in its branch without it. */
  a?: string | null;
  /** Id of the later call. */
  b: string;
  source?: Source;
}

/** One difference between two requests. */
export interface Difference {
  /** Place in the request, for example `tools[3] Bash` or `messages[0].content[1]`. */
  at: string;
  /** What happened there. */
  change: Change;
  /** JSON before the change; `None` for something that was added. */
  old: string | null;
  /** JSON after the change; `None` for something that was removed. */
  new: string | null;
}

export type EndReason = "stopped" | "idle" | "server_stopped" | "exited" | "start_failed" | "failed";

/** Something that changed, as one line of `/api/events`. */
export type Event = {
  type: "sessions";
} | {
  type: "session";
  /** Key of the session. */
  key: string;
} | {
  type: "activity";
  /** Key of the session. */
  key: string;
  /** Whether a line was written in the last minutes. */
  live: boolean;
  /** What the agent does or waits for; `None` if the session is not followed. */
  activity: ActivityState | null;
  /** Text of the question, first line of the plan, or name of the tool. */
  activity_detail: string | null;
  /** What the session waits for: `permission`, `question`, `plan` or `prompt`. */
  waiting: ActivityState | null;
} | {
  type: "index";
  /** `updating` or `ready`. */
  state: string;
} | {
  type: "chats";
} | {
  type: "ping";
};

export interface ExportParams {
  to: Format;
  /** 1 to mask credentials, e-mail addresses and home folders. */
  redact?: number;
}

/** All changes of a session to one file. */
export interface FileChange {
  /** Path of the file, as the tool calls name it. */
  path: string;
  /** What happened to the file, from the first change to the last. */
  status: ChangeStatus;
  /** Unified diff. The text of the file is not sanitized and may have control characters. */
  diff: string;
  /** Number of lines the diff adds. */
  added: number;
  /** Number of lines the diff removes. */
  removed: number;
  /** Number of changes that cannot be reconstructed and are not in the diff. */
  missing?: number;
  /** Whether the file was changed in between by something other than its tool calls, such as a formatter; the diff has these changes too. */
  changed_outside?: boolean;
}

export interface FileParams {
  /** The folder, as an absolute path. */
  cwd: string;
  /** Some characters of the path or of the name of a symbol, in order. */
  q?: string;
  limit?: number | null;
}

/** Bytes that one source added to the context. */
export interface FilledBy {
  /** Results of a tool, `prompts`, `responses` or `attachments`. */
  source: string;
  /** Number of results or messages. */
  count: number;
  /** Bytes of their JSON. */
  bytes: number;
}

export interface FindParams {
  /** The text to find; upper and lower case letters are the same. */
  q: string;
}

export type Format = "html" | "md" | "json";

export interface Found {
  hits: FoundHit[];
  /** Whether all sessions were searched and all hits are here. */
  complete: boolean;
}

/** A file, folder or symbol. */
export interface FoundFile {
  kind: FoundKind;
  /** Path relative to the folder, with `/`. */
  path: string;
  /** Last part of the path, or name of the symbol. */
  name: string;
  /** Line of the symbol. */
  line: number | null;
  /** Kind of the symbol, such as `FUNCTION`. */
  symbol_kind: string | null;
  /** Number of files in the folder. */
  file_count: number | null;
  /** Characters that matched: of the path, or of the name of a symbol. */
  positions: number[];
}

export interface FoundFiles {
  /** The best match first. */
  matches: FoundFile[];
  /** Whether all files and symbols of the folder were searched. */
  is_complete: boolean;
}

/** A text that matches, in the shape of `quipu search --json`. */
export interface FoundHit {
  /** Key of the session. */
  key: string;
  /** Id of the session. */
  session_id: string;
  /** UUID of the entry; `None` if it has none. */
  uuid: string | null;
  /** Path of the file. */
  path: string;
  /** Line number in that file, counted from 1. */
  line: number;
  /** Timestamp of the entry, as written. */
  timestamp: string | null;
  /** `user`, `assistant`, `tool` or `system`. */
  role: string;
  /** Name of the tool, for tool calls and results. */
  tool: string | null;
  /** The text around the first match, on one line, with the matches in «». */
  snippet: string;
  /** Score; higher is better. */
  score: number;
  /** Name of the project folder. */
  project: string;
  /** Name of a subagent file for `quipu show`, such as `agent-ID`; `None` for session files. */
  agent: string | null;
}

export type FoundKind = "file" | "folder" | "symbol";

export type Group = "daily" | "weekly" | "monthly" | "session" | "model" | "project" | "block" | "tool" | "agent";

export interface HourCell {
  /** 0 is Monday. */
  weekday: number;
  /** Hour of the day in the time zone of the user. */
  hour: number;
  cost_usd: number;
  messages: number;
}

export interface ImageBody {
  /** `image/png`, `image/jpeg`, `image/gif` or `image/webp`. */
  media_type: string;
  /** The image in base64. */
  data: string;
}

export interface IndexStatus {
  /** `updating` until all sessions that existed at the start are in the index. */
  state: string;
  /** Number of sessions. */
  sessions: number;
}

/** Kinds of screen items. */
export type ItemKind = "user" | "assistant" | "thinking" | "tool" | "image" | "hook" | "system" | "summary" | "attachment" | "branch" | "unknown" | "problem";

export interface ItemParams {
  /** First position; the last `count` positions without it. */
  from?: number | null;
  count?: number | null;
  /** The window around this line of the session file. */
  line?: number | null;
  /** The items of this branch instead of the active path. */
  branch?: number | null;
  /** Id of a subagent, or of the tool call that started it. */
  agent?: string | null;
  /** 1 to include what only the model sees. */
  hidden?: number;
  /** 1 to get long texts whole. */
  full?: number;
}

export interface ListParams {
  /** Only projects whose folder or working directory contains this. */
  project?: string | null;
  /** Only sessions whose title, first prompt or id contains this. */
  q?: string | null;
  /** Only models whose name contains this. */
  model?: string | null;
  /** Only sessions with a message on or after this day or time. */
  since?: string | null;
  /** Only sessions that began on or before this day or time. */
  until?: string | null;
  /** Only sessions with this tag. */
  tag?: string | null;
  /** 1 for sessions with a star only. */
  starred?: number;
  sort?: SortBy;
  offset?: number;
  limit?: number | null;
}

export interface Match {
  /** Position of the entry that shows the line; that of the tool call for text of a subagent. */
  position: number;
  line: number;
  /** Id of the subagent whose file the line is in. */
  agent: string | null;
  /** The text around the match, with the match in «». */
  snippet: string;
}

export interface Matches {
  /** In the order of the conversation. */
  matches: Match[];
  /** Whether these are all. */
  complete: boolean;
}

/** A message for the agent. */
export interface MessageBody {
  text: string;
  /** What the user attached, as in the field `contexts` of a user entry. */
  contexts?: Record<string, unknown>[];
  images?: ImageBody[];
}

/** Why a call read less than it should have. */
export interface MissRow {
  /** Cause of the miss. */
  cause: string;
  /** The first difference to the request before it. */
  at: string | null;
  /** Tokens that were not read. */
  tokens: number;
  /** Null if the model has no price. */
  cost_usd: number | null;
  /** What to do about it. */
  advice: string;
}

export interface ModelBody {
  /** Name of the model; `null` lets the agent choose. */
  model?: string | null;
}

/** One expensive API call. */
export interface MomentReport {
  /** Turn of the call, from 1. */
  turn: number;
  /** Line of its first entry; 0 if it is in a subagent's file. */
  line: number;
  /** Model that answered. */
  model: string;
  /** Type of the subagent; `None` in the main conversation. */
  agent: string | null;
  /** Tools that it called, each once. */
  tools: string[];
  /** Token counts of the call. */
  tokens: Tokens;
  /** Cost in US dollars. */
  cost_usd: number;
}

/** Cost in US dollars. */
export interface MoneyReport {
  /** Each turn with its subagents. */
  turns: TurnReport[];
  /** Cost by tool; `(none)` for responses without a tool call. */
  tools: Record<string, number>;
  /** Cost by agent: `main`, or the type of a subagent. */
  agents: Record<string, number>;
  /** Cost by MCP server, as a part of `tools`. */
  mcp: Record<string, number>;
  /** Cost of side calls by reason. Session files record few of them. */
  side: Record<string, number>;
}

/** A message for the user that is not part of the conversation. */
export interface Note {
  level: NoteLevel;
  text: string;
}

export type NoteLevel = "info" | "warning" | "error";

export interface Overview {
  /** The project with the latest session first. */
  projects: Project[];
  recent: ShownSession[];
  live: ShownSession[];
  waiting: Waiting[];
  today: Day;
  yesterday_cost_usd: number;
}

/** A block of a response that is being streamed. */
export interface PartialBlock {
  /** Id of the API message; items of the session have it, too. */
  message_id: string;
  /** Index of the block in the message. */
  index: number;
  kind: PartialKind;
  /** Text so far; for a tool call, the JSON of its input so far. */
  text: string;
  tool_name?: string | null;
  tool_use_id?: string | null;
  /** Tool call of the subagent that writes it; `None` for the main agent. */
  agent: string | null;
  is_complete: boolean;
}

export type PartialKind = "text" | "thinking" | "tool_use";

export interface PermissionModeBody {
  permission_mode: string;
}

/** Cost of all calls under a policy, by the documented rules of the prompt cache. */
export interface PolicyReport {
  /** Name of the policy, for example `ttl-1h`. */
  policy: string;
  /** Cost in US dollars. */
  cost_usd: number;
}

/** One policy in the shape of `quipu trace cache --what-if --json`. */
export interface PolicyRow {
  /** Name of the policy; `counted` for what the server counted. */
  policy: string;
  /** Number of calls. */
  calls: number;
  /** Tokens that were not cached. */
  input_tokens: number;
  /** Tokens written to the cache for five minutes. */
  cache_write_5m_tokens: number;
  /** Tokens written to the cache for an hour. */
  cache_write_1h_tokens: number;
  /** Tokens read from the cache. */
  cache_read_tokens: number;
  /** Cost in US dollars. */
  cost_usd: number;
  /** Cost of the recorded requests by the same rules, less the cost under the policy. */
  saves_usd: number;
  /** Models without a price. */
  unpriced_models: string[];
}

/** An item of a [window](crate::SkeletonView::positioned_items) and where it belongs. */
export interface PositionedItem {
  /** Position of its entry on the active path, counted from 0. For a problem or a branch, that of the entry after it; at the end, that of the last entry. */
  position: number;
  /** Id of the API message. */
  message_id?: string;
  /** Index in the message of the first block of the entry; `None` in files that do not have it. */
  block_index?: number | null;
  /** UUID of the entry, or one derived from it if the entry has several items. */
  uuid: string | null;
  /** Kind of the item. */
  kind: ItemKind;
  /** Timestamp of the entry, as ISO 8601. */
  timestamp: string | null;
  /** Text to show; `None` for tool calls. */
  text?: string | null;
  /** What the user attached to the prompt. */
  contexts?: Record<string, unknown>[];
  /** The tool call, if the kind is `Tool`. */
  tool?: ToolCard | null;
  /** UUID of the entry, if `uuid` is derived from it. */
  derived_from?: string | null;
  /** Model that wrote it. */
  model?: string | null;
  /** Data of an image or document. */
  source?: unknown;
  /** Whether it reports a failure. */
  is_error?: boolean;
  /** Whether it is meant for the model or the program only. Such items exist only with [`UiOptions::include_hidden`]. */
  hidden?: boolean;
  /** Number of the branch that it announces or belongs to, counted from 1 in the order of the file; `None` on the active path. */
  branch?: number | null;
  /** Number of items in the announced branch. */
  items?: number | null;
  /** Line number, counted from 1; `u64::MAX` if it is not part of a line yet. */
  line: number;
}

/** A fault in one line or one file. Reading continues after it. Serialises as one element of `problems` in `quipu check --json`. */
export interface Problem {
  /** Kind of fault; in JSON its [code](ProblemKind::code). */
  code: string;
  /** Path of the file, or `-` for standard input; empty if the line came from a stream. */
  path: string;
  /** Line number, counted from 1; 0 if the problem concerns the whole file. */
  line: number;
  /** Offset of the start of the line, in bytes; 0 if the line came from a stream. */
  offset: number;
  /** Description for the user, without path and line number. */
  message: string;
}

export interface Project {
  /** Name of the project folder. */
  project: string;
  cwd: string | null;
  sessions: number;
  /** Time of the last message, as ISO 8601. */
  last_at: string | null;
  /** Cost of its sessions in US dollars, copies included. */
  cost_usd: number;
}

/** Something the user has to decide. */
export interface Prompt {
  id: string;
  kind: PromptKind;
  tool_name: string;
  tool_use_id: string | null;
  /** Arguments of the tool call; for `elicitation`, the JSON schema of the answer. */
  input: unknown;
  /** What the call does, or what is asked. */
  description: string | null;
  /** Why the user is asked. */
  reason: string | null;
  /** Changes of permissions that an approval may include, by index. */
  suggestions: Suggestion[];
  /** Path that needs permission. */
  blocked_path: string | null;
  /** When the agent asked, as ISO 8601. */
  since: string;
  /** Subagent that made the call; `None` for the main agent. */
  agent_id: string | null;
}

export type PromptKind = "permission" | "question" | "plan" | "elicitation";

/** The user's reply to a prompt. */
export type PromptReply = {
  decision: "allow";
  /** Input that replaces the model's; for an elicitation, the answer. */
  input?: unknown;
  /** Index of the suggestion to follow. */
  suggestion?: number | null;
  /** Answers to the questions, by the text of the question. */
  answers?: Record<string, unknown> | null;
} | {
  decision: "deny";
  /** Reason, which the model gets. */
  message?: string | null;
  /** Whether the turn ends, too. */
  interrupt?: boolean;
};

/** A message that the agent has not begun to work on. */
export interface QueuedMessage {
  uuid: string;
  text: string;
}

export interface RawParams {
  /** Number of a line, counted from 1. */
  line?: number | null;
  /** All lines with this UUID. */
  uuid?: string | null;
  /** Id of a subagent, whose file is read instead. */
  agent?: string | null;
}

/** Explanation of one session: where its time, tokens and money went, what the prompt cache did, and what would have been cheaper. */
export interface Report {
  /** Id of the session. */
  session_id: string | null;
  /** Milliseconds from the first to the last entry. */
  wall_ms: number;
  /** Wall time by activity, in milliseconds. */
  time: TimeReport;
  /** Cost by turn, tool, agent, MCP server and side task, in US dollars. */
  money: MoneyReport;
  /** The most expensive API calls, the most expensive first. */
  moments: MomentReport[];
  /** What the prompt cache did. */
  cache: CacheReport;
  /** Prompt size of each API call of the main conversation, in order. */
  context: ContextReport[];
  /** What filled the context, in bytes, by tool and source; the largest first. */
  filled_by: FilledBy[];
  /** What would have been cheaper, the largest saving first. */
  advice: Advice[];
  /** Total cost in US dollars. */
  cost_usd: number;
  /** Models without a known price, whose tokens are not in the costs. */
  unpriced_models: string[];
  /** Whether the API calls were derived from the session's entries and not recorded. */
  is_reconstructed: boolean;
}

export interface RewindBody {
  /** UUID of the user's message; what it caused is undone. */
  uuid: string;
  /** Whether files are restored. */
  files?: boolean;
  /** Whether the conversation continues before the message. The agent is started again. */
  conversation?: boolean;
  /** Only reports what would change. */
  dry_run?: boolean;
}

export interface RewindReply {
  can_rewind: boolean;
  /** Why it cannot be done. */
  error: string | null;
  /** Files that change. */
  files: string[];
  /** Lines that are added. */
  insertions: number;
  /** Lines that are removed. */
  deletions: number;
  /** The chat, if the conversation was rewound. */
  chat: Chat | null;
}

export type Role = "user" | "assistant" | "thinking" | "tool" | "system";

/** One item on the screen. Serialises as one element of `quipu show --json`. */
export interface ScreenItem {
  /** UUID of the entry, or one derived from it if the entry has several items. */
  uuid: string | null;
  /** Kind of the item. */
  kind: ItemKind;
  /** Timestamp of the entry, as ISO 8601. */
  timestamp: string | null;
  /** Text to show; `None` for tool calls. */
  text?: string | null;
  /** What the user attached to the prompt. */
  contexts?: Record<string, unknown>[];
  /** The tool call, if the kind is `Tool`. */
  tool?: ToolCard | null;
  /** UUID of the entry, if `uuid` is derived from it. */
  derived_from?: string | null;
  /** Model that wrote it. */
  model?: string | null;
  /** Data of an image or document. */
  source?: unknown;
  /** Whether it reports a failure. */
  is_error?: boolean;
  /** Whether it is meant for the model or the program only. Such items exist only with [`UiOptions::include_hidden`]. */
  hidden?: boolean;
  /** Number of the branch that it announces or belongs to, counted from 1 in the order of the file; `None` on the active path. */
  branch?: number | null;
  /** Number of items in the announced branch. */
  items?: number | null;
  /** Line number, counted from 1; `u64::MAX` if it is not part of a line yet. */
  line: number;
}

export interface SearchParams {
  /** Words, "phrases", `OR`, `-word`, as of `quipu search`. */
  q?: string;
  /** 1 if `q` is a regular expression. */
  regex?: number;
  /** 1 if `q` is text that is searched for as it is. */
  exact?: number;
  project?: string | null;
  role?: Role | null;
  tool?: string | null;
  since?: string | null;
  until?: string | null;
  limit?: number | null;
}

export interface SentMessage {
  /** UUID of the message, which its entry in the session has, too. */
  uuid: string;
}

export interface SessionBranch {
  /** Number of the branch, from 1. */
  branch: number;
  /** Position before which it is announced. */
  position: number;
  entries: number;
  line: number;
}

/** Branches and turns of one session. */
export interface SessionCallRows {
  /** Id of the session; `None` for calls without one. */
  session_id: string | null;
  /** Chains of calls that continue each other. */
  branches: BranchRow[];
  /** Turns of the main conversation and its subagents. */
  turns: TurnRow[];
}

export interface SessionCompaction {
  position: number;
  line: number;
}

export interface SessionPage {
  /** Number of sessions that match. */
  total: number;
  sessions: ShownSession[];
}

/** What is known of a session without reading its entries. */
export interface SessionStructure {
  /** `None` if the session is not in the list yet. */
  session: ShownSession | null;
  path: string;
  /** Shell command that resumes the session; `None` if it does not name its folder. */
  resume: string | null;
  /** One line that names the session. */
  headline: string | null;
  version: string;
  /** Number of entries on the active path. */
  entries: number;
  turns: SessionTurn[];
  branches: SessionBranch[];
  compactions: SessionCompaction[];
  problems: Problem[];
  subagents: SessionSubagent[];
}

export interface SessionSubagent {
  agent_id: string;
  agent_type: string | null;
  description: string | null;
  tool_use_id: string | null;
  /** Number of entries of its conversation. */
  entries: number;
}

export interface SessionTurn {
  /** Number of the turn, from 1. */
  turn: number;
  /** Position of the prompt. */
  position: number;
  /** Number of entries, from the prompt on. */
  entries: number;
  /** Line of the prompt. */
  line: number;
  /** The first characters of the prompt. */
  prompt: string;
  started_at: string | null;
}

/** Settings of the page. */
export interface Settings {
  /** `en` or `zh`; that of the browser if `None`. */
  language: string | null;
  /** `light` or `dark`; that of the system if `None`. */
  theme: string | null;
  /** Folders whose sessions are shown, unless `--claude-dir` or `CLAUDE_CONFIG_DIR` name others; the usual ones if empty. */
  claude_dirs: string[];
  /** Path of the settings file; `None` without a home folder. */
  config: string | null;
  /** Path of the user's own prices, which need not exist. */
  prices: string | null;
  /** Text of that file; empty if it does not exist. */
  prices_text: string;
}

/** What the page may change. Fields that are missing stay as they are. */
export interface SettingsChanges {
  /** `en` or `zh`; that of the browser if `None`. */
  language?: string | null;
  /** `light` or `dark`; that of the system if `None`. */
  theme?: string | null;
  /** Folders whose sessions are shown from the next start on; the usual ones if empty. */
  claude_dirs?: string[] | null;
  /** The user's own prices, from the next start on; the file is removed if it is empty. */
  prices_text?: string | null;
}

export interface SetupParams {
  /** Folder to look at; the latest one of a session without it. */
  cwd?: string | null;
}

/** A row with what changes from moment to moment. */
export interface ShownSession {
  /** Names the session in addresses: its id, or `PROJECT:ID` if several sessions have the id. */
  key: string;
  /** Id of the session. */
  session_id: string;
  /** Name of the project folder. */
  project: string;
  /** Working directory of the first entry that has one. */
  cwd: string | null;
  /** Path of the session file. */
  path: string;
  /** Title given by the user, or else the generated one. */
  title: string | null;
  /** Tag given by the user. */
  tag: string | null;
  /** First prompt of the user. */
  first_prompt: string | null;
  /** Earliest timestamp, as ISO 8601. */
  started_at: string | null;
  /** Latest timestamp, as ISO 8601. */
  ended_at: string | null;
  /** Number of turns. */
  turns: number;
  /** Number of API messages. */
  messages: number;
  /** Models that responded. */
  models: string[];
  /** Tokens of all its messages, including copies from other sessions. */
  tokens: Tokens;
  /** Cost of those messages in US dollars, without unpriced ones. */
  cost_usd: number;
  /** Models that have no price. */
  unpriced_models: string[];
  /** Whether the conversation was compacted. */
  compacted: boolean;
  /** Id of the session it was forked from. */
  forked_from: string | null;
  /** Id of the session it continues after an old-style compaction. */
  continues: string | null;
  /** Number of subagents that have a file. */
  subagents: number;
  /** Git branch of the first entry that has one. */
  git_branch: string | null;
  /** Version of the agent that wrote it last. */
  version: string | null;
  /** Whether the index knows the session, so that its counts are complete. */
  is_indexed: boolean;
  /** Whether a line was written in the last minutes. */
  live: boolean;
  /** What the agent does or waits for; `None` if the session is not followed. */
  activity: ActivityState | null;
  /** Text of the question, first line of the plan, or name of the tool. */
  activity_detail: string | null;
  /** What the session waits for: `permission`, `question`, `plan` or `prompt`. */
  waiting: ActivityState | null;
  tags: string[];
  starred: boolean;
  /** Bytes of the session file. */
  size_bytes: number;
}

export type SortBy = "time" | "cost" | "tokens" | "turns";

export type Source = "captures" | "session_file" | "complete";

export interface StarBody {
  starred: boolean;
}

/** What `POST /api/chats` takes. */
export interface StartRequest {
  /** Name of the agent, or the absolute path of a program. */
  agent?: string | null;
  model?: string | null;
  permission_mode?: string | null;
  /** Folder to work in; that of the session if one is resumed. */
  cwd?: string | null;
  /** Key of the session to resume. */
  resume?: string | null;
  /** UUID of the last entry to keep of it. */
  resume_at?: string | null;
  /** Whether to continue in a copy of the session. */
  fork?: boolean;
  /** Whether to capture the API calls. */
  capture?: boolean;
  /** Records that the user trusts the folder. */
  trust?: boolean;
  /** Resumes the session even if another program seems to write to it. */
  ignore_live?: boolean;
}

/** Version, folders and the state of the index. */
export interface Status {
  version: string;
  claude_dirs: string[];
  /** Whether the sessions are the bundled ones. */
  demo: boolean;
  /** `en` or `zh`; that of the browser if `None`. */
  language: string | null;
  /** `light` or `dark`; that of the system if `None`. */
  theme: string | null;
  /** Name of the time zone that days are counted in, such as `Europe/Berlin`. */
  time_zone: string;
  index: IndexStatus;
}

/** The conversation of a subagent, shown below its tool call. */
export interface SubagentCard {
  /** Id of the agent, if known. */
  agent_id: string | null;
  /** Number of entries of its conversation. */
  entries: number;
  /** Items of its conversation; empty with [`UiOptions::leave_out_subagents`]. */
  items: ScreenItem[];
}

/** A change of permissions that the agent suggests. */
export interface Suggestion {
  /** A short text, such as ``always allow `git status` ``. */
  label: string;
  /** Rules to add, such as `Bash(git status:*)`. */
  rules: string[];
  /** `allow`, `deny` or `ask`, for rules. */
  behavior: string | null;
  /** Permission mode to set. */
  mode: string | null;
  /** Folders to add. */
  directories: string[];
  /** Where it is kept: `session`, `localSettings`, `projectSettings`, `userSettings`. */
  destination: string | null;
}

export interface TagsBody {
  tags: string[];
}

/** Wall time by activity, in milliseconds. The parts add up to the wall time. */
export interface TimeReport {
  /** Work of the model. */
  model: number;
  /** Of that, until the first event of each response; known only from a capture. */
  model_first_event?: number | null;
  /** Tools by name. */
  tools: Record<string, number>;
  /** Questions and permission requests that waited for the user. */
  waiting: number;
  /** Hooks that delayed the turn. */
  hooks: number;
  /** Failed API calls that waited to be sent again. */
  retries: number;
  /** Summaries of the history. */
  compaction: number;
  /** Time between two turns. */
  idle: number;
}

export interface TitleBody {
  title: string;
}

/** Token counts of one API message, or a sum of several. */
export interface Tokens {
  /** Prompt tokens that were neither written to the cache nor read from it. */
  input: number;
  /** Tokens the model wrote. */
  output: number;
  /** Prompt tokens written to the five-minute cache, including those whose lifetime is not recorded. */
  cache_write_5m: number;
  /** Prompt tokens written to the one-hour cache. */
  cache_write_1h: number;
  /** Prompt tokens read from the cache. */
  cache_read: number;
}

/** A tool call with its result. */
export interface ToolCard {
  /** Id that links call and result. */
  id: string;
  /** Name of the tool; empty for a result without a call. */
  name: string;
  /** Input of the tool call. */
  input: unknown;
  /** Whether there is a result, and which. */
  status: ToolStatus;
  /** Result as sent to the model. */
  result?: unknown;
  /** Whether the result was lost and a placeholder was recorded; `result` is then `None`. */
  result_missing?: boolean;
  /** Structured output of the tool. */
  output?: unknown;
  /** Timestamp of the result, as ISO 8601. */
  finished_at?: string | null;
  /** Conversation of the subagent that the call started. */
  subagent?: SubagentCard | null;
}

/** Whether a tool call has a result, and which. */
export type ToolStatus = "pending" | "success" | "failed";

/** One turn, with the API calls of its subagents. */
export interface TurnFigure {
  /** Number of the turn, from 1. */
  turn: number;
  /** Timestamp of the prompt, as written. */
  started_at: string | null;
  /** From the prompt to the last response or tool result. */
  duration_ms: number | null;
  /** Cost in US dollars, without unpriced models. */
  cost_usd: number;
  tokens: Tokens;
  tool_calls: number;
  failed_tool_calls: number;
}

export interface TurnFigures {
  version: string;
  turns: TurnFigure[];
}

/** One turn. */
export interface TurnReport {
  /** Number of the turn, from 1; 0 for calls before the first prompt. */
  turn: number;
  /** Text of the prompt. */
  prompt: string;
  /** Line of the prompt in the session file. */
  line: number;
  /** Number of its API calls. */
  calls: number;
  /** Token counts of its API calls. */
  tokens: Tokens;
  /** Cost in US dollars. */
  cost_usd: number;
}

/** One turn. */
export interface TurnRow {
  /** Text of the prompt. */
  prompt: string;
  /** Ids of the calls. */
  calls: string[];
  /** Names of the tools that were called, in order. */
  tools: string[];
  /** Token counts of its calls. */
  tokens: Tokens;
  /** Cost in US dollars, of the calls that have a price. */
  cost_usd: number;
}

/** A part of a turn. */
export interface TurnSpan {
  /** Milliseconds from the beginning of the turn, without idle time. */
  start_ms: number;
  duration_ms: number;
  /** `model`, `tools`, `waiting`, `hooks`, `retries` or `compaction`. */
  activity: string;
  /** Name of the tool. */
  tool: string | null;
  /** Line of the entry that ended the span. */
  line: number;
}

/** One turn. The lengths of the spans add up to its duration. */
export interface TurnTimeline {
  /** Number of the turn, from 1. */
  turn: number;
  duration_ms: number;
  spans: TurnSpan[];
}

/** The turns of a session, each with the parts of its time. */
export interface TurnTimelines {
  turns: TurnTimeline[];
}

/** A report, in the shape of `quipu usage --json`. */
export interface UsageDocument {
  rows: UsageFields[];
  totals: UsageFields;
}

/** Usage of one day, session, model or whatever the report is grouped by. */
export interface UsageFields {
  /** What the row is about; absent in totals. */
  key?: string | null;
  models: string[];
  input_tokens: number;
  output_tokens: number;
  cache_write_5m_tokens: number;
  cache_write_1h_tokens: number;
  cache_read_tokens: number;
  web_searches: number;
  messages: number;
  /** Cost in US dollars, without unpriced models. */
  cost_usd: number;
  /** What the prompt cache saved, in US dollars. */
  cache_savings_usd: number;
  unpriced_models: string[];
  /** Time of the first message, as ISO 8601. */
  first_at?: string | null;
  /** Time of the last message, as ISO 8601. */
  last_at?: string | null;
  /** Title of the session, of rows by session. */
  title?: string | null;
  /** Working directory, of rows by session and project. */
  cwd?: string | null;
  /** Whether messages of deleted sessions are counted. */
  vanished?: boolean;
}

export interface UsageParams {
  by?: Group;
  since?: string | null;
  until?: string | null;
  /** Only projects whose folder or working directory contains this. */
  project?: string | null;
  /** Only models whose name contains this. */
  model?: string | null;
  /** Days of this year; all without it. */
  year?: number | null;
}

export interface Waiting {
  key: string;
  session_id: string;
  on: ActivityState;
  detail: string | null;
  since: string | null;
}

/** A part of the active path. */
export interface Window {
  version: string;
  /** Number of entries on the active path. */
  entries: number;
  /** First position of the window. */
  from: number;
  /** Number of positions of the window. */
  count: number;
  /** Position that shows `line`. */
  position?: number | null;
  items: PositionedItem[];
}

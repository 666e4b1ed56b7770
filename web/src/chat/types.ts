// Types of the chat paths of the HTTP API.
import type { ContextReference } from "../api/model.ts";

export interface Agent {
  name: string;
  path: string | null;
  version: string | null;
  usable: boolean;
  /** Why it cannot be used. */
  reason: string | null;
  /** Folder that it always works in; `null` if the user chooses one. */
  cwd: string | null;
}

/** What a new chat can be started with. */
export interface Setup {
  agents: Agent[];
  default_agent: string | null;
  default_model: string | null;
  default_permission_mode: string;
  /** Folders of recent sessions. */
  folders: string[];
  cwd: string | null;
  is_trusted: boolean;
}

export interface StartOptions {
  agent?: string;
  model?: string;
  permission_mode?: string;
  cwd: string;
  /** Key of the session to go on with. */
  resume?: string;
  /** UUID of the last message that is kept. */
  resume_at?: string;
  /** Writes to a new session instead of the resumed one. */
  fork?: boolean;
  /** Records the API calls. */
  capture?: boolean;
  trust?: boolean;
  /** Starts although another program seems to run a turn in the session. */
  ignore_live?: boolean;
}

export type ChatState = "starting" | "idle" | "running" | "compacting" | "ended";

export type EndReason = "stopped" | "idle" | "server_stopped" | "exited" | "start_failed" | "failed";

export interface Suggestion {
  /** What is allowed from now on, such as "always allow `git status`". */
  label: string;
}

/** A request of the agent that waits for the user. */
export interface Prompt {
  id: string;
  kind: "permission" | "question" | "plan" | "elicitation";
  tool_name: string;
  tool_use_id: string | null;
  input: unknown;
  description: string | null;
  reason: string | null;
  suggestions: Suggestion[];
  blocked_path: string | null;
  since: string;
  agent_id: string | null;
}

export interface Todo {
  content: string;
  status: string;
  active_form: string | null;
}

export interface SlashCommand {
  name: string;
  description: string;
  argument_hint: string;
}

export interface ModelChoice {
  value: string;
  display_name: string;
  description: string;
}

export interface QueuedMessage {
  uuid: string;
  text: string;
}

/** A running agent and what is known of it. */
export interface Chat {
  id: string;
  /** Key of its session. */
  key: string;
  session_id: string;
  cwd: string;
  agent: string;
  agent_version: string | null;
  model: string | null;
  permission_mode: string;
  state: ChatState;
  ended: { reason: EndReason; message: string; stderr: string[] } | null;
  started_at: string;
  turn_started_at: string | null;
  cost_usd: number;
  tokens: { input: number; output: number };
  queued: QueuedMessage[];
  prompts: Prompt[];
  commands: SlashCommand[];
  models: ModelChoice[];
  modes: string[];
  todos: Todo[];
  /** UUID of the last entry that is still part of the conversation, after a rewind and until the next message. */
  rewound_to: string | null;
  capture: { path: string; calls: number } | null;
}

/** A block of a response that is not in the session file yet. */
export interface PartialBlock {
  message_id: string;
  index: number;
  kind: "text" | "thinking" | "tool_use";
  /** Text so far; JSON of the input for a tool call. */
  text: string;
  tool_name?: string | null;
  tool_use_id?: string | null;
  /** Id of the tool call that started the subagent; `null` for the main conversation. */
  agent: string | null;
  is_complete: boolean;
}

export interface Note {
  level: string;
  text: string;
}

export type ChatEvent =
  | { type: "snapshot"; chat: Chat; partial: PartialBlock[]; notes: Note[] }
  | { type: "chat"; chat: Chat }
  | { type: "block_start"; block: PartialBlock }
  | { type: "delta"; message_id: string; index: number; text: string }
  | { type: "block_end"; message_id: string; index: number }
  | { type: "message_end"; message_id: string }
  | { type: "withdrawn"; message_id: string }
  | { type: "tool_progress"; tool_use_id: string; elapsed_ms: number; text?: string | null }
  | ({ type: "note" } & Note)
  | { type: "ping" };

export interface ImageUpload {
  media_type: string;
  data: string;
}

export interface Message {
  text: string;
  contexts: ContextReference[];
  images: ImageUpload[];
}

export type Decision =
  | { decision: "allow"; input?: unknown; suggestion?: number; answers?: Record<string, string> }
  | { decision: "deny"; message?: string; interrupt?: boolean };

export interface RewindRequest {
  uuid: string;
  files: boolean;
  conversation: boolean;
  dry_run: boolean;
}

export interface RewindResult {
  can_rewind: boolean;
  error: string | null;
  /** Paths of the files that differ. */
  files: string[];
  insertions: number;
  deletions: number;
  chat: Chat | null;
}

export interface FileMatch {
  kind: "file" | "folder" | "symbol";
  path: string;
  name: string;
  line: number | null;
  /** Number of files in a folder. */
  file_count?: number | null;
  /** Kind of a symbol, such as `function`. */
  symbol_kind?: string | null;
  /** Places in `path` that matched, for emphasis. */
  positions: number[];
}

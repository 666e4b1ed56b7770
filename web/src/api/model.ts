// Shapes of the HTTP API of `quipu serve`.

export interface TokenCounts {
  input: number;
  output: number;
  cache_write_5m: number;
  cache_write_1h: number;
  cache_read: number;
}

export interface SessionRow {
  /** Names the session in addresses: its id, or `PROJECT:ID` if several sessions have the id. */
  key: string;
  /** Without the index there are no counts yet. */
  is_indexed?: boolean;
  size_bytes?: number | null;
  session_id: string;
  project: string;
  cwd: string | null;
  path: string;
  title: string | null;
  first_prompt: string | null;
  started_at: string | null;
  ended_at: string | null;
  turns: number;
  messages: number;
  models: string[];
  tokens: TokenCounts;
  cost_usd: number;
  unpriced_models: string[];
  compacted: boolean;
  forked_from: string | null;
  continues?: string | null;
  subagents: number;
  git_branch: string | null;
  version: string | null;
  live?: boolean;
  waiting?: string | null;
  /** Text of the question, first line of the plan, or name of the tool that it waits for. */
  activity_detail?: string | null;
  tags?: string[];
  starred?: boolean;
}

export interface Status {
  version: string;
  claude_dirs: string[];
  demo: boolean;
  language?: string | null;
  theme?: string | null;
  time_zone?: string | null;
  index: { state: "ready" | "updating"; sessions: number };
}

export interface Overview {
  projects: { project: string; cwd: string | null; sessions: number; last_at: string | null; cost_usd: number }[];
  recent: SessionRow[];
  live: SessionRow[];
  waiting: { key: string; session_id: string; on: string; detail?: string | null; since: string | null }[];
  today: { cost_usd: number; messages: number; sessions: number };
  yesterday_cost_usd: number;
}

/** A turn as the skeleton of a session knows it. */
export interface Turn {
  turn: number;
  /** Position of the prompt. */
  position: number;
  entries: number;
  line: number;
  prompt: string | null;
  started_at: string | null;
}

/** What a turn cost and did: known once the whole file was read. */
export interface TurnFigures {
  turn: number;
  duration_ms: number | null;
  cost_usd: number | null;
  tokens?: TokenCounts;
  tool_calls: number;
  failed_tool_calls: number;
}

export interface Problem {
  code: string;
  line: number | null;
  message: string;
}

export interface SessionDetail {
  /** `null` if the index does not know the session yet. */
  session: SessionRow | null;
  path: string;
  headline: string | null;
  version: string;
  entries: number;
  turns: Turn[];
  branches: { branch: number; position: number; entries: number; line: number }[];
  compactions: { position: number; line: number }[];
  problems: Problem[];
  subagents: {
    agent_id: string | null;
    agent_type: string | null;
    description: string | null;
    tool_use_id: string | null;
    entries: number;
  }[];
}

export interface ContextReference {
  type: string;
  [field: string]: unknown;
}

export interface ToolCall {
  id: string;
  name: string;
  input: unknown;
  status: "pending" | "success" | "failed";
  result?: unknown;
  /** The structured output that the agent stored beside the result. */
  output?: unknown;
  subagent?: { agent_id: string | null; entries?: number };
  /** Time of the result. */
  finished_at?: string | null;
}

export type ItemKind =
  | "user"
  | "assistant"
  | "thinking"
  | "tool"
  | "image"
  | "hook"
  | "system"
  | "summary"
  | "attachment"
  | "branch"
  | "unknown"
  | "problem";

export interface Item {
  uuid: string | null;
  kind: ItemKind;
  timestamp: string | null;
  text?: string;
  contexts?: ContextReference[];
  tool?: ToolCall;
  source?: { type: string; media_type?: string; data?: string; url?: string };
  derived_from?: string;
  model?: string;
  is_error?: boolean;
  branch?: number;
  items?: number;
  /** Place of the entry on the active path; several items of one entry share it. */
  position?: number;
  line?: number;
  /** Long texts of this item were shortened; the whole item is loaded on request. */
  cut?: boolean;
}

/** The items of `count` positions from `from`. */
export interface ItemWindow {
  version: string;
  entries: number;
  from: number;
  count: number;
  /** Position of the requested line. */
  position?: number;
  items: Item[];
}

export interface FileChange {
  path: string;
  status?: string;
  diff: string;
  added: number;
  removed: number;
}

export interface SearchHit {
  key?: string;
  session_id: string;
  uuid: string | null;
  line: number;
  timestamp: string | null;
  role: string | null;
  tool: string | null;
  snippet: string;
  score: number;
  project?: string | null;
  agent?: string | null;
}

export interface UsageRow {
  key: string;
  /** Address of the session, in reports by session. */
  session_key?: string;
  models: string[];
  input_tokens: number;
  output_tokens: number;
  cache_write_5m_tokens: number;
  cache_write_1h_tokens: number;
  cache_read_tokens: number;
  web_searches: number;
  messages: number;
  cost_usd: number;
  cache_savings_usd?: number;
  unpriced_models: string[];
  title?: string | null;
  cwd?: string | null;
  vanished?: boolean;
}

export type UsageTotals = Omit<UsageRow, "key">;

export interface UsageReport {
  rows: UsageRow[];
  totals: UsageTotals;
}

export interface Explanation {
  session_id: string;
  wall_ms: number;
  cost_usd: number;
  is_reconstructed?: boolean;
  time: {
    model: number;
    tools: Record<string, number>;
    waiting: number;
    hooks: number;
    retries: number;
    compaction: number;
    idle: number;
  };
  money: {
    turns: { turn: number; prompt: string; line: number; calls: number; tokens: TokenCounts; cost_usd: number }[];
    tools: Record<string, number>;
    agents: Record<string, number>;
    mcp: Record<string, number>;
    side: Record<string, number>;
  };
  moments: {
    turn: number;
    line: number;
    model: string;
    agent: string | null;
    tools: string[];
    tokens: TokenCounts;
    cost_usd: number;
  }[];
  cache: {
    by_cause: Record<string, { misses: number; tokens: number; cost_usd: number; advice: string }>;
    calls: number;
    billed_usd: number;
    what_if: { policy: string; cost_usd: number }[];
  };
  context: { turn: number; line: number; tokens: number; cache_read: number }[];
  filled_by: { source: string; count: number; bytes: number }[];
  advice: { text: string; saves_usd: number }[];
}

export interface Call {
  id: string;
  started_at: string | null;
  duration_ms: number | null;
  model: string;
  status: number | null;
  branch: string;
  turn: number | null;
  usage: TokenCounts;
  cost_usd: number | null;
  anatomy: { part: string; tokens: number; bytes: number; changed: boolean }[];
}

export interface CallBranch {
  id: string;
  kind: string;
  parent: string | null;
  forked_at: string | null;
  reason: string;
  agent_id?: string | null;
  calls: string[];
}

export interface CallTrace {
  sessions: {
    session_id: string;
    branches: CallBranch[];
    turns: { prompt: string; calls: string[]; tools: string[]; tokens: TokenCounts; cost_usd: number }[];
  }[];
  calls: Call[];
}

export interface CacheVerdict {
  call: string;
  branch: string;
  read: number;
  written: number;
  expected_read: number;
  is_estimate?: boolean;
  miss: null | { cause: string; at: string | null; tokens: number; cost_usd: number; advice: string };
}

export interface CallDifference {
  from: string;
  to: string;
  differences: { at: string; change: string; old: string | null; new: string | null }[];
}

export interface Settings {
  language?: string | null;
  theme?: string | null;
  claude_dirs?: string[];
  prices?: string | null;
  [field: string]: unknown;
}

export type ServerEvent =
  | { type: "sessions" }
  | { type: "session"; key: string }
  | { type: "activity"; key: string; live: boolean; waiting: string | null }
  | { type: "index"; state: string }
  | { type: "ping" };

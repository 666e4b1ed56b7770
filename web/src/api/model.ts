// The page's names for the types of the HTTP API. The types are generated from those of the server.
import type * as api from "./types/api.ts";

export type { FileChange, ItemKind, Match, Overview, Problem, Settings, Status, TurnTimelines } from "./types/api.ts";
export type TokenCounts = api.Tokens;
export type SessionRow = api.ShownSession;
export type SessionList = api.SessionPage;
export type SessionDetail = api.SessionStructure;
export type Turn = api.SessionTurn;
export type TurnFigures = api.TurnFigure;
export type ToolCall = api.ToolCard;

/** A thing that the user attached to a prompt. */
export interface ContextReference {
  type?: string;
  [field: string]: unknown;
}

/** One item of a conversation; items of a branch that was left have no position. */
export interface Item extends Omit<api.PositionedItem, "position" | "contexts"> {
  position?: number;
  contexts?: ContextReference[];
  /** Long texts of this item were shortened; the whole item is loaded on request. */
  cut?: boolean;
}

/** The items of `count` positions from `from`. */
export interface ItemWindow extends Omit<api.Window, "items"> {
  items: Item[];
}

export type SearchHit = api.FoundHit;
export type SearchAnswer = api.Found;
export type UsageTotals = api.UsageFields;
/** A row of a usage report, which has a key; the totals have none. */
export type UsageRow = api.UsageFields & { key: string };
export interface UsageReport {
  rows: UsageRow[];
  totals: UsageTotals;
}
export type Explanation = api.Report;
export type Call = api.CallRow;
export type CallBranch = api.BranchRow;
export type CallTrace = api.CallsDocument;
export type CacheVerdict = api.CacheRow;
export type CacheDocument = api.CacheDocument;
export type CallDifference = api.CallDiff;
export type ServerEvent = api.Event;

import type { Item } from "../api/model.ts";
import type { ChatModel } from "../chat/chat.svelte.ts";
import type { SessionModel } from "./session.svelte.ts";

/** What can be done with a message besides reading it. */
export interface MessageActions {
  fork: (item: Item) => void;
  continueFrom: (item: Item) => void;
  rewind: (item: Item) => void;
}

/** What an item needs to know of the conversation it is in: the session itself, or that of a subagent in it. */
export interface Conversation {
  session: SessionModel;
  /** Working folder of the session; paths below it are shown without it. */
  folder: string | null;
  isLive: boolean;
  /** Id of the subagent, or of the tool call that started it; `null` in the session's own conversation. */
  agent: string | null;
  /** How deep subagents are nested. */
  depth: number;
  /** The chat of the session, with what its agent is writing. */
  chat?: ChatModel;
  actions?: MessageActions;
  /** UUID of the last entry that the next message follows, if that is not the last one. */
  rewoundTo?: string | null;
}

/** A key that stays with an item when positions change. */
export function itemKey(item: Item): string {
  return item.tool?.id ?? item.uuid ?? `${item.kind}-${item.line ?? item.position ?? 0}`;
}

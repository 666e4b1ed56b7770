import type { Item } from "../api/model.ts";
import type { LiveBlock } from "./blocks.svelte.ts";
import type { SentMessage } from "./chat.svelte.ts";

const KINDS = { text: "assistant", thinking: "thinking", tool_use: "tool" } as const;

/**
 * Whether the session file has a block that was streamed. A tool call is known by its id, other blocks by their
 * message and index, or by how many blocks of their kind precede them: not every entry has an index.
 */
export function isInFile(block: LiveBlock, items: Item[]): boolean {
  if (block.kind === "tool_use") return items.some((item) => item.tool?.id === block.toolUseId);
  const written = items.filter((item) => item.message_id === block.messageId && item.kind === KINDS[block.kind]);
  return written.length > block.ordinal || written.some((item) => item.block_index === block.index);
}

/** The UUID of the entry that an item shows. */
export function entryUuid(item: Item): string | null {
  return item.derived_from ?? item.uuid;
}

/** Whether a message that was sent is among these items. */
export function isSameMessage(message: SentMessage, items: Item[]): boolean {
  return message.uuid !== null && items.some((item) => entryUuid(item) === message.uuid);
}

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Item } from "../api/model.ts";
import { LiveBlocks } from "./blocks.svelte.ts";
import { isInFile } from "./in_file.ts";
import type { PartialBlock } from "./types.ts";

const block = (index: number, kind: PartialBlock["kind"], more: Partial<PartialBlock> = {}): PartialBlock => ({
  message_id: "m1",
  index,
  kind,
  text: "",
  agent: null,
  is_complete: false,
  ...more,
});
const item = (kind: Item["kind"], more: Partial<Item> = {}): Item => ({
  uuid: "u",
  kind,
  timestamp: null,
  line: 1,
  message_id: "m1",
  ...more,
});

let frames: (() => void)[] = [];
beforeEach(() => {
  frames = [];
  vi.stubGlobal("requestAnimationFrame", (callback: () => void) => frames.push(callback));
  vi.stubGlobal("cancelAnimationFrame", () => {});
});
afterEach(() => vi.unstubAllGlobals());

test("text changes once a frame, however many deltas arrive", () => {
  const blocks = new LiveBlocks();
  blocks.receive({ type: "block_start", block: block(0, "text") });
  for (let index = 0; index < 100; index += 1)
    blocks.receive({ type: "delta", message_id: "m1", index: 0, text: "ab" });
  expect(blocks.list[0]?.text).toBe("");
  expect(frames).toHaveLength(1);
  frames[0]?.();
  expect(blocks.list[0]?.text).toBe("ab".repeat(100));
});

test("the end of a block shows all of its text", () => {
  const blocks = new LiveBlocks();
  blocks.receive({ type: "block_start", block: block(0, "text") });
  blocks.receive({ type: "delta", message_id: "m1", index: 0, text: "whole" });
  blocks.receive({ type: "block_end", message_id: "m1", index: 0 });
  expect(blocks.list[0]).toMatchObject({ text: "whole", isComplete: true });
});

test("a response that was withdrawn disappears, and only that one", () => {
  const blocks = new LiveBlocks();
  blocks.receive({ type: "block_start", block: block(0, "text", { text: "wrong" }) });
  blocks.receive({ type: "block_start", block: block(0, "text", { message_id: "m2", text: "right" }) });
  blocks.receive({ type: "withdrawn", message_id: "m1" });
  expect(blocks.list.map((known) => known.text)).toEqual(["right"]);
});

test("a snapshot replaces what was known", () => {
  const blocks = new LiveBlocks();
  blocks.receive({ type: "block_start", block: block(0, "text", { text: "old" }) });
  blocks.reset([block(0, "thinking", { text: "new", is_complete: true })]);
  expect(blocks.list.map((known) => [known.kind, known.text, known.isComplete])).toEqual([["thinking", "new", true]]);
});

test("a block is in the file when as many blocks of its kind are", () => {
  const blocks = new LiveBlocks();
  blocks.reset([block(0, "text"), block(1, "thinking"), block(2, "text")]);
  const [first, thinking, second] = blocks.list;
  if (!first || !thinking || !second) throw new Error("three blocks");
  const items = [item("user", { message_id: undefined }), item("assistant")];
  expect([first, thinking, second].map((known) => isInFile(known, items))).toEqual([true, false, false]);
  // The first one is gone by now; the second one is still the second of its message.
  blocks.remove((known) => known === first);
  expect(isInFile(second, items)).toBe(false);
  expect(isInFile(second, [...items, item("assistant")])).toBe(true);
});

test("a block is in the file when an item has its index", () => {
  const blocks = new LiveBlocks();
  blocks.reset([block(1, "text"), block(3, "text"), block(5, "text")]);
  const items = [item("assistant", { block_index: 3 })];
  expect(blocks.list.map((known) => isInFile(known, items))).toEqual([true, true, false]);
});

test("a tool call is in the file when its card is", () => {
  const blocks = new LiveBlocks();
  blocks.reset([block(0, "tool_use", { tool_name: "Bash", tool_use_id: "t1" })]);
  const [call] = blocks.list;
  if (!call) throw new Error("one block");
  expect(isInFile(call, [item("tool", { tool: { id: "t0", name: "Bash", input: {}, status: "pending" } })])).toBe(
    false,
  );
  expect(isInFile(call, [item("tool", { tool: { id: "t1", name: "Bash", input: {}, status: "pending" } })])).toBe(true);
});

test("of a subagent the last message is kept, of the main agent all", () => {
  const blocks = new LiveBlocks();
  for (const message_id of ["m1", "m2"])
    for (const agent of [null, "t1"])
      blocks.receive({ type: "block_start", block: block(0, "text", { message_id: `${message_id}${agent}`, agent }) });
  expect(blocks.list.map((known) => known.messageId)).toEqual(["m1null", "m2null", "m2t1"]);
});

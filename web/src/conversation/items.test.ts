import { expect, test } from "vitest";
import type { Item, ItemWindow } from "../api/model.ts";
import { readGroup } from "./groups.ts";
import { byPosition, ItemStore } from "./items.svelte.ts";

/** A conversation in which every second position shows nothing, as tool results do. */
function server(entries: number) {
  const state = { entries, version: "1", requests: [] as [number, number][], prefix: "a", pending: -1 };
  const load = async (from: number | null, count: number): Promise<ItemWindow> => {
    const first = from ?? Math.max(0, state.entries - count);
    const end = Math.min(state.entries, first + count);
    state.requests.push([first, end - first]);
    const items: Item[] = [];
    for (let position = first; position < end; position += 1) {
      if (position % 2) continue;
      const status = position === state.pending ? "pending" : "success";
      items.push({
        uuid: `${state.prefix}${position}`,
        kind: "tool",
        timestamp: null,
        position,
        line: position + 1,
        tool: { id: `t${position}`, name: "Bash", input: {}, status },
      });
    }
    return { version: state.version, entries: state.entries, from: first, count: end - first, items };
  };
  return { state, store: new ItemStore(load) };
}

test("a session opens with its last items", async () => {
  const { store, state } = server(1000);
  await store.open();
  expect(state.requests).toEqual([[936, 64]]);
  expect(store.at(998)?.[0]?.uuid).toBe("a998");
  expect(store.at(999)).toEqual([]);
  expect(store.at(0)).toBeUndefined();
});

test("only what is missing around the screen is loaded", async () => {
  const { store, state } = server(1000);
  await store.open();
  state.requests.length = 0;
  await store.want(920, 950);
  expect(state.requests).toEqual([[896, 40]]);
});

test("memory follows the screen, not the session", async () => {
  const { store } = server(20_000);
  await store.open();
  for (let position = 0; position < 20_000; position += 60) await store.want(position, position + 30);
  expect(store.held).toBeLessThan(1000);
  expect(store.at(19_980)).toBeDefined();
  expect(store.at(0)).toBeUndefined();
});

test("appended items are counted and pending calls are read again", async () => {
  const { store, state } = server(100);
  state.pending = 60;
  await store.open();
  expect(store.at(60)?.[0]?.tool?.status).toBe("pending");
  Object.assign(state, { entries: 110, version: "2", pending: -1 });
  expect(await store.grow()).toEqual({ added: 5, isReset: false });
  expect(store.at(60)?.[0]?.tool?.status).toBe("success");
  expect(store.entries).toBe(110);
});

test("a rewind invalidates what was held", async () => {
  const { store, state } = server(100);
  await store.open();
  Object.assign(state, { prefix: "b", version: "2" });
  expect(await store.grow()).toEqual({ added: 0, isReset: true });
  expect(store.at(40)).toBeUndefined();
  expect(store.at(98)?.[0]?.uuid).toBe("b98");
});

test("a failed request is an error of the store and not an endless loop", async () => {
  const store = new ItemStore(async (from) => {
    if (from === null) return { version: "1", entries: 100, from: 99, count: 1, items: [] };
    throw new Error("gone");
  });
  await store.open();
  await store.want(0, 20);
  expect(store.error).toBeInstanceOf(Error);
});

const read = (position: number, status: "success" | "failed" = "success"): Item => ({
  uuid: null,
  kind: "tool",
  timestamp: null,
  position,
  line: position + 1,
  tool: { id: `r${position}`, name: "Read", input: {}, status },
});

test("three or more reads are one group; empty positions do not interrupt it", () => {
  const rows = new Map<number, Item[]>([
    [0, [read(0)]],
    [1, []],
    [2, [read(2)]],
    [3, []],
    [4, [read(4)]],
    [5, []],
    [6, [read(6, "failed")]],
    [7, [read(7)]],
  ]);
  const at = (position: number) => rows.get(position);
  const group = (position: number) => readGroup(at, rows.get(position)?.[0] as Item);
  expect(group(0)).toEqual({ role: "first", count: 3 });
  expect(group(2)).toEqual({ role: "rest", first: rows.get(0)?.[0] });
  expect(group(4)).toMatchObject({ role: "rest" });
  expect(group(6)).toEqual({ role: "single" });
  expect(group(7)).toEqual({ role: "single" });
});

test("what follows the last entry is shown behind it", async () => {
  const problem: Item = { uuid: null, kind: "problem", timestamp: null, text: "torn", position: 3, line: 9 };
  const windows: [number | null, number][] = [];
  const store = new ItemStore(async (from, count) => {
    windows.push([from, count]);
    const first = from ?? 0;
    return { version: "1", entries: 3, from: first, count: Math.min(count, 3 - first), items: [problem] };
  });
  await store.open();
  expect(store.at(3)).toEqual([problem]);
  await store.want(0, 3);
  expect(windows).toEqual([[null, 64]]);
});

test("a file without any entry still shows its problems", () => {
  const problem: Item = { uuid: null, kind: "problem", timestamp: null, text: "not JSON", position: 0, line: 1 };
  expect(byPosition({ version: "1", entries: 0, from: 0, count: 0, items: [problem] }).get(0)).toEqual([problem]);
});

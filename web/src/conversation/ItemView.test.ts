import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Item } from "../api/model.ts";
import type { Conversation } from "./conversation.ts";
import ItemView from "./ItemView.svelte";
import { SessionModel } from "./session.svelte.ts";

let root: HTMLElement;
let view: Record<string, unknown> | undefined;

beforeEach(() => {
  root = document.createElement("div");
  document.body.append(root);
});

afterEach(async () => {
  if (view) await unmount(view);
  root.remove();
});

function show(item: Partial<Item>): HTMLElement {
  const conversation: Conversation = {
    session: new SessionModel("s"),
    folder: "/p",
    isLive: false,
    agent: null,
    depth: 0,
  };
  view = mount(ItemView, {
    target: root,
    props: { item: { uuid: "u", kind: "user", timestamp: null, line: 3, ...item } as Item, conversation },
  });
  flushSync();
  return root;
}

const tool = (name: string, input: unknown, more: object = {}) => ({
  kind: "tool" as const,
  tool: { id: "t", name, input, status: "success" as const, ...more },
});

test("a prompt is text, never markup", () => {
  expect(show({ text: "<b>hello</b> **x**" }).querySelector(".text")?.textContent).toBe("<b>hello</b> **x**");
});

test("what was attached to a prompt is shown above it", () => {
  const tags = show({
    text: "x",
    contexts: [
      { type: "FileReference", path: "src/draw.py" },
      { type: "FolderReference", path: "names", fileCount: 3 },
    ],
  });
  expect([...tags.querySelectorAll(".chip")].map((chip) => chip.textContent?.trim())).toEqual([
    "draw.py",
    "names3 files",
  ]);
});

test("a successful call is one line until it is opened", () => {
  const card = show(tool("Bash", { command: "ls" }, { result: "a\nb", output: { stdout: "a\nb", stderr: "" } }));
  expect(card.querySelector(".body")).toBeNull();
  card.querySelector<HTMLButtonElement>(".line")?.click();
  flushSync();
  expect(card.querySelector(".body")?.textContent).toContain("a\nb");
});

test("a failed call is open, and says so in words", () => {
  const card = show(tool("Bash", { command: "make" }, { status: "failed", result: "Exit code 2\nno rule" }));
  expect(card.querySelector(".line")?.textContent).toContain("failed");
  expect(card.querySelector(".body")?.textContent).toContain("no rule");
});

test("a tool without a card shows its input and its unknown result as JSON", () => {
  const card = show(
    tool(
      "<img src=x onerror=alert(1)>",
      { scene: "beach" },
      { status: "failed", result: [{ type: "hologram", frames: 3 }] },
    ),
  );
  expect(card.querySelector("img")).toBeNull();
  expect(card.querySelector(".name")?.textContent).toBe("<img src=x onerror=alert(1)>");
  expect(card.querySelector(".body")?.textContent).toContain('"hologram"');
});

test("an unknown line is named and can be opened", () => {
  const item = show({ kind: "unknown", text: '{"type":"sketch","strokes":[1]}' });
  expect(item.textContent).toContain("sketch");
  item.querySelector<HTMLButtonElement>(".unknown > button")?.click();
  flushSync();
  expect(item.querySelector(".code")?.textContent).toContain('"strokes"');
});

test("a pending call of a session that is not live has no result, not a pulse", () => {
  expect(show(tool("Bash", {}, { status: "pending" })).textContent).toContain("no result");
  expect(root.querySelector(".pulse")).toBeNull();
});

test("a branch loads its items when it is opened", async () => {
  const answer = {
    version: "1",
    entries: 1,
    from: 0,
    count: 1,
    items: [{ uuid: "b", kind: "user", timestamp: null, text: "other way" }],
  };
  const fetch = vi.spyOn(globalThis, "fetch").mockResolvedValue(new Response(JSON.stringify(answer)));
  const item = show({ kind: "branch", branch: 1, items: 1 });
  expect(fetch).not.toHaveBeenCalled();
  item.querySelector<HTMLButtonElement>(".branch > button")?.click();
  flushSync();
  await vi.waitFor(() => expect(item.textContent).toContain("other way"));
  expect(String(fetch.mock.calls[0]?.[0])).toBe("/api/sessions/s/items?branch=1");
  fetch.mockRestore();
});

test("every item can be copied, linked to and seen as JSON", () => {
  for (const kind of ["user", "assistant", "thinking", "hook", "system", "summary", "unknown", "problem"] as const) {
    root.replaceChildren();
    expect(show({ kind, text: "x" }).querySelectorAll(".actions button")).toHaveLength(3);
  }
});

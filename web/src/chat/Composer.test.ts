import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import Composer from "./Composer.svelte";
import { Draft } from "./draft.svelte.ts";
import { fakeServer } from "./fake.ts";

let root: HTMLElement;
let view: Record<string, unknown>;
let draft: Draft;
const submit = vi.fn();
const interrupt = vi.fn();
const recall = vi.fn();

beforeEach(() => {
  localStorage.clear();
  vi.clearAllMocks();
  draft = new Draft("s1");
  root = document.createElement("div");
  document.body.append(root);
});
afterEach(async () => {
  await unmount(view);
  root.remove();
  vi.restoreAllMocks();
});

function show(more: { isRunning?: boolean } = {}): HTMLTextAreaElement {
  const commands = [
    { name: "compact", description: "Summarise the conversation", argument_hint: "" },
    { name: "context", description: "Show what fills the context", argument_hint: "" },
  ];
  const props = {
    draft,
    cwd: "/work",
    commands,
    isRunning: false,
    placeholder: "",
    submit,
    interrupt,
    recall,
    ...more,
  };
  view = mount(Composer, { target: root, props });
  flushSync();
  const input = root.querySelector("textarea");
  if (!input) throw new Error("no input");
  input.focus();
  return input;
}

function press(input: HTMLElement, key: string, more: KeyboardEventInit = {}): KeyboardEvent {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more });
  input.dispatchEvent(event);
  flushSync();
  return event;
}

function write(input: HTMLTextAreaElement, text: string) {
  input.value = text;
  input.setSelectionRange(text.length, text.length);
  input.dispatchEvent(new Event("input", { bubbles: true }));
  flushSync();
}

const options = () => [...root.querySelectorAll('[role="option"]')].map((option) => option.textContent?.trim() ?? "");

test("Enter sends; Shift-Enter and an empty message do not", () => {
  const input = show();
  press(input, "Enter");
  write(input, "hello");
  expect(press(input, "Enter", { shiftKey: true }).defaultPrevented).toBe(false);
  expect(submit).not.toHaveBeenCalled();
  press(input, "Enter");
  expect(submit).toHaveBeenCalledTimes(1);
});

test("Enter that ends the composition of an input method does not send", () => {
  const input = show();
  write(input, "你好");
  press(input, "Enter", { isComposing: true });
  const last = new KeyboardEvent("keydown", { key: "Enter", bubbles: true });
  Object.defineProperty(last, "keyCode", { value: 229 });
  input.dispatchEvent(last);
  expect(submit).not.toHaveBeenCalled();
});

test("Escape interrupts a running turn", () => {
  press(show({ isRunning: true }), "Escape");
  expect(interrupt).toHaveBeenCalledTimes(1);
});

test("arrow up recalls earlier prompts, but not over a text that was written", async () => {
  const input = show();
  recall.mockResolvedValueOnce("the last prompt").mockResolvedValueOnce(null);
  press(input, "ArrowUp");
  await vi.waitFor(() => expect(draft.text).toBe("the last prompt"));
  press(input, "ArrowDown");
  await vi.waitFor(() => expect(draft.text).toBe(""));
  write(input, "mine");
  press(input, "ArrowUp");
  expect(recall.mock.calls).toEqual([[-1], [1]]);
});

test("a slash lists commands, and Tab takes one", async () => {
  const input = show();
  write(input, "/co");
  expect(options()).toEqual(["/compact Summarise the conversation", "/context Show what fills the context"]);
  press(input, "ArrowDown");
  press(input, "Tab");
  await vi.waitFor(() => expect(draft.text).toBe("/context "));
  expect(submit).not.toHaveBeenCalled();
});

test("@ finds files; the one that is chosen becomes a tag and leaves the text", async () => {
  const match = { kind: "file", path: "src/main.rs", name: "main.rs", line: null, positions: [4, 5] };
  const sent = fakeServer({ "GET files": { matches: [match], is_complete: true } });
  const input = show();
  write(input, "explain @ma");
  await vi.waitFor(() => expect(options()).toContain("main.rs src"));
  expect(sent[0]?.request).toBe("GET files?cwd=%2Fwork&q=ma&limit=30");
  expect(root.querySelector(".label b")?.textContent).toBe("ma");
  press(input, "Enter");
  await vi.waitFor(() => expect(draft.contexts).toHaveLength(1));
  flushSync();
  expect(draft.text).toBe("explain ");
  expect(root.querySelector(".chip")?.textContent).toContain("main.rs");
  root.querySelector<HTMLButtonElement>(".chip button")?.click();
  expect(draft.contexts).toEqual([]);
});

test("the button offers every kind of context", async () => {
  fakeServer({ "GET files": { matches: [], is_complete: true } });
  show();
  root.querySelector<HTMLButtonElement>(".add")?.click();
  await vi.waitFor(() =>
    expect(options()).toEqual(["git diff", "git commit", "terminal output", "problems", "web address", "workspace"]),
  );
});

test("Escape closes the list before it interrupts", async () => {
  fakeServer({ "GET files": { matches: [], is_complete: true } });
  const input = show({ isRunning: true });
  write(input, "@");
  expect(options().length).toBeGreaterThan(0);
  press(input, "Escape");
  expect(options()).toEqual([]);
  expect(interrupt).not.toHaveBeenCalled();
});

test("a pasted image is attached, other files are not", async () => {
  const input = show();
  const paste = (name: string, type: string) => {
    const event = new Event("paste", { bubbles: true, cancelable: true });
    Object.defineProperty(event, "clipboardData", { value: { files: [new File(["abc"], name, { type })] } });
    input.dispatchEvent(event);
  };
  paste("a.png", "image/png");
  await vi.waitFor(() => expect(draft.images).toEqual([{ media_type: "image/png", data: "YWJj" }]));
  paste("a.svg", "image/svg+xml");
  expect(draft.images).toHaveLength(1);
});

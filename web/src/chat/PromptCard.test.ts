import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { SessionModel } from "../conversation/session.svelte.ts";
import { fakePrompt } from "./fake.ts";
import PromptCard from "./PromptCard.svelte";
import type { Prompt } from "./types.ts";

let root: HTMLElement;
let view: Record<string, unknown>;
const answer = vi.fn();
const leave = vi.fn();

beforeEach(() => {
  answer.mockReset().mockResolvedValue(undefined);
  root = document.createElement("div");
  document.body.append(root);
});
afterEach(async () => {
  await unmount(view);
  root.remove();
});

function show(prompt: Partial<Prompt> = {}): HTMLElement {
  const conversation = { session: new SessionModel("s1"), folder: "/work", isLive: true, agent: null, depth: 0 };
  view = mount(PromptCard, {
    target: root,
    props: { prompt: fakePrompt(prompt), more: 0, conversation, answer, leave },
  });
  flushSync();
  return root.querySelector("section") as HTMLElement;
}

const button = (text: string) =>
  [...root.querySelectorAll("button")].find((known) => known.textContent?.includes(text)) as HTMLButtonElement;

function press(target: HTMLElement, key: string) {
  target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  flushSync();
}

function write(input: HTMLInputElement | HTMLTextAreaElement, text: string) {
  input.value = text;
  input.dispatchEvent(new Event("input", { bubbles: true }));
  flushSync();
}

test("what would run is shown, and it can be allowed once", () => {
  const card = show();
  expect(card.textContent).toContain("git status");
  expect(card.textContent).toContain("Show the state");
  button("allow once").click();
  expect(answer).toHaveBeenCalledWith({ decision: "allow", suggestion: undefined });
});

test("the suggested rule is allowed for good", () => {
  show();
  button("always allow Bash(git status) in this project").click();
  expect(answer).toHaveBeenCalledWith({ decision: "allow", suggestion: 0 });
});

test.each([
  ["y", { decision: "allow", suggestion: undefined }],
  ["a", { decision: "allow", suggestion: 0 }],
  ["n", { decision: "deny", message: undefined }],
])("the key %s answers while the card has the focus", (key, decision) => {
  const card = show();
  press(card, key);
  expect(answer).toHaveBeenCalledWith(decision);
});

test("keys outside of the card and in its fields answer nothing", () => {
  show();
  press(document.body, "y");
  press(root.querySelector("input") as HTMLElement, "y");
  expect(answer).not.toHaveBeenCalled();
});

test("a denial can have a message", () => {
  show();
  write(root.querySelector("input") as HTMLInputElement, "use git log");
  button("deny").click();
  expect(answer).toHaveBeenCalledWith({ decision: "deny", message: "use git log" });
});

test("the command can be edited before it is allowed", () => {
  show({ input: { command: "rm a", description: "Remove" } });
  button("edit first").click();
  flushSync();
  write(root.querySelector("textarea") as HTMLTextAreaElement, "rm -i a");
  button("allow as edited").click();
  expect(answer).toHaveBeenCalledWith({ decision: "allow", input: { command: "rm -i a", description: "Remove" } });
});

test("an edited input that is no JSON is not sent", () => {
  show({ tool_name: "Write", input: { file_path: "/work/a", content: "x" } });
  button("edit first").click();
  flushSync();
  write(root.querySelector("textarea") as HTMLTextAreaElement, "{");
  button("allow as edited").click();
  flushSync();
  expect(answer).not.toHaveBeenCalled();
  expect(root.querySelector('[role="alert"]')?.textContent).toContain("no JSON");
});

test("an edit is shown as a diff, below its path", () => {
  const mode = { label: "set the mode", rules: [], behavior: null, mode: "acceptEdits", directories: [] };
  const suggestions = [{ ...mode, destination: "session" }];
  show({
    tool_name: "Edit",
    description: "a.rs",
    suggestions,
    input: { file_path: "/work/a.rs", old_string: "one", new_string: "two" },
  });
  expect(root.querySelector(".diff .removed")?.textContent).toContain("one");
  expect(root.querySelector(".diff .added")?.textContent).toContain("two");
  expect(root.querySelector(".prompt-body")?.textContent?.match(/a\.rs/g)).toHaveLength(1);
  button("allow all edits in this session").click();
  expect(answer).toHaveBeenCalledWith({ decision: "allow", suggestion: 0 });
});

const questions = [
  { question: "Which colour?", header: "Colour", options: [{ label: "red" }, { label: "blue" }], multiSelect: false },
  { question: "Which sizes?", options: [{ label: "S" }, { label: "M" }, { label: "L" }], multiSelect: true },
];

test("questions are answered together, by choice or in own words", () => {
  show({ kind: "question", tool_name: "AskUserQuestion", input: { questions } });
  expect(button("answer").disabled).toBe(true);
  const [red, blue, s, , l] = [
    ...root.querySelectorAll<HTMLInputElement>('input[type="radio"], input[type="checkbox"]'),
  ];
  red?.click();
  blue?.click();
  s?.click();
  l?.click();
  flushSync();
  button("answer").click();
  flushSync();
  expect(answer).toHaveBeenCalledWith({
    decision: "allow",
    answers: { "Which colour?": "blue", "Which sizes?": "S, L" },
  });
});

test("an own answer replaces a single choice", () => {
  show({ kind: "question", tool_name: "AskUserQuestion", input: { questions: questions.slice(0, 1) } });
  root.querySelector<HTMLInputElement>('input[type="radio"]')?.click();
  write(root.querySelector(".other") as HTMLInputElement, "green");
  button("answer").click();
  expect(answer).toHaveBeenCalledWith({ decision: "allow", answers: { "Which colour?": "green" } });
});

test("a plan is read, started, or sent back", () => {
  show({ kind: "plan", tool_name: "ExitPlanMode", input: { plan: "# Plan\n\n1. do it" }, suggestions: [] });
  expect(root.querySelector(".prompt-body")?.textContent).toContain("do it");
  write(root.querySelector("input") as HTMLInputElement, "also test it");
  button("keep planning").click();
  expect(answer).toHaveBeenCalledWith({ decision: "deny", message: "also test it" });
});

test("the form of an MCP server is filled in with values of its types", () => {
  const input = {
    type: "object",
    properties: { name: { type: "string", title: "Name" }, count: { type: "integer" }, fast: { type: "boolean" } },
    required: ["name"],
  };
  show({ kind: "elicitation", tool_name: "harbour", description: "Which harbour?", input });
  expect(root.textContent).toContain("Which harbour?");
  const [name, count, fast] = [...root.querySelectorAll("input")];
  write(name as HTMLInputElement, "Brest");
  write(count as HTMLInputElement, "3");
  fast?.click();
  flushSync();
  button("answer").click();
  expect(answer).toHaveBeenCalledWith({ decision: "allow", input: { name: "Brest", count: 3, fast: true } });
});

test("a card takes the focus from nothing, but not from the composer", async () => {
  const composer = document.createElement("textarea");
  document.body.append(composer);
  composer.focus();
  show();
  expect(document.activeElement).toBe(composer);
  await unmount(view);
  expect(leave).not.toHaveBeenCalled();
  composer.remove();
  const card = show();
  expect(document.activeElement).toBe(card);
});

import { expect, test } from "vitest";
import { foundContext, messageOf, problemsContext, terminalContext, webAddress, webContext } from "./context.ts";
import { Draft } from "./draft.svelte.ts";
import { rankCommands, triggerAt } from "./trigger.ts";

test.each([
  ["@", 1, { kind: "context", start: 0, query: "" }],
  ["see @src/ma", 11, { kind: "context", start: 4, query: "src/ma" }],
  ["看看@src", 6, { kind: "context", start: 2, query: "src" }],
  ["see @src more", 13, null],
  ["sam@example", 11, null],
  ["/com", 4, { kind: "command", start: 0, query: "com" }],
  ["/compact now", 12, null],
  ["a /com", 6, null],
] as const)("completion in %s", (text, caret, trigger) => {
  expect(triggerAt(text, caret)).toEqual(trigger);
});

test("commands that begin with the query come first", () => {
  const commands = ["context", "compact", "recompute"].map((name) => ({ name }));
  expect(rankCommands(commands, "comp").map(({ name }) => name)).toEqual(["compact", "recompute"]);
});

test("files, folders and symbols have the fields of their reference", () => {
  const match = {
    path: "src/main.rs",
    name: "main.rs",
    line: null,
    symbol_kind: null,
    file_count: null,
    positions: [],
  };
  expect(foundContext({ ...match, kind: "file" }, "/work/").reference).toEqual({
    type: "FileReference",
    path: "src/main.rs",
    fullPath: "/work/src/main.rs",
    displayType: "TAG",
  });
  expect(foundContext({ ...match, kind: "folder", path: "src", file_count: 3 }, "/work").reference).toEqual({
    type: "FolderReference",
    path: "src",
    fileCount: 3,
  });
  expect(
    foundContext({ ...match, kind: "symbol", name: "main", line: 7, symbol_kind: "FUNCTION" }, "/work").reference,
  ).toEqual({ type: "SymbolReference", name: "main", symbolType: "FUNCTION", file: "src/main.rs", line: 7 });
});

test("texts that are attached are sent in a code block that they cannot end", () => {
  const message = messageOf({
    text: " why? ",
    contexts: [terminalContext("one\n```\ntwo\n", true), webContext("https://example.com/a")],
    images: [],
  });
  expect(message.text).toBe("why?\n\nTerminal output:\n````\none\n```\ntwo\n````");
  expect(message.contexts).toEqual([
    { type: "TerminalReference", lines: 3, isError: true },
    { type: "WebReference", url: "https://example.com/a" },
  ]);
});

test("problems are counted by line", () => {
  expect(problemsContext("a.rs:1: error\n\nb.rs:2: error\n").reference).toEqual({
    type: "ProblemsReference",
    count: 2,
  });
});

test.each([
  ["example.com/a", "https://example.com/a"],
  ["http://localhost:3000", "http://localhost:3000"],
  ["javascript:alert(1)", null],
  ["main", null],
])("%s as a web address", (text, address) => {
  expect(webAddress(text)).toBe(address);
});

test("a draft is kept, without its images, until it is sent", () => {
  localStorage.clear();
  const draft = new Draft("s1");
  draft.text = "half a";
  draft.add(webContext("https://example.com/"));
  draft.add(webContext("https://example.com/"));
  draft.addImage({ media_type: "image/png", data: "AAAA" });
  draft.save();
  const restored = new Draft("s1");
  expect([restored.text, restored.contexts.length, restored.images.length]).toEqual(["half a", 1, 0]);
  expect(restored.take().text).toBe("half a");
  expect(new Draft("s1").isEmpty).toBe(true);
});

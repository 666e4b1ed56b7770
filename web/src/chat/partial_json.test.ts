import { expect, test } from "vitest";
import { parsePartialJson } from "./partial_json.ts";

test.each([
  ["", {}],
  ["{", {}],
  ['{"command', {}],
  ['{"command"', {}],
  ['{"command":', {}],
  ['{"command":"ls -', { command: "ls -" }],
  ['{"command":"echo \\', { command: "echo " }],
  ['{"command":"a\\u00', { command: "a" }],
  ['{"command":"ls","timeout":12', { command: "ls" }],
  ['{"command":"ls","timeout":12,', { command: "ls", timeout: 12 }],
  ['{"todos":[{"content":"a","status":"pen', { todos: [{ content: "a", status: "pen" }] }],
  ['{"todos":[{"content":"a"},{"cont', { todos: [{ content: "a" }, {}] }],
  ['{"a":"x, {y"}', { a: "x, {y" }],
])("%s", (text, value) => {
  expect(parsePartialJson(text)).toEqual(value);
});

test("every prefix of an input is read without an error", () => {
  const text = JSON.stringify({ a: 'say "hi" \\ \u{1f600}\n', b: [1, true, null, { c: -2.5e3 }], d: { e: [] } });
  for (let end = 0; end <= text.length; end += 1) parsePartialJson(text.slice(0, end));
  expect(parsePartialJson(text)).toEqual(JSON.parse(text));
});

test("a long input is not read to its end", () => {
  const text = `{"file_path":"/a","content":"${"x".repeat(1_000_000)}`;
  expect(parsePartialJson(text)).toMatchObject({ file_path: "/a" });
});

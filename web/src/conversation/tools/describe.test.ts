import { expect, test } from "vitest";
import type { ToolCall } from "../../api/model.ts";
import { amountOf, describeTool, durationOf, editLines } from "./describe.ts";
import { otherBlocks, resultImages, resultText } from "./values.ts";

const call = (name: string, input: unknown, more: Partial<ToolCall> = {}): ToolCall => ({
  id: "t",
  name,
  input,
  status: "success",
  ...more,
});

test.each<[ToolCall, string, string]>([
  [call("Read", { file_path: "/p/src/a.rs" }), "read", "src/a.rs"],
  [call("Edit", { file_path: "/p/a.rs" }), "diff", "a.rs"],
  [call("Bash", { command: "ls -la" }), "terminal", "ls -la"],
  [call("Grep", { pattern: "now", path: "src" }), "matches", "now  src"],
  [call("Task", { description: "look" }), "agent", "look"],
  [call("AskUserQuestion", { questions: [{ question: "A?" }, { question: "B?" }] }), "question", "A? · B?"],
  [call("ExitPlanMode", { plan: "# The plan\ntext" }), "plan", "The plan"],
  [call("HoloDeck", { scene: "beach" }), "plain", "beach"],
])("the one argument that matters", (tool, body, argument) => {
  expect(describeTool(tool, "/p")).toMatchObject({ body, argument });
});

test("an MCP tool is named without its server", () => {
  expect(describeTool(call("mcp__gauge__latest_reading", {}))).toMatchObject({
    label: "latest_reading",
    server: "gauge",
  });
});

test("names of object methods and strange inputs do not break a card", () => {
  for (const name of ["constructor", "toString", "__proto__", "<img src=x>"])
    expect(describeTool(call(name, null)).label).toBe(name);
  for (const input of [null, 3, "text", [1], { file_path: 7 }])
    expect(describeTool(call("Read", input)).argument).toBe("");
});

test("amounts", () => {
  expect(amountOf(call("Read", {}, { output: { file: { numLines: 12 } } }))).toEqual({
    key: "amount.lines",
    values: { n: 12 },
  });
  expect(amountOf(call("Bash", {}, { status: "failed", result: "Exit code 101\nno" }))).toEqual({
    key: "amount.exit",
    values: { code: "101" },
  });
  expect(amountOf(call("TodoWrite", { todos: [{ status: "completed" }, { status: "pending" }] }))).toEqual({
    key: "amount.done",
    values: { done: 1, all: 2 },
  });
  expect(amountOf(call("Edit", { old_string: "a", new_string: "b\nc" }))).toEqual({ diff: { added: 2, removed: 1 } });
});

test("an edit shows the stored hunks, or its own texts", () => {
  const stored = call(
    "Edit",
    { old_string: "x", new_string: "y" },
    { output: { structuredPatch: [{ oldStart: 5, newStart: 5, lines: ["-x", "+y"] }] } },
  );
  expect(editLines(stored).map((line) => line.old ?? line.new)).toEqual([5, 5]);
  const several = call("MultiEdit", {
    edits: [
      { old_string: "a", new_string: "b" },
      { old_string: "c", new_string: "d" },
    ],
  });
  expect(editLines(several).map((line) => line.kind)).toEqual(["removed", "added", "gap", "removed", "added"]);
});

test("durations come from the timestamps, then from the tool", () => {
  const start = "2026-01-01T00:00:00Z";
  expect(durationOf(call("Bash", {}, { finished_at: "2026-01-01T00:00:02Z", output: { durationMs: 9 } }), start)).toBe(
    2000,
  );
  expect(durationOf(call("WebSearch", {}, { output: { durationSeconds: 2.4 } }), start)).toBe(2400);
  expect(durationOf(call("Bash", {}), start)).toBeNull();
});

test("results are split into text, images that are safe to draw, and the rest", () => {
  const png = { type: "image", source: { type: "base64", media_type: "image/png", data: "AA==" } };
  const svg = { type: "image", source: { type: "base64", media_type: "image/svg+xml", data: "AA==" } };
  const result = [{ type: "text", text: "a" }, png, svg, { type: "hologram" }];
  expect(resultText(result)).toBe("a");
  expect(resultImages(result)).toHaveLength(1);
  expect(otherBlocks(result)).toEqual([svg, { type: "hologram" }]);
});

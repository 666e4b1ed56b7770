import { expect, test } from "vitest";
import { countChanges, diffLines, textDiffLines, unifiedDiffLines } from "./diff.ts";

test("hunks are numbered in both files", () => {
  const lines = diffLines([
    { oldStart: 3, newStart: 3, lines: [" a", "-b", "+c", "+d", "\\ No newline at end of file"] },
  ]);
  expect(lines.map((line) => [line.kind, line.old, line.new, line.text])).toEqual([
    ["context", 3, 3, "a"],
    ["removed", 4, null, "b"],
    ["added", null, 4, "c"],
    ["added", null, 5, "d"],
  ]);
  expect(countChanges(lines)).toEqual({ added: 2, removed: 1 });
});

test("a gap separates two hunks", () => {
  const hunk = { oldStart: 1, newStart: 1, lines: ["+a"] };
  expect(diffLines([hunk, hunk]).map((line) => line.kind)).toEqual(["added", "gap", "added"]);
});

test("two texts are compared line by line", () => {
  expect(countChanges(textDiffLines("a\nb\nc", "a\nB\nc"))).toEqual({ added: 1, removed: 1 });
});

test("a unified diff of a new file has only added lines", () => {
  const lines = unifiedDiffLines("--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n");
  expect(lines.map((line) => line.text)).toEqual(["a", "b"]);
});

import { expect, test } from "vitest";
import { ansiSpans, stripAnsi } from "./ansi.ts";

test("colours become classes", () => {
  expect(ansiSpans("a \u001b[1;32mok\u001b[0m b")).toEqual([
    { text: "a ", classes: "", color: null },
    { text: "ok", classes: "ansi-bold ansi-green", color: null },
    { text: " b", classes: "", color: null },
  ]);
});

test("24-bit and table colours are kept", () => {
  expect(ansiSpans("\u001b[38;2;1;2;3mx")[0]?.color).toBe("rgb(1 2 3)");
  expect(ansiSpans("\u001b[38;5;196mx")[0]?.color).toBe("rgb(255 0 0)");
  expect(ansiSpans("\u001b[38;5;2mx")[0]?.classes).toBe("ansi-green");
});

test("cursor movement, titles and hyperlinks are removed", () => {
  expect(stripAnsi("\u001b[2J\u001b[1;1Ha\u001b]0;title\u0007b\u001b]8;;javascript:x\u001b\\c")).toBe("abc");
});

test("a line that rewrites itself shows its last state", () => {
  expect(stripAnsi("10%\r50%\r100%\ndone\r\n")).toBe("100%\ndone\n");
});

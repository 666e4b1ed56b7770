import { expect, test } from "vitest";
import type { Call, CallBranch } from "../api/model.ts";
import { preferences } from "../state/preferences.svelte.ts";
import { colorOf, partText } from "./anatomy.ts";
import { layOut } from "./graph.ts";

const usage = { input: 0, output: 0, cache_write_5m: 0, cache_write_1h: 0, cache_read: 0 };
const call = (id: string, branch: string, second: number): Call => ({
  id,
  branch,
  started_at: `2026-01-01T00:00:0${second}Z`,
  duration_ms: 1,
  model: "m",
  status: 200,
  turn: 1,
  usage,
  cost_usd: 0,
  anatomy: [],
});
const branch = (id: string, parent: string | null): CallBranch => ({
  id,
  kind: "main",
  parent,
  forked_at: null,
  reason: "",
  agent_id: null,
  calls: [],
});

test("a subagent gets its own lane, which is free again when it ends", () => {
  const calls = [
    call("1", "main", 0),
    call("2", "agent", 1),
    call("3", "main", 2),
    call("4", "other", 3),
    call("5", "main", 4),
  ];
  const { rows, lanes } = layOut(calls, [branch("main", null), branch("agent", "main"), branch("other", "main")]);
  expect(lanes).toBe(2);
  expect(rows.map((row) => row.lane)).toEqual([0, 1, 0, 1, 0]);
  expect(rows.map((row) => row.from)).toEqual([null, 0, null, 0, null]);
  expect(rows[1]?.through).toEqual([
    { lane: 0, isStart: false, isEnd: false },
    { lane: 1, isStart: true, isEnd: true },
  ]);
});

test("parts of the context have the colour of the context", () => {
  expect(colorOf("context: reminders")).toBe(colorOf("context"));
  expect(colorOf("something")).toBe("var(--series-6)");
});

test("parts of a request have names in both languages, and one that the page does not know stays as it is", () => {
  preferences.set({ language: "zh" });
  expect(partText("context: reminders")).toBe("上下文: 提醒");
  expect(partText("context: news")).toBe("上下文: news");
  preferences.set({ language: "en" });
  expect(partText("context: reminders")).toBe("context: reminders");
  expect(partText("tools")).toBe("tools");
  expect(partText("weather")).toBe("weather");
  preferences.set({ language: "system" });
});

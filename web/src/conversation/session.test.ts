import { expect, test, vi } from "vitest";
import type { Turn } from "../api/model.ts";
import { SessionModel, turnAt, visibleRows } from "./session.svelte.ts";

const turn = (number: number, position: number): Turn => ({
  turn: number,
  position,
  entries: 0,
  line: position + 1,
  prompt: "",
  started_at: null,
});
const turns = [turn(1, 2), turn(2, 5), turn(3, 9)];

test("a position belongs to the turn that began last", () => {
  expect([0, 2, 4, 5, 100].map((position) => turnAt(turns, position)?.turn)).toEqual([undefined, 1, 1, 2, 3]);
  expect(turnAt([], 3)).toBeUndefined();
});

test("a folded turn keeps its prompt only", () => {
  expect(visibleRows(11, turns, new Set([2]))).toEqual([0, 1, 2, 3, 4, 5, 9, 10, 11]);
  expect(visibleRows(3, turns, new Set())).toEqual([0, 1, 2, 3]);
});

test("the outline, which may be large, is requested after the last screen", async () => {
  const requested: string[] = [];
  const answers: (() => void)[] = [];
  vi.stubGlobal("fetch", (address: string) => {
    requested.push(new URL(address, "http://localhost").pathname);
    const body = { entries: 0, from: 0, count: 0, version: "1", items: [], turns: [] };
    return new Promise((resolve) => answers.push(() => resolve(Response.json(body))));
  });
  const opened = new SessionModel("s").open();
  expect(requested).toEqual(["/api/sessions/s/items"]);
  answers[0]?.();
  await opened;
  expect(requested).toEqual(["/api/sessions/s/items", "/api/sessions/s"]);
  vi.unstubAllGlobals();
});

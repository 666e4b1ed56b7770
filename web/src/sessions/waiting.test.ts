import { expect, test } from "vitest";
import type { SessionRow } from "../api/model.ts";
import { isActive } from "./waiting.ts";

const now = Date.parse("2026-11-16T12:00:00Z");
const row = (hours: number, state: Partial<SessionRow>) =>
  ({ ended_at: new Date(now - hours * 3_600_000).toISOString(), live: false, waiting: null, ...state }) as SessionRow;

test("a session of this morning that waits for a prompt is active, one of last week is not", () => {
  expect(isActive(row(2, { waiting: "prompt" }), now)).toBe(true);
  expect(isActive(row(100, { waiting: "prompt", live: true }), now)).toBe(false);
});

test("a permission request of Friday is still there on Monday, one of last month is not", () => {
  expect(isActive(row(65, { waiting: "permission" }), now)).toBe(true);
  expect(isActive(row(24 * 40, { waiting: "permission", live: true }), now)).toBe(false);
});

test("a session that does nothing is not active", () => {
  expect(isActive(row(0, {}), now)).toBe(false);
});

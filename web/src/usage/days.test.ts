import { expect, test } from "vitest";
import { level, weeksOf } from "./cells.ts";
import { daysBack, fillDays } from "./days.ts";

const now = new Date(2026, 2, 3, 12);

test("days without usage are zero", () => {
  expect(daysBack(2, now)).toBe("2026-03-01");
  expect(fillDays([{ key: "2026-03-01", value: 2 }], "2026-02-27", now)).toEqual([
    { key: "2026-02-27", value: 0 },
    { key: "2026-02-28", value: 0 },
    { key: "2026-03-01", value: 2 },
    { key: "2026-03-02", value: 0 },
    { key: "2026-03-03", value: 0 },
  ]);
});

test("a year has all its days, in weeks that begin on Monday", () => {
  const days = weeksOf(2024).flat().filter(Boolean);
  expect(days).toHaveLength(366);
  expect([days[0], days.at(-1)]).toEqual(["2024-01-01", "2024-12-31"]);
  expect(weeksOf(2026)[0]).toEqual([null, null, null, "2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"]);
});

test("a day with any answer is visible", () => {
  expect([0, 1, 25, 50, 100].map((value) => level(value, 100))).toEqual([0, 1, 2, 3, 4]);
});

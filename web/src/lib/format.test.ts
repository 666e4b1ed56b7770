import { expect, test } from "vitest";
import { count, duration, modelName, money, percent, projectName, relativeTime, shortPath } from "./format.ts";

test("money is exact to the cent, and to the mill below one cent", () => {
  expect([0, 0.0002, 0.0034, 0.31326925, 12.5, 1234.5, -0.05, null].map(money)).toEqual([
    "$0",
    "<$0.001",
    "$0.003",
    "$0.31",
    "$12.50",
    "$1,235",
    "−$0.05",
    "–",
  ]);
});

test("counts are shortened at each thousand without showing 1000k", () => {
  expect([0, 999, 1000, 12_345, 99_949, 99_951, 999_499, 999_500, 4_560_000, 2.3e9].map(count)).toEqual([
    "0",
    "999",
    "1.0k",
    "12.3k",
    "99.9k",
    "100k",
    "999k",
    "1.0M",
    "4.6M",
    "2.3B",
  ]);
});

test("durations have at most two units", () => {
  expect([40, 12_000, 61_000, 3_600_000, 7_860_000, 100_000_000].map((ms) => duration(ms))).toEqual([
    "0.1 s",
    "12 s",
    "1 min 1 s",
    "1 h",
    "2 h 11 min",
    "1 d 3 h",
  ]);
});

test("times are relative for a month and dates after it", () => {
  const now = Date.parse("2026-11-16T12:00:00Z");
  expect(relativeTime("2026-11-16T11:55:00Z", "en", now)).toBe("5 min. ago");
  expect(relativeTime("2026-11-15T12:00:00Z", "en", now)).toBe("yesterday");
  expect(relativeTime("2026-03-01T12:00:00Z", "en", now)).toBe("Mar 1");
  expect(relativeTime("2025-03-01T12:00:00Z", "en", now)).toBe("Mar 1, 2025");
  expect(relativeTime("not a time", "en", now)).toBe("not a time");
});

test("paths below the session's folder are shown without it", () => {
  expect(shortPath("/home/sam/tidepool/src/main.rs", "/home/sam/tidepool")).toBe("src/main.rs");
  expect(shortPath("/home/sam/other/a.rs", "/home/sam/tidepool")).toBe("~/other/a.rs");
  expect(shortPath("/etc/hosts", null)).toBe("/etc/hosts");
});

test("projects and models have short names", () => {
  expect(projectName("/home/sam/抽奖", "-home-sam---")).toBe("抽奖");
  expect(projectName(null, "-home-sam-tidepool")).toBe("sam-tidepool");
  expect(modelName("claude-opus-5-5")).toBe("opus 5.5");
  expect(modelName("gpt-x")).toBe("gpt-x");
  expect(percent(0.046)).toBe("4.6 %");
});

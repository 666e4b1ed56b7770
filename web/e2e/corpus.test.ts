import { execFileSync } from "node:child_process";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ItemWindow, SessionRow } from "../src/api/model.ts";
import { byPosition } from "../src/conversation/items.svelte.ts";
import { corpusFiles, writeCorpus } from "./corpus.mjs";
import { TestPage } from "./page.ts";
import { findQuipu } from "./server.mjs";

// Published sessions of real programs. They are not in the repository.
const files = corpusFiles();
if (files.length === 0) console.warn("../shared/corpus is not here: NO PUBLISHED SESSION WAS OPENED in the page");
let at: TestPage;
let paths: string[] = [];
let rows: SessionRow[] = [];

async function get<T>(path: string): Promise<T> {
  const response = await fetch(`${at.server.origin}/api/${path}`, {
    headers: { authorization: `Bearer ${at.server.token}` },
  });
  expect(response.status, path).toBe(200);
  return (await response.json()) as T;
}

/** Items that the page would hold after scrolling through all of a session. */
async function countItems(key: string): Promise<number> {
  let count = 0;
  for (let from = 0, entries = 1; from < entries; from += 200) {
    const window = await get<ItemWindow>(`sessions/${encodeURIComponent(key)}/items?from=${from}&count=200`);
    entries = window.entries;
    for (const items of byPosition(window).values()) count += items.length;
  }
  return count;
}

beforeAll(async () => {
  if (files.length === 0) return;
  at = await TestPage.open((home) => {
    paths = writeCorpus(home, files);
  });
  rows = (await get<{ sessions: SessionRow[] }>("sessions?limit=1000")).sessions.filter((row) =>
    paths.includes(row.path),
  );
}, 300_000);
afterAll(() => at?.close());

test.skipIf(files.length === 0)(
  "every published session opens without an error",
  async () => {
    expect(rows.length).toBeGreaterThan(50);
    for (const row of rows) {
      const page = await at.go(`/s/${encodeURIComponent(row.key)}`);
      await page.locator(".scroller .item, .scroller .group, .empty").first().waitFor({ timeout: 20_000 });
      expect(at.faults, row.path).toEqual([]);
    }
    expect(at.foreign).toEqual([]);
  },
  600_000,
);

test.skipIf(files.length === 0)(
  "the page holds as many items as quipu show",
  async () => {
    for (const row of rows) {
      const shown = execFileSync(findQuipu(), ["show", row.path, "--json"], {
        maxBuffer: 1e9,
        encoding: "utf8",
        env: { PATH: process.env.PATH, HOME: at.home },
      });
      expect(await countItems(row.key), row.path).toBe((JSON.parse(shown) as unknown[]).length);
    }
  },
  600_000,
);

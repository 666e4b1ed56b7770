import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { TestPage } from "./page.ts";
import { writeLongSession } from "./sessions.mjs";

const TIDE = "05ef09b2-9c3d-4897-965b-0c47c2889d7b";
const UNKNOWN = "eeaa8ea9-878e-4d12-8419-806727804252";
let at: TestPage;

beforeAll(async () => {
  at = await TestPage.open((home) => {
    writeLongSession(home, 400);
  });
});
afterAll(() => at.close());
beforeEach(() => {
  at.faults.length = 0;
});

const VIEWS: [name: string, path: string, text: string][] = [
  ["home", "/", "recent"],
  ["sessions", "/sessions", "tide command"],
  ["conversation", `/s/${TIDE}`, "Pull request"],
  ["files changed", `/s/${TIDE}?tab=changes`, "src/harmonics.rs"],
  ["calls", `/s/${TIDE}?tab=calls`, "API calls"],
  ["explain", `/s/${TIDE}?tab=explain`, "where the time went"],
  ["search", "/search?q=tide", "hits in"],
  ["usage", "/usage?range=all", "answers"],
  ["settings", "/settings", "language"],
];

describe("every view", () => {
  test.each(VIEWS)(
    "%s is shown without an error and without a serious fault of accessibility",
    async (_, path, text) => {
      const page = await at.go(path);
      await page.getByText(text).first().waitFor({ timeout: 15_000 });
      expect(await at.axeFaults()).toEqual([]);
      expect(at.faults).toEqual([]);
    },
  );

  test("dark and on a phone there is no serious fault either, and nothing is wider than the screen", async () => {
    await at.page.emulateMedia({ colorScheme: "dark" });
    await at.page.setViewportSize({ width: 390, height: 844 });
    for (const [, path, text] of VIEWS) {
      const page = await at.go(path);
      await page.getByText(text).first().waitFor({ timeout: 15_000 });
      expect(await at.axeFaults(), path).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth), path).toBeLessThanOrEqual(390);
    }
    await at.page.emulateMedia({ colorScheme: "light" });
    await at.page.setViewportSize({ width: 1280, height: 800 });
  });

  test("on a phone, costs, times, periods and the newest days are on the screen", async () => {
    await at.page.setViewportSize({ width: 390, height: 844 });
    let page = await at.go(`/s/${TIDE}?tab=explain`);
    const cost = page.locator("table").first().locator("tbody td.right").last();
    await cost.waitFor();
    const box = await cost.boundingBox();
    expect((box?.x ?? 390) + (box?.width ?? 0)).toBeLessThanOrEqual(390);
    page = await at.go("/sessions");
    await page.locator(".row .when").first().waitFor({ state: "visible" });
    page = await at.go("/usage?range=all&by=model");
    const periods = page.getByRole("radiogroup").first().getByRole("radio");
    for (const period of await periods.all())
      expect(await period.evaluate((button) => button.scrollHeight <= button.clientHeight)).toBe(true);
    const newest = page.locator("svg[role=group] a").last();
    await newest.waitFor();
    await expect.poll(async () => (await newest.boundingBox())?.x ?? 390).toBeLessThan(390);
    await at.page.setViewportSize({ width: 1280, height: 800 });
  });
});

test("the timeline of a turn leads to its entries", async () => {
  const page = await at.go(`/s/${TIDE}?tab=explain`);
  await page.getByRole("button", { name: /^timeline 1:/ }).click();
  await page.getByRole("link", { name: "Bash", exact: true }).first().click();
  await page.waitForURL(/line=\d+/);
});

test("a day of the year is a link that the keyboard reaches", async () => {
  const page = await at.go("/usage?range=all");
  await page.locator('svg a[href^="/sessions?since="]').first().focus();
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/sessions\?since=/);
});

test("the token does not stay in the address", async () => {
  await at.page.goto(at.server.address);
  await at.page.getByText("recent").first().waitFor();
  expect(at.page.url()).not.toContain("token");
});

test("search leads to the message", async () => {
  const page = await at.go("/search?q=sparkline");
  await page.locator("a.hit").first().click();
  await page.waitForURL(/\/s\/.*line=\d+/);
  const line = new URL(page.url()).searchParams.get("line");
  await page.locator(`[data-line="${line}"]`).first().waitFor();
});

test("a branch that was left can be read, and closed again", async () => {
  const page = await at.go(`/s/${TIDE}?line=106`);
  const branch = page.locator('[data-kind="branch"]').first();
  await branch.getByRole("button").first().click();
  await branch.getByText("draw the day as an ASCII curve").waitFor();
  await branch.getByText("back to the main branch").click();
  expect(await branch.getByText("ASCII curve").count()).toBe(0);
});

test("a subagent's conversation is inside its card", async () => {
  const page = await at.go(`/s/${TIDE}?line=89`);
  const card = page.locator('[data-kind="tool"]').filter({ hasText: "Check the constants" }).first();
  await card.locator("button.line").first().click();
  await card.getByText("Reading the file and looking for phases out of range").waitFor();
});

test("what quipu does not know is shown as such", async () => {
  const page = await at.go(`/s/${UNKNOWN}`);
  const item = page.locator('[data-kind="unknown"]').first();
  await item.waitFor();
  await item.locator(".unknown > button").click();
  await item.locator(".code").waitFor();
});

test("every item can be seen as the line of the file", async () => {
  const page = await at.go(`/s/${TIDE}?line=3`);
  const item = page.locator('[data-line="3"]').first();
  await item.hover();
  await item.getByRole("button", { name: "raw JSON" }).click();
  await page.getByRole("dialog").getByText('"parentUuid"').first().waitFor();
  await page.keyboard.press("Escape");
});

test("a long session opens at its end, and find reaches what was never loaded", async () => {
  const page = await at.go("/s/10000000-0000-4000-8000-000000000000");
  await page.getByText("prompt number 400").first().waitFor();
  await page.keyboard.press("f");
  await page.getByRole("search").getByRole("textbox").fill("output of step 5 ");
  await page.getByRole("search").getByRole("textbox").fill("step 17");
  await page.locator(".scroller").getByText("step 17", { exact: true }).first().waitFor();
});

test("keys move between turns and fold them", async () => {
  const page = await at.go("/s/10000000-0000-4000-8000-000000000000");
  await page.locator(".scroller").getByText("prompt number 400").waitFor();
  await page.keyboard.press("g");
  await page.locator(".scroller").getByText("prompt number 1", { exact: true }).waitFor();
  await page.keyboard.press("j");
  await page.locator(".bar .turn", { hasText: "2" }).waitFor();
  await page.keyboard.press("Z");
  await page.locator(".scroller").getByText("prompt number 6", { exact: true }).waitFor();
  expect(await page.locator(".scroller [data-kind=assistant]").count()).toBe(0);
});

test("the palette leads to a session, and the help lists the keys", async () => {
  const page = await at.go("/");
  await page.getByText("recent").first().waitFor();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("smooth tide");
  await page.getByRole("option").first().waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "A smooth tide curve" }).waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("next, previous turn").waitFor();
});

test("the language can be switched", async () => {
  const page = await at.go("/settings");
  await page.getByText("中文").click();
  await page.getByRole("heading", { name: "设置" }).waitFor();
  await page.getByText("English").click();
  await page.getByRole("heading", { name: "settings" }).waitFor();
});

test("nothing was requested from another host", () => {
  expect(at.foreign).toEqual([]);
});

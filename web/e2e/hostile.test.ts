import { afterAll, beforeAll, expect, test } from "vitest";
import { TestPage } from "./page.ts";
import { writeHostileSession } from "./sessions.mjs";

let at: TestPage;
let id: string;

beforeAll(async () => {
  at = await TestPage.open((home) => {
    id = writeHostileSession(home);
  });
});
afterAll(() => at.close());

test("a hostile transcript runs nothing and loads nothing, whatever is opened", async () => {
  const page = await at.go(`/s/${id}`);
  await page.getByText("the end of the hostile session").waitFor();
  for (let round = 0; round < 12; round += 1) {
    await page.evaluate(() => {
      for (const closed of document.querySelectorAll<HTMLElement>('.scroller [aria-expanded="false"]')) closed.click();
      document.querySelector(".scroller")?.scrollBy(0, -500);
    });
    await page.waitForTimeout(150);
  }
  expect(await page.evaluate(() => (window as unknown as { hacked?: string }).hacked)).toBeUndefined();
  const found = await page.evaluate(() => {
    const scroller = document.querySelector(".scroller");
    return {
      elements: scroller?.querySelectorAll("script, iframe, object, embed, form, style, link").length,
      images: [...(scroller?.querySelectorAll("img") ?? [])].map((image) => image.src),
      links: [...(scroller?.querySelectorAll("a") ?? [])]
        .map((link) => link.protocol)
        .filter((protocol) => !/^https?:$/.test(protocol)),
      handlers: [...(scroller?.querySelectorAll("*") ?? [])].filter((node) =>
        [...node.attributes].some((attribute) => attribute.name.startsWith("on")),
      ).length,
    };
  });
  expect(found).toEqual({ elements: 0, images: [], links: [], handlers: 0 });
  expect(at.foreign).toEqual([]);
  expect(at.faults).toEqual([]);
});

test("characters that reverse text are visible", async () => {
  const page = await at.go(`/s/${id}`);
  await page.getByText("⟨U+202E⟩").first().waitFor();
});

test("a line of a megabyte is shortened, and the page stays small", async () => {
  const page = await at.go(`/s/${id}`);
  await page.getByText("the end of the hostile session").waitFor();
  const length = await page.evaluate(() => document.body.textContent?.length);
  expect(length).toBeLessThan(300_000);
});

test("search results of hostile text are text", async () => {
  const page = await at.go("/search?q=hacked");
  await page.locator("a.hit").first().waitFor();
  expect(await page.evaluate(() => (window as unknown as { hacked?: string }).hacked)).toBeUndefined();
  expect(await page.locator(".page script, .page img").count()).toBe(0);
});

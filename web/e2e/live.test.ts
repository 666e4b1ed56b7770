import { afterAll, beforeAll, expect, test } from "vitest";
import { TestPage } from "./page.ts";
import { writeLongSession } from "./sessions.mjs";

let at: TestPage;
let session: ReturnType<typeof writeLongSession>;

beforeAll(async () => {
  at = await TestPage.open((home) => {
    session = writeLongSession(home, 60);
  });
});
afterAll(() => at.close());

test("a line that is appended appears at the end without a reload", async () => {
  const page = await at.go(`/s/${session.id}`);
  await page.locator(".scroller").getByText("prompt number 60").waitFor();
  session.write(session.prompt("a new prompt"), session.answer([{ type: "text", text: "a new answer" }]));
  await page.locator(".scroller").getByText("a new answer").waitFor({ timeout: 5000 });
  expect(await page.locator(".pill").count()).toBe(0);
});

test("what is being read does not move, and a pill counts what is new", async () => {
  const page = await at.go(`/s/${session.id}`);
  await page.locator(".scroller").getByText("a new answer").waitFor();
  await page.keyboard.press("g");
  const first = page.locator(".scroller").getByText("prompt number 1", { exact: true });
  await first.waitFor();
  await page.waitForTimeout(600);
  const before = await first.boundingBox();
  session.write(
    session.answer([{ type: "text", text: "one" }]),
    session.answer([{ type: "text", text: "two" }]),
    session.answer([{ type: "text", text: "three" }]),
  );
  await page.getByRole("button", { name: "3 new" }).waitFor({ timeout: 5000 });
  expect(await first.boundingBox()).toEqual(before);
  await page.getByRole("button", { name: "3 new" }).click();
  await page.locator(".scroller").getByText("three", { exact: true }).waitFor();
});

test("a pending call gets its result", async () => {
  const page = await at.go(`/s/${session.id}`);
  const [call = "", result = ""] = session.tool("Bash", { command: "sleep 1" }, "slept").split(/(?<=\n)/);
  session.write(call);
  const card = page.locator('[data-kind="tool"]').filter({ hasText: "sleep 1" });
  await card.waitFor({ timeout: 5000 });
  session.write(result);
  await card.getByRole("img", { name: "done" }).waitFor({ timeout: 5000 });
});

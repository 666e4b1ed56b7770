import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { TestPage } from "./page.ts";

test("from a clean home the demo agent shows everything that needs no key", async () => {
  const at = await TestPage.open();
  const { page } = at;
  await at.go("/chat");
  await page.getByRole("combobox", { name: "agent" }).selectOption("demo");
  expect(await page.getByRole("textbox", { name: "folder" }).count()).toBe(0);
  await page.getByRole("button", { name: "show me what you can do" }).click();
  await page.waitForURL(/\/s\//);
  const prompt = page.locator("section.prompt");
  await prompt.getByText("Edit: allow this?").waitFor();
  await prompt.locator(".diff").waitFor();
  await prompt.getByRole("button", { name: "allow once" }).click();
  await prompt.getByText("Bash: allow this?").waitFor();
  await prompt.getByRole("button", { name: "allow once" }).click();
  await page.locator(".scroller").getByText("That was the tour.").waitFor();
  await page.locator(".scroller").getByText("Check the measurements").waitFor();
  await page.locator(".bar[role=status]").waitFor({ state: "detached" });
  expect(at.faults).toEqual([]);
  expect(at.foreign).toEqual([]);
  await at.close();
});

test("an agent that cannot start says why, and the message is not lost", async () => {
  const at = await TestPage.open((home) => {
    const agent = join(home, "broken-agent");
    writeFileSync(agent, "#!/bin/sh\necho the licence has expired >&2\nexit 3\n");
    chmodSync(agent, 0o755);
    mkdirSync(join(home, ".config", "quipu"), { recursive: true });
    writeFileSync(join(home, ".config", "quipu", "config.toml"), `[chat]\nagent = "${agent}"\n`);
    mkdirSync(join(home, "tidepool"));
  });
  const { page } = at;
  await at.go(`/chat?folder=${encodeURIComponent(join(at.home, "tidepool"))}`);
  await page.getByRole("combobox", { name: "permission mode" }).waitFor();
  const composer = page.getByRole("combobox", { name: "message" });
  await composer.fill("hello agent");
  await composer.press("Enter");
  await page.getByRole("button", { name: "trust and start" }).click();
  await page.getByRole("alert").getByText("output of the agent").click();
  await page.getByText("the licence has expired").waitFor();
  await expect.poll(() => composer.inputValue()).toBe("hello agent");
  await at.close();
});

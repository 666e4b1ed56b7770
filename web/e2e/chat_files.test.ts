import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ChatTest } from "./chat.ts";

const FILES = 100_000;
let chat: ChatTest;

beforeAll(async () => {
  chat = await ChatTest.open(() => [{ reply: "Hello." }]);
  for (let folder = 0; folder < 1000; folder += 1) {
    const path = join(chat.folder, `crate_${folder % 40}`, `module_${folder}`);
    mkdirSync(path, { recursive: true });
    for (let file = 0; file < FILES / 1000; file += 1) writeFileSync(join(path, `part_${file}_of_${folder}.rs`), "");
  }
  mkdirSync(join(chat.folder, "ignored"), { recursive: true });
  writeFileSync(join(chat.folder, "ignored", "part_needle.rs"), "");
  writeFileSync(join(chat.folder, ".gitignore"), "ignored/\n");
  mkdirSync(join(chat.folder, ".git"), { recursive: true });
}, 300_000);
afterAll(() => chat.close());

test("a folder of 100,000 files is searched while typing, without what git ignores", async () => {
  await chat.at.go(`/chat?folder=${encodeURIComponent(chat.folder)}`);
  await chat.page.getByRole("combobox", { name: "permission mode" }).waitFor();
  await chat.composer.fill("@rs");
  const options = chat.page.getByRole("option");
  await options.filter({ hasText: ".rs" }).first().waitFor({ timeout: 30_000 });
  await chat.composer.fill("@");
  await options.first().waitFor();
  const times = await chat.page.evaluate(
    async (keys) => {
      const input = document.querySelector("textarea") as HTMLTextAreaElement;
      const replies = () =>
        performance.getEntriesByType("resource").filter((entry) => entry.name.includes("/api/files"));
      const taken: number[] = [];
      for (const key of keys) {
        const before = replies().length;
        const start = performance.now();
        input.setRangeText(key, input.value.length, input.value.length, "end");
        input.dispatchEvent(new InputEvent("input", { bubbles: true }));
        await new Promise<void>((done) => {
          const check = () => (replies().length > before ? requestAnimationFrame(() => done()) : setTimeout(check, 1));
          check();
        });
        taken.push(performance.now() - start);
      }
      return taken;
    },
    [..."part_77_of_512"],
  );
  console.log(`@ picker on ${FILES} files: ${times.map((time) => time.toFixed(0)).join(" ")} ms per key`);
  await options.first().getByText("part_77_of_512.rs").waitFor();
  expect(times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)]).toBeLessThan(100);
  await chat.composer.fill("@needle");
  await chat.page.waitForTimeout(500);
  expect(await options.filter({ hasText: "needle" }).count()).toBe(0);
});

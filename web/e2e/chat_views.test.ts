import { afterAll, beforeAll, expect, test } from "vitest";
import { ChatTest, call } from "./chat.ts";

const QUESTION = {
  questions: [{ question: "Which unit?", header: "Unit", options: [{ label: "metres" }, { label: "feet" }] }],
};
const RULES = (folder: string) => [
  {
    when: { says: "edit" },
    reply: call("Edit", { file_path: `${folder}/src/tide.rs`, old_string: "1.0", new_string: "2.0" }),
  },
  {
    when: { says: "run" },
    reply: call("Bash", { command: "touch a-rather-long-name-of-a-file-that-must-be-wrapped.txt" }),
  },
  { when: { says: "ask" }, reply: call("AskUserQuestion", QUESTION) },
  { when: { says: "plan" }, reply: call("ExitPlanMode", { plan: "# The plan\n\n1. measure" }) },
  {
    when: { says: "slowly" },
    reply: `${"word ".repeat(60)}\n\n\`\`\`rust\nfn main() {}\n\`\`\`\n\n${"word ".repeat(300)}`,
    chunk: 5,
    pause_ms: 60,
  },
  { reply: "Hello from the agent." },
];
let chat: ChatTest;

beforeAll(async () => {
  chat = await ChatTest.open(RULES);
  await chat.start("hello there");
});
afterAll(() => chat.close());

/** No serious fault of accessibility, nothing wider than the screen. */
async function look(name: string, width: number) {
  expect(await chat.at.axeFaults(), name).toEqual([]);
  expect(await chat.page.evaluate(() => document.documentElement.scrollWidth), name).toBeLessThanOrEqual(width);
}

test.each([
  ["light", 1280],
  ["dark", 390],
] as const)("a chat is accessible: %s, %s pixels wide", async (colorScheme, width) => {
  const { page } = chat;
  await page.emulateMedia({ colorScheme });
  await page.setViewportSize({ width, height: 844 });
  await chat.at.go(`/chat?folder=${encodeURIComponent(chat.folder)}`);
  await page.getByRole("combobox", { name: "permission mode" }).waitFor();
  await look("new chat", width);
  await chat.composer.fill("@");
  await page.getByRole("option").first().waitFor();
  await look("contexts", width);
  await page.keyboard.press("Escape");
  await chat.composer.fill("");
  for (const kind of ["edit", "run", "ask", "plan"]) {
    await chat.start(kind);
    await chat.prompt.waitFor();
    await look(kind, width);
    await chat.prompt.locator('button[data-key="n"]').click();
    await chat.idle();
  }
  await chat.start("slowly");
  await page.locator('[data-kind="live"] pre').waitFor();
  await look("running", width);
  await page.getByRole("button", { name: "interrupt" }).last().click();
  await chat.idle();
});

test("the chat is in Chinese, too", async () => {
  const { page } = chat;
  await chat.at.go("/settings");
  await page.getByText("中文").click();
  await chat.at.go(`/chat?folder=${encodeURIComponent(chat.folder)}`);
  await page.getByRole("heading", { name: "新对话" }).waitFor();
  await chat.composer.fill("run");
  await chat.composer.press("Enter");
  await chat.prompt.getByRole("button", { name: "允许一次" }).waitFor();
  await chat.prompt.getByRole("button", { name: "拒绝" }).click();
});

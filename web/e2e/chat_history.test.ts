import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { ChatTest, call } from "./chat.ts";

const AGENT = { description: "Check the tide", prompt: "Read the file", run_in_background: false };
const RULES = (folder: string) => [
  {
    when: { says: "about to be replaced" },
    reply: "<analysis>a</analysis><summary>Tides were discussed.</summary>",
    pause_ms: 20,
  },
  {
    when: { subagent: true, result_of: "Read" },
    reply: "The subagent's report, word by word.",
    chunk: 4,
    pause_ms: 80,
  },
  { when: { subagent: true }, reply: call("Read", { file_path: `${folder}/src/tide.rs` }) },
  { when: { result_of: "Agent" }, reply: "The subagent is done." },
  { when: { result_of: "Write" }, reply: "Written." },
  { when: { says: "delegate" }, reply: call("Agent", AGENT) },
  { when: { says: "write two" }, reply: call("Write", { file_path: `${folder}/two.txt`, content: "two\n" }) },
  { when: { says: "one" }, reply: "Answer one." },
  { when: { says: "another" }, reply: "Answer another." },
  { reply: "Some answer." },
];
let chat: ChatTest;

beforeAll(async () => {
  chat = await ChatTest.open(RULES);
});
afterAll(() => chat.close());
beforeEach(() => {
  chat.at.faults.length = 0;
});

test("a conversation is compacted, and the summary is one click away", async () => {
  await chat.start("one");
  await chat.conversation.getByText("Answer one.").waitFor();
  await chat.idle();
  await chat.send("another");
  await chat.conversation.getByText("Answer another.").waitFor();
  await chat.idle();
  await chat.composer.pressSequentially("/comp");
  await chat.page.getByRole("option", { name: "/compact" }).waitFor();
  await chat.composer.press("Tab");
  await chat.composer.press("Enter");
  await chat.page.getByRole("button", { name: "show the summary" }).click();
  await chat.conversation.getByText("compacted here").waitFor();
  await chat.send("go on");
  await chat.conversation.getByText("Some answer.").waitFor();
  expect(chat.at.faults).toEqual([]);
});

test("a prompt is taken back with the files that followed it", async () => {
  await chat.start("one");
  await chat.conversation.getByText("Answer one.").waitFor();
  await chat.idle();
  await chat.send("write two");
  await chat.prompt.getByRole("button", { name: "allow once" }).click();
  await chat.conversation.getByText("Written.").waitFor();
  await chat.idle();
  expect(readFileSync(join(chat.folder, "two.txt"), "utf8")).toBe("two\n");
  const item = chat.conversation.locator('[data-kind="user"]').filter({ hasText: "write two" });
  await item.hover();
  await item.getByRole("button", { name: "rewind to before this prompt" }).click();
  const dialog = chat.page.getByRole("dialog");
  await dialog.getByText("two.txt").waitFor();
  await dialog.getByRole("button", { name: "rewind", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  expect(existsSync(join(chat.folder, "two.txt"))).toBe(false);
  // The prompt is back in the composer, to be changed.
  await expect.poll(() => chat.composer.inputValue()).toBe("write two");
  await chat.send("another");
  await chat.conversation.getByText("Answer another.").waitFor();
  await chat.conversation.locator('[data-kind="branch"]').waitFor();
  expect(await chat.conversation.getByText("Written.").count()).toBe(0);
});

test("a session is forked at an answer", async () => {
  const key = await chat.start("one");
  await chat.conversation.getByText("Answer one.").waitFor();
  await chat.idle();
  await chat.send("another");
  await chat.conversation.getByText("Answer another.").waitFor();
  await chat.idle();
  const item = chat.conversation.locator('[data-kind="assistant"]').filter({ hasText: "Answer one." });
  await item.hover();
  await item.getByRole("button", { name: "fork from here" }).click();
  await expect.poll(() => new URL(chat.page.url()).pathname).not.toBe(`/s/${key}`);
  await chat.send("something else");
  await chat.conversation.getByText("Some answer.").waitFor();
  expect(await chat.conversation.getByText("Answer another.").count()).toBe(0);
  await chat.conversation.getByText("Answer one.").waitFor();
  await chat.at.go(`/s/${key}`);
  await chat.conversation.getByText("Answer another.").waitFor();
});

test("a session goes on from an earlier answer", async () => {
  await chat.start("one");
  await chat.conversation.getByText("Answer one.").waitFor();
  await chat.idle();
  await chat.send("another");
  await chat.conversation.getByText("Answer another.").waitFor();
  await chat.idle();
  const item = chat.conversation.locator('[data-kind="assistant"]').filter({ hasText: "Answer one." });
  await item.hover();
  await item.getByRole("button", { name: "go on from here" }).click();
  await chat.page.getByText("the next message follows:").waitFor();
  await chat.send("something else");
  await chat.conversation.getByText("Some answer.").waitFor();
  await chat.conversation.locator('[data-kind="branch"]').waitFor();
});

test("a session of an earlier day goes on by typing into it", async () => {
  const key = await chat.start("one");
  await chat.conversation.getByText("Answer one.").waitFor();
  await chat.idle();
  await chat.page.getByRole("button", { name: "more actions" }).click();
  await chat.page.getByRole("button", { name: "end the agent" }).click();
  await chat.composer.and(chat.page.getByPlaceholder("go on with this session")).waitFor();
  await chat.send("another");
  await chat.conversation.getByText("Answer another.").waitFor();
  expect(new URL(chat.page.url()).pathname).toBe(`/s/${key}`);
});

test("a subagent can be watched while it works", async () => {
  await chat.start("delegate it");
  const card = chat.conversation.locator('[data-kind="tool"]').filter({ hasText: "Check the tide" }).first();
  await card.locator("button.line").first().click();
  await card.locator('[data-kind="tool"]').getByText("tide.rs").waitFor();
  expect(await chat.conversation.getByText("The subagent is done.").count()).toBe(0);
  await chat.conversation.getByText("The subagent is done.").waitFor();
  await chat.idle();
  await card.getByText("The subagent's report, word by word.").first().waitFor();
  await expect.poll(() => chat.page.locator('[data-kind="live"]').count()).toBe(0);
});

test("without its first prompt a conversation goes on in another session, with the prompt in the composer", async () => {
  const key = await chat.start("one");
  await chat.conversation.getByText("Answer one.").waitFor();
  await chat.idle();
  const item = chat.conversation.locator('[data-kind="user"]').first();
  await item.hover();
  await item.getByRole("button", { name: "rewind to before this prompt" }).click();
  // The next message must reach the agent also before the first event of its chat has come.
  const events = "**/api/chats/*/events*";
  await chat.page.route(events, (route) => setTimeout(() => route.continue().catch(() => {}), 1000));
  await chat.page.getByRole("dialog").getByRole("button", { name: "rewind", exact: true }).click();
  await expect.poll(() => new URL(chat.page.url()).pathname).not.toBe(`/s/${key}`);
  // While the dialog is open, keys do not reach the composer.
  await chat.page.getByRole("dialog").waitFor({ state: "detached" });
  await expect.poll(() => chat.composer.inputValue()).toBe("one");
  await chat.send("another");
  await chat.conversation.getByText("Answer another.").waitFor();
  await chat.page.unroute(events);
  expect(await chat.conversation.getByText("Answer one.").count()).toBe(0);
  expect(chat.at.faults).toEqual([]);
});

test("recorded calls are beside the conversation", async () => {
  await chat.start("one", (page) => page.getByRole("checkbox", { name: "record calls" }).check());
  await chat.conversation.getByText("Answer one.").waitFor();
  await chat.page.locator("aside").getByText("cache read").first().waitFor();
});

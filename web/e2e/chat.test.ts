import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { ChatTest, call } from "./chat.ts";
import { HOSTILE } from "./sessions.mjs";

const QUESTION = {
  questions: [
    {
      question: "Which unit?",
      header: "Unit",
      multiSelect: false,
      options: [{ label: "metres", description: "as in the file" }, { label: "feet" }],
    },
  ],
};

const RULES = (folder: string) => [
  { when: { result_of: "Bash", result_says: "from-page" }, reply: "The command ran." },
  { when: { result_of: "Bash", result_says: "edited" }, reply: "It ran as you edited it." },
  { when: { result_says: "use a dry run" }, reply: "A dry run, then." },
  { when: { result_of: "Write" }, reply: "The file is written." },
  { when: { result_of: "Edit" }, reply: "The file is changed." },
  { when: { result_says: "metres" }, reply: "Metres it is." },
  { when: { result_of: "AskUserQuestion" }, reply: "No answer, then." },
  { when: { result_says: "agrees with the plan" }, reply: "The plan begins." },
  { when: { result_of: "ExitPlanMode" }, reply: "I think again." },
  { when: { result_of: "Read" }, reply: "I have read it." },
  { when: { result_of: "TodoWrite" }, reply: "All is planned." },
  {
    when: { says: "run it" },
    reply: [
      { text: "I run it." },
      call("Bash", { command: "echo from-page > out.txt; cat out.txt", description: "Write a file" }),
    ],
  },
  { when: { says: "write it" }, reply: call("Write", { file_path: `${folder}/new.txt`, content: "one\ntwo\n" }) },
  { when: { says: "ask me" }, reply: call("AskUserQuestion", QUESTION) },
  { when: { says: "make a plan" }, reply: call("ExitPlanMode", { plan: "# The plan\n\n1. measure\n2. cut" }) },
  { when: { says: "slowly" }, reply: "word ".repeat(400), chunk: 5, pause_ms: 60 },
  {
    when: { says: "tasks" },
    reply: [
      call("TodoWrite", {
        todos: [
          { content: "Measure", status: "in_progress", activeForm: "Measuring" },
          { content: "Cut", status: "pending", activeForm: "Cutting" },
        ],
      }),
    ],
  },
  {
    when: { says: "think" },
    reply: [
      { thinking: "The tide turns twice." },
      { text: "It **turns** twice.\n\n- high\n- low\n\n```rust\nfn tide() {}\n```" },
    ],
    chunk: 6,
    pause_ms: 5,
  },
  {
    when: { says: "attack" },
    reply: [
      { thinking: HOSTILE.script },
      {
        text: `${HOSTILE.script}\n\n${HOSTILE.link}\n\n${HOSTILE.image}\n\n${HOSTILE.bidi}\n\n\`\`\`html\n${HOSTILE.script}`,
      },
      call("Bash", { command: `touch "${HOSTILE.bidi}" ${HOSTILE.ansi}`, description: HOSTILE.script }),
    ],
    chunk: 9,
    pause_ms: 10,
  },
  { when: { says: "look at" }, reply: "I see what you attached." },
  { reply: "Hello from the agent." },
];

let chat: ChatTest;

beforeAll(async () => {
  chat = await ChatTest.open(RULES);
});
afterAll(() => chat.close());
beforeEach(() => {
  chat.at.faults.length = 0;
});

test("a chat starts in a folder that the user trusts, and is the conversation of its session", async () => {
  const { page } = chat;
  await chat.at.go(`/chat?folder=${encodeURIComponent(chat.folder)}`);
  await chat.composer.fill("hello there");
  await chat.composer.press("Enter");
  await page.getByRole("dialog", { name: "trust this folder?" }).waitFor();
  await page.getByRole("button", { name: "trust and start" }).click();
  await page.waitForURL(/\/s\//);
  await chat.conversation.getByText("hello there").waitFor();
  await chat.conversation.getByText("Hello from the agent.").waitFor();
  await chat.idle();
  expect(await chat.conversation.getByText("hello there").count()).toBe(1);
  expect(await chat.conversation.getByText("Hello from the agent.").count()).toBe(1);
  await expect.poll(() => page.locator('[data-kind="live"], [data-kind="sent"]').count()).toBe(0);
  await chat.send("hello again");
  await chat.conversation.locator('[data-kind="user"]').nth(1).waitFor();
  expect(chat.at.faults).toEqual([]);
});

test("text and thinking appear while they are written; the entries of the file replace them in one frame", async () => {
  const { page } = chat;
  await chat.start("hello there");
  await chat.conversation.getByText("Hello from the agent.").waitFor();
  await chat.idle();
  await page.evaluate(() => {
    const counts: number[] = [];
    Object.assign(window, { counts });
    const look = () => {
      counts.push(
        [...document.querySelectorAll(".scroller strong")].filter((node) => node.textContent === "turns").length,
      );
      requestAnimationFrame(look);
    };
    look();
  });
  await chat.send("please think");
  await page.locator('[data-kind="live"]').first().waitFor();
  await chat.conversation.locator('[data-kind="thinking"]').waitFor();
  await chat.conversation.locator('[data-kind="assistant"] pre').waitFor();
  await chat.idle();
  await page.waitForTimeout(300);
  const counts = await page.evaluate(() => (window as unknown as { counts: number[] }).counts);
  expect(new Set(counts.slice(counts.indexOf(1)))).toEqual(new Set([1]));
  expect(chat.at.faults).toEqual([]);
});

test("a command runs when it is allowed; the title counts what waits", async () => {
  const key = await chat.start("run it");
  await chat.prompt.getByText("echo from-page").waitFor();
  expect(await chat.page.title()).toMatch(/^\(1\) /);
  expect(await chat.page.locator('link[rel="icon"]').getAttribute("href")).toBe("/quipu-waiting.svg");
  expect(existsSync(join(chat.folder, "out.txt"))).toBe(false);
  await chat.at.go("/");
  await chat.page.locator(`a.waiting[href="/s/${key}"]`).click();
  await chat.prompt.getByText("echo from-page").waitFor();
  await chat.prompt.getByRole("button", { name: "allow once" }).click();
  await chat.conversation.getByText("The command ran.").waitFor();
  expect(readFileSync(join(chat.folder, "out.txt"), "utf8")).toBe("from-page\n");
  await chat.idle();
  expect(await chat.page.title()).not.toMatch(/^\(/);
  expect(chat.at.faults).toEqual([]);
});

test("a command can be denied with a message, with the keyboard", async () => {
  await chat.start("run it");
  await chat.prompt.getByPlaceholder("what to do instead").fill("use a dry run");
  await chat.page.keyboard.press("Enter");
  await chat.conversation.getByText("A dry run, then.").waitFor();
  await chat.idle();
});

test("a command can be edited before it runs", async () => {
  await chat.start("run it");
  await chat.prompt.getByRole("button", { name: "edit first" }).click();
  await chat.prompt.getByRole("textbox", { name: "edit first" }).fill("echo edited");
  await chat.prompt.getByRole("button", { name: "allow as edited" }).click();
  await chat.conversation.getByText("It ran as you edited it.").waitFor();
  await chat.idle();
});

test("keys answer a prompt only when it has the focus", async () => {
  await chat.start("run it");
  await chat.prompt.waitFor();
  await chat.composer.pressSequentially("yan");
  expect(await chat.composer.inputValue()).toBe("yan");
  expect(await chat.prompt.count()).toBe(1);
  await chat.composer.fill("");
  await chat.composer.press("Tab");
  await chat.page.keyboard.press("y");
  await chat.conversation.getByText("The command ran.").waitFor();
  await chat.idle();
});

test("a suggested rule is remembered for the session", async () => {
  await chat.start("write it");
  await chat.prompt.getByText("two").waitFor();
  await chat.prompt.locator('button[data-key="a"]').click();
  await chat.conversation.getByText("The file is written.").waitFor();
  await chat.idle();
  await chat.send("write it once more");
  await chat.conversation.getByText("The file is written.").nth(1).waitFor();
  expect(await chat.prompt.count()).toBe(0);
});

test("questions are a form", async () => {
  await chat.start("ask me");
  await chat.prompt.getByText("Which unit?").waitFor();
  await chat.prompt.getByLabel("metres").check();
  await chat.prompt.getByRole("button", { name: "answer", exact: true }).click();
  await chat.conversation.getByText("Metres it is.").waitFor();
  await chat.idle();
});

test("a plan is sent back and approved", async () => {
  const plan = (page: typeof chat.page) =>
    page
      .getByRole("combobox", { name: "permission mode" })
      .selectOption("plan")
      .then(() => {});
  await chat.start("make a plan", plan);
  await chat.prompt.getByRole("heading", { name: "The plan" }).waitFor();
  await chat.prompt.getByRole("button", { name: "keep planning" }).click();
  await chat.conversation.getByText("I think again.").waitFor();
  await chat.idle();
  await chat.send("make a plan again");
  await chat.prompt.getByRole("button", { name: "start y" }).click();
  await chat.conversation.getByText("The plan begins.").waitFor();
  await chat.idle();
});

test("tasks are pinned above the composer", async () => {
  await chat.start("tasks please");
  const todos = chat.page.locator(".todos");
  await todos.getByText("Measuring").waitFor();
  await todos.getByText("0 of 2 done").waitFor();
  await todos.getByRole("button").click();
  await todos.getByText("Cut", { exact: true }).waitFor();
});

test("a prompt and a running text survive a reload", async () => {
  await chat.start("run it");
  await chat.prompt.waitFor();
  await chat.page.reload();
  await chat.prompt.getByText("echo from-page").waitFor();
  await chat.prompt.getByRole("button", { name: "deny" }).click();
  await chat.idle();
  await chat.send("slowly please");
  await chat.page.locator('[data-kind="live"]').getByText("word word").waitFor();
  await chat.page.reload();
  await chat.page.locator('[data-kind="live"]').getByText("word word").waitFor();
  await chat.page.getByRole("button", { name: "interrupt" }).first().click();
  await chat.idle();
  expect(chat.at.faults).toEqual([]);
});

test("Escape interrupts; a message that is sent meanwhile waits for its turn and can be taken back", async () => {
  await chat.start("slowly please");
  await chat.page.locator('[data-kind="live"]').getByText("word word").waitFor();
  await chat.send("and then hello");
  await chat.page.locator(".queued").getByText("and then hello").waitFor();
  await chat.page.getByRole("button", { name: "do not send this" }).click();
  await chat.page.locator(".queued").waitFor({ state: "detached" });
  await chat.composer.press("Escape");
  await chat.idle();
  await chat.send("hello after it");
  await chat.conversation.getByText("Hello from the agent.").waitFor();
});

test("contexts are tags before and after they are sent", async () => {
  await chat.start("hello there");
  await chat.conversation.getByText("Hello from the agent.").waitFor();
  await chat.composer.fill("look at ");
  await chat.composer.press("End");
  await chat.composer.pressSequentially("@tide");
  await chat.page.getByRole("option", { name: "tide.rs" }).first().waitFor();
  await chat.composer.press("Enter");
  await chat.page.getByRole("button", { name: "add context" }).click();
  await chat.page.getByRole("option", { name: "terminal output" }).click();
  await chat.page.getByRole("dialog").getByRole("textbox").fill("one\ntwo\n");
  await chat.page.getByRole("button", { name: "attach" }).click();
  expect(await chat.composer.inputValue()).toBe("look at ");
  const tags = chat.page.locator(".composer .chip");
  expect(await tags.allInnerTexts()).toEqual(["tide.rs", expect.stringMatching(/terminal\s*2/)]);
  await chat.composer.press("Enter");
  await chat.conversation.getByText("I see what you attached.").waitFor();
  await chat.idle();
  const sent = chat.conversation.locator('[data-kind="user"] .chip');
  expect(await sent.allInnerTexts()).toEqual(["tide.rs", expect.stringMatching(/terminal\s*2/)]);
  await chat.page.reload();
  await sent.first().waitFor();
  expect(await sent.count()).toBe(2);
});

test("the diff of git is attached as text that the model gets", async () => {
  const git = (...words: string[]) =>
    execFileSync("git", ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", ...words], { cwd: chat.folder });
  git("init", "-q");
  git("add", "src");
  git("commit", "-qm", "Begin");
  writeFileSync(join(chat.folder, "src", "tide.rs"), "pub fn height() -> f64 {\n    2.5\n}\n");
  await chat.start("hello there");
  await chat.conversation.getByText("Hello from the agent.").waitFor();
  await chat.page.getByRole("button", { name: "add context" }).click();
  await chat.page.getByRole("option", { name: "git diff" }).click();
  await chat.page.locator(".composer .chip").getByText("DIFF").waitFor();
  await chat.composer.fill("look at the change");
  await chat.composer.press("Enter");
  await chat.conversation.locator('[data-kind="user"]').getByText("+    2.5").waitFor();
  await chat.conversation.locator('[data-kind="user"] .chip').getByText("DIFF").waitFor();
  await chat.conversation.getByText("I see what you attached.").waitFor();
});

test("an image that is pasted is sent", async () => {
  await chat.start("hello there");
  await chat.conversation.getByText("Hello from the agent.").waitFor();
  await chat.composer.evaluate((input) => {
    const bytes = Uint8Array.from(
      atob("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="),
      (character) => character.charCodeAt(0),
    );
    const data = new DataTransfer();
    data.items.add(new File([bytes], "dot.png", { type: "image/png" }));
    input.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  });
  await chat.page.locator(".composer .image img").waitFor();
  await chat.send("look at this");
  await chat.conversation.locator('[data-kind="image"]').waitFor();
  await chat.conversation.getByText("I see what you attached.").waitFor();
});

test("the draft is kept, and arrow up recalls the last prompt", async () => {
  await chat.start("hello number one");
  await chat.conversation.getByText("Hello from the agent.").waitFor();
  await chat.idle();
  await chat.composer.fill("half a thought");
  await chat.page.reload();
  await chat.composer.waitFor();
  expect(await chat.composer.inputValue()).toBe("half a thought");
  await chat.composer.fill("");
  await chat.composer.press("ArrowUp");
  await expect.poll(() => chat.composer.inputValue()).toBe("hello number one");
});

test("two sessions run at once", async () => {
  const first = await chat.start("run it first");
  await chat.prompt.waitFor();
  const second = await chat.start("run it second");
  await chat.prompt.waitFor();
  expect(first).not.toBe(second);
  await chat.at.go("/");
  for (const key of [first, second]) await chat.page.locator(`a.waiting[href="/s/${key}"]`).waitFor();
  expect(await chat.page.title()).toMatch(/^\(2\) /);
  for (const key of [first, second]) {
    await chat.at.go(`/s/${key}`);
    await chat.prompt.getByRole("button", { name: "allow once" }).click();
    await chat.conversation.getByText("The command ran.").waitFor();
  }
});

test("what a hostile model writes runs nothing and loads nothing while it is written", async () => {
  const { page } = chat;
  await chat.start("attack");
  await page.locator('[data-kind="live"]').first().waitFor();
  for (let round = 0; round < 15; round += 1) {
    await page.evaluate(() => {
      for (const closed of document.querySelectorAll<HTMLElement>('.scroller [aria-expanded="false"]')) closed.click();
    });
    await page.waitForTimeout(60);
  }
  await chat.prompt.getByText("⟨U+202E⟩").waitFor();
  const found = await page.evaluate(() => ({
    hacked: (window as unknown as { hacked?: string }).hacked,
    elements: document.querySelectorAll("main script, main iframe, main img, main form[action]").length,
    links: [...document.querySelectorAll("main a")].filter(
      (link) => !/^https?:$/.test((link as HTMLAnchorElement).protocol),
    ).length,
  }));
  expect(found).toEqual({ hacked: undefined, elements: 0, links: 0 });
  expect(chat.at.foreign).toEqual([]);
  await chat.prompt.locator('button[data-key="n"]').click();
});

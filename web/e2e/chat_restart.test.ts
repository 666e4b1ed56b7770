import { afterAll, beforeAll, expect, test } from "vitest";
import { ChatTest, call } from "./chat.ts";
import { startServer } from "./server.mjs";

const RULES = () => [
  { when: { says: "second" }, reply: "The second answer." },
  { when: { says: "run it" }, reply: call("Bash", { command: "touch done.txt", description: "Make a file" }) },
  { reply: "The first answer." },
];
let chat: ChatTest;

beforeAll(async () => {
  chat = await ChatTest.open(RULES);
});
afterAll(() => chat.close());

test("a server that is killed in the middle of a turn loses nothing; the session goes on", async () => {
  const key = await chat.start("first");
  await chat.conversation.getByText("The first answer.").waitFor();
  await chat.idle();
  await chat.send("run it");
  await chat.prompt.waitFor();
  const listen = new URL(chat.at.server.origin).host;
  await chat.at.server.stop("SIGKILL");
  await chat.page.getByText("no connection to quipu").waitFor();
  chat.at.server = await startServer(chat.at.home, { listen, env: chat.env });
  await chat.page.getByText("no connection to quipu").waitFor({ state: "detached", timeout: 30_000 });
  // The agent ended with the server: what it waited for is gone, what was said is not.
  await chat.prompt.waitFor({ state: "detached" });
  await chat.conversation.getByText("The first answer.").waitFor();
  await chat.conversation.getByText("run it").waitFor();
  await chat.send("second");
  await chat.conversation.getByText("The second answer.").waitFor();
  expect(new URL(chat.page.url()).pathname).toBe(`/s/${key}`);
  await chat.page.reload();
  for (const text of ["The first answer.", "run it", "The second answer."])
    await chat.conversation.getByText(text).waitFor();
});

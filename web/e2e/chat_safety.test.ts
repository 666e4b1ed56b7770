import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ChatTest } from "./chat.ts";

const RULES = () => [{ reply: "Hello from the agent." }];
let chat: ChatTest;
let hostile: Server;
let origin: string;

beforeAll(async () => {
  chat = await ChatTest.open(RULES);
  hostile = createServer((_, response) => {
    response.writeHead(200, { "content-type": "text/html" });
    response.end("<title>hostile</title><form id=f method=post enctype=text/plain></form>");
  });
  await new Promise<void>((done) => hostile.listen(0, "127.0.0.1", done));
  origin = `http://127.0.0.1:${(hostile.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await chat.close();
  hostile.close();
});

/** Number of chats that the server knows. */
async function chatCount(): Promise<number> {
  const response = await fetch(`${chat.at.server.origin}/api/chats`, {
    headers: { authorization: `Bearer ${chat.at.server.token}` },
  });
  return ((await response.json()) as unknown[]).length;
}

test("a page of another origin can neither start nor steer a chat, even with the token", async () => {
  await chat.start("hello there");
  await chat.conversation.getByText("Hello from the agent.").waitFor();
  const before = await chatCount();
  const page = await chat.at.browser.newPage();
  await page.goto(origin);
  const results = await page.evaluate(
    async ({ target, token, cwd }) => {
      const attempts: [string, RequestInit][] = [
        ["chats", { method: "POST", body: JSON.stringify({ cwd, trust: true }) }],
        ["chats", { method: "POST", mode: "no-cors", body: JSON.stringify({ cwd, trust: true }) }],
        [
          "chats",
          {
            method: "POST",
            headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
            body: JSON.stringify({ cwd, trust: true }),
          },
        ],
        ["chats", { headers: { authorization: `Bearer ${token}` } }],
        ["chats/1/events", { headers: { authorization: `Bearer ${token}` } }],
      ];
      return Promise.all(
        attempts.map(([path, options]) =>
          fetch(`${target}/api/${path}`, options).then(
            (response) => `${response.type} ${response.status}`,
            () => "failed",
          ),
        ),
      );
    },
    { target: chat.at.server.origin, token: chat.at.server.token, cwd: chat.folder },
  );
  expect(results).toEqual(["failed", "failed", "failed", "failed", "failed"]);
  await page.evaluate(
    ({ target, cwd }) => {
      const form = document.getElementById("f") as HTMLFormElement;
      const input = document.createElement("input");
      input.name = `{"cwd":"${cwd}","trust":true,"x":"`;
      input.value = '"}';
      form.append(input);
      form.action = `${target}/api/chats`;
      form.submit();
    },
    { target: chat.at.server.origin, cwd: chat.folder },
  );
  await page.waitForURL(/\/api\/chats/);
  expect(await chatCount()).toBe(before);
  await page.close();
});

test("no request carries the token in its address or names the page it comes from", async () => {
  const page = await chat.at.browser.newPage();
  const bad: string[] = [];
  page.on("request", (request) => {
    const { referer } = request.headers();
    if (request.url().split("#")[0]?.includes(chat.at.server.token) || referer)
      bad.push(`${request.url()} from ${referer}`);
  });
  await page.goto(chat.at.server.address);
  await page.getByRole("link", { name: "new chat" }).first().click();
  await page.getByRole("combobox", { name: "permission mode" }).waitFor();
  expect(bad).toEqual([]);
  await page.close();
});

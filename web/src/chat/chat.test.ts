import { afterEach, expect, test, vi } from "vitest";
import { ApiError } from "../api/client.ts";
import { ChatModel } from "./chat.svelte.ts";
import { chats, pageTitle } from "./chats.svelte.ts";
import { fakeChat, fakePrompt, fakeServer } from "./fake.ts";
import { Cancelled, Starter } from "./starter.svelte.ts";

afterEach(() => {
  vi.restoreAllMocks();
  chats.list = [];
});

const message = { text: "hello", contexts: [], images: [] };

test("the first message starts the agent; the message is on screen before the server replies", async () => {
  const sent = fakeServer({ "POST chats": fakeChat(), "POST chats/c1/messages": { uuid: "u1" } });
  const model = new ChatModel("s1");
  const sending = model.send(message, { cwd: "/work", resume: "s1" });
  expect(model.shownSent.map((known) => known.text)).toEqual(["hello"]);
  await sending;
  expect(sent.filter(({ request }) => request.startsWith("POST"))).toEqual([
    { request: "POST chats", body: { cwd: "/work", resume: "s1" } },
    { request: "POST chats/c1/messages", body: message },
  ]);
  model.stop();
});

test("a message goes to the running agent, also before its first event has arrived", async () => {
  const sent = fakeServer({ "POST chats/c1/messages": { uuid: "u1" } });
  chats.put(fakeChat());
  const model = new ChatModel("s1");
  model.follow("c1");
  await model.send(message, { cwd: "/work", resume: "s1" });
  expect(sent.filter(({ request }) => request.startsWith("POST"))).toEqual([
    { request: "POST chats/c1/messages", body: message },
  ]);
  model.stop();
});

test("a list that was asked for before a chat changed does not undo the change", async () => {
  const replies = [[fakeChat({ key: "before" })], [fakeChat({ key: "after" })]];
  const shown: (string | undefined)[] = [];
  fakeServer({
    "GET chats": () => {
      shown.push(chats.list[0]?.key);
      return replies.shift();
    },
  });
  const loaded = chats.load();
  chats.put(fakeChat({ key: "after" }));
  await loaded;
  expect(shown).toEqual([undefined, "after"]);
  expect(chats.list[0]?.key).toBe("after");
});

test("a load during another one resolves with a list that is as new", async () => {
  const replies = [[fakeChat({ key: "before" })], [fakeChat({ key: "after" })]];
  fakeServer({ "GET chats": () => replies.shift() });
  chats.load();
  await chats.load();
  expect(chats.list[0]?.key).toBe("after");
});

test("a message that cannot be sent does not stay on screen", async () => {
  fakeServer({ "POST chats": { status: 400, error: { code: "agent.not_found", message: "no claude" } } });
  const model = new ChatModel("s1");
  await expect(model.send(message, { cwd: "/work" })).rejects.toBeInstanceOf(ApiError);
  expect(model.shownSent).toEqual([]);
});

test("a sent message leaves when the file or the queue has it", async () => {
  fakeServer({ "POST chats/c1/messages": { uuid: "u1" } });
  const model = new ChatModel("s1");
  model.receive({ type: "snapshot", chat: fakeChat({ state: "running" }), partial: [], notes: [] });
  await model.send(message, { cwd: "/work" });
  expect(model.shownSent).toHaveLength(1);
  model.receive({ type: "chat", chat: fakeChat({ state: "running", queued: [{ uuid: "u1", text: "hello" }] }) });
  expect(model.shownSent).toHaveLength(0);
  model.receive({ type: "chat", chat: fakeChat({ state: "running" }) });
  expect(model.shownSent).toHaveLength(1);
  model.reconcile([{ uuid: "u1", kind: "user", timestamp: null, line: 1, text: "hello" }]);
  expect(model.sent).toEqual([]);
});

test("a snapshot after a dropped connection shows prompts and text again", () => {
  const model = new ChatModel("s1");
  model.receive({
    type: "snapshot",
    chat: fakeChat({ state: "running", prompts: [fakePrompt()] }),
    partial: [{ message_id: "m", index: 0, kind: "text", text: "so far", agent: null, is_complete: false }],
    notes: [{ level: "info", text: "retrying" }],
  });
  expect(model.chat?.prompts).toHaveLength(1);
  expect(model.blocks.list[0]?.text).toBe("so far");
  expect(model.notes).toEqual([{ level: "info", text: "retrying" }]);
});

test("an answered prompt disappears at once, also if another tab was faster", async () => {
  const gone = { status: 404, error: { code: "prompt.gone", message: "answered" } };
  for (const reply of [{}, gone]) {
    const sent = fakeServer({ "POST chats/c1/prompts/p1": reply });
    const model = new ChatModel("s1");
    model.receive({ type: "snapshot", chat: fakeChat({ prompts: [fakePrompt()] }), partial: [], notes: [] });
    await model.answer("p1", { decision: "allow" });
    expect(sent[0]?.body).toEqual({ decision: "allow" });
    expect(model.chat?.prompts).toEqual([]);
    expect(model.error).toBeNull();
  }
});

test("messages that an agent did not begin with before it ended are given back once", () => {
  const model = new ChatModel("s1");
  const ended = { reason: "failed" as const, message: "it was killed", stderr: [] };
  const chat = fakeChat({ id: "c2", state: "ended", ended, queued: [{ uuid: "u", text: "and then this" }] });
  model.receive({ type: "chat", chat });
  expect(model.unsent).toEqual(["and then this"]);
  model.unsent = [];
  model.receive({ type: "chat", chat });
  expect(model.unsent).toEqual([]);
  expect(model.ended).toEqual(ended);
});

test("the title counts the chats that wait", () => {
  const model = new ChatModel("s1");
  expect(pageTitle("quipu")).toBe("quipu");
  model.receive({ type: "chat", chat: fakeChat({ prompts: [fakePrompt()] }) });
  expect(pageTitle("quipu")).toBe("(1) quipu");
  model.receive({ type: "chat", chat: fakeChat({ state: "ended", prompts: [fakePrompt()] }) });
  expect(pageTitle("quipu")).toBe("quipu");
});

test("the end of a compaction is remembered until the next turn", () => {
  const model = new ChatModel("s1");
  for (const state of ["running", "compacting", "idle"] as const)
    model.receive({ type: "chat", chat: fakeChat({ state }) });
  expect(model.hasCompacted).toBe(true);
  model.receive({ type: "chat", chat: fakeChat({ state: "running" }) });
  expect(model.hasCompacted).toBe(false);
  model.receive({ type: "chat", chat: fakeChat({ state: "compacting" }) });
  model.receive({ type: "note", level: "error", text: "the conversation was not compacted" });
  model.receive({ type: "chat", chat: fakeChat({ state: "idle" }) });
  expect(model.hasCompacted).toBe(false);
});

test("a folder that is not trusted is asked about once", async () => {
  const starter = new Starter();
  const refusal = new ApiError(409, "folder.not_trusted", "not trusted", null);
  const action = vi.fn(async (more: { trust?: boolean }) => {
    if (!more.trust) throw refusal;
    return "started";
  });
  const first = starter.run(action);
  await vi.waitFor(() => expect(starter.question?.kind).toBe("trust"));
  starter.question?.answer({ trust: true });
  expect(await first).toBe("started");
  expect(action.mock.calls.map(([more]) => more)).toEqual([{}, { trust: true }]);
  const second = starter.run(action);
  await vi.waitFor(() => expect(starter.question).not.toBeNull());
  starter.question?.answer(null);
  await expect(second).rejects.toBeInstanceOf(Cancelled);
  const third = starter.run(action, false);
  expect(starter.question).not.toBeNull();
  starter.question?.answer({ trust: true });
  expect(await third).toBe("started");
  expect(action).toHaveBeenCalledTimes(4);
});

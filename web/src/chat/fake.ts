import { vi } from "vitest";
import type { Chat, Prompt } from "./types.ts";

/** A chat as the server describes it. */
export function fakeChat(changes: Partial<Chat> = {}): Chat {
  return {
    id: "c1",
    key: "s1",
    session_id: "s1",
    cwd: "/work",
    agent: "quipu-agent",
    agent_version: "1",
    model: "claude-opus-5-5",
    permission_mode: "default",
    state: "idle",
    ended: null,
    started_at: "2026-11-16T10:00:00Z",
    turn_started_at: null,
    cost_usd: 0,
    tokens: { input: 0, output: 0 },
    queued: [],
    prompts: [],
    commands: [],
    models: [],
    modes: ["default", "plan"],
    todos: [],
    rewound_to: null,
    capture: null,
    ...changes,
  };
}

export function fakePrompt(changes: Partial<Prompt> = {}): Prompt {
  return {
    id: "p1",
    kind: "permission",
    tool_name: "Bash",
    tool_use_id: "t1",
    input: { command: "git status" },
    description: "Show the state",
    reason: null,
    suggestions: [
      {
        label: "always allow `git status`",
        rules: ["Bash(git status)"],
        behavior: "allow",
        mode: null,
        directories: [],
        destination: "localSettings",
      },
    ],
    blocked_path: null,
    since: "2026-11-16T10:00:00Z",
    agent_id: null,
    ...changes,
  };
}

type Reply = unknown | ((body: unknown) => unknown);

/** Answers requests by `METHOD path`; keeps what was sent. A reply with `error` has its `status`. */
export function fakeServer(replies: Record<string, Reply>) {
  const sent: { request: string; body: unknown }[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async (url, options) => {
    const request = `${options?.method ?? "GET"} ${String(url).replace(/^\/api\//, "")}`;
    const body = options?.body ? JSON.parse(String(options.body)) : undefined;
    sent.push({ request, body });
    const known = Object.entries(replies).find(([name]) => request === name || request.startsWith(`${name}?`))?.[1];
    if (known === undefined) return new Response("{}", { status: 404 });
    const reply = typeof known === "function" ? (known as (body: unknown) => unknown)(body) : known;
    if (reply && typeof reply === "object" && "error" in reply && "status" in reply)
      return new Response(JSON.stringify({ error: reply.error }), { status: Number(reply.status) });
    return new Response(JSON.stringify(reply));
  });
  return sent;
}

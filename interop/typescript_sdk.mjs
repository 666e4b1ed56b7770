// npm: @anthropic-ai/claude-agent-sdk@latest zod
// The published TypeScript SDK drives quipu-agent. Arguments: the agent, a folder.
import assert from "node:assert";
import { existsSync } from "node:fs";
import { createSdkMcpServer, query, tool } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";

const [agent, cwd] = [process.env.AGENT, process.cwd()];
const base = { pathToClaudeCodeExecutable: agent, cwd, settingSources: [] };

function check(what, holds) {
  assert(holds, what);
  console.log(`  ${what}`);
}

async function ask(prompt, options = {}) {
  const lines = [];
  try {
    for await (const line of query({ prompt, options: { ...base, ...options } })) lines.push(line);
  } catch (error) {
    lines.push({ type: "thrown", error });
  }
  return lines;
}

const last = (lines) => lines.findLast((line) => line.type === "result");

let lines = await ask("hi");
check("one-shot", last(lines).result === "Hello.");
const session = last(lines).session_id;
check("resume", last(await ask("hi", { resume: session })).session_id === session);
check("fork", last(await ask("hi", { resume: session, forkSession: true })).session_id !== session);

const schema = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] };
lines = await ask("FORM it", { outputFormat: { type: "json_schema", schema } });
check("structured output", last(lines).structured_output.ok === true);
check("an error result", last(await ask("FAIL now")).is_error === true);

const fired = [];
const add = tool("add", "Adds", { a: z.number(), b: z.number() }, async ({ a, b }) => ({
  content: [{ type: "text", text: String(a + b) }],
}));
const hook = async (input) => {
  fired.push(input.hook_event_name);
  return {};
};
lines = await ask("please ADD", {
  mcpServers: { calc: createSdkMcpServer({ name: "calc", tools: [add] }) },
  hooks: { PreToolUse: [{ hooks: [hook] }], Stop: [{ hooks: [hook] }] },
  canUseTool: async (name, input) => {
    fired.push(`ask ${name}`);
    return { behavior: "allow", updatedInput: input };
  },
  includePartialMessages: true,
});
check("in-process MCP tool", last(lines).result === "It is five.");
check("hooks and canUseTool", ["PreToolUse", "Stop", "ask mcp__calc__add"].every((what) => fired.includes(what)));
check("partial messages", lines.some((line) => line.type === "stream_event"));

lines = await ask("HELP me", { agents: { helper: { description: "Helps", prompt: "You help." } } });
check("agents by initialize", last(lines).result === "The helper is done.");

// A conversation that is steered while it runs.
let next;
const words = [];
async function* prompts() {
  for (;;) {
    while (words.length) yield { type: "user", message: { role: "user", content: words.shift() }, parent_tool_use_id: null };
    const more = await new Promise((resolve) => (next = resolve));
    if (!more) return;
  }
}
const say = (text) => {
  words.push(text);
  next?.(true);
};
const talk = query({ prompt: prompts(), options: { ...base, includePartialMessages: true } });
say("hi");
let results = 0;
for await (const line of talk) {
  if (line.type === "stream_event" && line.event.type === "content_block_delta" && results === 2) await talk.interrupt();
  if (line.type !== "result") continue;
  results += 1;
  if (results === 1) {
    check("supported models", (await talk.supportedModels()).length > 0);
    await talk.setPermissionMode("acceptEdits");
    await talk.setModel("claude-haiku-4-5");
    say("WRITE it");
  } else if (results === 2) {
    check("setPermissionMode", line.result === "Wrote it." && existsSync(`${cwd}/w.txt`));
    check("setModel", Object.keys(line.modelUsage).includes("claude-haiku-4-5"));
    say("SLOW story");
  } else if (results === 3) {
    check("interrupt", line.subtype === "error_during_execution");
    say("hi again");
  } else {
    check("and on", line.result === "Hello.");
    next?.(false);
  }
}

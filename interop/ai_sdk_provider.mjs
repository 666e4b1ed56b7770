// npm: ai-sdk-provider-claude-code@latest ai@latest zod
// The provider of the AI SDK: text, streams, tools, reasoning, objects, errors, resumed sessions.
import { existsSync } from "node:fs";
import { generateObject, generateText, streamText } from "ai";
import { createClaudeCode } from "ai-sdk-provider-claude-code";
import { z } from "zod";

const provider = createClaudeCode({ defaultSettings: { pathToClaudeCodeExecutable: process.env.AGENT, cwd: process.cwd() } });
const model = (settings = {}) => provider("claude-haiku-4-5", settings);

async function step(what, run) {
  try {
    console.log(`${what}:`, JSON.stringify(await run()));
  } catch (error) {
    console.log(`${what} throws:`, error.name, String(error.message).split("\n")[0]);
  }
}

let session;
await step("text", async () => {
  const { text, finishReason, providerMetadata } = await generateText({ model: model(), prompt: "hi" });
  session = providerMetadata?.["claude-code"]?.sessionId;
  return [text, finishReason, Boolean(session)];
});
await step("resume", async () => {
  const { text, providerMetadata } = await generateText({ model: model({ resume: session }), prompt: "hi" });
  return [text, providerMetadata?.["claude-code"]?.sessionId === session];
});
await step("stream", async () => {
  const parts = [];
  for await (const part of streamText({ model: model(), prompt: "hi" }).textStream) parts.push(part);
  return parts.join("");
});
await step("tools", async () => {
  const { text } = await generateText({ model: model({ allowedTools: ["Bash"] }), prompt: "RUN it" });
  return [text, existsSync("made")];
});
await step("refused", async () => {
  const canUseTool = async () => ({ behavior: "deny", message: "not now" });
  const { text } = await generateText({ model: model({ canUseTool, streamingInput: "always" }), prompt: "WRITE it" });
  return [text, existsSync("w.txt")];
});
await step("object", async () => {
  const { object } = await generateObject({ model: model(), schema: z.object({ ok: z.boolean() }), prompt: "FORM it" });
  return object;
});
await step("error", () => generateText({ model: model(), prompt: "FAIL now", maxRetries: 0 }));
await step("abort", async () => {
  const abort = new AbortController();
  setTimeout(() => abort.abort(), 1000);
  const { text } = await generateText({ model: model(), prompt: "SLOW story", abortSignal: abort.signal, maxRetries: 0 });
  return text;
});
await step("options debug and agent", async () => {
  const { text } = await generateText({ model: model({ debug: true, sdkOptions: { agent: "general-purpose" } }), prompt: "hi" });
  return text;
});

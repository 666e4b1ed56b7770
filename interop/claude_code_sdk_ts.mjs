// npm: @instantlyeasy/claude-code-sdk-ts@latest
// A fluent library that runs the agent's command line.
import { existsSync } from "node:fs";
import { claude } from "@instantlyeasy/claude-code-sdk-ts";

async function step(what, run) {
  try {
    console.log(`${what}:`, JSON.stringify(await run()));
  } catch (error) {
    console.log(`${what} throws:`, error.name, String(error.message).split("\n")[0]);
  }
}

await step("text", () => claude().query("hi").asText());
await step("model", () => claude().withModel("sonnet").query("hi").asText());
await step("tools", async () => [await claude().allowTools("Bash").skipPermissions().query("RUN it").asText(), existsSync("made")]);
await step("result", async () => {
  const result = await claude().query("hi").asResult();
  return typeof result === "string" ? result : result?.result ?? Object.keys(result ?? {});
});
await step("stream", async () => {
  const kinds = [];
  await claude().query("hi").stream(async (message) => kinds.push(message.type));
  return kinds;
});
await step("usage", async () => Boolean(await claude().query("hi").getUsage()));
await step("folder", () => claude().inDirectory(process.cwd()).query("hi").asText());

// npm: happy-coder@0.13.0
// Happy's loop that runs the agent for a phone, without Happy's server: turns, permissions, /compact, resume.
// The loop is no export of the package, so a copy of its file that exports it, and
// does not start the program, is made beside it.
import { existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";

const dist = `${process.env.PACKAGES}/node_modules/happy-coder/dist`;
const file = readdirSync(dist).find((name) => /^index-.*\.mjs$/.test(name));
const MAIN = "(async () => {\n  const args = process.argv.slice(2);";
const source = readFileSync(`${dist}/${file}`, "utf8").replace(MAIN, `(async () => {\n  return;\n  const args = [];`);
writeFileSync(`${dist}/copy.mjs`, `${source}\nexport { claudeRemote };\n`);
process.env.HAPPY_HOME_DIR = `${process.env.HOME}/.happy`;
// Where Happy looks for the agent.
mkdirSync(`${process.env.HOME}/.local/bin`, { recursive: true });
symlinkSync(process.env.AGENT, `${process.env.HOME}/.local/bin/claude`);
const { claudeRemote } = await import(`${dist}/copy.mjs`);

/** Runs prompts in one session; returns its id. */
async function talk(what, prompts, { sessionId = null, decide = true, mode = {} } = {}) {
  const lines = [];
  const asked = [];
  let found = sessionId;
  const left = [...prompts];
  try {
    await claudeRemote({
      sessionId,
      path: process.cwd(),
      allowedTools: [],
      mcpServers: {},
      nextMessage: async () => (left.length ? { message: left.shift(), mode: { permissionMode: "default", ...mode } } : null),
      canCallTool: async (name, input) => {
        asked.push(name);
        return decide ? { behavior: "allow", updatedInput: input } : { behavior: "deny", message: "not now" };
      },
      isAborted: () => false,
      onMessage: (line) => lines.push(line),
      onSessionFound: (id) => (found = id),
      onReady: () => {},
      onThinkingChange: () => {},
      onCompletionEvent: (text) => console.log(`${what}: event ${text}`),
      onSessionReset: () => console.log(`${what}: reset`),
    });
  } catch (error) {
    console.log(`${what} throws:`, error.name, String(error.message).split("\n")[0]);
  }
  const results = lines.filter((line) => line.type === "result").map((line) => [line.subtype, line.result]);
  console.log(`${what}:`, JSON.stringify(results), "asked", asked.join(", "));
  return found;
}

const id = await talk("turns", ["hi", "READ it", "hi again"]);
await talk("denied", ["RUN it"], { decide: false });
console.log("it ran:", existsSync("made"));
await talk("allowed", ["RUN it"]);
console.log("it ran:", existsSync("made"));
const again = await talk("resumed", ["hi"], { sessionId: id });
console.log("the same session:", again === id);
await talk("compacted", ["/compact", "hi"], { sessionId: id });
await talk("plan", ["hi"], { mode: { permissionMode: "plan" } });
await talk("model", ["hi"], { mode: { model: "haiku", appendSystemPrompt: "Speak like a pirate." } });
await talk("an error", ["FAIL now", "hi"]);
await talk("clear", ["/clear"]);
process.exit(0);

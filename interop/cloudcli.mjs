// npm: @cloudcli-ai/cloudcli@1.37.3
// CloudCLI's server (the web interface Claude Code UI), spoken to as its page does: REST and WebSocket.
// Its two native modules are replaced, because they cannot be compiled without headers of this Node.js:
// better-sqlite3 by node:sqlite, node-pty (the page's terminal) by nothing.
import { spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";

const PORT = 8379;
const STAND_INS = `
import { registerHooks } from "node:module";
const sources = {
  "better-sqlite3": \`
    import { DatabaseSync } from "node:sqlite";
    export default class {
      constructor(path, { readonly = false } = {}) { this.db = new DatabaseSync(path, { readOnly: readonly }); }
      exec(sql) { this.db.exec(sql); return this; }
      pragma(text) { return this.db.prepare("PRAGMA " + text).all(); }
      prepare(sql) {
        const statement = this.db.prepare(sql);
        const call = (name) => (...args) => statement[name](...args.flat());
        return { get: call("get"), all: call("all"), run: call("run") };
      }
      transaction(run) {
        return (...args) => {
          this.db.exec("SAVEPOINT t");
          try { const result = run(...args); this.db.exec("RELEASE t"); return result; }
          catch (error) { this.db.exec("ROLLBACK TO t"); this.db.exec("RELEASE t"); throw error; }
        };
      }
      close() { this.db.close(); }
    }\`,
  "node-pty": "export default {}; export const spawn = undefined;",
};
registerHooks({
  resolve: (name, context, next) =>
    name in sources ? { url: "standin:" + name, shortCircuit: true } : next(name, context),
  load: (url, context, next) =>
    url.startsWith("standin:") ? { format: "module", source: sources[url.slice(8)], shortCircuit: true } : next(url, context),
});
`;
const base = `http://127.0.0.1:${PORT}`;
const folder = `${process.env.PACKAGES}/node_modules/@cloudcli-ai/cloudcli`;
writeFileSync("../stand_ins.mjs", STAND_INS);
const server = spawn("node", ["--import", `${process.env.HOME}/stand_ins.mjs`, `${folder}/dist-server/server/index.js`], {
  env: { ...process.env, CLAUDE_CLI_PATH: process.env.AGENT, SERVER_PORT: String(PORT), HOST: "127.0.0.1", NODE_ENV: "production" },
  stdio: ["ignore", 2, 2],
});

let token;
async function rest(method, path, body) {
  const headers = { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) };
  const response = await fetch(`${base}/api${path}`, { method, headers, body: body && JSON.stringify(body) });
  const answer = await response.json();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
  return answer.data ?? answer;
}

for (let tries = 0; ; tries += 1) {
  try {
    await rest("GET", "/auth/status");
    break;
  } catch (error) {
    if (tries === 300) throw error;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
({ token } = await rest("POST", "/auth/register", { username: "interop", password: "not-a-secret" }));
const socket = new WebSocket(`ws://127.0.0.1:${PORT}/ws?token=${token}`);
let heard = () => {};
socket.onmessage = ({ data }) => heard(JSON.parse(data));
await new Promise((resolve, reject) => Object.assign(socket, { onopen: resolve, onerror: reject }));

let session;
async function create() {
  session = (await rest("POST", "/providers/sessions", { provider: "claude", projectPath: process.cwd() })).sessionId;
}

const OFF = new Set(["status", "session_created", "session_upserted", "loading_progress", "chat_subscribed", "permission_resolved"]);

/** Sends a prompt; returns the frames until the turn is complete. `decide` answers permission requests. */
function turn(content, options = {}, { decide = () => ({ allow: true }) } = {}) {
  const frames = [];
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`no end of ${content}: ${JSON.stringify(frames)}`)), 45000);
    heard = (frame) => {
      if (frame.sessionId && frame.sessionId !== session) return;
      frames.push(frame);
      if (frame.kind === "permission_request")
        socket.send(JSON.stringify({ type: "chat.permission-response", requestId: frame.requestId, ...decide(frame) }));
      if (frame.kind === "complete" || frame.kind === "protocol_error") {
        clearTimeout(late);
        resolve(frames);
      }
    };
    socket.send(JSON.stringify({ type: "chat.send", sessionId: session, content, options }));
  });
}

/** A turn's frames in short: kinds in a row, what was said, how it ended. */
function shown(what, frames) {
  const kinds = [];
  let text = "";
  for (const frame of frames) {
    if (OFF.has(frame.kind)) continue;
    const kind = frame.kind + (frame.toolName ? ` ${frame.toolName}` : "") + (frame.isError ? " error" : "");
    if (kinds.at(-1) !== kind) kinds.push(kind);
    if (frame.kind === "text" && frame.role !== "user") text += frame.content;
    if (frame.kind === "error" || frame.kind === "protocol_error") text += frame.content ?? frame.error;
  }
  const end = frames.at(-1);
  console.log(`${what}: [${kinds.join(", ")}] ${JSON.stringify(text)} exit ${end.exitCode} aborted ${Boolean(end.aborted)}`);
}

const ask = async (content, options, more) => shown(content, await turn(content, options, more));

// How much was said before the abort depends on the time; the other text fills the turn when the real program resumes it.
const UNLIKE = /^This answer is|^This$|^No response requested/;

async function history(what) {
  let now, messages;
  // The server looks for changed files every few seconds.
  for (let tries = 0; tries < 100 && !messages?.some((row) => row.content === "hi after that"); tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 200));
    now = new Date().toISOString();
    ({ messages } = await rest("GET", `/providers/sessions/${session}/messages`));
  }
  // Lines that only the agent needs have no time of their own, and get that of the reading.
  const said = messages.filter((row) => row.timestamp < now && !UNLIKE.test(row.content));
  const rows = said.filter((row) => ["text", "tool_use", "tool_result", "thinking"].includes(row.kind));
  const short = (row) => [row.kind, row.role, row.toolName, row.kind === "text" && String(row.content).split("\n")[0].slice(0, 40)];
  console.log(`${what}:`, JSON.stringify(rows.map((row) => short(row).filter(Boolean).join(" "))));
}

try {
  const auth = await rest("GET", "/providers/claude/auth/status");
  console.log("auth:", auth.installed, auth.authenticated);
  const models = await rest("GET", "/providers/claude/models");
  console.log("models:", Boolean(models));
  await create();
  await ask("hi");
  await ask("RUN it", {}, { decide: () => ({ allow: false, message: "not now" }) });
  console.log("it ran:", existsSync("made"));
  await ask("RUN it");
  console.log("it ran:", existsSync("made"));
  await ask("WRITE it", { permissionMode: "acceptEdits" });
  console.log("it wrote:", existsSync("w.txt"));
  await ask("please READ it", { toolsSettings: { allowedTools: ["Read"], disallowedTools: [], skipPermissions: false } });
  await ask("HELP me, general", { toolsSettings: { allowedTools: ["Agent"], disallowedTools: [], skipPermissions: false } });
  await ask("hi", { model: "haiku", effort: "low" });
  await ask("hi", { permissionMode: "auto" });
  await ask("hi", { permissionMode: "plan" });
  await ask("RUN it", { permissionMode: "bypassPermissions" });
  for (const command of ["/cost", "/compact"]) {
    const frames = await turn(command);
    // The words of the report are each program's own.
    console.log(`${command}:`, frames.some((frame) => frame.kind === "text" && /(Total|Estimated) cost|Compacted/.test(frame.content)), frames.at(-1).exitCode);
  }
  // The answer takes six seconds; how much of it was said by then depends on the agent's start.
  setTimeout(() => socket.send(JSON.stringify({ type: "chat.abort", sessionId: session })), 1500);
  const frames = await turn("SLOW story");
  // What was written before the abort may still come after the turn is complete.
  console.log("SLOW story, aborted:", Boolean(frames.find((frame) => frame.kind === "complete")?.aborted));
  // The server ends the agent after two seconds, and passes on what it still says.
  await new Promise((resolve) => setTimeout(resolve, 3000));
  await ask("hi after that");
  await history("history");
  const usage = await rest("GET", `/providers/sessions/${session}/token-usage`);
  console.log("token usage:", Object.keys(usage).sort().join(", "));
  const fork = await rest("POST", `/providers/sessions/${session}/fork`, {});
  console.log("forked:", Boolean(fork.sessionId) && fork.sessionId !== session);
  session = fork.sessionId;
  await ask("hi, forked");
  await ask("FAIL now");
  const projects = await rest("GET", "/projects");
  console.log("projects:", (projects.projects ?? projects).map?.((project) => project.sessions?.length ?? project.sessionMeta?.total));
} finally {
  socket.close();
  server.kill();
}

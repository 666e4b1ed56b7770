// Starts `quipu serve` on a scratch folder.
import { spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const TARGET = process.env.CARGO_TARGET_DIR ?? new URL("../../target", import.meta.url).pathname;

/** The program to test: QUIPU, then the build of `make`, then a debug build. */
export function findQuipu() {
  const found =
    process.env.QUIPU ??
    ["quick", "debug", "release"].map((profile) => `${TARGET}/${profile}/quipu`).find((path) => existsSync(path));
  if (!found) throw new Error("no build of quipu was found: run `make build`, or set QUIPU to its path");
  return found;
}

/**
 * @param {string} home
 * @param {{ listen?: string, env?: Record<string, string> }} options
 */
export async function startServer(home, { listen = "127.0.0.1:0", env = {} } = {}) {
  const environment = { PATH: process.env.PATH, HOME: home, TZ: "UTC", ...env };
  const child = spawn(findQuipu(), ["--claude-dir", `${home}/.claude`, "serve", "--listen", listen, "--no-open"], {
    env: environment,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const address = await new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", resolve);
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`quipu serve ended with status ${code}`)));
  });
  const url = new URL(String(address));
  return {
    address: url.href,
    origin: url.origin,
    token: new URLSearchParams(url.hash.slice(1)).get("token") ?? "",
    pid: child.pid ?? 0,
    /** Ends the server and waits until it has ended. */
    stop: (/** @type {NodeJS.Signals} */ signal = "SIGTERM") => end(child, signal),
  };
}

/**
 * @param {import("node:child_process").ChildProcess} child
 * @param {NodeJS.Signals} signal
 */
function end(child, signal) {
  return new Promise((done) => {
    child.removeAllListeners("exit");
    if (child.exitCode !== null || child.signalCode !== null) return done(undefined);
    child.once("exit", done);
    child.kill(signal);
  });
}

/**
 * A mock API that answers by a script (docs/answer.md).
 * @param {unknown[]} rules
 * @param {string} folder
 */
export async function startMockApi(rules, folder) {
  const script = `${folder}/answers.json`;
  writeFileSync(script, JSON.stringify(rules));
  const child = spawn(findQuipu(), ["-q", "answer", script, "--json"], {
    env: { PATH: process.env.PATH, HOME: folder },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const line = await new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", resolve);
    child.once("exit", (code) => reject(new Error(`quipu answer ended with status ${code}`)));
  });
  return { url: String(JSON.parse(String(line)).url), stop: () => end(child, "SIGTERM") };
}

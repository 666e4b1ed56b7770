// Starts `quipu serve` on a scratch folder.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
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
 * @param {string[]} more further arguments of `quipu serve`
 */
export async function startServer(home, more = []) {
  const environment = { PATH: process.env.PATH, HOME: home, TZ: "UTC" };
  const child = spawn(
    findQuipu(),
    ["--claude-dir", `${home}/.claude`, "serve", "--listen", "127.0.0.1:0", "--no-open", ...more],
    { env: environment, stdio: ["ignore", "pipe", "inherit"] },
  );
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
    stop: () =>
      new Promise((done) => {
        child.removeAllListeners("exit");
        child.once("exit", done);
        child.kill();
      }),
  };
}

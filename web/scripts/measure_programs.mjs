// The programs that measure.mjs compares: how each is started, opened on a session and scrolled.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { startServer } from "../e2e/server.mjs";

/**
 * @typedef {object} Program
 * @property {string} name
 * @property {string} scroller Selector of the element that scrolls the conversation.
 * @property {(id: string) => string} path Path of a session in the address.
 * @property {Record<string, string>} settings Local storage of the page, as its own buttons would leave it.
 * @property {(page: import("playwright-core").Page) => Promise<void>} allowScrolling Ends what keeps the page at the end.
 * @property {(home: string) => Promise<{ address: string, pid: number, stop: () => Promise<unknown> }>} start
 */

/** @type {Program} */
export const quipu = {
  name: "quipu",
  scroller: ".scroller",
  path: (id) => `/s/${id}`,
  settings: {},
  allowScrolling: async () => {},
  start: (home) => startServer(home),
};

/**
 * agentsview of PyPI. It opens a session at its beginning unless its button "Follow latest messages" is on.
 * It is not a program of ours: run measure.mjs where only loopback can be reached.
 * @param {string} command
 * @returns {Program}
 */
export const agentsview = (command) => ({
  name: "agentsview",
  scroller: ".message-list-scroll",
  path: (id) => `/sessions/${id}`,
  settings: { "agentsview-follow-latest": "true" },
  allowScrolling: (page) => page.locator('[title="Follow latest messages"]').click(),
  async start(home) {
    const child = spawn(command, ["serve", "--no-browser", "--no-update-check", "--port", "0"], {
      env: { PATH: process.env.PATH, HOME: home, TZ: "UTC" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const ended = new Promise((resolve) => child.once("exit", resolve));
    const address = await new Promise((resolve, reject) => {
      createInterface({ input: child.stdout }).on("line", (line) => {
        const found = / listening at (\S+)/.exec(line);
        if (found) resolve(`${found[1]}/`);
      });
      ended.then((code) => reject(new Error(`agentsview ended with status ${code}`)));
    });
    return {
      address: String(address),
      pid: child.pid ?? 0,
      stop() {
        child.kill("SIGTERM");
        return ended;
      },
    };
  },
});

// Measures a chat while an answer is streamed quickly: node scripts/measure_chat.mjs [SECONDS]
// Needs builds of quipu and quipu-agent in one folder (QUIPU) and Chromium. Prints a table for docs/bench.md.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { launchBrowser } from "../e2e/browser.mjs";
import { startMockApi, startServer } from "../e2e/server.mjs";
import { scratchFolder } from "../e2e/sessions.mjs";

const seconds = Number(process.argv[2] ?? 15);
/** Characters of one token, about, and of one delta: the mock API sends some hundred deltas a second. */
const TOKEN = 4;
const CHUNK = 16;
const SECTION = `## A section of the answer

A paragraph with **bold** words, \`code\` and [a link](https://example.com/), long enough to be wrapped on most screens.

- the first point
- the second point, with more words than the first
  - and one below it

| name | value |
|---|---|
| one | 1 |
| two | 2 |

\`\`\`rust
fn main() {
    for number in 0..10 {
        println!("line {number} of the program");
    }
}
\`\`\`

`;
const CODE = `\`\`\`rust\n${"    let value = compute(value, 12); // one more line of a long program\n".repeat(400)}\`\`\`\n\n`;
const LIST = "- a point of a very long list, with `code` and **bold** words\n".repeat(200);
const text = (SECTION.repeat(60) + CODE + LIST).repeat(20).slice(0, seconds * 1500 * TOKEN);

/** @param {number[]} values @param {number} share */
const quantile = (values, share) => [...values].sort((a, b) => a - b)[Math.floor(values.length * share)] ?? 0;

const home = scratchFolder();
const folder = join(home, "tidepool");
mkdirSync(folder, { recursive: true });
mkdirSync(join(home, ".config", "quipu"), { recursive: true });
writeFileSync(join(home, ".config", "quipu", "config.toml"), '[chat]\nagent = "quipu-agent"\n');
const rules = [
  { when: { tools: false }, reply: "A title" },
  { reply: text, chunk: CHUNK, pause_ms: 1 },
];
const api = await startMockApi(rules, home);
const server = await startServer(home, { env: { ANTHROPIC_BASE_URL: api.url, ANTHROPIC_API_KEY: "test" } });
const browser = await launchBrowser();
const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: "en-US" })).newPage();
await page.goto(server.address.replace("/#", `/chat?folder=${encodeURIComponent(folder)}#`));
const composer = page.getByRole("combobox", { name: "message" });
await page.getByRole("combobox", { name: "permission mode" }).waitFor();
await composer.fill("write a lot");
await composer.press("Enter");
await page.getByRole("button", { name: "trust and start" }).click();
await page.locator('[data-kind="live"]').first().waitFor();

// Every key: time from the event to the frame that shows it.
await page.evaluate(() => {
  const keys = /** @type {number[]} */ ([]);
  Object.assign(window, { keys });
  addEventListener(
    "keydown",
    (event) => requestAnimationFrame(() => setTimeout(() => keys.push(performance.now() - event.timeStamp))),
    true,
  );
});
const client = await page.context().newCDPSession(page);
await client.send("Performance.enable");
const metric = async (/** @type {string} */ name) =>
  (await client.send("Performance.getMetrics")).metrics.find((known) => known.name === name)?.value ?? 0;
const shownCharacters = () => page.evaluate(() => document.querySelector(".scroller")?.textContent?.length ?? 0);

const started = performance.now();
const before = await shownCharacters();
const scripts = [];
const layouts = [];
let end = before;
let ended = started;
await composer.focus();
while (performance.now() - started < seconds * 1000) {
  const [script, layout] = [await metric("ScriptDuration"), await metric("LayoutDuration")];
  if (scripts.length % 4 === 0) await page.keyboard.press("x");
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  scripts.push(((await metric("ScriptDuration")) - script) * 1000);
  layouts.push(((await metric("LayoutDuration")) - layout) * 1000);
  const shown = await shownCharacters();
  if (shown > end) [end, ended] = [shown, performance.now()];
  if ((await page.locator('[data-kind="live"]').count()) === 0) break;
}
const keys = await page.evaluate(() => /** @type {{ keys?: number[] }} */ (window).keys ?? []);
const rate = (end - before) / ((ended - started) / 1000) / TOKEN;

console.log(`an answer of ${text.length} characters, ${rate.toFixed(0)} tokens a second on screen\n`);
console.log("| | median | p95 | max |\n|---|---|---|---|");
const row = (/** @type {string} */ name, /** @type {number[]} */ values) =>
  console.log(
    `| ${name} | ${quantile(values, 0.5).toFixed(1)} ms | ${quantile(values, 0.95).toFixed(1)} ms | ${Math.max(...values).toFixed(1)} ms |`,
  );
row(`scripts of two frames while streaming (${scripts.length} samples)`, scripts);
row("layout of two frames", layouts);
row(`from a key to the frame that shows it (${keys.length} keys)`, keys);
await browser.close();
await server.stop();
await api.stop();
rmSync(home, { recursive: true, force: true });

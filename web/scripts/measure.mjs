// Measures the page on a session of 44,000 entries and 200 MB: node scripts/measure.mjs [ENTRIES] [MEGABYTES]
// Needs a release build of quipu (QUIPU) and Chromium. Prints a table for docs/bench.md.
import { readFileSync, rmSync } from "node:fs";
import { launchBrowser } from "../e2e/browser.mjs";
import { startServer } from "../e2e/server.mjs";
import { SessionWriter, scratchFolder } from "../e2e/sessions.mjs";

const entries = Number(process.argv[2] ?? 44_000);
const megabytes = Number(process.argv[3] ?? 200);
const turns = Math.floor(entries / 4);
const resultBytes = Math.max(100, Math.floor((megabytes * 1e6) / turns - 2600));

/** @param {string} home */
function writeSession(home) {
  const session = new SessionWriter(home, "20000000-0000-4000-8000-000000000000");
  const text = "The quick brown fox reads src/main.rs and counts 1234 lines.\n";
  let lines = [];
  for (let turn = 1; turn <= turns; turn += 1) {
    const size = Math.floor(resultBytes * (0.25 + (1.5 * ((turn * 7919) % 1000)) / 1000));
    lines.push(
      session.prompt(`prompt number ${turn}: please look at the file and explain what it does`),
      session.tool(
        "Bash",
        { command: `cat part-${turn}.txt`, description: "Read a part" },
        text.repeat(Math.ceil(size / text.length)),
      ),
      session.answer([
        {
          type: "text",
          text: `Answer ${turn}.\n\n- **one** point\n- \`two\` points\n\n\`\`\`rust\nfn main() { println!("${turn}"); }\n\`\`\`\n\n${text.repeat(8)}`,
        },
      ]),
    );
    if (lines.length > 300) {
      session.write(...lines);
      lines = [];
    }
  }
  session.write(...lines);
  return session;
}

/** @param {number} pid */
const residentMegabytes = (pid) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
/** @param {number[]} values @param {number} share */
const quantile = (values, share) => [...values].sort((a, b) => a - b)[Math.floor(values.length * share)] ?? 0;

const home = scratchFolder();
const session = writeSession(home);
const browser = await launchBrowser();
const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
const lastPrompt = page.locator(".scroller").getByText(`Answer ${turns}.`);

const start = performance.now();
const server = await startServer(home);
await page.goto(server.address.replace("/#", `/s/${session.id}#`));
await lastPrompt.waitFor();
const fromStart = performance.now() - start;

await page.goto(server.origin);
const link = page.locator(`a[href="/s/${session.id}"]`).first();
await link.waitFor();
const fromClick = await page.evaluate(
  ([id, last]) =>
    new Promise((resolve) => {
      const begin = performance.now();
      const check = () =>
        document.querySelector(".scroller")?.textContent?.includes(last ?? "")
          ? resolve(performance.now() - begin)
          : requestAnimationFrame(check);
      /** @type {HTMLElement | null} */ (document.querySelector(`a[href="/s/${id}"]`))?.click();
      check();
    }),
  [session.id, `Answer ${turns}.`],
);

// What an appended line costs, seen in the page. The figures of the turns are read first.
await page.waitForTimeout(5000);
await page.evaluate(() => {
  const seen = /** @type {Record<string, number>} */ ({});
  Object.assign(window, { seen });
  new MutationObserver(() => {
    for (const word of document.querySelector(".scroller")?.textContent?.match(/appended-\d+/g) ?? [])
      seen[word] ??= Date.now();
  }).observe(document.body, { childList: true, subtree: true, characterData: true });
});
const delays = [];
for (let index = 1; index <= 10; index += 1) {
  const written = Date.now();
  session.write(session.answer([{ type: "text", text: `appended-${index}` }]));
  await page.waitForTimeout(600);
  const seen = await page.evaluate(
    (name) => /** @type {{ seen?: Record<string, number> }} */ (window).seen?.[name],
    `appended-${index}`,
  );
  delays.push(seen ? seen - written : 600);
}

// Time of scripts in each frame of ordinary scrolling; then the whole session passes by.
const client = await page.context().newCDPSession(page);
await client.send("Performance.enable");
const scriptSeconds = async () =>
  (await client.send("Performance.getMetrics")).metrics.find((metric) => metric.name === "ScriptDuration")?.value ?? 0;
const frames = [];
for (let frame = 0; frame < 300; frame += 1) {
  const before = await scriptSeconds();
  await page.evaluate(
    () =>
      new Promise((done) => {
        document.querySelector(".scroller")?.scrollBy(0, -300);
        requestAnimationFrame(() => requestAnimationFrame(done));
      }),
  );
  frames.push(((await scriptSeconds()) - before) * 1000);
}
await page.evaluate(async () => {
  const scroller = /** @type {HTMLElement} */ (document.querySelector(".scroller"));
  for (let at = scroller.scrollTop; at > 0; at -= 3000) {
    scroller.scrollTop = at;
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  }
});
await page.waitForTimeout(1000);
await client.send("HeapProfiler.collectGarbage");
const metrics = Object.fromEntries(
  (await client.send("Performance.getMetrics")).metrics.map((metric) => [metric.name, metric.value]),
);

console.log(`session of ${session.count} entries and ${(readFileSync(session.path).length / 1e6).toFixed(0)} MB\n`);
console.log("| | measured |\n|---|---|");
console.log(
  `| last screen, from starting \`quipu serve\` on a folder it has never seen | ${(fromStart / 1000).toFixed(2)} s |`,
);
console.log(`| last screen, from the click | ${(Number(fromClick) / 1000).toFixed(2)} s |`);
console.log(
  `| an appended line on screen, median and p95 | ${quantile(delays, 0.5)} ms, ${quantile(delays, 0.95)} ms |`,
);
console.log(
  `| scripts of a frame while scrolling, median and p95 | ${quantile(frames, 0.5).toFixed(1)} ms, ${quantile(frames, 0.95).toFixed(1)} ms |`,
);
console.log(`| page heap after it | ${((metrics.JSHeapUsedSize ?? 0) / 1e6).toFixed(0)} MB |`);
console.log(`| server memory | ${residentMegabytes(server.pid).toFixed(0)} MB |`);
await browser.close();
await server.stop();
rmSync(home, { recursive: true, force: true });

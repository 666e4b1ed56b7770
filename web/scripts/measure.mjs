// Measures the page on a session of 44,000 entries and 200 MB and on one of 20 MB: node scripts/measure.mjs [MEGABYTES…]
// Needs a release build of quipu (QUIPU) and Chromium. With QUIPU_BENCH_AGENTSVIEW=PATH the same sessions are opened
// in agentsview, in turn. Prints the table "The page" of docs/bench.md.
import { rmSync, statSync } from "node:fs";
import { launchBrowser } from "../e2e/browser.mjs";
import { SessionWriter, scratchFolder } from "../e2e/sessions.mjs";
import { agentsview, quipu } from "./measure_programs.mjs";
import { APPENDED_LIMIT_S, measureSession, SCROLL_LIMIT_S } from "./measure_session.mjs";

const sizes = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [200, 20];
const ENTRIES_PER_MEGABYTE = 220;

/** @typedef {Awaited<ReturnType<typeof measureSession>>} Figures */

/** @type {{ what: string, figure: keyof Figures, unit: string, digits: number, limit: string }[]} */
const ROWS = [
  {
    what: "last screen, from starting the server on a folder it has never seen",
    figure: "fromStart",
    unit: "s",
    digits: 2,
    limit: "2 s",
  },
  { what: "last screen, from the click", figure: "fromClick", unit: "s", digits: 2, limit: "0.4 s" },
  { what: "an appended line on screen, p95", figure: "appended", unit: "ms", digits: 0, limit: "150 ms" },
  { what: "scripts per frame while scrolling, p95 of 300", figure: "frame", unit: "ms", digits: 1, limit: "16 ms" },
  { what: "page heap after scrolling end to end", figure: "heap", unit: "MB", digits: 0, limit: "60 MB" },
  { what: "server memory after it", figure: "memory", unit: "MB", digits: 0, limit: "100 MB" },
  { what: "peak memory of the server", figure: "peak", unit: "MB", digits: 0, limit: "" },
];
/** @type {typeof ROWS[number]} */
const FIRST_LOAD = {
  what: "first load of the page, gzipped, before lazy chunks",
  figure: "firstLoad",
  unit: "kB",
  digits: 0,
  limit: "300 kB",
};
/** @param {number} megabytes */
function writeSession(megabytes) {
  const home = scratchFolder();
  const turns = Math.floor((megabytes * ENTRIES_PER_MEGABYTE) / 4);
  const resultBytes = Math.max(100, Math.floor((megabytes * 1e6) / turns - 2600));
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
  const bytes = statSync(session.path).size;
  return { home, writer: session, bytes, turns, last: `Answer ${turns}.` };
}

/**
 * The run that showed the last screen sooner.
 * @param {Figures} one
 * @param {Figures} two
 */
const better = (one, two) => (two.fromClick < one.fromClick ? two : one);

/** @param {typeof ROWS[number]} row @param {Figures | undefined} figures */
function cell(row, figures) {
  if (!figures) return "not measured";
  const value = figures[row.figure];
  if (Number.isNaN(value)) return `not shown within ${APPENDED_LIMIT_S} s`;
  const note =
    row.figure === "heap" && figures.unscrolled > 0
      ? ` (${((1 - figures.unscrolled) * 100).toFixed(0)} % scrolled in ${SCROLL_LIMIT_S} s)`
      : "";
  return `${value.toFixed(row.digits)} ${row.unit}${note}`;
}

const command = process.env.QUIPU_BENCH_AGENTSVIEW;
const peer = command ? agentsview(command) : undefined;
const browser = await launchBrowser();
console.log("| what | quipu | agentsview | limit |\n|---|--:|--:|--:|");
for (const [index, megabytes] of sizes.entries()) {
  const session = writeSession(megabytes);
  const ours = await measureSession(browser, quipu, session);
  const theirs =
    peer && better(await measureSession(browser, peer, session), await measureSession(browser, peer, session));
  rmSync(session.home, { recursive: true });
  const size = `${(session.bytes / 1e6).toFixed(0)} MB in ${session.writer.count} entries`;
  // The limits are for the first session. The first load is the same for all.
  for (const row of ROWS)
    console.log(`| ${size}: ${row.what} | ${cell(row, ours)} | ${cell(row, theirs)} | ${index ? "" : row.limit} |`);
  if (index === 0)
    console.log(
      `| ${FIRST_LOAD.what} | ${cell(FIRST_LOAD, ours)} | ${cell(FIRST_LOAD, theirs)} | ${FIRST_LOAD.limit} |`,
    );
}
await browser.close();

// What one program needs to show one session. measure.mjs prints it.
import { readdirSync, readFileSync, rmSync, truncateSync } from "node:fs";
import { gzipSync } from "node:zlib";

export const APPENDED_LIMIT_S = 30;
export const SCROLL_LIMIT_S = 120;

/** @param {number[]} values @param {number} share */
const quantile = (values, share) => [...values].sort((a, b) => a - b)[Math.floor(values.length * share)] ?? 0;

/** @param {number} pid @param {"VmRSS" | "VmHWM"} field */
const memoryMegabytes = (pid, field) =>
  Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;

/**
 * Bytes of the page and of the scripts and styles that its HTML names, each compressed: what a browser needs before
 * it loads anything lazily.
 * @param {string} origin
 */
async function firstLoadBytes(origin) {
  const read = async (/** @type {string} */ path) =>
    Buffer.from(await (await fetch(new URL(path, origin))).arrayBuffer());
  const html = await read("/");
  const named = html
    .toString()
    .matchAll(/<(?:script[^>]* src|link[^>]* rel="(?:stylesheet|modulepreload)"[^>]* href)="([^"]+)"/g);
  const files = await Promise.all([...named].map((match) => read(match[1] ?? "")));
  return [html, ...files].reduce((sum, file) => sum + gzipSync(file).length, 0);
}

/**
 * @param {import("playwright-core").Page} page
 * @param {import("./measure_programs.mjs").Program} program
 * @param {{ id: string, last: string }} session
 */
function clickAndWait(page, program, { id, last }) {
  return page.evaluate(
    ([link, scroller, text]) =>
      new Promise((resolve) => {
        const begin = performance.now();
        const check = () =>
          document.querySelector(scroller ?? "")?.textContent?.includes(text ?? "")
            ? resolve(performance.now() - begin)
            : requestAnimationFrame(check);
        /** @type {HTMLElement | null} */ (document.querySelector(link ?? ""))?.click();
        check();
      }),
    [`a[href="${program.path(id)}"]`, program.scroller, last],
  );
}

/**
 * Milliseconds from the write of a line until the page shows it, of ten lines or of those that the time limit allows.
 * @param {import("playwright-core").Page} page
 * @param {string} scroller
 * @param {import("../e2e/sessions.mjs").SessionWriter} session
 */
async function appendLines(page, scroller, session) {
  await page.evaluate((selector) => {
    const seen = /** @type {Record<string, number>} */ ({});
    Object.assign(window, { seen });
    new MutationObserver(() => {
      for (const word of document.querySelector(selector)?.textContent?.match(/appended-\d+/g) ?? [])
        seen[word] ??= Date.now();
    }).observe(document.body, { childList: true, subtree: true, characterData: true });
  }, scroller);
  const delays = [];
  const end = Date.now() + APPENDED_LIMIT_S * 1000;
  for (let index = 1; index <= 10 && Date.now() < end; index += 1) {
    const name = `appended-${index}`;
    const written = Date.now();
    session.write(session.answer([{ type: "text", text: name }]));
    const seen = await page
      .waitForFunction((word) => /** @type {{ seen?: Record<string, number> }} */ (window).seen?.[word], name, {
        timeout: end - written,
        polling: 50,
      })
      .then((handle) => handle.jsonValue())
      .catch(() => undefined);
    if (seen === undefined) break;
    delays.push(seen - written);
    await page.waitForTimeout(400);
  }
  return delays;
}

/**
 * Milliseconds of scripts in each of 300 frames that scroll towards the beginning.
 * @param {import("playwright-core").Page} page
 * @param {string} scroller
 * @param {() => Promise<Record<string, number>>} metrics
 */
async function scrollFrames(page, scroller, metrics) {
  const frames = [];
  for (let frame = 0; frame < 300; frame += 1) {
    const before = (await metrics()).ScriptDuration ?? 0;
    await page.evaluate(
      (selector) =>
        new Promise((done) => {
          document.querySelector(selector)?.scrollBy(0, -300);
          requestAnimationFrame(() => requestAnimationFrame(done));
        }),
      scroller,
    );
    frames.push((((await metrics()).ScriptDuration ?? 0) - before) * 1000);
  }
  return frames;
}

/**
 * Scrolls to the beginning of the session and returns the number of the first prompt that it reached in time: 1 if all
 * of them passed by.
 * @param {import("playwright-core").Page} page
 * @param {string} scroller
 */
function scrollToBeginning(page, scroller) {
  return page.evaluate(
    async ([selector, limit]) => {
      const end = performance.now() + Number(limit) * 1000;
      const element = /** @type {HTMLElement} */ (document.querySelector(String(selector)));
      let first = Number.POSITIVE_INFINITY;
      while (first > 1 && performance.now() < end) {
        // At the top of what is loaded, a page that loads more needs another scroll event.
        element.scrollTop += element.scrollTop > 0 ? -3000 : 1000;
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        const found = /prompt number (\d+):/.exec(element.textContent ?? "");
        if (found) first = Math.min(first, Number(found[1]));
      }
      return first;
    },
    /** @type {(string | number)[]} */ ([scroller, SCROLL_LIMIT_S]),
  );
}

/**
 * @param {import("playwright-core").Browser} browser
 * @param {import("./measure_programs.mjs").Program} program
 * @param {{ home: string, writer: import("../e2e/sessions.mjs").SessionWriter, bytes: number, turns: number, last: string }} session
 */
export async function measureSession(browser, program, { home, writer, bytes, turns, last }) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  await context.addInitScript((settings) => {
    for (const [name, value] of Object.entries(settings)) localStorage.setItem(name, value);
  }, program.settings);
  const page = await context.newPage();
  const saved = { count: writer.count, parent: writer.parent };

  const start = performance.now();
  const server = await program.start(home);
  const address = new URL(server.address);
  await page.goto(address.origin + program.path(writer.id) + address.hash);
  await page.locator(program.scroller).getByText(last).waitFor({ timeout: 120_000 });
  const fromStart = performance.now() - start;

  await page.goto(address.origin);
  await page
    .locator(`a[href="${program.path(writer.id)}"]`)
    .first()
    .waitFor();
  const fromClick = Number(await clickAndWait(page, program, { id: writer.id, last }));

  // The page reads the figures of the turns first.
  await page.waitForTimeout(5000);
  const appended = await appendLines(page, program.scroller, writer);

  const client = await context.newCDPSession(page);
  await client.send("Performance.enable");
  const metrics = async () =>
    Object.fromEntries(
      (await client.send("Performance.getMetrics")).metrics.map((metric) => [metric.name, metric.value]),
    );
  await program.allowScrolling(page);
  const frames = await scrollFrames(page, program.scroller, metrics);
  const firstPrompt = await scrollToBeginning(page, program.scroller);
  await page.waitForTimeout(1000);
  await client.send("HeapProfiler.collectGarbage");
  const heap = (await metrics()).JSHeapUsedSize ?? 0;
  const figures = {
    fromStart: fromStart / 1000,
    fromClick: fromClick / 1000,
    appended: appended.length ? quantile(appended, 0.95) : Number.NaN,
    frame: quantile(frames, 0.95),
    heap: heap / 1e6,
    unscrolled: (firstPrompt - 1) / turns,
    memory: memoryMegabytes(server.pid, "VmRSS"),
    peak: memoryMegabytes(server.pid, "VmHWM"),
    firstLoad: (await firstLoadBytes(address.origin)) / 1000,
  };
  await context.close();
  await server.stop();
  // The next program starts from the same folder: without the appended lines and the files of this one.
  truncateSync(writer.path, bytes);
  Object.assign(writer, saved);
  for (const name of readdirSync(home)) if (name !== ".claude") rmSync(`${home}/${name}`, { recursive: true });
  return figures;
}

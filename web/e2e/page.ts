import { rmSync } from "node:fs";
import axe from "axe-core";
import type { Browser, Page } from "playwright-core";
import { launchBrowser } from "./browser.mjs";
import { startServer } from "./server.mjs";
import { scratchFolder } from "./sessions.mjs";

export type Server = Awaited<ReturnType<typeof startServer>>;

/** A server on a scratch folder, a browser, and what went wrong in its pages. */
export class TestPage {
  readonly faults: string[] = [];
  readonly foreign: string[] = [];

  private constructor(
    readonly home: string,
    public server: Server,
    readonly browser: Browser,
    readonly page: Page,
  ) {}

  /** `prepare` writes further sessions before the server starts; it may return variables for the server. */
  static async open(
    prepare: (home: string) => undefined | Record<string, string> | Promise<Record<string, string>> = () => undefined,
    language = "en-US",
  ): Promise<TestPage> {
    const home = scratchFolder();
    const env = await prepare(home);
    const [server, browser] = await Promise.all([startServer(home, { env }), launchBrowser()]);
    const context = await browser.newContext({
      viewport: { width: 1280, height: 800 },
      locale: language,
      timezoneId: "UTC",
      permissions: ["clipboard-read", "clipboard-write"],
    });
    const page = await context.newPage();
    const test = new TestPage(home, server, browser, page);
    page.on("console", (message) => {
      if (message.type() === "error") test.faults.push(message.text());
    });
    page.on("pageerror", (error) => test.faults.push(String(error)));
    page.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith(server.origin) && !url.startsWith("data:") && !url.startsWith("blob:"))
        test.foreign.push(url);
    });
    page.on("dialog", (dialog) => {
      test.faults.push(`dialog: ${dialog.message()}`);
      dialog.dismiss();
    });
    await page.goto(server.address);
    return test;
  }

  async go(path: string): Promise<Page> {
    await this.page.goto(this.server.origin + path);
    return this.page;
  }

  /** Serious faults of accessibility in the page as it is now. */
  async axeFaults(): Promise<string[]> {
    await this.page.evaluate(axe.source);
    const found = await this.page.evaluate(async () => {
      const run = (window as unknown as { axe: typeof axe }).axe;
      const result = await run.run(document, { resultTypes: ["violations"] });
      return result.violations.map((fault) => ({
        impact: fault.impact,
        text: `${fault.id}: ${fault.nodes[0]?.html} ${fault.nodes[0]?.failureSummary}`,
      }));
    });
    return found
      .filter((fault) => fault.impact === "serious" || fault.impact === "critical")
      .map((fault) => fault.text);
  }

  async close() {
    await this.browser.close();
    await this.server.stop();
    rmSync(this.home, { recursive: true, force: true });
  }
}

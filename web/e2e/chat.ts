import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { TestPage } from "./page.ts";
import { startMockApi } from "./server.mjs";

/** A rule of the mock API, see docs/answer.md. */
export type Rule = Record<string, unknown>;

/** Side calls, such as that for a title, have no tools. */
const SIDE_CALL: Rule = { when: { tools: false }, reply: "A title" };

export const call = (tool: string, input: Record<string, unknown>) => ({ tool, input });

/** A page whose chats talk to quipu-agent, which talks to a mock API. */
export class ChatTest {
  private constructor(
    readonly at: TestPage,
    readonly folder: string,
    readonly env: Record<string, string>,
    private readonly stopApi: () => Promise<unknown>,
  ) {}

  static async open(rules: (folder: string) => Rule[], language = "en-US"): Promise<ChatTest> {
    let folder = "";
    let env: Record<string, string> = {};
    let stopApi: () => Promise<unknown> = async () => {};
    const at = await TestPage.open(async (home) => {
      folder = join(home, "tidepool");
      mkdirSync(join(folder, "src"), { recursive: true });
      writeFileSync(join(folder, "src", "tide.rs"), "pub fn height() -> f64 {\n    1.0\n}\n");
      mkdirSync(join(home, ".config", "quipu"), { recursive: true });
      writeFileSync(join(home, ".config", "quipu", "config.toml"), '[chat]\nagent = "quipu-agent"\n');
      const api = await startMockApi([SIDE_CALL, ...rules(folder)], home);
      stopApi = api.stop;
      env = { ANTHROPIC_BASE_URL: api.url, ANTHROPIC_API_KEY: "test" };
      return env;
    }, language);
    return new ChatTest(at, folder, env, stopApi);
  }

  get page(): Page {
    return this.at.page;
  }

  get composer(): Locator {
    return this.page.getByRole("combobox", { name: /^(message|消息)$/ });
  }

  get conversation(): Locator {
    return this.page.locator(".scroller");
  }

  get prompt(): Locator {
    return this.page.locator("section.prompt");
  }

  /** Starts a chat with a message and waits for the view of its session; trusts the folder if that is asked. */
  async start(text: string, prepare: (page: Page) => Promise<void> = async () => {}): Promise<string> {
    await this.at.go(`/chat?folder=${encodeURIComponent(this.folder)}`);
    await this.page.getByRole("combobox", { name: "permission mode" }).waitFor();
    await prepare(this.page);
    await this.composer.fill(text);
    await this.composer.press("Enter");
    const trust = this.page.getByRole("button", { name: "trust and start" });
    const view = this.conversation;
    await trust.or(view).first().waitFor();
    if (await trust.isVisible()) await trust.click();
    await this.page.waitForURL(/\/s\//);
    return decodeURIComponent(new URL(this.page.url()).pathname.slice(3));
  }

  async send(text: string) {
    await this.composer.fill(text);
    await this.composer.press("Enter");
  }

  /** Waits until the agent has nothing to do. */
  async idle() {
    await this.page.locator(".bar[role=status]").waitFor({ state: "detached" });
  }

  async close() {
    await this.at.close();
    await this.stopApi();
  }
}

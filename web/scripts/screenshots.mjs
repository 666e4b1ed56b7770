// Pictures of every view for the documentation: node scripts/screenshots.mjs ADDRESS FOLDER [--all]
// ADDRESS is what `quipu serve --demo` prints. Without --all only those that the documentation shows.
import { mkdirSync } from "node:fs";
import { launchBrowser } from "../e2e/browser.mjs";

const [address = "", folder = ""] = process.argv.slice(2);
const isAll = process.argv.includes("--all");
if (!address || !folder) throw new Error("usage: node scripts/screenshots.mjs ADDRESS FOLDER [--all]");

const TIDE = "05ef09b2-9c3d-4897-965b-0c47c2889d7b";
const FLAKY = "1efa34bf-6374-460f-8194-49e38c3f2f78";
const GAUGE = "7dc934ad-8100-4f16-9ba9-44fe9c2d9a4e";
const CHART = "449527a5-2776-49fe-8cef-234ddbfa2c9b";
const UNKNOWN = "eeaa8ea9-878e-4d12-8419-806727804252";
const CHINESE = "25d0a370-1509-4f01-87f8-85b2f1527562";

/** @type {{ name: string, path: string, act?: (page: import("playwright-core").Page) => Promise<void> }[]} */
const VIEWS = [
  { name: "home", path: "/" },
  { name: "sessions", path: "/sessions" },
  { name: "conversation", path: `/s/${TIDE}` },
  { name: "conversation-start", path: `/s/${TIDE}?line=3` },
  { name: "conversation-agent", path: `/s/${TIDE}?line=84`, act: openCards },
  { name: "conversation-cards", path: `/s/${GAUGE}`, act: openCards },
  { name: "conversation-flaky", path: `/s/${FLAKY}?line=1`, act: openCards },
  { name: "conversation-chart", path: `/s/${CHART}`, act: openCards },
  { name: "conversation-unknown", path: `/s/${UNKNOWN}`, act: openCards },
  { name: "conversation-chinese", path: `/s/${CHINESE}` },
  { name: "new-chat", path: "/chat" },
  { name: "chat", path: "/chat", act: chatUntilPrompt },
  { name: "changes", path: `/s/${TIDE}?tab=changes` },
  {
    name: "calls",
    path: `/s/${TIDE}?tab=calls`,
    act: (page) => page.locator("[role=listitem] button").nth(18).click(),
  },
  { name: "explain", path: `/s/${TIDE}?tab=explain` },
  { name: "search", path: "/search?q=tide" },
  { name: "usage", path: "/usage?range=90" },
  { name: "usage-models", path: "/usage?range=all&by=model" },
  { name: "settings", path: "/settings" },
  { name: "palette", path: "/", act: (page) => page.keyboard.press("Control+k") },
  { name: "help", path: "/", act: (page) => page.keyboard.press("?") },
  { name: "new-chat", path: "/chat" },
  { name: "chat", path: "/chat", act: startDemo },
];

/** @param {import("playwright-core").Page} page */
async function startDemo(page) {
  await page.locator("main ul button.button").first().click();
  await page.locator("section.prompt .diff").waitFor();
  await page.waitForTimeout(2000);
}

/** @param {import("playwright-core").Page} page */
async function openCards(page) {
  await page.evaluate(() => {
    const lines = [...document.querySelectorAll(".scroller .card:not(.open) > .line")];
    for (const line of lines.slice(0, 6)) if (line instanceof HTMLElement) line.click();
  });
}

/**
 * Chats with the demo agent until it asks for permission.
 * @param {import("playwright-core").Page} page
 */
async function chatUntilPrompt(page) {
  await page.locator("textarea").first().fill("Show me what you can do.");
  await page.keyboard.press("Enter");
  await page.locator("section.prompt").first().waitFor({ timeout: 20_000 });
  await page.waitForTimeout(600);
}

const SIZES = { desktop: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };
const base = new URL(address);
const browser = await launchBrowser();
mkdirSync(folder, { recursive: true });
/** @type {["light" | "dark", "en-US" | "zh-CN", "desktop" | "phone"][]} */
const variants = isAll
  ? [
      ["light", "en-US", "desktop"],
      ["dark", "en-US", "desktop"],
      ["light", "zh-CN", "desktop"],
      ["dark", "zh-CN", "phone"],
      ["light", "en-US", "phone"],
    ]
  : [
      ["light", "en-US", "desktop"],
      ["dark", "zh-CN", "phone"],
    ];
for (const [theme, language, size] of variants) {
  const context = await browser.newContext({
    viewport: SIZES[size],
    colorScheme: theme,
    locale: language,
    deviceScaleFactor: size === "phone" ? 2 : 1,
  });
  const page = await context.newPage();
  page.on("console", (message) => message.type() === "error" && console.error(`${theme} ${size}: ${message.text()}`));
  page.on("pageerror", (error) => console.error(`${theme} ${size}: ${error.message}`));
  await page.goto(address);
  const only = process.env.ONLY?.split(",");
  for (const view of VIEWS.filter((known) => !only || only.includes(known.name))) {
    await page.goto(base.origin + view.path);
    await page.waitForTimeout(1200);
    await view.act?.(page).catch((error) => console.error(view.name, String(error).split("\n")[0]));
    await page.waitForTimeout(250);
    await page.screenshot({ path: `${folder}/${view.name}-${size}-${theme}-${language.slice(0, 2)}.png` });
  }
  await context.close();
}
await browser.close();

// Pictures of every view for the documentation: node scripts/screenshots.mjs ADDRESS FOLDER [--all]
// ADDRESS is what `quipu serve --demo` prints. Each view is a PNG file on a desktop and on a phone; with --all it is one
// JPEG file of its eight variants: light and dark, desktop and phone, English and Chinese. ONLY=NAME,… names views.
import { mkdirSync, writeFileSync } from "node:fs";
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
  // The last one, because its sessions appear on the home page.
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

const SIZES = { desktop: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };
/** Height of each picture in the file of all variants. */
const ROW_HEIGHT = 540;
const MAX_FILE_BYTES = 300_000;

/** @typedef {{ theme: "light" | "dark", language: "en-US" | "zh-CN", size: "desktop" | "phone" }} Variant */

/** @type {Variant[]} */
const variants = isAll
  ? ["en-US", "zh-CN"].flatMap((language) =>
      ["desktop", "phone"].flatMap((size) =>
        ["light", "dark"].map((theme) => /** @type {Variant} */ ({ theme, language, size })),
      ),
    )
  : [
      { theme: "light", language: "en-US", size: "desktop" },
      { theme: "dark", language: "zh-CN", size: "phone" },
    ];

/** @param {Variant} variant */
async function openPage({ theme, language, size }) {
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
  return page;
}

/**
 * A view in one variant.
 * @param {import("playwright-core").Page} page
 * @param {typeof VIEWS[number]} view
 */
async function photograph(page, view) {
  await page.goto(base.origin + view.path);
  await page.waitForTimeout(2500);
  await view.act?.(page).catch((error) => console.error(view.name, String(error).split("\n")[0]));
  // The actions of an item under the pointer would cover its text.
  await page.mouse.move(0, 0);
  await page.waitForTimeout(250);
  return page.screenshot();
}

/**
 * All pictures of a view in one, a row for each language, as large as the limit allows.
 * @param {Buffer[]} pictures
 */
async function combine(pictures) {
  const context = await browser.newContext({ viewport: { width: 2320, height: 1140 } });
  const page = await context.newPage();
  const images = pictures.map(
    (picture) => `<img height="${ROW_HEIGHT}" src="data:image/png;base64,${picture.toString("base64")}">`,
  );
  await page.setContent(
    `<body style="margin: 16px; background: #888; display: grid; gap: 16px; grid: auto-flow / repeat(4, max-content)">${images.join("")}</body>`,
  );
  let quality = 85;
  let file = await page.screenshot({ type: "jpeg", quality });
  while (file.length > MAX_FILE_BYTES && quality > 30) {
    quality -= 5;
    file = await page.screenshot({ type: "jpeg", quality });
  }
  await context.close();
  return file;
}

const base = new URL(address);
const browser = await launchBrowser();
mkdirSync(folder, { recursive: true });
const pages = [];
for (const variant of variants) pages.push(await openPage(variant));
const only = process.env.ONLY?.split(",");
for (const view of VIEWS.filter((known) => !only || only.includes(known.name))) {
  const pictures = await Promise.all(pages.map((page) => photograph(page, view)));
  if (isAll) writeFileSync(`${folder}/${view.name}.jpg`, await combine(pictures));
  else
    for (const [index, { size, theme, language }] of variants.entries())
      writeFileSync(`${folder}/${view.name}-${size}-${theme}-${language.slice(0, 2)}.png`, pictures[index] ?? "");
}
await browser.close();

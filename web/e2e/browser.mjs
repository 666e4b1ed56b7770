// Starts a Chromium for tests and screenshots: QUIPU_CHROMIUM, then an installed one, then the package of apt as root.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome";

/** @param {string} name */
function onPath(name) {
  return (process.env.PATH ?? "")
    .split(":")
    .map((folder) => `${folder}/${name}`)
    .find((path) => existsSync(path));
}

/** Path of a Chromium, or an error that says how to get one. */
export function findChromium() {
  const chosen = process.env.QUIPU_CHROMIUM;
  if (chosen) return chosen;
  const installed = NAMES.map(onPath).find(Boolean) ?? (existsSync(MAC) ? MAC : undefined);
  if (installed) return installed;
  if (process.getuid?.() === 0 && onPath("apt-get")) {
    console.error("no Chromium is installed; installing the package `chromium`");
    execFileSync("apt-get", ["install", "-y", "--no-install-recommends", "chromium"], {
      stdio: ["ignore", "ignore", "inherit"],
    });
    const path = onPath("chromium");
    if (path) return path;
  }
  throw new Error("no Chromium was found: THE PAGE IS NOT TESTED. Install Chromium, or set QUIPU_CHROMIUM to its path");
}

/** A browser that contacts nothing by itself. */
export function launchBrowser() {
  return chromium.launch({
    executablePath: findChromium(),
    headless: true,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

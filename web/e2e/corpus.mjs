// Published sessions outside of the repository, as a projects folder.
import { cpSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";

const CORPUS = new URL("../../../shared/corpus/data", import.meta.url).pathname;

/** @returns {string[]} */
export function corpusFiles() {
  if (!existsSync(CORPUS)) return [];
  return readdirSync(CORPUS, { recursive: true })
    .map((name) => join(CORPUS, String(name)))
    .filter((path) => path.endsWith(".jsonl"))
    .sort();
}

/**
 * Copies each file into a project of its own; gives the paths of the copies.
 * @param {string} home
 * @param {string[]} files
 */
export function writeCorpus(home, files) {
  return files.map((file, index) => {
    const folder = join(home, ".claude", "projects", `-corpus-${index}`);
    mkdirSync(folder, { recursive: true });
    const copy = join(folder, basename(file));
    cpSync(file, copy);
    return copy;
  });
}

import { expect, test } from "vitest";
import { fill } from "./i18n.svelte.ts";
import { type TextKey, texts } from "./texts.ts";

const keys = Object.keys(texts.en) as TextKey[];
const placeholders = (text: string) => [...new Set(text.match(/\{\w+\}/g) ?? [])].sort();

test("both languages have the same keys", () => {
  expect(Object.keys(texts.zh).sort()).toEqual([...keys].sort());
});

test("both languages use the same placeholders", () => {
  const different = keys.filter((key) => `${placeholders(texts.en[key])}` !== `${placeholders(texts.zh[key])}`);
  expect(different).toEqual([]);
});

test("no Chinese text is missing or the same as the English one, except names", () => {
  const same = keys.filter((key) => texts.zh[key] === texts.en[key]);
  expect(same).toEqual(["format.md", "format.json"]);
});

test("a number chooses between one and many", () => {
  expect(fill("{n} file|{n} files", { n: 1 })).toBe("1 file");
  expect(fill("{n} file|{n} files", { n: 3 })).toBe("3 files");
  expect(fill("{n} 个文件", { n: 1 })).toBe("1 个文件");
});

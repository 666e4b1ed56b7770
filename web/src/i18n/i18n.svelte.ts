import { duration, ENGLISH_UNITS } from "../lib/format.ts";
import { preferences } from "../state/preferences.svelte.ts";
import { type TextKey, texts } from "./texts.ts";

type Values = Record<string, string | number>;

/**
 * The text of a key in the chosen language. `{name}` is replaced by a value; in `one|many` the number `n` chooses.
 */
export function t(key: TextKey, values: Values = {}): string {
  return fill(texts[preferences.language][key], values);
}

export function fill(text: string, values: Values): string {
  const [one = "", many] = text.split("|");
  const chosen = many === undefined || values.n === 1 ? one : many;
  return chosen.replace(/\{(\w+)\}/g, (whole, name: string) => (name in values ? String(values[name]) : whole));
}

export const language = () => (preferences.language === "zh" ? "zh-CN" : "en");

/** A duration with the units of the chosen language. */
export function durationText(ms: number | null | undefined): string {
  return duration(ms, preferences.language === "zh" ? ["秒", "分", "小时", "天"] : ENGLISH_UNITS);
}

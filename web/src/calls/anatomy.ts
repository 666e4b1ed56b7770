import type { Call } from "../api/model.ts";
import { t } from "../i18n/i18n.svelte.ts";

/** Parts of a request in the order in which they are sent; each has one colour everywhere. */
export const PARTS = ["system", "tools", "context", "history", "question"] as const;
export type Part = (typeof PARTS)[number];

/** Kinds of context that the server names. */
const CONTEXTS = ["instructions", "skills", "files", "command output", "reminders", "system messages"] as const;

/** `context: reminders` is a part of the context. */
export function partOf(name: string): Part | null {
  return PARTS.find((part) => name === part || name.startsWith(`${part}:`)) ?? null;
}

/** The name of a part for the screen. */
export function partText(name: string): string {
  const part = partOf(name);
  if (!part) return name;
  const detail = name.slice(part.length + 2);
  const context = CONTEXTS.find((known) => part === "context" && known === detail);
  return [t(`part.${part}`), context ? t(`context.${context}`) : detail].filter(Boolean).join(": ");
}

export function colorOf(name: string): string {
  const part = partOf(name);
  const index = part ? PARTS.indexOf(part) : -1;
  return `var(--series-${index === -1 ? 6 : index + 1})`;
}

export function inputTokens({ usage }: Call): number {
  return usage ? usage.input + usage.cache_read + usage.cache_write_5m + usage.cache_write_1h : 0;
}

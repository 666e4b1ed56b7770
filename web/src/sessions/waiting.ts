import type { SessionRow } from "../api/model.ts";
import { t } from "../i18n/i18n.svelte.ts";

/** What a session waits for, in words. */
export function waitingText(on: string): string {
  if (on === "permission") return t("waiting.permission");
  if (on === "question") return t("waiting.question");
  if (on === "prompt") return t("waiting.prompt");
  if (on === "plan") return t("waiting.plan");
  if (on === "elicitation") return t("waiting.question");
  return t("waiting.other", { on });
}

const HOUR = 3600 * 1000;
/** A session that ended its turn waits for its next prompt this long. */
const IDLE_HOURS = 12;
/** A request of the agent waits longer: it may be from before the weekend. */
const REQUEST_HOURS = 7 * 24;

/**
 * Whether a session is live or waits, by the time of its last message. Files that were copied or touched look live to
 * the server; a session of last month is not.
 */
export function isActive(row: SessionRow, now: number): boolean {
  if (row.ended_at === null || !(row.live || row.waiting)) return false;
  const hours = (now - Date.parse(row.ended_at)) / HOUR;
  return hours < (isRequest(row.waiting) ? REQUEST_HOURS : IDLE_HOURS);
}

/** Whether the agent needs something from its user before it goes on. */
export function isRequest(waiting: string | null): boolean {
  return waiting !== null && waiting !== "prompt";
}

import { t } from "../i18n/i18n.svelte.ts";

/** What a session waits for, in words. */
export function waitingText(on: string): string {
  if (on === "permission") return t("waiting.permission");
  if (on === "question") return t("waiting.question");
  if (on === "prompt") return t("waiting.prompt");
  if (on === "plan") return t("waiting.plan");
  return t("waiting.other", { on });
}

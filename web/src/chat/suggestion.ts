import type { Suggestion } from "../api/types/api.ts";
import { t } from "../i18n/i18n.svelte.ts";
import { showBidi } from "../lib/text.ts";
import { modeName } from "./choice.svelte.ts";

/** What is allowed from now on, in the language of the page. */
export function suggestionText(suggestion: Suggestion): string {
  return showBidi(`${what(suggestion)}${where(suggestion.destination)}`);
}

function what({ label, mode, rules, behavior, directories }: Suggestion): string {
  if (mode === "acceptEdits") return t("always_edits");
  if (mode) return t("always_mode", { mode: modeName(mode) });
  if (rules.length && behavior === "allow") return t("always_allow", { rules: rules.join(", ") });
  if (directories.length) return t("always_folder", { folders: directories.join(", ") });
  return label;
}

function where(destination: string | null): string {
  if (destination === "session") return t("in_session");
  if (destination === "localSettings" || destination === "projectSettings") return t("in_project");
  return destination === "userSettings" ? t("in_all_projects") : "";
}

import { t } from "../i18n/i18n.svelte.ts";
import { fileName } from "../lib/format.ts";
import type { IconName } from "../ui/icons.ts";
import { findFiles } from "./calls.ts";
import {
  type AttachedContext,
  foundContext,
  selectionContext,
  webAddress,
  webContext,
  workspaceContext,
} from "./context.ts";
import { rankCommands, type Trigger } from "./trigger.ts";
import type { FileMatch, SlashCommand } from "./types.ts";

/** Contexts whose text has to be given or loaded first. */
export type ContextForm = "terminal" | "web" | "diff" | "commit" | "problems";

/** What choosing a completion does. */
export type Choice =
  | { kind: "attach"; context: AttachedContext }
  | { kind: "form"; form: ContextForm }
  | { kind: "command"; command: SlashCommand };

export interface Completion {
  icon: IconName;
  label: string;
  detail: string;
  /** Places of the label that matched. */
  positions: number[];
  choice: Choice;
}

const ICONS = { file: "file", folder: "folder", symbol: "raw" } as const;

function ofMatch(match: FileMatch, cwd: string): Completion {
  const context = foundContext(match, cwd);
  const detail =
    match.kind === "symbol"
      ? `${match.path}:${match.line ?? ""}`
      : match.path === match.name
        ? ""
        : match.path.slice(0, -fileName(match.path).length).replace(/[\\/]+$/, "");
  const label = match.kind === "symbol" ? match.name : fileName(match.path);
  const offset = match.kind === "symbol" ? 0 : match.path.length - label.length;
  const positions = match.positions.map((position) => position - offset).filter((position) => position >= 0);
  return { icon: ICONS[match.kind], label, detail, positions, choice: { kind: "attach", context } };
}

/** Completions at the caret: contexts after `@`, commands after `/`. Files are found by the server. */
export class Completions {
  list = $state.raw<Completion[]>([]);
  at = $state(0);
  trigger = $state.raw<Trigger | null>(null);
  #request: AbortController | null = null;
  #matches: Completion[] = [];

  get isOpen(): boolean {
    return this.trigger !== null && this.list.length > 0;
  }

  close() {
    this.#request?.abort();
    this.trigger = null;
    this.#matches = [];
  }

  move(step: 1 | -1) {
    this.at = (this.at + step + this.list.length) % this.list.length;
  }

  /** Shows what completes `trigger`; earlier files stay until the new ones are found. */
  async update(trigger: Trigger | null, cwd: string, commands: SlashCommand[], selection: string) {
    if (!trigger) return this.close();
    const isNew = trigger.kind !== this.trigger?.kind || trigger.query !== this.trigger.query;
    this.trigger = trigger;
    if (!isNew) return;
    this.at = 0;
    if (trigger.kind === "command") {
      this.list = rankCommands(commands, trigger.query).map((command) => ({
        icon: "terminal",
        label: `/${command.name}`,
        detail: [command.argument_hint, command.description].filter(Boolean).join(" · "),
        positions: [],
        choice: { kind: "command", command },
      }));
      return;
    }
    const others = otherContexts(trigger.query, selection);
    this.#show(trigger.query, others);
    this.#request?.abort();
    const request = new AbortController();
    this.#request = request;
    try {
      const { matches } = await findFiles(cwd, trigger.query, request.signal);
      if (request.signal.aborted) return;
      this.#matches = matches.map((match) => ofMatch(match, cwd));
      this.#show(trigger.query, others);
    } catch {
      // A newer key was pressed, or the folder cannot be read: the other kinds are still offered.
      if (!request.signal.aborted) this.#matches = [];
    }
  }

  #show(query: string, others: Completion[]) {
    // With a query, files are what is most often meant.
    this.list = query ? [...this.#matches, ...others] : [...others, ...this.#matches];
  }
}

/** Contexts that are not files, with those first whose name begins with the query. */
function otherContexts(query: string, selection: string): Completion[] {
  const form = (icon: IconName, label: string, name: ContextForm): Completion => ({
    icon,
    label,
    detail: "",
    positions: [],
    choice: { kind: "form", form: name },
  });
  const attach = (icon: IconName, label: string, detail: string, context: AttachedContext): Completion => ({
    icon,
    label,
    detail,
    positions: [],
    choice: { kind: "attach", context },
  });
  const url = query.includes(".") ? webAddress(query) : null;
  if (url) return [attach("web", url, t("context.web"), webContext(url))];
  const all = [
    form("branch", t("context.diff"), "diff"),
    form("branch", t("context.commit"), "commit"),
    form("terminal", t("context.terminal"), "terminal"),
    form("warning", t("context.problems"), "problems"),
    form("web", t("context.web"), "web"),
    attach("panel", t("context.workspace"), "", workspaceContext()),
  ];
  if (selection) all.push(attach("edit", t("context.selection"), selection.slice(0, 60), selectionContext(selection)));
  const text = query.toLowerCase();
  return all.filter((completion) => completion.label.toLowerCase().includes(text));
}

import { t } from "../i18n/i18n.svelte.ts";
import { loadSetup } from "./calls.ts";
import type { Agent, Setup, StartOptions } from "./types.ts";

/** Modes that every agent has. */
const MODES = ["default", "acceptEdits", "plan"];
/** Names of models that every agent understands. */
const MODELS = ["opus", "sonnet", "haiku"];

/** What the next agent is started with. Empty values are the defaults of the settings. */
export class StartChoice {
  setup = $state.raw<Setup | null>(null);
  error = $state.raw<unknown>(null);
  agent = $state("");
  model = $state("");
  mode = $state("");
  capture = $state(false);

  /** Loads agents and defaults; `cwd` is the folder that the agent will run in. */
  async load(cwd: string | null) {
    try {
      this.setup = await loadSetup(cwd);
      this.error = null;
      const usable = this.agents.filter((agent) => agent.usable);
      const preferred = usable.find((agent) => agent.name === this.setup?.default_agent) ?? usable[0];
      if (!usable.some((agent) => agent.name === this.agent)) this.agent = preferred?.name ?? "";
      this.mode ||= this.setup.default_permission_mode;
    } catch (error) {
      this.error = error;
    }
  }

  /** The agents that were found, and one that the settings name by its path. */
  get agents(): Agent[] {
    const { agents = [], default_agent: own = null } = this.setup ?? {};
    if (own === null || agents.some((agent) => agent.name === own)) return agents;
    return [...agents, { name: own, path: own, version: null, usable: true, reason: null, cwd: null }];
  }

  /** Whether the folder is trusted, or the agent has its own. Unknown folders are decided by the server. */
  get isTrusted(): boolean {
    const hasOwnFolder = this.agents.some((agent) => agent.name === this.agent && agent.cwd);
    return hasOwnFolder || (this.setup?.is_trusted ?? true);
  }

  get modes(): string[] {
    const own = this.setup?.default_permission_mode;
    return own && !MODES.includes(own) ? [...MODES, own] : MODES;
  }

  get models(): string[] {
    const own = this.setup?.default_model;
    return own && !MODELS.includes(own) ? [own, ...MODELS] : MODELS;
  }

  options(cwd: string): StartOptions {
    return {
      cwd: cwd || undefined,
      agent: this.agent || undefined,
      model: this.model || undefined,
      permission_mode: this.mode || undefined,
      capture: this.capture || undefined,
    };
  }
}

/** A permission mode in words. */
export function modeName(mode: string): string {
  if (mode === "default" || mode === "manual") return t("mode.default");
  if (mode === "acceptEdits") return t("mode.acceptEdits");
  if (mode === "plan") return t("mode.plan");
  if (mode === "bypassPermissions") return t("mode.bypassPermissions");
  if (mode === "dontAsk") return t("mode.dontAsk");
  if (mode === "auto") return t("mode.auto");
  return mode;
}

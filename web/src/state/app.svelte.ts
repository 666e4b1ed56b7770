import { SvelteMap } from "svelte/reactivity";
import { followEvents, getJson, takeToken } from "../api/client.ts";
import type { SessionRow, Status } from "../api/model.ts";
import { preferences } from "./preferences.svelte.ts";

/** State that every view shares: status, the list of sessions, live updates, open dialogs. */
class App {
  hasToken = $state(takeToken());
  status = $state.raw<Status | null>(null);
  sessions = $state.raw<SessionRow[]>([]);
  sessionsTotal = $state(0);
  sessionsError = $state.raw<unknown>(null);
  hasSessions = $state(false);
  isConnected = $state(true);
  /** Time of the page; relative times follow it. */
  now = $state(Date.now());
  /** Raised when the list of sessions changed on disk. */
  listVersion = $state(0);
  /** Last known version of each session that grew while the page was open. */
  grown = new SvelteMap<string, string>();
  dialog = $state<"palette" | "help" | null>(null);
  isRailOpen = $state(false);
  message = $state<string | null>(null);
  #messageTimer: ReturnType<typeof setTimeout> | undefined;

  start(): () => void {
    if (!this.hasToken) return () => {};
    const stop = new AbortController();
    const clock = setInterval(() => {
      this.now = Date.now();
    }, 30_000);
    this.loadStatus();
    this.loadSessions();
    followEvents(
      (event) => {
        if (event.type === "session") this.grown.set(event.key ?? event.session_id, event.version);
        if (event.type === "sessions" || event.type === "index") this.listChanged();
      },
      (isOpen) => {
        // What happened while there was no connection is unknown.
        if (isOpen && !this.isConnected) this.listChanged();
        this.isConnected = isOpen;
      },
      stop.signal,
    );
    return () => {
      stop.abort();
      clearInterval(clock);
    };
  }

  private async loadStatus() {
    try {
      this.status = await getJson<Status>("status");
      preferences.adopt(this.status);
    } catch (error) {
      this.sessionsError = error;
    }
  }

  async loadSessions() {
    try {
      const answer = await getJson<{ total: number; sessions: SessionRow[] }>("sessions", { limit: 200 });
      this.sessions = answer.sessions;
      this.sessionsTotal = answer.total;
      this.sessionsError = null;
    } catch (error) {
      this.sessionsError = error;
    }
    this.hasSessions = true;
  }

  private listChanged() {
    this.listVersion += 1;
    this.loadSessions();
    this.loadStatus();
  }

  session(key: string): SessionRow | undefined {
    return this.sessions.find((row) => row.key === key);
  }

  /** Shows a short message at the bottom of the page. */
  announce(message: string) {
    this.message = message;
    clearTimeout(this.#messageTimer);
    this.#messageTimer = setTimeout(() => {
      this.message = null;
    }, 2500);
  }

  async copy(text: string, message: string) {
    await navigator.clipboard.writeText(text);
    this.announce(message);
  }
}

export const app = new App();

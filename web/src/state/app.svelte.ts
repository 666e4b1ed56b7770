import { SvelteMap } from "svelte/reactivity";
import { followEvents, getJson, takeToken } from "../api/client.ts";
import type { ServerEvent, SessionList, SessionRow, Status } from "../api/model.ts";
import { chats } from "../chat/chats.svelte.ts";
import { preferences } from "./preferences.svelte.ts";

type ActivityEvent = Extract<ServerEvent, { type: "activity" }>;

/** State that every view shares: status, the list of sessions, live updates, open dialogs. */
class App {
  hasToken = $state(takeToken());
  status = $state.raw<Status | null>(null);
  sessions = $state.raw<SessionRow[]>([]);
  sessionsTotal = $state(0);
  sessionsError = $state.raw<unknown>(null);
  hasSessions = $state(false);
  isConnected = $state(true);
  /** How often the stream of events was opened: what changed before is not reported by it. */
  connections = $state(0);
  /** Time of the page; relative times follow it. */
  now = $state(Date.now());
  /** Raised when the list of sessions changed on disk. */
  listVersion = $state(0);
  /** How often the files of each session changed while the page was open. */
  changes = new SvelteMap<string, number>();
  /** Raised when a session began or stopped to work or to wait. */
  activityVersion = $state(0);
  dialog = $state<"palette" | "help" | null>(null);
  isRailOpen = $state(false);
  message = $state<string | null>(null);
  #listTimer: ReturnType<typeof setTimeout> | undefined;
  #messageTimer: ReturnType<typeof setTimeout> | undefined;

  start(): () => void {
    if (!this.hasToken) return () => {};
    const stop = new AbortController();
    const clock = setInterval(() => {
      this.now = Date.now();
    }, 30_000);
    this.loadStatus();
    this.loadSessions();
    followEvents<ServerEvent>(
      "events",
      (event) => {
        if (event.type === "session") {
          chats.unwritten.delete(event.key);
          this.changes.set(event.key, (this.changes.get(event.key) ?? 0) + 1);
        }
        if (event.type === "activity") this.setActivity(event);
        if (event.type === "chats") chats.load();
        if (event.type === "sessions" || event.type === "index") this.listChanged();
      },
      (isOpen) => {
        // What happened while there was no connection is unknown.
        if (isOpen && !this.isConnected) this.listChanged();
        if (isOpen) {
          this.connections += 1;
          chats.unwritten.clear();
          chats.load();
        }
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
      const answer = await getJson<SessionList>("sessions", { limit: 200 });
      this.sessions = answer.sessions;
      this.sessionsTotal = answer.total;
      this.sessionsError = null;
    } catch (error) {
      this.sessionsError = error;
    }
    this.hasSessions = true;
  }

  /** A session began or stopped to work or to wait; its row is changed without loading the list. */
  private setActivity({ key, live, waiting, activity, activity_detail }: ActivityEvent) {
    this.sessions = this.sessions.map((row) =>
      row.key === key ? { ...row, live, waiting, activity, activity_detail } : row,
    );
    this.activityVersion += 1;
  }

  /** Loads the list again, at most once a second: a session that is being written changes it all the time. */
  private listChanged() {
    this.#listTimer ??= setTimeout(() => {
      this.#listTimer = undefined;
      this.listVersion += 1;
      this.loadSessions();
      this.loadStatus();
    }, 1000);
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

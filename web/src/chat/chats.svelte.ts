import { SvelteSet } from "svelte/reactivity";
import { listChats } from "./calls.ts";
import type { SentMessage } from "./chat.svelte.ts";
import type { Chat } from "./types.ts";

/** The running chats, for marks in lists and the title of the page. */
class Chats {
  list = $state.raw<Chat[]>([]);
  isLoaded = $state(false);
  /** Keys of sessions whose file is not written yet, as far as this page knows. */
  unwritten = new SvelteSet<string>();
  /** Messages that were sent before the view of their session was opened. */
  sent = new Map<string, SentMessage[]>();
  #loading: Promise<void> | null = null;
  #isStale = false;

  /** Loads the list. Resolves once it is at least as new as the call: what changes during a load causes one more. */
  load(): Promise<void> {
    this.#isStale = true;
    this.#loading ??= this.#loadUntilNew();
    return this.#loading;
  }

  async #loadUntilNew(): Promise<void> {
    while (this.#isStale) {
      this.#isStale = false;
      try {
        const list = await listChats();
        if (this.#isStale) continue;
        this.list = list;
        this.isLoaded = true;
      } catch {
        // The page shows that there is no connection; the list is loaded again with the next one.
      }
    }
    this.#loading = null;
  }

  /** The chat of a session, unless its agent has ended. */
  of(key: string): Chat | undefined {
    return this.list.find((chat) => chat.key === key && chat.state !== "ended");
  }

  /** Takes a newer state of one chat. */
  put(chat: Chat) {
    this.#isStale = true;
    const others = this.list.filter((known) => known.id !== chat.id);
    this.list = [...others, chat];
  }

  get waiting(): Chat[] {
    return this.list.filter((chat) => chat.state !== "ended" && chat.prompts.length > 0);
  }
}

export const chats = new Chats();

/** A title of the page that shows how many chats wait for the user. */
export function pageTitle(title: string): string {
  const count = chats.waiting.length;
  return count ? `(${count}) ${title}` : title;
}

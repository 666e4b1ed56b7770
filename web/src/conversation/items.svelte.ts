import { SvelteMap } from "svelte/reactivity";
import type { Item, ItemWindow } from "../api/model.ts";

/** Loads the items of `count` positions; without `from` the last ones. */
export type LoadItems = (from: number | null, count: number) => Promise<ItemWindow>;

const WINDOW = 64;
const MARGIN = 24;
const MAX_KEPT = 900;
const MAX_REQUESTS = 2;

/**
 * The items of a conversation of which only those near the screen are held. A position is the place of an entry on
 * the active path and has zero or more items. Positions far from what is shown are dropped again, so that memory
 * follows the screen and not the session.
 */
export class ItemStore {
  #items = new SvelteMap<number, Item[]>();
  /** Number of entries. What follows the last one, such as a torn line, has this position. */
  entries = $state(0);
  version = $state("");
  error = $state.raw<unknown>(null);
  #wanted: [number, number] = [0, -1];
  #requests = new Set<[number, number]>();
  /** Raised when all items are invalid; answers to earlier requests are ignored. */
  #generation = 0;

  constructor(private readonly load: LoadItems) {}

  /** The items of a position; `undefined` while they are not loaded. */
  at(position: number): Item[] | undefined {
    return this.#items.get(position);
  }

  get held(): number {
    return this.#items.size;
  }

  /** Whether all entries are loaded and none of them shows anything. */
  get isEmpty(): boolean {
    return this.#items.size > this.entries && [...this.#items.values()].every((items) => items.length === 0);
  }

  /** Loads the last items, which is where a session opens. */
  async open(): Promise<void> {
    try {
      this.put(await this.load(null, WINDOW));
    } catch (error) {
      this.error = error;
    }
  }

  /** Loads what is missing around these positions; earlier wishes that were not started are forgotten. */
  want(first: number, last: number): Promise<void> {
    this.#wanted = [Math.max(0, first - MARGIN), Math.min(this.entries, last + MARGIN)];
    return this.#loadWanted();
  }

  async #loadWanted(): Promise<void> {
    while (this.#requests.size < MAX_REQUESTS) {
      const range = this.#missing();
      if (!range) return;
      await this.#request(range);
      if (this.error) return;
    }
  }

  #missing(): [number, number] | null {
    const [first, last] = this.#wanted;
    const isRequested = (position: number) =>
      [...this.#requests].some(([from, end]) => position >= from && position < end);
    const isMissing = (position: number) => !this.#items.has(position) && !isRequested(position);
    for (let from = first; from <= last; from += 1) {
      if (!isMissing(from)) continue;
      let end = from + 1;
      while (end <= last && end - from < WINDOW && isMissing(end)) end += 1;
      return [from, end];
    }
    return null;
  }

  async #request(range: [number, number]): Promise<void> {
    const generation = this.#generation;
    this.#requests.add(range);
    try {
      // The position behind the last entry comes with the last entry.
      const from = Math.max(0, Math.min(range[0], this.entries - 1));
      const window = await this.load(from, range[1] - from);
      if (generation === this.#generation) this.put(window);
      this.error = null;
    } catch (error) {
      this.error = error;
    } finally {
      this.#requests.delete(range);
    }
  }

  put(window: ItemWindow) {
    this.entries = window.entries;
    this.version = window.version;
    for (const [position, items] of byPosition(window)) this.#items.set(position, items);
    this.#drop();
  }

  #drop() {
    if (this.#items.size <= MAX_KEPT) return;
    const [first, last] = this.#wanted;
    const center = last >= first ? (first + last) / 2 : this.entries;
    const farthestFirst = [...this.#items.keys()].sort((a, b) => Math.abs(b - center) - Math.abs(a - center));
    for (const position of farthestFirst.slice(0, this.#items.size - MAX_KEPT / 2)) this.#items.delete(position);
  }

  /**
   * Reads what was appended, and items that may have changed: pending tool calls get their results. If the session
   * took another branch, earlier positions mean other items and all are loaded again.
   */
  async grow(): Promise<{ added: number; isReset: boolean }> {
    const before = this.entries;
    const pending = [...this.#items]
      .filter(([, items]) => items.some((item) => item.tool?.status === "pending"))
      .map(([position]) => position);
    const from = Math.max(0, Math.min(before - 8, ...pending.filter((position) => position > before - 300)));
    const generation = this.#generation;
    const window = await this.load(from, before - from + WINDOW);
    if (generation !== this.#generation) return { added: 0, isReset: false };
    const isReset =
      window.entries < before || [...byPosition(window)].some(([position, items]) => this.#isOther(position, items));
    if (isReset) {
      this.#generation += 1;
      this.#items.clear();
    }
    const added = isReset ? 0 : window.items.filter((item) => (item.position ?? 0) >= before).length;
    this.put(window);
    return { added, isReset };
  }

  #isOther(position: number, items: Item[]): boolean {
    const known = this.#items.get(position)?.[0];
    const item = items[0];
    return known !== undefined && item !== undefined && (known.uuid !== item.uuid || known.kind !== item.kind);
  }

  /** Replaces an item that was shortened by the whole one. */
  replace(position: number, items: Item[]) {
    this.#items.set(position, items);
  }
}

/** The items of each position of a window, with an empty list for positions that show nothing. */
export function byPosition(window: ItemWindow): Map<number, Item[]> {
  const positions = new Map<number, Item[]>();
  const end = window.from + window.count;
  for (let position = window.from; position < end; position += 1) positions.set(position, []);
  if (end >= window.entries) positions.set(window.entries, []);
  for (const item of window.items) positions.get(item.position ?? -1)?.push(item);
  return positions;
}

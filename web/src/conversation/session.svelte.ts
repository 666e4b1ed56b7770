import { SvelteMap, SvelteSet } from "svelte/reactivity";
import { getJson, part, type Query } from "../api/client.ts";
import type { Item, ItemWindow, SessionDetail, Turn, TurnFigures } from "../api/model.ts";
import { ItemStore } from "./items.svelte.ts";

/** Milliseconds until the outline follows growth, and one more for each entry. */
const OUTLINE_DELAY = 1000;
const MAX_OUTLINE_DELAY = 30_000;
const MAX_PRINTED = 5000;

/** The turn that contains a position; positions before the first prompt belong to no turn. */
export function turnAt(turns: Turn[], position: number): Turn | undefined {
  let low = 0;
  let high = turns.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((turns[middle]?.position ?? 0) <= position) low = middle + 1;
    else high = middle;
  }
  return turns[low - 1];
}

/** Positions that have a row: all but the rest of folded turns, and the one behind the last entry. */
export function visibleRows(entries: number, turns: Turn[], folded: ReadonlySet<number>): number[] {
  const rows: number[] = [];
  for (let position = 0; position <= entries; position += 1) {
    const turn = folded.size ? turnAt(turns, position) : undefined;
    if (!turn || !folded.has(turn.turn) || position === turn.position) rows.push(position);
  }
  return rows;
}

/** One open session: its outline, the items near the screen, and what the user opened or folded. */
export class SessionModel {
  detail = $state.raw<SessionDetail | null>(null);
  figures = $state.raw(new Map<number, TurnFigures>());
  error = $state.raw<unknown>(null);
  items: ItemStore;
  /** Cards that the user opened or closed, by key; others have the default of their kind. */
  opened = new SvelteMap<string, boolean>();
  folded = new SvelteSet<number>();
  /** Raised when rows changed their meaning: the list is then built again. */
  layout = $state(0);
  /** Position that stays on screen when the list is built again. */
  anchor: number | null = null;
  /** Line of the item that was jumped to. */
  focusLine = $state<number | null>(null);
  /** Items that arrived since the end of the list was last on screen. */
  added = $state(0);
  #isGrowing = false;
  #isGrowthPending = false;
  #outlineTimer: ReturnType<typeof setTimeout> | undefined;
  rows = $derived.by(() => visibleRows(this.items.entries, this.turns, this.folded));

  /** `agent` is the id of a subagent whose conversation is shown instead of the session's own. */
  constructor(
    readonly id: string,
    readonly agent: string | null = null,
  ) {
    this.items = new ItemStore((from, count) => this.loadItems({ from, count, agent }));
  }

  private path(rest = ""): string {
    return `sessions/${part(this.id)}${rest}`;
  }

  loadItems(query: Query): Promise<ItemWindow> {
    return getJson<ItemWindow>(this.path("/items"), query);
  }

  /** Loads the last screen. The outline of a long session is large and would delay it, so it follows. */
  async open(): Promise<void> {
    await this.items.open();
    if (this.items.error) this.error = this.items.error;
    else this.loadDetail().then(() => this.loadFigures());
  }

  private async loadDetail() {
    try {
      this.detail = await getJson<SessionDetail>(this.path());
      this.error = null;
    } catch (error) {
      this.error = error;
    }
  }

  /** Costs and durations need the whole file, so they come after the first screen. */
  private async loadFigures() {
    try {
      const answer = await getJson<{ turns: TurnFigures[] }>(this.path("/turns"));
      this.figures = new Map(answer.turns.map((figures) => [figures.turn, figures]));
    } catch {
      // The outline is shown without figures; the conversation does not need them.
    }
  }

  get turns(): Turn[] {
    return this.agent === null ? (this.detail?.turns ?? []) : [];
  }

  turnOf(position: number): Turn | undefined {
    return turnAt(this.turns, position);
  }

  isOpen(key: string, byDefault: boolean): boolean {
    return this.opened.get(key) ?? byDefault;
  }

  setOpen(key: string, open: boolean) {
    this.opened.set(key, open);
  }

  fold(turn: number) {
    if (this.folded.has(turn)) this.folded.delete(turn);
    else this.folded.add(turn);
    this.anchor = this.turns.find((known) => known.turn === turn)?.position ?? null;
    this.layout += 1;
  }

  /** Folds all turns, or unfolds them if any is folded. */
  foldAll(current: number) {
    if (this.folded.size) this.folded.clear();
    else for (const turn of this.turns) this.folded.add(turn.turn);
    this.anchor = this.turnOf(current)?.position ?? null;
    this.layout += 1;
  }

  /** Loads what was appended. Calls during a load are answered by one more load after it. */
  async grow(): Promise<void> {
    this.#isGrowthPending = true;
    if (this.#isGrowing) return;
    this.#isGrowing = true;
    try {
      while (this.#isGrowthPending) {
        this.#isGrowthPending = false;
        const result = await this.items.grow();
        if (result.isReset) this.layout += 1;
        this.added += result.added;
      }
    } finally {
      this.#isGrowing = false;
    }
    this.#refreshOutline();
  }

  /** The outline and figures of a long session cost the server a pass over the file: they follow growth slowly. */
  #refreshOutline() {
    this.#outlineTimer ??= setTimeout(
      () => {
        this.#outlineTimer = undefined;
        this.loadDetail().then(() => this.loadFigures());
      },
      Math.min(MAX_OUTLINE_DELAY, OUTLINE_DELAY + this.items.entries),
    );
  }

  /** Replaces a shortened item by the whole one. */
  async loadWhole(item: Item): Promise<void> {
    if (item.position === undefined) return;
    const window = await this.loadItems({ from: item.position, count: 1, full: 1, agent: this.agent });
    this.items.replace(item.position, window.items);
  }

  /** All items, for the printer; `null` if there are too many to be printed. */
  async loadAll(): Promise<Item[] | null> {
    if (this.items.entries > MAX_PRINTED) return null;
    const items: Item[] = [];
    for (let from = 0; from === 0 || from < this.items.entries; from += 500) {
      items.push(...(await this.loadItems({ from, count: 500, agent: this.agent })).items);
    }
    return items;
  }

  /** Position of a line of the file; its items are loaded. */
  async locate(line: number): Promise<number | null> {
    const window = await this.loadItems({ line, count: 64, agent: this.agent });
    this.items.put(window);
    return window.position ?? null;
  }

  /** The nearest item before or after a position that passes a test; loads windows as it goes. */
  async findItem(position: number, step: 1 | -1, test: (item: Item) => boolean): Promise<Item | null> {
    for (let at = position + step; at >= 0 && at <= this.items.entries; at += step) {
      if (!this.items.at(at)) await this.items.want(at, at);
      const items = this.items.at(at);
      if (!items) return null;
      const found = items.find(test);
      if (found) return found;
    }
    return null;
  }
}

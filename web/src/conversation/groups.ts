import type { Item } from "../api/model.ts";

/** What a card shows when several reads of files follow one another. */
export type ReadGroup = { role: "single" } | { role: "first"; count: number } | { role: "rest"; first: Item };

const MIN_GROUP = 3;
const MAX_POSITIONS = 100;

function isRead(item: Item): boolean {
  return item.kind === "tool" && item.tool?.name === "Read" && item.tool.status === "success";
}

/** Reads that directly follow a place, in one direction; positions without items are passed over. */
function readsFrom(at: (position: number) => Item[] | undefined, item: Item, step: 1 | -1): Item[] {
  const found: Item[] = [];
  let position = item.position ?? 0;
  const own = at(position) ?? [];
  const place = own.indexOf(item);
  let rest = step === 1 ? own.slice(place + 1) : own.slice(0, place).reverse();
  for (let steps = 0; steps < MAX_POSITIONS; steps += 1) {
    for (const next of rest) {
      if (!isRead(next)) return found;
      found.push(next);
    }
    position += step;
    const items = at(position);
    if (!items) return found;
    rest = step === 1 ? items : [...items].reverse();
  }
  return found;
}

/** Finds the place of an item in a run of three or more successful reads. */
export function readGroup(at: (position: number) => Item[] | undefined, item: Item): ReadGroup {
  if (!isRead(item) || item.position === undefined) return { role: "single" };
  const before = readsFrom(at, item, -1);
  const after = readsFrom(at, item, 1);
  if (before.length + 1 + after.length < MIN_GROUP) return { role: "single" };
  const first = before.at(-1);
  return first ? { role: "rest", first } : { role: "first", count: 1 + after.length };
}

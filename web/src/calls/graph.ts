import type { Call, CallBranch } from "../api/model.ts";

/** One call in the drawing of branches: a row, its lane, and the lanes that pass through the row. */
export interface GraphRow {
  call: Call;
  lane: number;
  /** Whether a branch begins with this call. */
  isFirst: boolean;
  /** Lane of the parent branch if this is the first call of a branch that forked. */
  from: number | null;
  /** Lanes of branches that began before and go on after this row, or begin or end in it. */
  through: { lane: number; isStart: boolean; isEnd: boolean }[];
}

/** Calls that could not be assigned share a branch without a name. */
const branchOf = (call: Call) => call.branch ?? "";

/** Lays calls out like a commit graph: time downwards, one lane for each branch, lanes are reused. */
export function layOut(calls: Call[], branches: CallBranch[]): { rows: GraphRow[]; lanes: number } {
  const ordered = [...calls].sort((a, b) => (a.started_at ?? "").localeCompare(b.started_at ?? ""));
  const span = new Map<string, { first: number; last: number }>();
  for (const [index, call] of ordered.entries()) {
    const known = span.get(branchOf(call));
    if (known) known.last = index;
    else span.set(branchOf(call), { first: index, last: index });
  }
  const lanes = new Map<string, number>();
  const busyUntil: number[] = [];
  for (const [index, call] of ordered.entries()) {
    if (lanes.has(branchOf(call))) continue;
    let lane = busyUntil.findIndex((until) => until < index);
    if (lane === -1) lane = busyUntil.length;
    busyUntil[lane] = span.get(branchOf(call))?.last ?? index;
    lanes.set(branchOf(call), lane);
  }
  const parents = new Map(branches.map((branch) => [branch.id, branch.parent]));
  const rows = ordered.map((call, index): GraphRow => {
    const lane = lanes.get(branchOf(call)) ?? 0;
    const parent = parents.get(branchOf(call)) ?? null;
    const isFirst = span.get(branchOf(call))?.first === index;
    const through = [...span]
      .filter(([, { first, last }]) => first <= index && index <= last)
      .map(([branch, { first, last }]) => ({
        lane: lanes.get(branch) ?? 0,
        isStart: first === index,
        isEnd: last === index,
      }));
    return { call, lane, isFirst, from: isFirst && parent !== null ? (lanes.get(parent) ?? null) : null, through };
  });
  return { rows, lanes: Math.max(1, busyUntil.length) };
}

export function laneColor(lane: number): string {
  return `var(--series-${(lane % 5) + 1})`;
}

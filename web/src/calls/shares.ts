import type { Explanation } from "../api/model.ts";

export type TimeName = "model" | "tools" | "waiting" | "hooks" | "retries" | "compaction" | "idle";

/** The colour of each kind of time. */
export const COLORS: Record<TimeName, string> = {
  model: "var(--series-1)",
  tools: "var(--series-2)",
  waiting: "var(--series-3)",
  hooks: "var(--series-5)",
  retries: "var(--bad)",
  compaction: "var(--series-4)",
  idle: "var(--border-strong)",
};

export interface Share {
  name: TimeName;
  value: number;
  color: string;
  detail: string;
}

/** Where the wall time went; idle time last, in grey. */
export function timeShares(time: Explanation["time"]): Share[] {
  const tools = Object.entries(time.tools).sort((a, b) => b[1] - a[1]);
  const sum = tools.reduce((total, [, value]) => total + value, 0);
  const names = tools.slice(0, 5).map(([name]) => name);
  const values: Record<TimeName, number> = { ...time, tools: sum };
  const shares = (Object.keys(COLORS) as TimeName[]).map((name) => ({
    name,
    value: values[name],
    color: COLORS[name],
    detail: name === "tools" ? names.join(", ") : "",
  }));
  return shares.filter((share) => share.value > 0);
}

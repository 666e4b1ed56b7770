import type { Explanation } from "../api/model.ts";

export type TimeName = "model" | "tools" | "waiting" | "hooks" | "retries" | "compaction" | "idle";

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
  const shares: Share[] = [
    { name: "model", value: time.model, color: "var(--series-1)", detail: "" },
    {
      name: "tools",
      value: sum,
      color: "var(--series-2)",
      detail: tools
        .slice(0, 5)
        .map(([name]) => name)
        .join(", "),
    },
    { name: "waiting", value: time.waiting, color: "var(--series-3)", detail: "" },
    { name: "hooks", value: time.hooks, color: "var(--series-5)", detail: "" },
    { name: "retries", value: time.retries, color: "var(--bad)", detail: "" },
    { name: "compaction", value: time.compaction, color: "var(--series-4)", detail: "" },
    { name: "idle", value: time.idle, color: "var(--border-strong)", detail: "" },
  ];
  return shares.filter((share) => share.value > 0);
}

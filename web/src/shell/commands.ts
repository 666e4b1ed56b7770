import type { IconName } from "../ui/icons.ts";

export interface Command {
  icon: IconName;
  label: string;
  detail: string;
  run: () => void;
}

/** Commands that contain every word of the query; matches at the start of the label come first. */
export function rank(commands: Command[], query: string): Command[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return commands;
  const scored = commands.map((command, index) => {
    const label = command.label.toLowerCase();
    const text = `${label} ${command.detail.toLowerCase()}`;
    if (!words.every((word) => text.includes(word))) return null;
    const first = words[0] ?? "";
    return { command, score: (label.startsWith(first) ? 0 : label.includes(` ${first}`) ? 1 : 2) * 10_000 + index };
  });
  return scored
    .filter((entry) => entry !== null)
    .sort((a, b) => a.score - b.score)
    .map((entry) => entry.command);
}

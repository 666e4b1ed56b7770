import { parsePatch, structuredPatch } from "diff";

export interface DiffLine {
  kind: "context" | "added" | "removed" | "gap";
  text: string;
  /** Line number in the old file; `null` for added lines. */
  old: number | null;
  /** Line number in the new file; `null` for removed lines. */
  new: number | null;
}

export interface Hunk {
  oldStart: number;
  newStart: number;
  lines: string[];
}

/** Numbered lines of hunks, with a gap between two of them. */
export function diffLines(hunks: Hunk[]): DiffLine[] {
  const rows: DiffLine[] = [];
  for (const [index, hunk] of hunks.entries()) {
    if (index > 0) rows.push({ kind: "gap", text: "", old: null, new: null });
    let oldLine = hunk.oldStart;
    let newLine = hunk.newStart;
    for (const line of hunk.lines) {
      const text = line.slice(1);
      if (line.startsWith("+")) rows.push({ kind: "added", text, old: null, new: newLine++ });
      else if (line.startsWith("-")) rows.push({ kind: "removed", text, old: oldLine++, new: null });
      else if (!line.startsWith("\\")) rows.push({ kind: "context", text, old: oldLine++, new: newLine++ });
    }
  }
  return rows;
}

/** The lines of a unified diff of one file. */
export function unifiedDiffLines(diff: string): DiffLine[] {
  const [file] = parsePatch(diff);
  return diffLines(file?.hunks ?? []);
}

/** The difference between two texts whose place in the file is not known. */
export function textDiffLines(before: string, after: string): DiffLine[] {
  const patch = structuredPatch("", "", before, after, "", "", { context: 3, maxEditLength: 4000 });
  if (!patch) return diffLines([{ oldStart: 1, newStart: 1, lines: [...removed(before), ...added(after)] }]);
  return diffLines(patch.hunks);
}

const removed = (text: string) => text.split("\n").map((line) => `-${line}`);
const added = (text: string) => text.split("\n").map((line) => `+${line}`);

export function countChanges(lines: DiffLine[]): { added: number; removed: number } {
  return {
    added: lines.filter((line) => line.kind === "added").length,
    removed: lines.filter((line) => line.kind === "removed").length,
  };
}

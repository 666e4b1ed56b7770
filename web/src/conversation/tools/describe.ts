import type { ToolCall } from "../../api/model.ts";
import { countChanges, type DiffLine, diffLines, type Hunk, textDiffLines } from "../../lib/diff.ts";
import { shortPath } from "../../lib/format.ts";
import type { IconName } from "../../ui/icons.ts";
import { list, number, object, resultText, string } from "./values.ts";

export type BodyKind =
  | "read"
  | "write"
  | "diff"
  | "terminal"
  | "matches"
  | "todo"
  | "agent"
  | "web"
  | "question"
  | "plan"
  | "plain";

/** What the one line of a tool card shows, and which body it opens. */
export interface Description {
  icon: IconName;
  /** Name of the tool; an MCP tool without its server. */
  label: string;
  /** Name of the MCP server. */
  server?: string;
  /** The one argument that matters. */
  argument: string;
  body: BodyKind;
}

type Describe = (
  input: Record<string, unknown>,
  folder: string | null | undefined,
) => Omit<Description, "label" | "server">;

const path = (input: Record<string, unknown>, folder: string | null | undefined) =>
  shortPath(string(input.file_path) ?? string(input.notebook_path) ?? string(input.path) ?? "", folder);
const terminal: Describe = (input) => ({
  icon: "terminal",
  argument: string(input.command) ?? string(input.bash_id) ?? string(input.shell_id) ?? string(input.task_id) ?? "",
  body: "terminal",
});
const agent: Describe = (input) => ({ icon: "agent", argument: string(input.description) ?? "", body: "agent" });
const diff: Describe = (input, folder) => ({ icon: "edit", argument: path(input, folder), body: "diff" });

const KNOWN: Record<string, Describe> = {
  Read: (input, folder) => ({ icon: "file", argument: path(input, folder), body: "read" }),
  Write: (input, folder) => ({ icon: "edit", argument: path(input, folder), body: "write" }),
  Edit: diff,
  MultiEdit: diff,
  NotebookEdit: (input, folder) => ({ icon: "edit", argument: path(input, folder), body: "write" }),
  Bash: terminal,
  BashOutput: terminal,
  KillShell: terminal,
  TaskOutput: terminal,
  TaskStop: terminal,
  Grep: (input, folder) => ({
    icon: "search",
    argument: [string(input.pattern), shortPath(string(input.path) ?? "", folder)].filter(Boolean).join("  "),
    body: "matches",
  }),
  Glob: (input) => ({ icon: "glob", argument: string(input.pattern) ?? "", body: "matches" }),
  LS: (input, folder) => ({ icon: "folder", argument: path(input, folder), body: "matches" }),
  TodoWrite: () => ({ icon: "todo", argument: "", body: "todo" }),
  TaskCreate: (input) => ({ icon: "todo", argument: string(input.subject) ?? "", body: "plain" }),
  TaskUpdate: (input) => ({
    icon: "todo",
    argument: [`#${string(input.taskId) ?? ""}`, string(input.status)].filter(Boolean).join(" "),
    body: "plain",
  }),
  Task: agent,
  Agent: agent,
  WebFetch: (input) => ({ icon: "web", argument: string(input.url) ?? "", body: "web" }),
  WebSearch: (input) => ({ icon: "web", argument: string(input.query) ?? "", body: "web" }),
  web_search: (input) => ({ icon: "web", argument: string(input.query) ?? "", body: "web" }),
  AskUserQuestion: (input) => ({
    icon: "question",
    argument: list(input.questions)
      .map((question) => string(object(question).question) ?? "")
      .join(" · "),
    body: "question",
  }),
  ExitPlanMode: (input) => ({
    icon: "plan",
    argument: /^#*\s*(.+)/.exec(string(input.plan) ?? "")?.[1] ?? "",
    body: "plan",
  }),
  Skill: (input) => ({
    icon: "memory",
    argument: [string(input.skill), string(input.args)].filter(Boolean).join(" "),
    body: "plain",
  }),
};

/** The first short text of an input, for tools this page has no card for. */
function firstText(input: Record<string, unknown>): string {
  for (const value of Object.values(input)) {
    if (typeof value === "string" && value) return value;
    if (typeof value === "number") return String(value);
  }
  return "";
}

export function describeTool(tool: ToolCall, folder?: string | null): Description {
  const input = object(tool.input);
  const known = Object.hasOwn(KNOWN, tool.name) ? KNOWN[tool.name] : undefined;
  if (known) return { label: tool.name, ...known(input, folder) };
  const mcp = /^mcp__(.+?)__(.+)$/.exec(tool.name);
  if (mcp)
    return { icon: "plug", label: mcp[2] ?? tool.name, server: mcp[1], argument: firstText(input), body: "plain" };
  return { icon: "tool", label: tool.name, argument: firstText(input), body: "plain" };
}

/** The change an edit made: the hunks that the agent stored, or the texts of the input. */
export function editLines(tool: ToolCall): DiffLine[] {
  const hunks = list(object(tool.output).structuredPatch).map(object);
  if (hunks.length) {
    return diffLines(
      hunks.map(
        (hunk): Hunk => ({
          oldStart: number(hunk.oldStart) ?? 1,
          newStart: number(hunk.newStart) ?? 1,
          lines: list(hunk.lines).filter((line) => typeof line === "string"),
        }),
      ),
    );
  }
  const input = object(tool.input);
  const edits = Array.isArray(input.edits) ? input.edits.map(object) : [input];
  return edits.flatMap((edit, index) => {
    const lines = textDiffLines(string(edit.old_string) ?? "", string(edit.new_string) ?? "").map((line) => ({
      ...line,
      old: null,
      new: null,
    }));
    return index > 0 ? [{ kind: "gap" as const, text: "", old: null, new: null }, ...lines] : lines;
  });
}

/** A number that says how much came out: a text key and its values. */
export type Amount =
  | {
      key:
        | "amount.lines"
        | "amount.files"
        | "amount.matches"
        | "amount.exit"
        | "amount.done"
        | "amount.tools"
        | "amount.results";
      values: Record<string, string | number>;
    }
  | { diff: { added: number; removed: number } };

export function amountOf(tool: ToolCall): Amount | null {
  const output = object(tool.output);
  const text = resultText(tool.result);
  switch (tool.name) {
    case "Edit":
    case "MultiEdit":
      return tool.status === "success" ? { diff: countChanges(editLines(tool)) } : null;
    case "Write":
      return tool.status === "success"
        ? { key: "amount.lines", values: { n: lineCount(string(object(tool.input).content) ?? "") } }
        : null;
    case "Read": {
      const lines = number(object(output.file).numLines) ?? (text ? lineCount(text) : undefined);
      return lines === undefined || tool.status !== "success" ? null : { key: "amount.lines", values: { n: lines } };
    }
    case "Glob":
      return { key: "amount.files", values: { n: number(output.numFiles) ?? lineCount(text) } };
    case "Grep": {
      const files = number(output.numFiles);
      if (output.mode !== "content" && files !== undefined) return { key: "amount.files", values: { n: files } };
      return { key: "amount.matches", values: { n: number(output.numLines) ?? lineCount(text) } };
    }
    case "Bash": {
      const code = /^(?:Error: )?Exit code (\d+)/.exec(text)?.[1];
      if (code) return { key: "amount.exit", values: { code } };
      return text ? { key: "amount.lines", values: { n: lineCount(text) } } : null;
    }
    case "TodoWrite": {
      const todos = list(object(tool.input).todos).map(object);
      return {
        key: "amount.done",
        values: { done: todos.filter((todo) => todo.status === "completed").length, all: todos.length },
      };
    }
    case "Task":
    case "Agent": {
      const tools = number(output.totalToolUseCount);
      return tools === undefined ? null : { key: "amount.tools", values: { n: tools } };
    }
    default:
      return null;
  }
}

function lineCount(text: string): number {
  const trimmed = text.replace(/\n$/, "");
  return trimmed ? trimmed.split("\n").length : 0;
}

/** Time from call to result, by their timestamps or as the tool measured it. */
export function durationOf(tool: ToolCall, startedAt: string | null): number | null {
  if (tool.finished_at && startedAt) {
    const took = Date.parse(tool.finished_at) - Date.parse(startedAt);
    if (took >= 0) return took;
  }
  const output = object(tool.output);
  const seconds = number(output.durationSeconds);
  return number(output.durationMs) ?? number(output.totalDurationMs) ?? (seconds === undefined ? null : seconds * 1000);
}

import type { ContextReference } from "../../api/model.ts";
import { t } from "../../i18n/i18n.svelte.ts";
import { fileName } from "../../lib/format.ts";
import type { IconName } from "../../ui/icons.ts";
import { number, string } from "../tools/values.ts";

export interface ContextTag {
  icon: IconName;
  label: string;
  detail: string;
  title: string;
}

const ICONS: Record<string, IconName> = {
  FileReference: "file",
  FolderReference: "folder",
  WebReference: "web",
  SymbolReference: "raw",
  TerminalReference: "terminal",
  ProblemsReference: "warning",
  GitReference: "branch",
  SelectionReference: "edit",
  WorkspaceReference: "panel",
};

/** How a thing that the user attached to a prompt is shown above it. */
export function contextTag(context: ContextReference): ContextTag {
  const path = string(context.path) ?? string(context.file);
  const files = number(context.fileCount);
  const lines = number(context.lines) ?? number(context.count);
  const host = /^https?:\/\/([^/]+)/.exec(string(context.url) ?? "")?.[1];
  const label =
    string(context.title) ??
    string(context.name) ??
    (path ? fileName(path) : undefined) ??
    host ??
    string(context.text) ??
    string(context.gitType) ??
    (context.type ?? "").replace(/Reference$/, "").toLowerCase();
  const detail =
    files !== undefined
      ? t("amount.files", { n: files })
      : lines !== undefined
        ? String(lines)
        : host && label !== host
          ? host
          : "";
  const title = Object.entries(context)
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join("\n");
  return { icon: ICONS[context.type ?? ""] ?? "clip", label, detail, title };
}

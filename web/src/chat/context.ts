import type { ContextReference } from "../api/model.ts";
import type { FileMatch, ImageUpload, Message } from "./types.ts";

/** Something that is attached to a message: what its tag shows, and the text that the model gets with it. */
export interface AttachedContext {
  reference: ContextReference;
  content?: { label: string; text: string };
}

const isWindowsPath = (path: string) => /^[A-Za-z]:[\\/]/.test(path);

function fullPath(cwd: string, path: string): string {
  if (path.startsWith("/") || isWindowsPath(path)) return path;
  return `${cwd.replace(/[\\/]$/, "")}/${path}`;
}

/** The reference of a file, folder or symbol that was found. */
export function foundContext(match: FileMatch, cwd: string): AttachedContext {
  if (match.kind === "folder")
    return { reference: { type: "FolderReference", path: match.path, fileCount: match.file_count ?? 0 } };
  if (match.kind === "symbol")
    return {
      reference: {
        type: "SymbolReference",
        name: match.name,
        symbolType: match.symbol_kind ?? "SYMBOL",
        file: match.path,
        line: match.line ?? 1,
      },
    };
  return {
    reference: {
      type: "FileReference",
      path: match.path,
      fullPath: fullPath(cwd, match.path),
      displayType: "TAG",
    },
  };
}

/** An address with its scheme; `null` if the text is none. */
export function webAddress(text: string): string | null {
  const address = /^https?:\/\//i.test(text) ? text : `https://${text}`;
  if (!/^https?:\/\/[^\s/]+\.[^\s]+$/i.test(address) && !/^https?:\/\/(localhost|\[|\d)/i.test(address)) return null;
  return URL.canParse(address) ? address : null;
}

export const webContext = (url: string): AttachedContext => ({ reference: { type: "WebReference", url } });
export const workspaceContext = (): AttachedContext => ({ reference: { type: "WorkspaceReference" } });

export function terminalContext(text: string, isError: boolean): AttachedContext {
  const lines = text.replace(/\n$/, "").split("\n").length;
  const reference: ContextReference = { type: "TerminalReference", lines };
  if (isError) reference.isError = true;
  return { reference, content: { label: "Terminal output", text } };
}

export function selectionContext(text: string): AttachedContext {
  return { reference: { type: "SelectionReference" }, content: { label: "Selected text", text } };
}

export function gitContext(gitType: "DIFF" | "COMMIT", label: string, text: string): AttachedContext {
  return { reference: { type: "GitReference", gitType }, content: { label, text } };
}

export function problemsContext(text: string): AttachedContext {
  const count = text.split("\n").filter((line) => line.trim()).length;
  return { reference: { type: "ProblemsReference", count }, content: { label: "Problems", text } };
}

/** The message that a draft is sent as. */
export function messageOf(draft: { text: string; contexts: AttachedContext[]; images: ImageUpload[] }): Message {
  return {
    text: messageText(draft.text.trim(), draft.contexts),
    contexts: draft.contexts.map((context) => context.reference),
    images: draft.images,
  };
}

/** The text of a message, followed by the texts that are attached to it. */
export function messageText(text: string, attached: AttachedContext[]): string {
  const parts = attached.flatMap(({ content }) => (content ? [`${content.label}:\n${fenced(content.text)}`] : []));
  return [text, ...parts].filter(Boolean).join("\n\n");
}

/** A code block whose fence does not occur in the text. */
function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map((run) => run[0].length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text.replace(/\n$/, "")}\n${fence}`;
}

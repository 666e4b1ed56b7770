import { marked } from "./markdown.ts";

/** Text that is still being written, split into blocks that will not change and the last one, which may. */
export interface GrowingText {
  /** Markdown of each finished block. */
  finished: string[];
  /** Markdown of the rest. */
  rest: string;
}

/** Splits a growing Markdown text into finished blocks. Each block is looked at once, however long the text gets. */
export class MarkdownSplitter {
  #finished: string[] = [];
  #offset = 0;
  #lineEnd = 0;
  #start = "";

  /** `text` begins with the text of the last call, or is a new one. */
  update(text: string): GrowingText {
    if (text.length < this.#lineEnd || !text.startsWith(this.#start)) this.#reset();
    const lineEnd = text.lastIndexOf("\n") + 1;
    if (lineEnd > this.#lineEnd) {
      this.#lineEnd = lineEnd;
      this.#start = text.slice(0, 64);
      // Only whole lines decide where a block ends: the first characters of a line can mean anything.
      this.#finish(text.slice(this.#offset, lineEnd));
    }
    return { finished: this.#finished, rest: text.slice(this.#offset) };
  }

  #finish(lines: string) {
    // Inside of a code block that has no end yet, nothing can be finished.
    if (openFence(lines) !== null) return;
    const tokens = marked.lexer(lines);
    while (tokens.at(-1)?.type === "space") tokens.pop();
    const last = tokens.at(-1);
    // What follows can be part of the last block, unless that is a code block with its end.
    const isClosed = last?.type === "code" && last.codeBlockStyle !== "indented" && openFence(last.raw) === null;
    const blocks: string[] = [];
    for (const token of isClosed ? tokens : tokens.slice(0, -1)) {
      this.#offset += token.raw.length;
      if (token.type !== "space") blocks.push(token.raw);
    }
    if (blocks.length) this.#finished = [...this.#finished, ...blocks];
  }

  #reset() {
    this.#finished = [];
    this.#offset = 0;
    this.#lineEnd = 0;
    this.#start = "";
  }
}

/** The language and text of a code block at the start of `text` that has no end yet. */
export function openFence(text: string): { language: string; code: string } | null {
  const start = /^ {0,3}(`{3,}|~{3,})[ \t]*([^\n`]*)\n/.exec(text);
  if (!start) return null;
  const [head, fence = ""] = start;
  const code = text.slice(head.length);
  const end = new RegExp(`^ {0,3}\\${fence[0]}{${fence.length},}[ \\t]*$`, "m");
  return end.test(code) ? null : { language: /^[\w+#.-]+/.exec(start[2] ?? "")?.[0] ?? "", code };
}

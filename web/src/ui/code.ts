import type { CodeToken } from "../lib/highlight.ts";

/** Replaces the text of an element by coloured tokens with the same text. */
export function fillTokens(element: Element, lines: CodeToken[][]) {
  const pieces: Node[] = [];
  for (const [index, line] of lines.entries()) {
    if (index > 0) pieces.push(document.createTextNode("\n"));
    for (const token of line) {
      if (!token.classes) {
        pieces.push(document.createTextNode(token.text));
        continue;
      }
      const span = document.createElement("span");
      span.className = token.classes;
      span.textContent = token.text;
      pieces.push(span);
    }
  }
  element.replaceChildren(...pieces);
}

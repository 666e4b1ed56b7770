import { type CodeToken, highlight } from "../lib/highlight.ts";
import { languageOf } from "../lib/languages.ts";

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

const colored = new WeakSet<Element>();

/** Colours the code blocks of rendered Markdown once their language is loaded; the text itself does not change. */
export function colorCode(root: HTMLElement) {
  for (const block of root.querySelectorAll<HTMLElement>("pre[data-language]")) {
    const code = block.querySelector("code");
    if (!code || colored.has(code)) continue;
    colored.add(code);
    block.tabIndex = 0;
    highlight(code.textContent ?? "", languageOf(block.dataset.language ?? "")).then(
      (lines) => lines && fillTokens(code, lines),
    );
  }
}

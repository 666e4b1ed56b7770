import DOMPurify from "dompurify";
import { Marked, type Tokens } from "marked";
import { showBidi } from "./text.ts";

/** Longer texts are shown as plain text: parsing them would block the page. */
export const MAX_MARKDOWN_CHARACTERS = 200_000;

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

const SAFE_LINK = /^(?:https?:|mailto:|#)/i;

export const marked = new Marked({
  gfm: true,
  breaks: false,
  renderer: {
    // HTML of a transcript is text, never markup.
    html({ text }: Tokens.HTML | Tokens.Tag) {
      return escapeHtml(text);
    },
    // Images would be loaded from other hosts.
    image({ href, text }: Tokens.Image) {
      return `<span class="removed-image">[${escapeHtml(text || "image")}: ${escapeHtml(href)}]</span>`;
    },
    link({ href, tokens }: Tokens.Link) {
      const label = this.parser.parseInline(tokens);
      if (!SAFE_LINK.test(href)) return `${label} <span class="removed-image">(${escapeHtml(href)})</span>`;
      return `<a href="${escapeHtml(href)}" title="${escapeHtml(href)}">${label}</a>`;
    },
    code({ text, lang }: Tokens.Code) {
      const language = /^[\w+#.-]+/.exec(lang ?? "")?.[0] ?? "";
      return `<pre data-language="${escapeHtml(language)}"><code>${escapeHtml(text)}</code></pre>\n`;
    },
  },
});

const ALLOWED_TAGS =
  "p br hr h1 h2 h3 h4 h5 h6 strong em del code pre blockquote ul ol li table thead tbody tr th td a span input sup sub".split(
    " ",
  );
const ALLOWED_ATTRIBUTES = [
  "href",
  "title",
  "class",
  "data-language",
  "align",
  "start",
  "type",
  "checked",
  "disabled",
  "rel",
  "target",
];

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") {
    node.setAttribute("rel", "noopener noreferrer nofollow");
    node.setAttribute("target", "_blank");
  }
  if (node.tagName === "INPUT") {
    if (node.getAttribute("type") !== "checkbox") node.remove();
    node.setAttribute("disabled", "");
  }
});

/** HTML of a Markdown text that runs nothing and loads nothing. */
export function renderMarkdown(text: string): string {
  const html = marked.parse(showBidi(text), { async: false });
  return DOMPurify.sanitize(html, {
    ALLOWED_TAGS,
    ALLOWED_ATTR: ALLOWED_ATTRIBUTES,
    ALLOWED_URI_REGEXP: SAFE_LINK,
    ALLOW_DATA_ATTR: false,
    // The values of all attributes but `href` are words, not addresses.
    ADD_URI_SAFE_ATTR: ALLOWED_ATTRIBUTES.filter((name) => name !== "href"),
  });
}

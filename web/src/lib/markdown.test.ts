// @vitest-environment jsdom
// The sanitiser needs a DOM that parses HTML as browsers do.
import { expect, test } from "vitest";
import { renderMarkdown } from "./markdown.ts";

function render(text: string): HTMLElement {
  const root = document.createElement("div");
  root.innerHTML = renderMarkdown(text);
  return root;
}

test("Markdown becomes elements", () => {
  const root = render("# Title\n\n- **a**\n- `b`\n\n| x | y |\n|---|---|\n| 1 | 2 |");
  expect([...root.querySelectorAll("h1, li, strong, code, td")].map((node) => node.tagName)).toEqual([
    "H1",
    "LI",
    "STRONG",
    "LI",
    "CODE",
    "TD",
    "TD",
  ]);
});

test.each([
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "<svg onload=alert(1)>",
  "<a href='javascript:alert(1)'>x</a>",
  "[x](javascript:alert(1))",
  "[x](data:text/html,<script>alert(1)</script>)",
  "[x]( java\nscript:alert(1))",
  "![x](https://example.com/pixel.png)",
  "<style>*{display:none}</style>",
  "<iframe src=https://example.com></iframe>",
  "<form action=https://example.com><input name=a></form>",
  "`<b onclick=alert(1)>`",
  "```html\n<script>alert(1)</script>\n```",
])("nothing of %s runs or loads", (text) => {
  const root = render(text);
  expect(root.querySelector("script, img, svg, style, iframe, form, object, embed, link, meta, base")).toBeNull();
  for (const node of root.querySelectorAll("*")) {
    for (const attribute of node.attributes) {
      expect(attribute.name).not.toMatch(/^on|^style$|^src$/);
      if (attribute.name === "href") expect(attribute.value).toMatch(/^(https?:|mailto:|#)/);
    }
  }
});

test("links open without a reference to the page and show where they lead", () => {
  const link = render("[x](https://example.com/a)").querySelector("a");
  expect(link?.getAttribute("rel")).toContain("noopener");
  expect(link?.getAttribute("target")).toBe("_blank");
  expect(link?.getAttribute("title")).toBe("https://example.com/a");
});

test("characters that reverse text are visible", () => {
  expect(render("a\u202eb").textContent).toContain("⟨U+202E⟩");
});

test("a code block keeps its language for the highlighter", () => {
  expect(render("```rust ignore\nfn main() {}\n```").querySelector("pre")?.dataset.language).toBe("rust");
});

test("task lists and the start of a list are kept", () => {
  const root = render("3. a\n\n- [x] done");
  expect(root.querySelector("ol")?.getAttribute("start")).toBe("3");
  expect(root.querySelector("input")?.hasAttribute("checked")).toBe(true);
  expect(root.querySelector("input")?.hasAttribute("disabled")).toBe(true);
});

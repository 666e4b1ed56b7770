// @vitest-environment jsdom
import { expect, test } from "vitest";
import { MarkdownSplitter, openFence } from "./growing.ts";
import { renderMarkdown } from "./markdown.ts";

const TEXT = `# Title

A paragraph with **bold** text
on two lines.

- one
- two

  with more
  - nested

1. first

2. second

\`\`\`rust
fn main() {

    println!("- not a list");
}
\`\`\`

| a | b |
|---|---|
| 1 | 2 |

> quoted
> text

Heading
=======

~~~
tildes
~~~
the end`;

const html = (splitter: MarkdownSplitter, text: string) => {
  const { finished, rest } = splitter.update(text);
  return [...finished, rest].map((block) => renderMarkdown(block).trim()).join("\n");
};
const plain = (markup: string) => markup.replace(/\n+/g, "\n").trim();

test.each([1, 3, 7, 24, 1000])("pieces of %s characters give the same elements as the whole text", (size) => {
  const splitter = new MarkdownSplitter();
  let shown = "";
  for (let end = size; end < TEXT.length + size; end += size) shown = html(splitter, TEXT.slice(0, end));
  expect(plain(shown)).toBe(plain(renderMarkdown(TEXT)));
});

test("a finished block is never changed", () => {
  const splitter = new MarkdownSplitter();
  let before: string[] = [];
  for (let end = 1; end <= TEXT.length; end += 1) {
    const { finished } = splitter.update(TEXT.slice(0, end));
    expect(finished.slice(0, before.length)).toEqual(before);
    before = finished;
  }
  expect(before.length).toBeGreaterThan(6);
});

test("the rest stays short while the text grows", () => {
  const splitter = new MarkdownSplitter();
  let text = "";
  for (let paragraph = 0; paragraph < 200; paragraph += 1) {
    text += `Paragraph ${paragraph} with some words.\n\n`;
    expect(splitter.update(text).rest.length).toBeLessThan(100);
  }
});

test("another text starts again", () => {
  const splitter = new MarkdownSplitter();
  splitter.update("one\n\ntwo\n\nthree\n");
  expect(splitter.update("other\n\ntext\n\n")).toEqual({ finished: ["other"], rest: "text\n\n" });
});

test("a code block is open until its end", () => {
  expect(openFence("```js\nlet a;\n")).toEqual({ language: "js", code: "let a;\n" });
  expect(openFence("```js\nlet a;\n```\n")).toBeNull();
  expect(openFence("````\n```\n")).toEqual({ language: "", code: "```\n" });
  expect(openFence("text")).toBeNull();
});

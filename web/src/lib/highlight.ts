import type { HighlighterCore } from "shiki/core";
import { loadLanguage } from "./languages.ts";

/** A piece of a line of code; the class names its kind (`tk-string`), not a colour. */
export interface CodeToken {
  text: string;
  classes: string;
}

/** Longer code is shown without colours: it would block the page. */
export const MAX_HIGHLIGHT_CHARACTERS = 60_000;
const MAX_LINE_CHARACTERS = 2000;

let shared: Promise<HighlighterCore> | undefined;
const languages = new Map<string, Promise<void>>();

function highlighter(): Promise<HighlighterCore> {
  shared ??= createHighlighter();
  return shared;
}

async function createHighlighter(): Promise<HighlighterCore> {
  const [{ createHighlighterCore, createCssVariablesTheme }, { createJavaScriptRegexEngine }] = await Promise.all([
    import("shiki/core"),
    import("shiki/engine/javascript"),
  ]);
  const theme = createCssVariablesTheme({ name: "quipu", variablePrefix: "--tk-", fontStyle: false });
  return createHighlighterCore({
    themes: [theme],
    langs: [],
    engine: createJavaScriptRegexEngine({ forgiving: true }),
  });
}

/** `var(--tk-token-string)` → `tk-string`: classes instead of inline styles, which the policy of the page forbids. */
function classOf(color: string | undefined): string {
  const name = /--tk-token-([\w-]+)/.exec(color ?? "")?.[1];
  return name ? `tk-${name}` : "";
}

/** The tokens of each line, or `null` if the language is unknown or the text too long. */
export async function highlight(code: string, language: string | null): Promise<CodeToken[][] | null> {
  if (!language || code.length > MAX_HIGHLIGHT_CHARACTERS) return null;
  const loading = loadLanguageOnce(language);
  if (!loading) return null;
  await loading;
  const core = await highlighter();
  const { tokens } = core.codeToTokens(code, {
    lang: language,
    theme: "quipu",
    tokenizeMaxLineLength: MAX_LINE_CHARACTERS,
  });
  return tokens.map((line) => line.map((token) => ({ text: token.content, classes: classOf(token.color) })));
}

function loadLanguageOnce(language: string): Promise<void> | null {
  const known = languages.get(language);
  if (known) return known;
  const chunk = loadLanguage(language);
  if (!chunk) return null;
  const loaded = Promise.all([chunk, highlighter()]).then(([module, core]) => core.loadLanguage(...module.default));
  languages.set(language, loaded);
  return loaded;
}

/** Characters that reorder text: invisible, and able to make code read differently than it runs. */
const BIDI = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Makes bidirectional control characters visible as `⟨U+202E⟩`. */
export function showBidi(text: string): string {
  return text.replace(
    BIDI,
    (character) => `⟨U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`,
  );
}

/** The first `limit` lines, at most `characters` long, and how many lines there are in all. */
export function firstLines(
  text: string,
  limit: number,
  characters = 40_000,
): { text: string; lines: number; isCut: boolean } {
  let lines = 1;
  let end = -1;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) {
    if (lines === limit) end = at;
    lines += 1;
  }
  const cut = Math.min(end === -1 ? text.length : end, characters);
  return {
    text: text.slice(0, cut),
    lines: text.endsWith("\n") ? lines - 1 : lines,
    isCut: cut < text.replace(/\n$/, "").length,
  };
}

/** Splits a search snippet at its «marked» words. */
export function markedParts(snippet: string): { text: string; isMatch: boolean }[] {
  return snippet
    .split(/(«[^»]*»)/)
    .filter(Boolean)
    .map((part) =>
      part.startsWith("«") && part.endsWith("»")
        ? { text: part.slice(1, -1), isMatch: true }
        : { text: part, isMatch: false },
    );
}

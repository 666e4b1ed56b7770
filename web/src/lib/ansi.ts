import { createAnsiSequenceParser } from "ansi-sequence-parser";

/** A piece of terminal output with the CSS classes of its style. */
export interface AnsiSpan {
  text: string;
  classes: string;
  /** A 24-bit or table colour that no class covers. */
  color: string | null;
}

const TABLE = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

function tableColor(index: number): { name?: string; rgb?: string } {
  if (index < 16) return { name: TABLE[index % 8] };
  if (index >= 232)
    return {
      rgb: `rgb(${Array(3)
        .fill((index - 232) * 10 + 8)
        .join(" ")})`,
    };
  const level = (n: number) => (n === 0 ? 0 : n * 40 + 55);
  const cube = index - 16;
  return { rgb: `rgb(${level(Math.floor(cube / 36))} ${level(Math.floor(cube / 6) % 6)} ${level(cube % 6)})` };
}

// Everything but SGR ("…m"): cursor movement, titles, hyperlinks. They mean nothing outside a terminal.
const OTHER_SEQUENCES = /\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b\[[0-?]*[ -/]*[@-ln-~]|\x1b[^[\]]/g;

/** Splits terminal output into styled pieces; other escape sequences are removed. */
export function ansiSpans(text: string): AnsiSpan[] {
  if (!text.includes("\x1b")) return [{ text: overwritten(text), classes: "", color: null }];
  const parser = createAnsiSequenceParser();
  return parser.parse(overwritten(text.replace(OTHER_SEQUENCES, ""))).map((token) => {
    const classes = [...token.decorations].filter((name) => name !== "hidden").map((name) => `ansi-${name}`);
    let color: string | null = null;
    const foreground = token.foreground;
    if (foreground?.type === "named") classes.push(`ansi-${foreground.name}`);
    else if (foreground?.type === "rgb") color = `rgb(${foreground.rgb.join(" ")})`;
    else if (foreground?.type === "table") {
      const { name, rgb } = tableColor(foreground.index);
      if (name) classes.push(`ansi-${name}`);
      else color = rgb ?? null;
    }
    return { text: token.value, classes: classes.join(" "), color };
  });
}

/** Progress bars rewrite their line with `\r`: only the last state is kept, as on a terminal. */
function overwritten(text: string): string {
  if (!text.includes("\r")) return text;
  return text
    .split("\n")
    .map((line) => line.replace(/\r+$/, "").split("\r").at(-1) ?? "")
    .join("\n");
}

/** The text without any escape sequence. */
export function stripAnsi(text: string): string {
  return ansiSpans(text)
    .map((span) => span.text)
    .join("");
}

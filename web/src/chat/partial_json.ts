/** Characters of a tool's input that are looked at while it is being written. */
const MAX_CHARACTERS = 4000;

/** The value of JSON that is not complete: what is open is closed, what is half written is left out. */
export function parsePartialJson(text: string): unknown {
  const json = text.slice(0, MAX_CHARACTERS);
  const closers: string[] = [];
  let isString = false;
  /** Where the text can be cut so that closing what is open gives valid JSON. */
  let cut = 0;
  let closersAtCut = "";
  const mark = (end: number) => {
    cut = end;
    closersAtCut = closers.toReversed().join("");
  };
  let isKey = false;
  for (let at = 0; at < json.length; at += 1) {
    const character = json[at];
    if (isString) {
      if (character === "\\") at += 1;
      else if (character === '"') {
        isString = false;
        if (!isKey) mark(at + 1);
      }
      continue;
    }
    if (character === '"') {
      isString = true;
      isKey = closers.at(-1) === "}" && /[{,]\s*$/.test(json.slice(0, at));
    } else if (character === "{" || character === "[") {
      closers.push(character === "{" ? "}" : "]");
      mark(at + 1);
    } else if (character === "}" || character === "]") {
      closers.pop();
      mark(at + 1);
    } else if (character === ",") {
      mark(at);
    }
  }
  const attempts = [json];
  // A text value that is being written is shown as far as it goes.
  if (isString && !isKey)
    attempts.push(`${json.replace(/\\(?:u[\da-fA-F]{0,3})?$/, "")}"${closers.toReversed().join("")}`);
  attempts.push(json.slice(0, cut) + closersAtCut);
  for (const attempt of attempts) {
    try {
      return JSON.parse(attempt);
    } catch {
      // The next attempt keeps less.
    }
  }
  return {};
}

/** What is being completed at the caret: a context after `@`, or a command after `/`. */
export interface Trigger {
  kind: "context" | "command";
  /** Where the `@` or `/` is. */
  start: number;
  query: string;
}

/** An `@` inside of a word, as in an address of mail, completes nothing; a `/` only at the start of the message. */
export function triggerAt(text: string, caret: number): Trigger | null {
  const before = text.slice(0, caret);
  const command = /^\/(\S*)$/.exec(before);
  if (command) return { kind: "command", start: 0, query: command[1] ?? "" };
  const context = /(?:^|[^\w.@-])@([^\s@]*)$/.exec(before);
  if (!context) return null;
  const query = context[1] ?? "";
  return { kind: "context", start: caret - query.length - 1, query };
}

/** Commands whose name contains the query; those that begin with it come first. */
export function rankCommands<C extends { name: string }>(commands: C[], query: string): C[] {
  const text = query.toLowerCase();
  const score = ({ name }: C) => {
    const lower = name.toLowerCase();
    return lower.startsWith(text) ? 0 : lower.includes(text) ? 1 : 2;
  };
  return commands.filter((command) => score(command) < 2).sort((a, b) => score(a) - score(b));
}

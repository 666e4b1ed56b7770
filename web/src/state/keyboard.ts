type Bindings = Record<string, () => void>;

/** Sets of bindings, the newest last: a view's keys come before those of the page. */
const bindings: Bindings[] = [];

/** Adds keys until the returned function is called. */
export function bindKeys(keys: Bindings): () => void {
  bindings.push(keys);
  return () => {
    bindings.splice(bindings.indexOf(keys), 1);
  };
}

/** Single keys act only where no text is being written and no dialog is open. */
function isWriting(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return (
    target.isContentEditable ||
    ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName) ||
    target.closest("dialog") !== null
  );
}

/** Name of a key press: `Mod-k` for Ctrl or ⌘, the character otherwise. */
export function keyName(event: KeyboardEvent): string {
  return event.ctrlKey || event.metaKey ? `Mod-${event.key.toLowerCase()}` : event.key;
}

export function handleKey(event: KeyboardEvent) {
  if (event.altKey || event.isComposing) return;
  const name = keyName(event);
  if (!name.startsWith("Mod-") && isWriting(event.target)) return;
  const action = bindings.findLast((keys) => name in keys)?.[name];
  if (!action) return;
  event.preventDefault();
  action();
}

import type { AttachedContext } from "./context.ts";
import type { ImageUpload } from "./types.ts";

const PREFIX = "quipu.draft.";

interface Stored {
  text: string;
  contexts: AttachedContext[];
}

function stored(key: string): Stored {
  try {
    const value = JSON.parse(localStorage.getItem(PREFIX + key) ?? "{}") as Partial<Stored>;
    return { text: value.text ?? "", contexts: value.contexts ?? [] };
  } catch {
    return { text: "", contexts: [] };
  }
}

/** What is written in the composer of a session. Text and contexts are kept when the page is closed, images are not. */
export class Draft {
  text = $state("");
  contexts = $state.raw<AttachedContext[]>([]);
  images = $state.raw<ImageUpload[]>([]);

  constructor(readonly key: string) {
    this.set(stored(key));
  }

  get isEmpty(): boolean {
    return this.text.trim() === "" && this.contexts.length === 0 && this.images.length === 0;
  }

  set(value: { text: string; contexts: AttachedContext[]; images?: ImageUpload[] }) {
    this.text = value.text;
    this.contexts = value.contexts;
    this.images = value.images ?? [];
  }

  save() {
    try {
      if (this.text || this.contexts.length)
        localStorage.setItem(PREFIX + this.key, JSON.stringify({ text: this.text, contexts: this.contexts }));
      else localStorage.removeItem(PREFIX + this.key);
    } catch {
      // The storage is full or forbidden: the draft lives as long as the page.
    }
  }

  /** Empties the draft and returns what was in it. */
  take(): { text: string; contexts: AttachedContext[]; images: ImageUpload[] } {
    const value = { text: this.text, contexts: this.contexts, images: this.images };
    this.set({ text: "", contexts: [] });
    this.save();
    return value;
  }

  add(context: AttachedContext) {
    const text = JSON.stringify(context.reference);
    const isKnown = !context.content && this.contexts.some((known) => JSON.stringify(known.reference) === text);
    if (!isKnown) this.contexts = [...this.contexts, context];
    this.save();
  }

  removeContext(index: number) {
    this.contexts = this.contexts.filter((_, at) => at !== index);
    this.save();
  }

  addImage(image: ImageUpload) {
    this.images = [...this.images, image];
  }

  removeImage(index: number) {
    this.images = this.images.filter((_, at) => at !== index);
  }
}

const drafts = new Map<string, Draft>();

/** The draft of a session; every view of the session shares it. */
export function draftOf(key: string): Draft {
  const draft = drafts.get(key) ?? new Draft(key);
  drafts.set(key, draft);
  return draft;
}

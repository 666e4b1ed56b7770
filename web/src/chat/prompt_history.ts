import type { SessionModel } from "../conversation/session.svelte.ts";

/** Walks through the prompts of a session, the last one first. */
export class PromptHistory {
  #position: number | null = null;

  constructor(private readonly session: SessionModel) {}

  reset() {
    this.#position = null;
  }

  /** The prompt before (-1) or after (1) the one that was shown; `null` behind the last one. */
  async step(step: 1 | -1): Promise<string | null> {
    const from = this.#position ?? this.session.items.entries;
    if (step === 1 && this.#position === null) return null;
    const item = await this.session.findItem(from, step, (known) => known.kind === "user" && !!known.text);
    if (item?.position === undefined) {
      // Before the first prompt the first one stays.
      if (step === -1) return this.#current();
      this.#position = null;
      return null;
    }
    this.#position = item.position;
    return item.text ?? "";
  }

  #current(): string | null {
    if (this.#position === null) return null;
    return this.session.items.at(this.#position)?.find((item) => item.kind === "user")?.text ?? null;
  }
}

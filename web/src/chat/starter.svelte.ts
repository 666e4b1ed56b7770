import { ApiError } from "../api/client.ts";
import type { StartOptions } from "./types.ts";

/** Something the user decides before an agent can start. */
export interface StartQuestion {
  kind: "trust" | "live";
  /** Takes what the user agreed to; `null` if they do not want to start the agent. */
  answer: (more: Partial<StartOptions> | null) => void;
}

/** The user decided not to start an agent. */
export class Cancelled extends Error {}

/** Starts agents; asks the user where the server does not start one without a decision. */
export class Starter {
  question = $state.raw<StartQuestion | null>(null);

  /**
   * Calls `action`, again with what the user agreed to if the server refuses. A folder that is known not to be trusted
   * is asked about first. Fails with [`Cancelled`] if the user does not agree.
   */
  async run<T>(action: (more: Partial<StartOptions>) => Promise<T>, isTrusted = true): Promise<T> {
    let more: Partial<StartOptions> = isTrusted ? {} : await this.#ask("trust");
    for (;;) {
      try {
        return await action(more);
      } catch (error) {
        const code = error instanceof ApiError ? error.code : "";
        if (code === "folder.not_trusted" && !more.trust) more = { ...more, ...(await this.#ask("trust")) };
        else if (code === "session.live" && !more.fork && !more.ignore_live)
          more = { ...more, ...(await this.#ask("live")) };
        else throw error;
      }
    }
  }

  #ask(kind: StartQuestion["kind"]): Promise<Partial<StartOptions>> {
    return new Promise((resolve, reject) => {
      this.question = {
        kind,
        answer: (more) => {
          this.question = null;
          if (more) resolve(more);
          else reject(new Cancelled());
        },
      };
    });
  }
}

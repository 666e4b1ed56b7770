import { ApiError } from "../api/client.ts";
import type { StartOptions } from "./types.ts";

/** Something the user decides before an agent can start. */
export interface StartQuestion {
  kind: "trust" | "live";
  message: string;
  answer: (isAccepted: boolean) => void;
}

/** Starts agents; asks the user where the server refuses to start one without a decision. */
export class Starter {
  question = $state.raw<StartQuestion | null>(null);

  /** Calls `action` again with what the user agreed to; throws the refusal if they did not. */
  async run<T>(action: (more: Partial<StartOptions>) => Promise<T>): Promise<T> {
    let more: Partial<StartOptions> = {};
    for (;;) {
      try {
        return await action(more);
      } catch (error) {
        const code = error instanceof ApiError ? error.code : "";
        if (code === "folder.not_trusted" && !more.trust && (await this.#ask("trust", error)))
          more = { ...more, trust: true };
        else if (code === "session.live" && !more.fork && (await this.#ask("live", error)))
          more = { ...more, fork: true };
        else throw error;
      }
    }
  }

  #ask(kind: StartQuestion["kind"], error: unknown): Promise<boolean> {
    return new Promise((resolve) => {
      this.question = {
        kind,
        message: error instanceof Error ? error.message : "",
        answer: (isAccepted) => {
          this.question = null;
          resolve(isAccepted);
        },
      };
    });
  }
}

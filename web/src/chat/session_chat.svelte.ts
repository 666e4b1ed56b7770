import { untrack } from "svelte";
import type { Item } from "../api/model.ts";
import type { MessageActions } from "../conversation/conversation.ts";
import { app } from "../state/app.svelte.ts";
import { router, sessionAddress } from "../state/router.svelte.ts";
import { endChat, rewindChat, startChat } from "./calls.ts";
import { AgentEnded, ChatModel } from "./chat.svelte.ts";
import { chats } from "./chats.svelte.ts";
import { StartChoice } from "./choice.svelte.ts";
import { messageOf } from "./context.ts";
import { type Draft, draftOf } from "./draft.svelte.ts";
import { entryUuid } from "./in_file.ts";
import { Cancelled, Starter } from "./starter.svelte.ts";
import type { RewindResult, StartOptions } from "./types.ts";

/** Everything that the view of a session needs to go on with it: chat, draft, and what is done with its messages. */
export class SessionChat {
  model: ChatModel;
  draft: Draft;
  choice = new StartChoice();
  starter = new Starter();
  /** Working folder of the session, if known. */
  folder = $state<string | null>(null);
  /** The prompt that the rewind dialog is about. */
  rewindItem = $state.raw<Item | null>(null);
  /** The message that the next one follows; the last one if `null`. */
  continueItem = $state.raw<Item | null>(null);
  focusComposer: () => void = () => {};
  actions: MessageActions = {
    fork: (item) => this.fork(item),
    continueFrom: (item) => {
      this.continueItem = item;
      this.focusComposer();
    },
    rewind: (item) => {
      this.rewindItem = item;
    },
  };

  constructor(readonly key: string) {
    this.model = new ChatModel(key);
    this.draft = draftOf(key);
  }

  get cwd(): string {
    return this.model.cwd ?? this.folder ?? "";
  }

  /** Follows the chat of the session while one runs, also to another session. */
  connect() {
    const own = chats.of(this.key);
    const followed = untrack(() => this.model.chat?.id);
    const moved = chats.list.find((chat) => chat.id === followed && chat.key !== this.key && chat.state !== "ended");
    if (!own && moved) this.#open(moved.key);
    else this.model.follow(own?.id ?? null);
    const last = chats.list.findLast((chat) => chat.key === this.key);
    if (last?.ended) untrack(() => this.model.setEnded(last));
  }

  /** Puts messages that were not sent back into the composer. */
  restoreUnsent() {
    if (this.model.unsent.length === 0) return;
    const { unsent } = this.model;
    this.model.unsent = [];
    untrack(() => {
      const missing = unsent.filter((text) => !this.draft.text.includes(text));
      this.draft.text = [this.draft.text, ...missing].filter((text) => text.trim()).join("\n\n");
      this.draft.save();
    });
  }

  /** Shows a session that the agent has begun and may not have written yet. */
  #open(key: string) {
    if (!app.changes.has(key)) chats.unwritten.add(key);
    router.go(sessionAddress(key));
  }

  /** A folder that an agent runs in is trusted. */
  get #isTrusted(): boolean {
    return this.model.running !== null || this.choice.isTrusted;
  }

  #failed(error: unknown) {
    this.model.error = error instanceof Cancelled || error instanceof AgentEnded ? null : error;
  }

  #options(more: Partial<StartOptions> = {}): StartOptions {
    return { ...this.choice.options(this.cwd), resume: this.key, ...more };
  }

  /** Sends the draft; puts it back if that fails. */
  async submit(): Promise<void> {
    const written = this.draft.take();
    const message = messageOf(written);
    const resume_at = (this.continueItem && entryUuid(this.continueItem)) ?? undefined;
    try {
      // A running agent cannot go back: another one is started.
      if (resume_at && this.model.running) await this.#end(this.model.running.id);
      const chat = await this.starter.run(
        (more) => this.model.send(message, this.#options({ resume_at, ...more })),
        this.#isTrusted,
      );
      this.continueItem = null;
      if (chat.key === this.key) return;
      chats.sent.set(chat.key, this.model.sent);
      this.model.sent = [];
      this.#open(chat.key);
    } catch (error) {
      this.#failed(error);
      if (this.draft.isEmpty) this.draft.set(written);
      this.draft.save();
    }
  }

  async #end(id: string) {
    await endChat(id);
    this.model.stop();
    await chats.load();
  }

  /** Goes on in a copy of the session that ends with `item`, or with the last message. */
  async fork(item: Item | null): Promise<void> {
    const resume_at = (item && entryUuid(item)) ?? undefined;
    try {
      const chat = await this.starter.run(
        (more) => startChat(this.#options({ fork: true, resume_at, ...more })),
        this.#isTrusted,
      );
      chats.put(chat);
      this.#open(chat.key);
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Goes back to before the prompt of the dialog, or looks at what that would change. */
  async rewind(request: { files: boolean; conversation: boolean; dry_run: boolean }): Promise<RewindResult> {
    const item = this.rewindItem;
    const uuid = item && entryUuid(item);
    if (!uuid) throw new Error("the prompt has no id");
    const chat = await this.starter.run((more) => this.model.ensure(this.#options(more)), this.#isTrusted);
    const result = await rewindChat(chat.id, { uuid, ...request });
    if (request.dry_run || result.error) return result;
    // Without its first prompt, the conversation goes on in another session.
    const draft = result.chat && result.chat.key !== this.key ? draftOf(result.chat.key) : this.draft;
    if (request.conversation && draft.isEmpty)
      draft.set({ text: item.text ?? "", contexts: (item.contexts ?? []).map((reference) => ({ reference })) });
    draft.save();
    if (result.chat) chats.put(result.chat);
    app.changes.set(this.key, (app.changes.get(this.key) ?? 0) + 1);
    return result;
  }
}

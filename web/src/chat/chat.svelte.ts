import { SvelteMap } from "svelte/reactivity";
import { ApiError, followEvents } from "../api/client.ts";
import type { ContextReference, Item } from "../api/model.ts";
import { LiveBlocks } from "./blocks.svelte.ts";
import {
  answerPrompt,
  endChat,
  eventsPath,
  interruptChat,
  loadChat,
  removeQueued,
  sendMessage,
  setModel,
  setPermissionMode,
  startChat,
} from "./calls.ts";
import { chats } from "./chats.svelte.ts";
import { isInFile, isSameMessage } from "./in_file.ts";
import type { Chat, ChatEvent, ImageUpload, Message, Note, PromptReply, StartOptions } from "./types.ts";

const MAX_NOTES = 4;
/** Milliseconds after a turn in which the session file is read to its end. */
const SETTLE_TIME = 3000;

/** Ids of chats whose unsent messages are back in the composer. */
const restored = new Set<string>();

/** A message that was sent and is not in the session file yet. */
export interface SentMessage {
  /** Known once the server has taken it. */
  uuid: string | null;
  text: string;
  contexts: ContextReference[];
  images: ImageUpload[];
  sentAt: string;
}

export interface Progress {
  elapsedMs: number;
  text: string | null;
}

/** The agent ended before it could take a message; the chat has the reason. */
export class AgentEnded extends Error {}

/** The chat of one session: state of its agent, what is being written, and what the user sent. */
export class ChatModel {
  chat = $state.raw<Chat | null>(null);
  blocks = new LiveBlocks();
  notes = $state.raw<Note[]>([]);
  sent = $state.raw<SentMessage[]>([]);
  progress = new SvelteMap<string, Progress>();
  error = $state.raw<unknown>(null);
  /** Messages that an agent never began with, because it ended. */
  unsent = $state.raw<string[]>([]);
  /** Folder of the last agent of this session. */
  cwd = $state<string | null>(null);
  /** Why the last agent of this session ended. */
  ended = $state.raw<Chat["ended"]>(null);
  /** Whether the last state change was the end of a compaction. */
  hasCompacted = $state(false);
  #following: string | null = null;
  #stop: AbortController | null = null;
  #settleTimer: ReturnType<typeof setTimeout> | undefined;

  /** `key` is the key of the session; `null` until a new chat has one. */
  constructor(readonly key: string | null) {
    if (key === null) return;
    this.sent = chats.sent.get(key) ?? [];
    chats.sent.delete(key);
  }

  get isRunning(): boolean {
    return this.chat?.state === "running" || this.chat?.state === "compacting" || this.chat?.state === "starting";
  }

  /** Follows the chat with this id, or none. */
  follow(id: string | null) {
    if (id === this.#following) return;
    this.stop();
    if (id === null) return;
    this.#following = id;
    const stop = new AbortController();
    this.#stop = stop;
    followEvents<ChatEvent>(
      eventsPath(id),
      (event) => this.receive(event),
      () => {},
      stop.signal,
    ).then(() => {
      // The server does not know the chat any more.
      if (this.#following === id) this.stop();
    });
  }

  stop() {
    this.#stop?.abort();
    this.#stop = null;
    this.#following = null;
    this.chat = null;
    this.blocks.reset([]);
    this.progress.clear();
  }

  receive(event: ChatEvent) {
    if (this.blocks.receive(event)) return;
    if (event.type === "snapshot") {
      this.#setChat(event.chat);
      this.blocks.reset(event.partial);
      this.notes = event.notes.slice(-MAX_NOTES);
    } else if (event.type === "chat") {
      this.#setChat(event.chat);
    } else if (event.type === "tool_progress") {
      this.progress.set(event.tool_use_id, { elapsedMs: event.elapsed_ms, text: event.text ?? null });
    } else if (event.type === "note") {
      this.notes = [...this.notes, { level: event.level, text: event.text }].slice(-MAX_NOTES);
    }
  }

  #setChat(chat: Chat) {
    const before = this.chat?.state;
    if (before === "compacting" && chat.state !== "compacting")
      this.hasCompacted = !this.notes.some((note) => note.level === "error");
    if (chat.state === "running" && before === "idle") this.hasCompacted = false;
    if (chat.state === "idle" || chat.state === "ended") {
      this.progress.clear();
      // Some messages, such as commands, are not written as they were sent.
      if (before && before !== "idle") {
        this.sent = this.sent.filter((message) => message.uuid === null);
        clearTimeout(this.#settleTimer);
        this.#settleTimer = setTimeout(() => this.#settle(), SETTLE_TIME);
      }
    }
    this.setEnded(chat);
    this.cwd = chat.cwd;
    this.chat = chat;
    chats.put(chat);
  }

  /** Takes the reason of an agent's end, and the messages that it had not begun with. */
  setEnded(chat: Chat) {
    this.ended = chat.ended;
    if (!chat.ended || restored.has(chat.id)) return;
    restored.add(chat.id);
    this.sent = [];
    this.unsent = chat.queued.map((message) => message.text);
  }

  /** Forgets blocks that the session file will never have. */
  #settle() {
    if (!this.isRunning) this.blocks.remove((block) => block.isComplete);
  }

  /** Forgets what the session file has by now: `items` are the last ones of it. */
  reconcile(items: Item[]) {
    this.blocks.remove((block) => isInFile(block, items));
    if (this.sent.some((message) => isSameMessage(message, items)))
      this.sent = this.sent.filter((message) => !isSameMessage(message, items));
  }

  /** Sends a message; starts the agent with `options` if none runs. The message is shown at once. */
  async send(message: Message, options: StartOptions): Promise<Chat> {
    const shown: SentMessage = { uuid: null, ...message, sentAt: new Date().toISOString() };
    this.sent = [...this.sent, shown];
    this.notes = [];
    this.error = null;
    this.ended = null;
    try {
      const chat = await this.ensure(options);
      const { uuid } = await this.#deliver(chat, message);
      this.sent = this.sent.map((known) => (known === shown ? { ...known, uuid } : known));
      return chat;
    } catch (error) {
      this.sent = this.sent.filter((known) => known !== shown);
      throw error;
    }
  }

  /** Sends a message. An agent that has ended in the meantime is the reason of a failure. */
  async #deliver(chat: Chat, message: Message): Promise<{ uuid: string }> {
    try {
      return await sendMessage(chat.id, message);
    } catch (error) {
      const { ended } = await loadChat(chat.id);
      this.ended = ended;
      throw ended ? new AgentEnded(ended.message) : error;
    }
  }

  /** The chat of the session, also before its first event has arrived; `null` if no agent runs. */
  get running(): Chat | null {
    if (this.chat && this.chat.state !== "ended") return this.chat;
    return (this.key && chats.of(this.key)) || null;
  }

  /** The running chat, or a new one. */
  async ensure(options: StartOptions): Promise<Chat> {
    if (this.running) return this.running;
    const chat = await startChat(options);
    chats.put(chat);
    // A new chat is followed by the view of its session.
    if (this.key === chat.key) this.follow(chat.id);
    return chat;
  }

  /** Sent messages that are neither in the file nor in the queue. */
  get shownSent(): SentMessage[] {
    const queued = new Set(this.chat?.queued.map((message) => message.uuid));
    return this.sent.filter((message) => message.uuid === null || !queued.has(message.uuid));
  }

  /** Runs a request on the chat and keeps its failure for the view. */
  async #request(action: (id: string) => Promise<unknown>) {
    if (!this.chat) return;
    this.error = null;
    try {
      await action(this.chat.id);
    } catch (error) {
      this.error = error;
    }
  }

  interrupt = () => this.#request((id) => interruptChat(id));
  end = () => this.#request((id) => endChat(id));
  unqueue = (uuid: string) => this.#request((id) => removeQueued(id, uuid));
  setMode = (mode: string) => this.#request((id) => setPermissionMode(id, mode));
  setModel = (model: string) => this.#request((id) => setModel(id, model));

  async answer(prompt: string, decision: PromptReply): Promise<void> {
    await this.#request(async (id) => {
      try {
        await answerPrompt(id, prompt, decision);
      } catch (error) {
        // Another tab was faster, or the agent withdrew it.
        if (!(error instanceof ApiError && error.code === "prompt.gone")) throw error;
      }
      if (this.chat) this.chat = { ...this.chat, prompts: this.chat.prompts.filter((known) => known.id !== prompt) };
    });
  }
}

import type { ChatEvent, PartialBlock } from "./types.ts";

/** A block that is being written. Its text changes at most once a frame. */
export class LiveBlock {
  text = $state("");
  isComplete = $state(false);
  readonly messageId: string;
  readonly index: number;
  readonly kind: PartialBlock["kind"];
  readonly toolName: string | null;
  readonly toolUseId: string | null;
  readonly agent: string | null;

  /** `ordinal` is the number of blocks of the same kind before it in its message. */
  constructor(
    block: PartialBlock,
    readonly ordinal: number,
  ) {
    this.messageId = block.message_id;
    this.index = block.index;
    this.kind = block.kind;
    this.toolName = block.tool_name ?? null;
    this.toolUseId = block.tool_use_id ?? null;
    this.agent = block.agent;
    this.text = block.text;
    this.isComplete = block.is_complete;
  }

  get key(): string {
    return `${this.messageId}/${this.index}`;
  }
}

/** Blocks that the session file may not have yet, in the order of their start. */
export class LiveBlocks {
  list = $state.raw<LiveBlock[]>([]);
  #waiting = new Map<LiveBlock, string>();
  #frame: number | null = null;
  /** Indexes of the blocks that were seen, by message and kind. */
  #indexes = new Map<string, number[]>();

  reset(blocks: PartialBlock[]) {
    this.#waiting.clear();
    this.#indexes.clear();
    this.list = blocks.map((block) => this.#create(block));
  }

  #create(block: PartialBlock): LiveBlock {
    const place = `${block.message_id}/${block.kind}`;
    const indexes = this.#indexes.get(place) ?? [];
    if (!indexes.includes(block.index)) indexes.push(block.index);
    this.#indexes.set(place, indexes);
    return new LiveBlock(block, indexes.indexOf(block.index));
  }

  /** Whether the event was about a block. */
  receive(event: ChatEvent): boolean {
    if (event.type === "block_start") {
      const block = this.#create(event.block);
      // Of a subagent only the last message is kept: its file has the others.
      const isOld = (known: LiveBlock) =>
        known.key === block.key ||
        (block.agent !== null && known.agent === block.agent && known.messageId !== block.messageId);
      this.list = [...this.list.filter((known) => !isOld(known)), block];
    } else if (event.type === "delta") {
      const block = this.#find(event.message_id, event.index);
      if (block) this.#append(block, event.text);
    } else if (event.type === "block_end") {
      this.flush();
      const block = this.#find(event.message_id, event.index);
      if (block) block.isComplete = true;
    } else if (event.type === "withdrawn") {
      this.remove((block) => block.messageId === event.message_id);
      for (const place of this.#indexes.keys())
        if (place.startsWith(`${event.message_id}/`)) this.#indexes.delete(place);
    } else {
      return false;
    }
    return true;
  }

  remove(test: (block: LiveBlock) => boolean) {
    if (this.list.some(test)) this.list = this.list.filter((block) => !test(block));
  }

  /** Shows all text that has arrived. */
  flush() {
    if (this.#frame !== null) cancelAnimationFrame(this.#frame);
    this.#frame = null;
    for (const [block, text] of this.#waiting) block.text += text;
    this.#waiting.clear();
  }

  #find(messageId: string, index: number): LiveBlock | undefined {
    return this.list.findLast((block) => block.messageId === messageId && block.index === index);
  }

  #append(block: LiveBlock, text: string) {
    this.#waiting.set(block, (this.#waiting.get(block) ?? "") + text);
    this.#frame ??= requestAnimationFrame(() => this.flush());
  }
}

// The chat's names for types of the HTTP API, which are generated from those of the server.
import type { ContextReference } from "../api/model.ts";
import type * as api from "../api/types/api.ts";

export type { Chat, ChatEvent, EndReason, Note, PartialBlock, Prompt, PromptReply } from "../api/types/api.ts";
export type Agent = api.AgentInfo;
export type Setup = api.ChatSetup;
export type Todo = api.ChatTodo;
export type SlashCommand = api.ChatCommand;
export type ImageUpload = api.ImageBody;
export type RewindRequest = api.RewindBody;
export type RewindResult = api.RewindReply;
/** What an agent is started with. */
export type StartOptions = api.StartRequest;

export interface Message {
  text: string;
  contexts: ContextReference[];
  images: ImageUpload[];
}

/** A file, folder or symbol that was found. */
export interface FileMatch {
  kind: "file" | "folder" | "symbol";
  path: string;
  name: string;
  line: number | null;
  /** Number of files in a folder. */
  file_count?: number | null;
  /** Kind of a symbol, such as `function`. */
  symbol_kind?: string | null;
  /** Places in `path` that matched, for emphasis. */
  positions: number[];
}

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
export type FileMatch = api.FoundFile;
/** What an agent is started with. */
export type StartOptions = api.StartRequest;

export interface Message {
  text: string;
  contexts: ContextReference[];
  images: ImageUpload[];
}

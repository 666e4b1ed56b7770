import { getJson, part, postJson, send } from "../api/client.ts";
import type { ContextText, FoundFiles } from "../api/types/api.ts";
import type { Chat, Message, PromptReply, RewindRequest, RewindResult, Setup, StartOptions } from "./types.ts";

// Requests to the chat paths of the server.
const chat = (id: string, rest = "") => `chats/${part(id)}${rest}`;

export const listChats = () => getJson<Chat[]>("chats");
export const loadSetup = (cwd?: string | null) => getJson<Setup>("chat/setup", { cwd });
export const startChat = (options: StartOptions) => postJson<Chat>("chats", options);
export const loadChat = (id: string) => getJson<Chat>(chat(id));
export const endChat = (id: string) => send("DELETE", chat(id));
export const sendMessage = (id: string, message: Message) => postJson<{ uuid: string }>(chat(id, "/messages"), message);
export const removeQueued = (id: string, uuid: string) => send("DELETE", chat(id, `/queue/${part(uuid)}`));
export const interruptChat = (id: string) => send("POST", chat(id, "/interrupt"), {});
export const setPermissionMode = (id: string, permission_mode: string) =>
  send("POST", chat(id, "/permission_mode"), { permission_mode });
export const setModel = (id: string, model: string) => send("POST", chat(id, "/model"), { model });
export const answerPrompt = (id: string, prompt: string, decision: PromptReply) =>
  send("POST", chat(id, `/prompts/${part(prompt)}`), decision);
export const rewindChat = (id: string, request: RewindRequest) => postJson<RewindResult>(chat(id, "/rewind"), request);
export const eventsPath = (id: string) => chat(id, "/events");

export const findFiles = (cwd: string, q: string, signal?: AbortSignal) =>
  getJson<FoundFiles>("files", { cwd, q, limit: 30 }, signal);
export const loadContext = (cwd: string, kind: string, arg?: string) =>
  getJson<ContextText>("context", { cwd, kind, arg });

const TOKEN_KEY = "quipu.token";

/** A failed request, with what the server said about it. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string | null,
  ) {
    super(message);
  }
}

/** Takes the token out of the address (`#token=…`), so that it is in no bookmark and no history entry. */
export function takeToken(
  place: Location = location,
  pages: History = history,
  storage: Storage = sessionStorage,
): boolean {
  const fragment = new URLSearchParams(place.hash.slice(1));
  const token = fragment.get("token");
  if (token) {
    storage.setItem(TOKEN_KEY, token);
    fragment.delete("token");
    const rest = fragment.toString();
    pages.replaceState(pages.state, "", place.pathname + place.search + (rest ? `#${rest}` : ""));
  }
  return storage.getItem(TOKEN_KEY) !== null;
}

export type Query = Record<string, string | number | boolean | null | undefined>;

/** `/api/path?query` without empty parameters. */
export function address(path: string, query: Query = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === "" || value === false) continue;
    parameters.set(name, value === true ? "1" : String(value));
  }
  const text = parameters.toString();
  return `/api/${path}${text ? `?${text}` : ""}`;
}

async function request(url: string, options: RequestInit = {}): Promise<Response> {
  const token = sessionStorage.getItem(TOKEN_KEY) ?? "";
  const headers = new Headers(options.headers);
  headers.set("authorization", `Bearer ${token}`);
  let response: Response;
  try {
    response = await fetch(url, { ...options, headers });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError(0, "page.offline", "the server does not respond", "start it again with `quipu serve`");
  }
  if (response.ok) return response;
  const body = (await response.json().catch(() => null)) as {
    error?: { code: string; message: string; hint?: string };
  } | null;
  const fault = body?.error;
  throw new ApiError(
    response.status,
    fault?.code ?? "page.http",
    fault?.message ?? `status ${response.status}`,
    fault?.hint ?? null,
  );
}

/** Escapes one part of a path, such as a session id. */
export const part = encodeURIComponent;

export async function getJson<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  const response = await request(address(path, query), { signal });
  return (await response.json()) as T;
}

export async function getText(path: string, query: Query = {}): Promise<string> {
  return (await request(address(path, query))).text();
}

type Method = "POST" | "PUT" | "DELETE";

function requestWith(method: Method, path: string, body: unknown): Promise<Response> {
  const content =
    body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  return request(address(path), { method, ...content });
}

/** Sends a request whose reply is not needed. */
export async function send(method: Method, path: string, body?: unknown): Promise<void> {
  await requestWith(method, path, body);
}

/** Sends a body and returns the reply. */
export async function postJson<T>(path: string, body: unknown): Promise<T> {
  return (await (await requestWith("POST", path, body)).json()) as T;
}

/** Saves a response as a file: a plain link could not carry the token. */
export async function download(path: string, query: Query, name: string): Promise<void> {
  const blob = await (await request(address(path, query))).blob();
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}

/** Splits a stream of bytes into lines of JSON. */
export async function* jsonLines<E>(body: ReadableStream<Uint8Array>): AsyncGenerator<E> {
  const reader = body
    .pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>)
    .getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.trim()) yield JSON.parse(line) as E;
  }
}

/**
 * Calls `receive` for every line of a stream until `signal` is aborted. Reconnects after a failure, but not to a path
 * that the server refuses or does not know.
 */
export async function followEvents<E>(
  path: string,
  receive: (event: E) => void,
  connection: (isOpen: boolean) => void,
  signal: AbortSignal,
): Promise<void> {
  let wait = 500;
  while (!signal.aborted) {
    try {
      const response = await request(address(path), { signal });
      wait = 500;
      connection(true);
      if (response.body) for await (const event of jsonLines<E>(response.body)) receive(event);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && (error.status === 401 || error.status === 404)) return connection(false);
    }
    connection(false);
    await new Promise((done) => setTimeout(done, wait));
    wait = Math.min(wait * 2, 10_000);
  }
}

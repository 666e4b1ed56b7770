import { afterEach, expect, test, vi } from "vitest";
import { ApiError, address, getJson, jsonLines, takeToken } from "./client.ts";

afterEach(() => vi.restoreAllMocks());

test("the token leaves the address and is sent with every request", async () => {
  const place = { hash: "#token=abc&x=1", pathname: "/s/1", search: "?line=2" } as Location;
  const pages = { state: null, replaceState: vi.fn() } as unknown as History;
  expect(takeToken(place, pages, sessionStorage)).toBe(true);
  expect(pages.replaceState).toHaveBeenCalledWith(null, "", "/s/1?line=2#x=1");
  const fetch = vi.spyOn(globalThis, "fetch").mockResolvedValue(new Response("{}"));
  await getJson("status");
  expect(new Headers(fetch.mock.calls[0]?.[1]?.headers).get("authorization")).toBe("Bearer abc");
});

test("empty parameters are left out", () => {
  expect(
    address("items", { from: 0, count: 64, branch: null, agent: undefined, q: "", full: true, regex: false }),
  ).toBe("/api/items?from=0&count=64&full=1");
});

test("errors of the server keep their code and hint", async () => {
  const body = { error: { code: "session.not_found", message: "no session matches 'x'", hint: "list them" } };
  vi.spyOn(globalThis, "fetch").mockResolvedValue(new Response(JSON.stringify(body), { status: 404 }));
  const error = await getJson("sessions/x").catch((failure: unknown) => failure);
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({ status: 404, code: "session.not_found", hint: "list them" });
});

test("a server that is gone is named as such", async () => {
  vi.spyOn(globalThis, "fetch").mockRejectedValue(new TypeError("fetch failed"));
  expect(await getJson("status").catch((failure: unknown) => failure)).toMatchObject({ code: "page.offline" });
});

test("events may arrive in any pieces", async () => {
  const pieces = ['{"type":"ses', 'sions"}\n\n{"type":"ping"}\n{"ty', 'pe":"sessions"}\n'];
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
      controller.close();
    },
  });
  const types: string[] = [];
  for await (const event of jsonLines<{ type: string }>(stream)) types.push(event.type);
  expect(types).toEqual(["sessions", "ping", "sessions"]);
});

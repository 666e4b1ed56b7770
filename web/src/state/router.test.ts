import { expect, test } from "vitest";
import { parseRoute, sessionAddress } from "./router.svelte.ts";

test("addresses lead to views", () => {
  const view = (path: string) => parseRoute(path, "").view;
  expect(
    ["/", "/sessions", "/search", "/usage", "/settings", "/s/abc", "/s", "/nothing", "/sessions/x"].map(view),
  ).toEqual(["home", "sessions", "search", "usage", "settings", "session", "missing", "missing", "missing"]);
});

test("a deep link keeps the key of the session and the line", () => {
  const address = sessionAddress("-home-sam:1/2", { line: 84 });
  expect(address).toBe("/s/-home-sam%3A1%2F2?line=84");
  const [path = "", search = ""] = address.split("?");
  const route = parseRoute(path, `?${search}`);
  expect([route.id, route.query.get("line")]).toEqual(["-home-sam:1/2", "84"]);
});

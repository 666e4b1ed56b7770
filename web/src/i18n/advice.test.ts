import { afterEach, expect, test } from "vitest";
import { preferences } from "../state/preferences.svelte.ts";
import { adviceText, causeAdvice, causeName } from "./advice.ts";

afterEach(() => preferences.set({ language: "system" }));

test("advice is the server's sentence in English, and of the same numbers in Chinese", () => {
  const advice = {
    kind: "slow_tool",
    subject: "Bash",
    number: 62,
    text: "Bash ran during 62 %",
    saves_usd: 0,
  } as const;
  preferences.set({ language: "en" });
  expect(adviceText(advice)).toBe("Bash ran during 62 %");
  preferences.set({ language: "zh" });
  expect(adviceText(advice)).toBe("忙碌时间的 62 % 在运行 Bash");
  expect(adviceText({ ...advice, kind: "cache_miss", subject: "ttl_expired", number: 2 })).toContain("缓存过期");
});

test("a cause that the page does not know stays as it is", () => {
  preferences.set({ language: "zh" });
  expect(causeName("tools_changed")).toBe("工具改变");
  expect(causeName("new_cause")).toBe("new cause");
  expect(causeAdvice("new_cause", "do that")).toBe("do that");
});

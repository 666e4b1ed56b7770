// Sessions for tests: a scratch folder with the demo sessions and sessions made here.
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const DEMO = new URL("../../fixtures/demo/", import.meta.url).pathname;
const PROJECT = "-work-page";

/** A scratch folder with the demo sessions. Nothing of the user's is read or written. */
export function scratchFolder() {
  const home = mkdtempSync(join(tmpdir(), "quipu-page-"));
  cpSync(DEMO, join(home, ".claude"), { recursive: true });
  mkdirSync(join(home, ".claude", "projects", PROJECT), { recursive: true });
  return home;
}

/** Writes the lines of one session; every entry follows the one before it. */
export class SessionWriter {
  /**
   * @param {string} home
   * @param {string} id
   */
  constructor(home, id) {
    this.id = id;
    this.path = join(home, ".claude", "projects", PROJECT, `${id}.jsonl`);
    this.count = 0;
    /** @type {string | null} */
    this.parent = null;
    writeFileSync(this.path, "");
  }

  /** @param {Record<string, unknown>} fields */
  line(fields) {
    this.count += 1;
    const uuid = `00000000-0000-4000-8000-${String(this.count).padStart(12, "0")}`;
    const timestamp = new Date(Date.UTC(2026, 10, 1, 9, 0, this.count)).toISOString();
    const envelope = {
      parentUuid: this.parent,
      isSidechain: false,
      sessionId: this.id,
      cwd: "/work/page",
      version: "2.1.325",
      uuid,
      timestamp,
    };
    this.parent = uuid;
    return `${JSON.stringify({ ...envelope, ...fields })}\n`;
  }

  /** @param {string} text */
  prompt(text) {
    return this.line({ type: "user", message: { role: "user", content: text } });
  }

  /** @param {unknown[]} content */
  answer(content) {
    const usage = { input_tokens: 10, output_tokens: 5, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };
    const message = {
      id: `msg_${this.count}`,
      type: "message",
      role: "assistant",
      model: "claude-opus-5-5",
      content,
      stop_reason: null,
      stop_sequence: null,
      usage,
    };
    return this.line({ type: "assistant", message });
  }

  /**
   * @param {string} name
   * @param {unknown} input
   * @param {unknown} result
   */
  tool(name, input, result) {
    const id = `toolu_${this.count + 1}`;
    const call = this.answer([{ type: "tool_use", id, name, input }]);
    return (
      call +
      this.line({
        type: "user",
        message: { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: result }] },
      })
    );
  }

  /** @param {string[]} lines */
  write(...lines) {
    appendFileSync(this.path, lines.join(""));
  }
}

/** Texts that would run, load or hide something if the page took them for more than text. */
export const HOSTILE = {
  script: "<script>window.hacked = 'script'</script><img src=x onerror=\"window.hacked='img'\">",
  link: "[click](javascript:window.hacked='link') [data](data:text/html,<script>1</script>) <a href=\"javascript:window.hacked=1\">a</a>",
  image: "![pixel](https://tracker.example.com/pixel.png) <iframe src=https://tracker.example.com></iframe>",
  svg: `<svg xmlns="http://www.w3.org/2000/svg" onload="window.hacked='svg'">${'<rect width="1" height="1"/>'.repeat(20_000)}</svg>`,
  ansi: "\u001b]0;title\u0007\u001b[2J\u001b[31mred\u001b[0m \u001b]8;;javascript:alert(1)\u001b\\link\u001b]8;;\u001b\\",
  bidi: "if (isAdmin\u202e \u2066// check\u2069 \u2066) {",
};

/** @param {string} home */
export function writeHostileSession(home) {
  const session = new SessionWriter(home, "bad00000-0000-4000-8000-000000000000");
  const { script, link, image, svg, ansi, bidi } = HOSTILE;
  session.write(session.prompt(`${script} ${link}`));
  for (const text of [script, link, image, svg, bidi, `\`\`\`html\n${script}\n\`\`\``])
    session.write(session.answer([{ type: "text", text }]));
  session.write(
    session.answer([{ type: "thinking", thinking: script, signature: "" }]),
    session.tool(`<img src=x onerror="window.hacked='name'">`, { path: script }, script),
    session.tool("Bash", { command: `echo ${ansi}` }, ansi),
    session.tool("Edit", { file_path: `/work/page/${bidi}`, old_string: script, new_string: bidi }, "ok"),
    session.tool("WebFetch", { url: "javascript:window.hacked='url'", prompt: script }, `${link} ${image}`),
    session.tool("mcp__<b>x</b>__<i>y</i>", { a: svg }, [
      {
        type: "image",
        source: { type: "base64", media_type: "image/svg+xml", data: Buffer.from(svg).toString("base64") },
      },
    ]),
    session.tool("Bash", { command: "cat big" }, "x".repeat(1_000_000)),
    session.line({ type: "<script>window.hacked='type'</script>", text: script }),
    "this line is not JSON <script>window.hacked='torn'</script>\n",
    session.answer([{ type: "text", text: "the end of the hostile session" }]),
  );
  return session.id;
}

/**
 * A long session of prompts, answers and tool calls.
 * @param {string} home
 * @param {number} turns
 */
export function writeLongSession(home, turns) {
  const session = new SessionWriter(home, "10000000-0000-4000-8000-000000000000");
  for (let turn = 1; turn <= turns; turn += 1) {
    session.write(
      session.prompt(`prompt number ${turn}`),
      session.tool(
        "Bash",
        { command: `step ${turn}`, description: "one step" },
        `output of step ${turn}\n`.repeat(turn % 7),
      ),
      session.answer([
        { type: "text", text: `Answer **${turn}**.\n\n${"A sentence of the answer. ".repeat(turn % 11)}` },
      ]),
    );
  }
  return session;
}

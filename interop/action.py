# agents: ours real
"""The command lines and messages of a GitHub action that runs the agent (anthropics/claude-code-action):
stream-json in both directions, what people write as arguments of their own after the action's."""

import json
import os
import subprocess
from pathlib import Path

BASE = ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"]
Path("mcp.json").write_text('{"mcpServers": {}}')
Path(".claude/commands").mkdir(parents=True)
Path(".claude/commands/greet.md").write_text("Please ADDRESS $0 kindly; the rest is $ARGUMENTS.")
Path("settings.json").write_text('{"permissions": {"allow": ["Bash(touch:*)"]}}')


def run(what, args, *blocks):
    """Runs the agent with the action's arguments and the user's, on one message of several texts."""
    content = [{"type": "text", "text": text} for text in blocks]
    line = json.dumps({"type": "user", "message": {"role": "user", "content": content},
                       "parent_tool_use_id": None, "session_id": ""})
    done = subprocess.run(["claude", *BASE, *args], input=line + "\n", text=True, capture_output=True, timeout=90)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    result = next((line for line in reversed(lines) if line["type"] == "result"), {})
    init = next((line for line in lines if line.get("subtype") == "init"), {})
    denials = [denial["tool_name"] for denial in result.get("permission_denials", [])]
    print(f"{what}: exit {done.returncode}, {result.get('subtype')}, {result.get('result')!r}, turns {result.get('num_turns')}, "
          f"denied {denials}, mode {init.get('permissionMode')}")
    for line in done.stderr.splitlines():
        print("# stderr:", line)
    return lines


run("plain", [], "hi")
run("verbose twice", ["--verbose"], "hi")
run("debug", ["--debug"], "hi")
run("model and turns", ["--model", "claude-haiku-4-5", "--max-turns", "3", "--fallback-model", "claude-sonnet-4-5"], "hi")
run("tools", ["--allowedTools", "Bash(touch:*),Read", "--disallowedTools", "WebSearch"], "RUN it")
print("it ran:", os.path.exists("made"))
run("denied", ["--allowedTools", "Read"], "WRITE it")
run("settings", ["--settings", "settings.json"], "RUN it")
run("settings in the command", ["--settings", '{"permissions": {"allow": ["Write"]}}'], "WRITE it")
run("MCP", ["--mcp-config", "mcp.json", "--strict-mcp-config"], "hi")
run("system prompt", ["--system-prompt", "You are a pirate."], "hi")
run("more for the system prompt", ["--append-system-prompt", "Speak like a pirate."], "hi")
run("auto", ["--permission-mode", "auto"], "hi")
run("bypass", ["--permission-mode", "bypassPermissions"], "RUN it")
run("one turn", ["--max-turns", "1"], "RUN it")
run("sources", ["--setting-sources", "user,project,local"], "hi")
run("schema", ["--json-schema", '{"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}'], "FORM it")
run("an error", [], "FAIL now")
run("a command last", [], "Context first.", "/greet Ada Lovelace")

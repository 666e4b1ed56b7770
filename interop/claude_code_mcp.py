# npm: @steipete/claude-code-mcp@latest
"""An MCP server whose tool runs the agent."""

import json
import os
import subprocess

folder = os.path.join(os.environ["PACKAGES"], "node_modules/@steipete/claude-code-mcp")
manifest = json.load(open(f"{folder}/package.json"))
entry = manifest["bin"] if isinstance(manifest["bin"], str) else next(iter(manifest["bin"].values()))
server = subprocess.Popen(["node", os.path.join(folder, entry)], env=dict(os.environ, CLAUDE_CLI_NAME=os.environ["AGENT"]),
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def call(id, method, **params):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}) + "\n")
    server.stdin.flush()
    for line in server.stdout:
        message = json.loads(line)
        if message.get("id") == id:
            return message.get("result") or message.get("error")


call(1, "initialize", protocolVersion="2025-03-26", capabilities={}, clientInfo={"name": "interop", "version": "1"})
print("tools:", [tool["name"] for tool in call(2, "tools/list")["tools"]])
answer = call(3, "tools/call", name="claude_code", arguments={"prompt": "hi", "workFolder": os.getcwd()})
print("hi:", answer)
answer = call(4, "tools/call", name="claude_code", arguments={"prompt": "RUN it", "workFolder": os.getcwd()})
print("RUN it:", answer, os.path.exists("made"))
server.terminate()

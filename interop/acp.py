# npm: @agentclientprotocol/claude-agent-acp@latest
"""The adapter through which editors talk to the agent (Agent Client Protocol), driven as an editor does."""

import json
import os
import subprocess
import sys
import time
from itertools import groupby
from pathlib import Path

FOLDER = Path(os.environ["PACKAGES"], "node_modules", os.environ.get("ADAPTER", "@agentclientprotocol/claude-agent-acp"))


class Adapter:
    """The adapter's process; answers permission requests with the option of the kind `decides`."""

    def __init__(self):
        manifest = json.loads((FOLDER / "package.json").read_text())
        entry = manifest["bin"] if isinstance(manifest["bin"], str) else next(iter(manifest["bin"].values()))
        env = dict(os.environ, CLAUDE_CODE_EXECUTABLE=os.environ["AGENT"])
        self.process = subprocess.Popen(["node", FOLDER / entry], env=env, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.next, self.decides, self.asked = 0, "allow_once", []

    def send(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def call(self, method, on_update=lambda update: None, **params):
        """Sends a request; returns its result and the updates that came before it."""
        self.next += 1
        self.send(id=self.next, method=method, params=params)
        updates = []
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("method") == "session/update":
                updates.append(message["params"]["update"])
                on_update(updates[-1])
            elif message.get("method") == "session/request_permission":
                options = message["params"]["options"]
                self.asked.append(sorted(option["kind"] for option in options))
                chosen = next(option["optionId"] for option in options if option["kind"] == self.decides)
                self.send(id=message["id"], result={"outcome": {"outcome": "selected", "optionId": chosen}})
            elif "method" in message and "id" in message:
                self.send(id=message["id"], error={"code": -32601, "message": "not here"})
            elif message.get("id") == self.next:
                return message.get("result") or message.get("error"), updates
        sys.exit(f"the adapter ended during {method}")


def words(updates):
    texts = [update["content"]["text"] for update in updates
             if update["sessionUpdate"] == "agent_message_chunk" and update["content"]["type"] == "text"]
    return "".join(texts)


def kinds(updates):
    """The kinds of updates in a row, without those that only tell of what is on offer."""
    passing = {"available_commands_update", "usage_update", "session_info_update", "config_option_update"}
    found = [update["sessionUpdate"] + (f" {update['status']}" if update.get("status") else "")
             for update in updates if update["sessionUpdate"] not in passing]
    # How often a call is described before it is done depends on the time it takes.
    found = [kind for kind in found if kind != "tool_call_update"]
    return ", ".join(kind for kind, _ in groupby(found))


adapter = Adapter()
hello, _ = adapter.call("initialize", protocolVersion=1, clientCapabilities={})
print("initialize:", hello["protocolVersion"], hello.get("agentInfo", {}).get("name"))
new, _ = adapter.call("session/new", cwd=os.getcwd(), mcpServers=[])
session = new["sessionId"]
print("modes:", ", ".join(sorted(mode["id"] for mode in new["modes"]["availableModes"])), "now", new["modes"]["currentModeId"])


def prompt(text, on_update=lambda update: None):
    result, updates = adapter.call("session/prompt", on_update, sessionId=session,
                                   prompt=[{"type": "text", "text": text}])
    print(f"{text}: {result.get('stopReason', result)} [{kinds(updates)}] {words(updates)!r}")


def cancel_at(kind):
    """Cancels at the first update of a kind."""
    sent = []

    def on_update(update):
        if not sent and update["sessionUpdate"] == kind:
            sent.append(True)
            time.sleep(0.5)
            adapter.send(method="session/cancel", params={"sessionId": session})
    return on_update


def cancelled(text, kind):
    result, updates = adapter.call("session/prompt", cancel_at(kind), sessionId=session,
                                   prompt=[{"type": "text", "text": text}])
    print(f"{text}, cancelled: {result.get('stopReason', result)}, begun {bool(words(updates) or kind == 'tool_call')}")


prompt("hi")
adapter.decides = "reject_once"
prompt("RUN it")
print("it ran:", os.path.exists("made"), adapter.asked)
adapter.decides = "allow_once"
prompt("RUN it now")
print("it ran:", os.path.exists("made"))
cancelled("SLOW story", "agent_message_chunk")
prompt("hi after that")
cancelled("SLOW story again", "agent_message_chunk")
prompt("hi after that, too")
cancelled("SLEEP now", "tool_call")
print("the command was begun", os.path.exists("begun"), "and ended", os.path.exists("slept"))
prompt("hi once more")
result, _ = adapter.call("session/set_mode", sessionId=session, modeId="acceptEdits")
prompt("WRITE it")
print("it wrote:", os.path.exists("w.txt"))
prompt("FAIL now")
prompt("hi in the end")
_, updates = adapter.call("session/load", sessionId=session, cwd=os.getcwd(), mcpServers=[])
said = [update["content"]["text"] for update in updates
        if update["sessionUpdate"] in ("user_message_chunk", "agent_message_chunk") and "text" in update["content"]]
# How far an answer came before it was cancelled depends on the time, too.
print("loaded:", ["This answer is …" if text.startswith("This answer is") else text for text in said])
prompt("hi, loaded")
adapter.process.stdin.close()
adapter.process.terminate()

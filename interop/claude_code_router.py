# npm: @musistudio/claude-code-router@2.0.0
"""claude-code-router: its server stands between the agent and the model, `ccr code` starts the agent.
Version 3 cannot be installed: one of its packages is no longer published."""

import json
import os
import subprocess
from pathlib import Path

CCR = [os.path.join(os.environ["PACKAGES"], "node_modules/.bin/ccr")]
model = os.environ.pop("ANTHROPIC_BASE_URL")
home = Path.home() / ".claude-code-router"
home.mkdir()
provider = {"name": "mock", "api_base_url": f"{model}/v1/messages", "api_key": "any", "models": ["claude-haiku-4-5"],
            "transformer": {"use": ["Anthropic"]}}
(home / "config.json").write_text(json.dumps({
    "PORT": 8381, "HOST": "127.0.0.1", "LOG": False, "CLAUDE_PATH": os.environ["AGENT"], "NON_INTERACTIVE_MODE": True,
    "Providers": [provider], "Router": {"default": "mock,claude-haiku-4-5"}}))
server = subprocess.Popen([*CCR, "start"], stdout=subprocess.DEVNULL)
for _ in range(100):
    if subprocess.run(["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8381"], stderr=subprocess.DEVNULL).returncode == 0:
        break
    subprocess.run(["sleep", "0.1"])


def run(*args):
    done = subprocess.run([*CCR, "code", *args], text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    return done.returncode, done.stdout.strip()


print("hi:", *run("-p", "hi"))
print("RUN it:", *run("-p", "RUN it", "--allowedTools", "Bash"), os.path.exists("made"))
code, text = run("-p", "hi", "--output-format", "json")
print("json:", code, json.loads(text)["result"])
print("continued:", *run("-p", "hi again", "--continue"))
server.terminate()

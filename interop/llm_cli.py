# pip: llm llm-claude-cli
# venv: venv
"""The plugin of the `llm` command that runs the agent's command line."""

import os
import subprocess
import sys

LLM = os.path.join(os.path.dirname(sys.executable), "llm")


def run(what, *args, **more):
    done = subprocess.run([LLM, *args], text=True, capture_output=True, timeout=120, **more)
    print(f"{what}: exit {done.returncode}, {done.stdout.strip()!r}, {done.stderr.strip().splitlines()[-1:]}")


models = subprocess.run([LLM, "models"], text=True, capture_output=True).stdout
model = next(line.split(":", 1)[1].split()[0] for line in models.splitlines() if "claude" in line.lower())
print("model:", model)
run("text", "-m", model, "hi", stdin=subprocess.DEVNULL)
run("no stream", "-m", model, "--no-stream", "hi", stdin=subprocess.DEVNULL)
run("pipe", "-m", model, "-s", "You are a pirate.", input="hi")
run("an error", "-m", model, "FAIL now", stdin=subprocess.DEVNULL)

# npm: ccusage@20.0.24
"""ccusage counts the sessions of an agent; the tokens are those that quipu counts."""

import json
import os
import subprocess
import sys

TURNS = [["-p", "hi"], ["-p", "RUN it", "--allowedTools", "Bash"], ["-p", "HELP me", "--allowedTools", "Agent"],
         ["-p", "go on", "--continue"], ["-p", "hi", "--model", "claude-haiku-4-5"]]
for turn in TURNS:
    subprocess.run(["claude", *turn, "--agents", '{"helper": {"description": "Helps", "prompt": "You help."}}'],
                   check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
ccusage = [os.path.join(os.environ["PACKAGES"], "node_modules/.bin/ccusage")]


def counted(command):
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


theirs = counted([*ccusage, "daily", "--json", "--offline", "--timezone", "UTC"])["totals"]
ours = counted([os.environ["QUIPU"], "usage", "daily", "--json", "--timezone", "UTC"])["totals"]
pairs = {
    "input": (theirs["inputTokens"], ours["input_tokens"]),
    "output": (theirs["outputTokens"], ours["output_tokens"]),
    "written to the cache": (theirs["cacheCreationTokens"], ours["cache_write_5m_tokens"] + ours["cache_write_1h_tokens"]),
    "read from the cache": (theirs["cacheReadTokens"], ours["cache_read_tokens"]),
}
for what, (theirs, ours) in pairs.items():
    print(f"{what}: equal {theirs == ours}")
    print(f"# {what}: {theirs} and {ours}")
for report in ("weekly", "monthly", "session", "blocks"):
    print(f"{report}: {bool(counted([*ccusage, report, '--json', '--offline']))}")
sys.exit(any(theirs != ours for theirs, ours in pairs.values()))

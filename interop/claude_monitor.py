# pip: claude-monitor==4.0.0
"""claude-monitor counts the tokens of sessions; they are those that quipu counts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import written

written.write()
command = [Path(sys.executable).with_name("claude-monitor"), "--once", "--output", "json", "--no-api", "--timezone", "UTC"]
# Its exit code says how much of a plan is used.
theirs = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)["local"]["tokens"]
quipu = [os.environ["QUIPU"], "usage", "daily", "--json", "--timezone", "UTC"]
ours = json.loads(subprocess.run(quipu, check=True, capture_output=True, text=True).stdout)["totals"]
pairs = {
    "input": (theirs["input_tokens"], ours["input_tokens"]),
    "output": (theirs["output_tokens"], ours["output_tokens"]),
    "written to the cache": (theirs["cache_creation_input_tokens"], ours["cache_write_5m_tokens"] + ours["cache_write_1h_tokens"]),
    "read from the cache": (theirs["cache_read_input_tokens"], ours["cache_read_tokens"]),
}
for what, (theirs, ours) in pairs.items():
    print(f"{what}: equal {theirs == ours}")
    print(f"# {what}: {theirs} and {ours}")

# npm: cline@latest
"""Cline with its provider `claude-code`, which runs the agent's command line."""

import json
import os
import subprocess

cline = os.path.join(os.environ["PACKAGES"], "node_modules/.bin/cline")
for prompt in ("hi", "FAIL now"):
    done = subprocess.run([cline, "-P", "claude-code", "--json", prompt], text=True, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=120)
    kinds = []
    for line in done.stdout.splitlines():
        try:
            message = json.loads(line)
            kinds.append(str(message.get("type")) + ("/" + str(message.get("say")) if message.get("say") else ""))
        except ValueError:
            pass
    print(f"{prompt}: exit {done.returncode}, says Hello {'Hello.' in done.stdout}, {sorted(set(kinds))}")
    print("#", done.stdout[-300:].replace("\n", " "), done.stderr[-300:].replace("\n", " "))

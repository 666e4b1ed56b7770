# pip: claude-code-log
# differs: Sub-assistant a report that the tool result repeats word for word is shown once
"""claude-code-log turns session files into pages; the same things stand on them."""

import re
import subprocess
import sys
from pathlib import Path

import written

for number, file in enumerate(written.write(), 1):
    command = [Path(sys.executable).with_name("claude-code-log"), file, "--format", "md", "-o", "-"]
    done = subprocess.run(command, text=True, capture_output=True)
    shown = [line for line in done.stdout.splitlines() if line.startswith("#")]
    # Headings hold ids, times and counts of tokens.
    shown = [re.sub(r"[0-9a-f]{8}(-[0-9a-f-]+)?|\d{4}-\d\d-\d\d[T ][\d:.]+Z?|\d+:\d\d:\d\d|\(\d+[^)]*\)", "…", line) for line in shown]
    print(f"session {number}: exit {done.returncode}")
    for line in shown:
        print("  ", line)

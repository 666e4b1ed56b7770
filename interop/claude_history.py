# pip: claude-history==0.8.0
"""claude-history lists and shows sessions."""

import subprocess
import sys
from pathlib import Path

import written

for number, file in enumerate(written.write(), 1):
    for command in ("summary", "view"):
        done = subprocess.run([Path(sys.executable).with_name("claude-history"), command, file], text=True, capture_output=True)
        print(f"session {number}, {command}: exit {done.returncode}", written.said(done.stdout))

# pip: claude-code-tools==1.30.2
"""claude-code-tools (`aichat`) indexes sessions and writes them as text."""

import subprocess
import sys
from pathlib import Path

import written

aichat = Path(sys.executable).with_name("aichat")
files = written.write()
done = subprocess.run([aichat, "build-index"], text=True, capture_output=True)
print("index:", done.returncode, [line.strip() for line in done.stdout.splitlines() if line.strip().startswith(("Indexed:", "Failed:"))])
for number, file in enumerate(files, 1):
    done = subprocess.run([aichat, "export-claude", file, "--output", f"out{number}.txt"], text=True, capture_output=True)
    print(f"session {number}: exit {done.returncode}", written.said(Path(f"out{number}.txt").read_text()))

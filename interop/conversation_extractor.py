# pip: claude-conversation-extractor
"""claude-conversation-extractor writes what was said as Markdown."""

import subprocess
import sys
from pathlib import Path

import written

written.write()
subprocess.run([Path(sys.executable).with_name("claude-extract"), "--all", "--output", "out"], check=True,
               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
pages = []
for page in Path("out").glob("*"):
    lines = [line.strip() for line in page.read_text().splitlines()]
    said = [line for line in lines if line and not line.startswith(("#", "Session", "Date", "---", "**"))]
    pages.append([line[:60] for line in said if "summary of it" not in line])
for page in sorted(pages):
    print(len(page), page)

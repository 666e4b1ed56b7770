# pip: claude-conversation-extractor
"""claude-conversation-extractor writes what was said as Markdown."""

import subprocess
import sys
from pathlib import Path

import written

written.write()
subprocess.run([Path(sys.executable).with_name("claude-extract"), "--all", "--output", "out"], check=True,
               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def said(page):
    """The lines of a page, without headings and without the words around a summary and a command, which are our own."""
    found, in_summary = [], False
    for line in map(str.strip, page.read_text().splitlines()):
        in_summary = line.startswith("This session is being continued") or (in_summary and not line.startswith("<local-command"))
        if line and not in_summary and not line.startswith(("#", "Session", "Date", "---", "**")):
            found.append("<local-command-caveat>" if line.startswith("<local-command-caveat>") else line[:60])
    return found


for page in sorted(map(said, Path("out").glob("*"))):
    print(len(page), page)

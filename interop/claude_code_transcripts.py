# pip: claude-code-transcripts
"""claude-code-transcripts makes pages of session files; all that was said stands on them."""

import html
import re
import subprocess
import sys
from pathlib import Path

import written

for number, file in enumerate(written.write(), 1):
    command = [Path(sys.executable).with_name("claude-code-transcripts"), "json", file, "-o", f"out{number}"]
    done = subprocess.run(command, text=True, capture_output=True)
    pages = sorted(Path(f"out{number}").glob("*.html"))
    text = html.unescape(re.sub(r"<[^>]+>", " ", " ".join(page.read_text() for page in pages)))
    print(f"session {number}: exit {done.returncode}, {len(pages)} pages, says {sorted(set(written.said(text)))}")

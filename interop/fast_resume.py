# pip: fast-resume==2.14.0
"""fast-resume lists sessions with titles, folders and counts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import written

written.write()
fr = [Path(sys.executable).with_name("fr"), "--json", "--all"]
listed = json.loads(subprocess.run([*fr, "--rebuild"], check=True, capture_output=True, text=True).stdout)
for session in sorted(listed["sessions"], key=lambda session: (session["title"], session["message_count"])):
    print(session["agent"], session["title"], session["directory"] == os.getcwd(), session["message_count"])
for words in ("two", "你好", "helper"):
    found = json.loads(subprocess.run([*fr, words], check=True, capture_output=True, text=True).stdout)
    print(f"search {words}:", sorted(session["title"] for session in found["sessions"]))

# npm: claude-run@0.3.0
"""claude-run serves sessions to a browser; its server is asked for each."""

import json
import os
import subprocess
import time
import urllib.error
import urllib.request

import written

files = written.write()
entry = os.path.join(os.environ["PACKAGES"], "node_modules/.bin/claude-run")
server = subprocess.Popen([entry, "--port", "8380", "--no-open"], stdout=subprocess.DEVNULL)


def get(path):
    for _ in range(100):
        try:
            return json.load(urllib.request.urlopen(f"http://127.0.0.1:8380{path}", timeout=10))
        except urllib.error.HTTPError:
            raise
        except OSError:
            time.sleep(0.1)


get("/api/sessions")
for number, file in enumerate(files, 1):
    told = get(f"/api/conversation/{file.stem}")
    rows = []
    for message in told if isinstance(told, list) else told["messages"]:
        content = (message.get("message") or {}).get("content") or []
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        rows += [f"{message['type']} {block['type']} {block.get('text', block.get('name', ''))[:22]!r}" for block in blocks]
    print(f"session {number}:", rows)
server.terminate()

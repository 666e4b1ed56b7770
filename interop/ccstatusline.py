# npm: ccstatusline@latest
"""ccstatusline reads the session file that the status line's input names."""

import json
import os
import subprocess
from pathlib import Path

subprocess.run(["claude", "-p", "RUN it", "--allowedTools", "Bash"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
file = next(Path.home().glob(".claude/projects/*/*.jsonl"))
given = {"hook_event_name": "Status", "session_id": file.stem, "transcript_path": str(file), "cwd": os.getcwd(),
         "model": {"id": "claude-opus-5-5", "display_name": "Opus"}, "version": "2.1.325",
         "workspace": {"current_dir": os.getcwd(), "project_dir": os.getcwd()}}
widgets = ["model", "session-clock", "tokens-input", "tokens-output", "tokens-cached"]
config = Path.home() / ".config/ccstatusline"
config.mkdir(parents=True)
(config / "settings.json").write_text(json.dumps({"version": 3, "colorLevel": 0, "lines": [
    [{"id": str(n), "type": widget} for n, widget in enumerate(widgets)], [], []]}))
done = subprocess.run([os.path.join(os.environ["PACKAGES"], "node_modules/.bin/ccstatusline")], input=json.dumps(given),
                      text=True, capture_output=True)
print("exit", done.returncode, "line", bool(done.stdout.strip()))
print("# ", done.stdout.strip()[:300].replace("\n", " "), done.stderr[:200])

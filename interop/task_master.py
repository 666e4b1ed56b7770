# npm: task-master-ai@0.43.1
"""Task Master makes tasks of a document, with its provider `claude-code`."""

import json
import os
import subprocess
from pathlib import Path

TASK_MASTER = [os.path.join(os.environ["PACKAGES"], "node_modules/.bin/task-master")]
folder = Path(".taskmaster")
(folder / "tasks").mkdir(parents=True)
role = {"provider": "claude-code", "modelId": "sonnet", "maxTokens": 32000, "temperature": 0.2}
(folder / "config.json").write_text(json.dumps({
    "models": {"main": role, "research": role, "fallback": role},
    "global": {"logLevel": "info", "defaultNumTasks": 1, "projectName": "interop", "anonymousTelemetry": False},
    "claudeCode": {"pathToClaudeCodeExecutable": os.environ["AGENT"]}}))
Path("prd.md").write_text("Build a PIER of planks.\n")
done = subprocess.run([*TASK_MASTER, "parse-prd", "prd.md", "-n", "1", "--force"], text=True, capture_output=True,
                      stdin=subprocess.DEVNULL, timeout=120)
print("parse-prd: exit", done.returncode)
file = folder / "tasks/tasks.json"
tasks = json.loads(file.read_text()) if file.exists() else {}
print("tasks:", [task["title"] for task in tasks.get("master", tasks).get("tasks", [])])
print("#", done.stdout[-600:].replace("\n", " "), done.stderr[-600:].replace("\n", " "))

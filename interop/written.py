"""Sessions for readers of session files, written by the agent that is `claude` on the PATH."""

import json
import re
import subprocess
from pathlib import Path

HELPER = '{"helper": {"description": "Helps", "prompt": "You help."}}'
RUNS = [["hi"], ["READ it"], ["BOTH of them"], ["RUN it", "--allowedTools", "Bash"], ["WRITE it"],
        ["HELP me", "--allowedTools", "Agent", "--agents", HELPER], ["FAIL now"], ["你好，世界"], ["<b>hi</b>"]]
# What the user and the model said in these sessions, and the tools; other words are the agents' own.
SAID = ["Hello.", "The file must be read first.", "I look at the file.", "Read it.", "Ran it.", "Wrote it.", "The helper is done.",
        "bad thing", "你好", "hi again", "hi after it", "READ it", "BOTH of them", "RUN it", "WRITE it", "HELP me", "FAIL now",
        "notes.txt", "more.txt", "touch made", "Compacted", "the pier"]


def said(text):
    """Those that a text contains, in order."""
    return re.findall("|".join(map(re.escape, SAID)), " ".join(text.split()))


def write():
    """Writes the sessions; returns their files in the order of their first lines' times."""
    Path("notes.txt").write_text("one\ntwo\n")
    Path("more.txt").write_text("three\n")
    for run in RUNS:
        subprocess.run(["claude", "-p", *run], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    talk(["hi", "RUN it", "hi again", "/compact", "hi after it"])
    talk(["hi", "/cost", "/rename the pier", "hi again"])
    files = [file for file in Path.home().glob(".claude/projects/*/*.jsonl")]
    return sorted(files, key=lambda file: file.stat().st_mtime)


def talk(prompts):
    lines = [json.dumps({"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": None,
                         "session_id": ""}) for text in prompts]
    flags = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--allowedTools", "Bash"]
    agent = subprocess.Popen(["claude", "-p", *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for line in lines:
        agent.stdin.write(line + "\n")
        agent.stdin.flush()
        # Each prompt after the result of the one before.
        for said in agent.stdout:
            if json.loads(said)["type"] == "result":
                break
    agent.stdin.close()
    agent.wait()

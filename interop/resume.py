"""Resumes each session with the real CLI against answer.py and looks at what it sent.

usage: resume.py CLI PORT LOG WORKING_DIR SESSION…

A fork is written SESSION:ORIGINAL.
"""
import json
import os
import subprocess
import sys

cli, port, log, cwd, sessions = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:]
os.makedirs(cwd, exist_ok=True)
# What must reach the model of each session, in order.
expected = {
    "11111111": ["How long is the pier?", "I will measure it.", "Twelve.", "And the jetty?", "Let me look.", "Twelve.", "Go on."],
    "22222222": ["How long is the pier?", "What about the old quay?", "It is gone.", "Twelve.", "Go on."],
    "33333333": ["The boats were counted", "And the seals?", "Three.", "Twelve.", "Go on."],
}
for session in sessions:
    session, _, original = session.partition(":")
    before = sum(1 for _ in open(log)) if os.path.exists(log) else 0
    env = dict(os.environ, ANTHROPIC_BASE_URL=f"http://127.0.0.1:{port}")
    run = subprocess.run([cli, "-p", "Go on.", "--resume", session, "--output-format", "json"],
                         cwd=cwd, env=env, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, (run.stdout, run.stderr)
    result = json.loads(run.stdout)
    assert result["result"] == "I remember." and result["session_id"] == session, result
    sent = [json.loads(line) for line in open(log)][before:]
    messages = next(s["messages"] for s in sent if s["messages"])
    said, calls, results = [], [], []
    for message in messages:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "text" and message["role"] != "system":
                said.append(block["text"])
            elif block["type"] == "tool_use":
                calls.append(block["id"])
            elif block["type"] == "tool_result":
                results.append(block["tool_use_id"])
    at = -1
    for words in expected[(original or session)[:8]]:
        later = [i for i, text in enumerate(said) if i > at and text.strip().startswith(words)]
        assert later, (session, words, said)
        at = later[0]
    assert sorted(calls) == sorted(results), (calls, results)
    print(f"{session[:8]}: resumed, {len(messages)} messages sent, {len(calls)} tool calls all answered")

"""Reads sessions that quipu wrote with the session functions of the Python SDK.

usage: sessions.py WORKING_DIR  (with CLAUDE_CONFIG_DIR set)
"""
import sys

import claude_agent_sdk as sdk

cwd = sys.argv[1]
sessions = {s.session_id[:8]: s for s in sdk.list_sessions(directory=cwd)}
assert set(sessions) >= {"11111111", "22222222", "33333333"}, sessions

written = sessions["11111111"]
assert (written.custom_title, written.first_prompt, written.cwd) == ("Pier and jetty", "How long is the pier?", cwd), written


def texts(session):
    found = []
    for message in sdk.get_session_messages(session.session_id, directory=cwd):
        content = message.message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        found += [b["text"] for b in blocks if b["type"] == "text"]
    return found


turn = lambda prompt, answer: [prompt, answer, "Twelve."]
history = turn("How long is the pier?", "I will measure it.") + turn("And the jetty?", "Let me look.")
assert texts(written) == history, texts(written)
assert texts(sessions["22222222"]) == history + turn("What about the old quay?", "It is gone."), texts(sessions["22222222"])
compacted = texts(sessions["33333333"])
assert compacted[0].startswith("The boats were counted") and compacted[-3:] == turn("And the seals?", "Three."), compacted
print(f"claude-agent-sdk {sdk.__version__}: lists and loads the written, resumed, forked and compacted session")

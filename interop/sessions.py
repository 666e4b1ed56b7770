"""Reads sessions that quipu wrote with the session functions of the Python SDK, and
names, tags, forks and deletes them in turns: one side does it, the other sees it.

usage: sessions.py WORKING_DIR OURS  (with CLAUDE_CONFIG_DIR set)

OURS is the example `sessions` of quipu-sdk.
"""
import subprocess
import sys

import claude_agent_sdk as sdk

cwd, ours = sys.argv[1:]
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


def quipu(*args):
    done = subprocess.run([ours, *args], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def listed(session_id):
    """The tag and the title that our list shows; None if it does not list the session."""
    rows = [row.split("\t") for row in quipu("list", cwd).split("\n")]
    return next(((tag, title) for listed_id, tag, title in rows if listed_id == session_id), None)


def said(session_id):
    """Who said what, by our reckoning and by theirs."""
    us = [row.split("\t")[0] for row in quipu("show", session_id).split("\n")]
    return us, [message.type for message in sdk.get_session_messages(session_id, directory=cwd)]


id = written.session_id
before = [(m.uuid, m.message) for m in sdk.get_session_messages(id, directory=cwd)]
quipu("rename", id, "Quay 码头")
quipu("tag", id, "harbour")
seen = sdk.get_session_info(id, directory=cwd)
assert (seen.custom_title, seen.summary, seen.tag) == ("Quay 码头", "Quay 码头", "harbour"), seen
sdk.rename_session(id, "Pier, again 🌊", directory=cwd)
sdk.tag_session(id, "release", directory=cwd)
assert listed(id) == ("release", "Pier, again 🌊"), listed(id)
quipu("tag", id)
assert sdk.get_session_info(id, directory=cwd).tag is None
sdk.tag_session(id, "x", directory=cwd)
sdk.tag_session(id, None, directory=cwd)
assert listed(id) == ("", "Pier, again 🌊"), listed(id)
assert [(m.uuid, m.message) for m in sdk.get_session_messages(id, directory=cwd)] == before

for fork, theirs in [(quipu("fork", id), False), (sdk.fork_session(id, directory=cwd).session_id, True)]:
    info = sdk.get_session_info(fork, directory=cwd)
    assert info.custom_title == listed(fork)[1] == "Pier, again 🌊 (fork)", (info, listed(fork))
    assert texts(info) == history, texts(info)
    us, them = said(fork)
    assert us == them == said(id)[0], (us, them)
    copied = {m.uuid for m in sdk.get_session_messages(fork, directory=cwd)}
    assert not copied & {uuid for uuid, _ in before}
    if theirs:
        quipu("delete", fork)
        assert sdk.get_session_info(fork, directory=cwd) is None
    else:
        sdk.delete_session(fork, directory=cwd)
        assert listed(fork) is None
quipu("rename", id, "Pier and jetty")
print("titles, tags, forks and deletions of quipu-sdk are seen by it, and the other way round")

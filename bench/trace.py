#!/usr/bin/env python3
"""Measures the import of API calls and `quipu explain`, and prints rows for docs/bench.md.

    trace.py QUIPU GENERATE_CALLS WORK [SESSIONS CALLS]

40 sessions of 250 calls with 800 bytes of new messages each, in the format of claude-trace; and a
session file of 45 MB that is compacted every 100 turns. The page cache is warm, CPU is user + system
time.
"""
import json, os, subprocess, sys, time

quipu, generate, work = sys.argv[1:4]
size = sys.argv[4:6] or ["40", "250"]
capture = os.path.join(work, "calls.jsonl")
env = {**os.environ, "XDG_CACHE_HOME": work, "XDG_DATA_HOME": work, "HOME": work}



def measure(*arguments):
    """The fastest of three runs: seconds, CPU seconds, megabytes."""
    best = None
    for _ in range(3):
        begun = time.monotonic()
        with open(os.path.join(work, "out"), "wb") as sink:
            child = subprocess.Popen([quipu, *arguments], stdout=sink, stderr=subprocess.DEVNULL, env=env)
            _, status, used = os.wait4(child.pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        measured = (time.monotonic() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
        best = min(best or measured, measured)
    return best


def write_session(path, megabytes):
    """Turns with one tool call each and 18 kB of output."""
    with open(path, "w") as file:
        count = 0

        def write(kind, **fields):
            nonlocal count
            parent = f"uuid-{count}" if count else None
            count += 1
            minutes, seconds = divmod(count, 60)
            moment = f"2026-11-{1 + minutes // 1440:02}T{minutes // 60 % 24:02}:{minutes % 60:02}:{seconds:02}.000Z"
            line = {"parentUuid": parent, "uuid": f"uuid-{count}", "sessionId": "s", "timestamp": moment, "type": kind}
            file.write(json.dumps({**line, **fields}) + "\n")

        def answer(turn, number, block, stop):
            usage = {"input_tokens": 10, "output_tokens": 50, "cache_creation_input_tokens": 6000,
                     "cache_read_input_tokens": 20000 + 6000 * (turn % 100)}
            write("assistant", message={"id": f"msg_{turn}_{number}", "role": "assistant", "model": "claude-opus-4-6",
                                        "content": [block], "stop_reason": stop, "usage": usage})

        turn = 0
        while file.tell() < megabytes * 1e6:
            turn += 1
            if turn % 100 == 0:
                write("system", subtype="compact_boundary", content="Conversation compacted")
                write("user", isCompactSummary=True, message={"role": "user", "content": f"summary {turn}"})
            write("user", message={"role": "user", "content": f"prompt number {turn}: please read the next part"})
            call = {"type": "tool_use", "id": f"toolu_{turn}", "name": "Bash", "input": {"command": f"cat part-{turn}"}}
            answer(turn, 1, call, "tool_use")
            output = f"line of part {turn} with some words in it\n" * 400
            result = {"type": "tool_result", "tool_use_id": f"toolu_{turn}", "content": output}
            write("user", message={"role": "user", "content": [result]}, toolUseResult={"stdout": output})
            answer(turn, 2, {"type": "text", "text": f"part {turn} says what the others say. " * 20}, "end_turn")


subprocess.run([generate, capture, *size, "800"], check=True)
wall, cpu, memory = measure("trace", "ls", "-q", capture)
with open(os.path.join(work, "out")) as file:
    calls = sum(1 for _ in file) - 2
assert calls == int(size[0]) * int(size[1]), calls
megabytes = os.path.getsize(capture) / 1e6
os.remove(capture)
print(f"| import {calls:,} calls, {megabytes:,.0f} MB: time | {wall:.2f} s ({cpu:.2f} s CPU) | 3 s |")
print(f"| the same: memory | {memory:.0f} MB | 200 MB |")
session = os.path.join(work, "s.jsonl")
write_session(session, 45)
wall, cpu, memory = measure("explain", session)
os.remove(session)
print(f"| `quipu explain` on a session of 45 MB: time | {wall:.2f} s ({cpu:.2f} s CPU) | 1 s |")
print(f"| the same: memory | {memory:.0f} MB | 100 MB |")

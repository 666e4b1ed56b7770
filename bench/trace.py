#!/usr/bin/env python3
"""Measures the import of API calls and prints rows for docs/bench.md.

    trace.py QUIPU GENERATE_CALLS WORK [SESSIONS CALLS]

40 sessions of 250 calls with 800 bytes of new messages each, in the format of claude-trace, on a
warm page cache. CPU is user + system time.
"""
import os, subprocess, sys, time

quipu, generate, work = sys.argv[1:4]
size = sys.argv[4:6] or ["40", "250"]
capture = os.path.join(work, "calls.jsonl")
env = {**os.environ, "XDG_CACHE_HOME": work, "XDG_DATA_HOME": work, "HOME": work}

subprocess.run([generate, capture, *size, "800"], check=True)
best = None
for _ in range(3):
    begun = time.monotonic()
    with open(os.path.join(work, "out"), "wb") as sink:
        child = subprocess.Popen([quipu, "trace", "ls", "-q", capture], stdout=sink, env=env)
        _, status, used = os.wait4(child.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    measured = (time.monotonic() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
    best = min(best or measured, measured)
with open(os.path.join(work, "out")) as file:
    calls = sum(1 for _ in file) - 2
assert calls == int(size[0]) * int(size[1]), calls
wall, cpu, memory = best
megabytes = os.path.getsize(capture) / 1e6
os.remove(capture)
print(f"| import {calls:,} calls, {megabytes:,.0f} MB: time | {wall:.2f} s ({cpu:.2f} s CPU) | 3 s |")
print(f"| the same: memory | {memory:.0f} MB | 200 MB |")

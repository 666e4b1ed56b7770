#!/usr/bin/env python3
"""Measures counting and searching on generated trees and prints rows for docs/bench.md.

    index.py QUIPU GENERATE WORK

Times of whole commands on a warm page cache. CPU is user + system time of all threads.
"""
import glob, json, os, shutil, sqlite3, statistics, subprocess, sys, time

quipu, generate, work = sys.argv[1:4]
cache = os.path.join(work, "cache")
env = {**os.environ, "XDG_CACHE_HOME": cache, "XDG_DATA_HOME": os.path.join(work, "data"), "HOME": work}


def run(*command):
    """CPU seconds and wall seconds of a command."""
    out = os.path.join(work, "out")
    with open(out, "wb") as sink:
        begun = time.monotonic()
        child = subprocess.Popen(command, stdout=sink, stderr=subprocess.DEVNULL, env=env)
        _, status, used = os.wait4(child.pid, 0)
        wall = time.monotonic() - begun
    assert os.waitstatus_to_exitcode(status) in (0, 1), command
    return used.ru_utime + used.ru_stime, wall


# A process counts the memory of the one that started it until it runs its own program,
# so a small one starts it.
PEAK = "import os,sys; p=os.posix_spawn(sys.argv[1],sys.argv[1:],os.environ); print(os.wait4(p,0)[2].ru_maxrss, file=sys.stderr)"


def peak(*command):
    """Peak memory of a command in MB."""
    done = subprocess.run([sys.executable, "-S", "-c", PEAK, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env)
    return int(done.stderr.split()[-1]) / 1024


def middle(times, n=5):
    return statistics.median(times() for _ in range(n))


def row(what, ours, limit):
    print(f"| {what} | {ours} | {limit} |", flush=True)


def tree(name, size):
    place = os.path.join(work, name)
    subprocess.run([generate, place, str(size)], check=True, stdout=subprocess.DEVNULL)
    return place, sorted(glob.glob(place + "/projects/**/*.jsonl", recursive=True))


COUNTS = ("input_tokens", "output_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens", "cache_read_tokens",
          "web_searches", "messages")


def true_groups(place):
    """The groupings in which reports equal the truth, with and without the index."""
    with open(os.path.join(place, "truth.json")) as file:
        truth = json.load(file)
    for group, expect in truth.items():
        for way in ([], ["--no-index"]):
            run(quipu, "--claude-dir", place, "usage", group, "--json", "--timezone", "UTC", *way)
            with open(os.path.join(work, "out")) as file:
                rows = json.load(file)["rows"]
            ours = {row["key"]: [row[name] for name in COUNTS] + [round(row["cost_usd"] * 1e9)] for row in rows}
            differ = [key for key in expect.keys() | ours.keys() if expect.get(key) != ours.get(key)]
            assert not differ, (group, way, len(differ), [(key, expect.get(key), ours.get(key)) for key in differ[:5]])
    return truth


def text_in(files):
    """How many bytes people, models and tools said."""
    def strings(value):
        if isinstance(value, str):
            return len(value.encode("utf-8", "replace"))
        if isinstance(value, (list, dict)):
            return sum(map(strings, value.values() if isinstance(value, dict) else value))
        return 0

    total = 0
    for path in files:
        for line in open(path, "rb"):
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            content = (entry.get("message") or {}).get("content")
            for block in content if isinstance(content, list) else [{"text": content}]:
                total += sum(strings(block.get(key)) for key in ("text", "thinking", "input", "content"))
    return total


print("| what | measured | limit |\n|---|--:|--:|")
small, files = tree("tree1", 1_000_000_000)
ask = [quipu, "--claude-dir", small]
run("wc", "-l", *files)
wc = middle(lambda: run("wc", "-l", *files)[0])
plain = middle(lambda: run(*ask, "usage", "daily", "--no-index")[0])
row(f"`usage daily --no-index`, 1 GB in {len(files)} files, CPU against `wc -l`", f"{plain / wc:.2f}× ({plain:.2f} s)", "3×")
for peer, args in (("ccusage", ["daily", "--offline"]), ("cc-usage", ["daily"])):
    if shutil.which(peer):
        env["CLAUDE_CONFIG_DIR"] = small
        row(f"the same by `{peer}`", f"{run(peer, *args)[0] / wc:.2f}×", "")
row("peak memory of it", f"{peak(*ask, 'usage', 'daily', '--no-index'):.0f} MB", "64 MB")

first = run(*ask, "usage", "daily")
row("first `usage`, which makes the catalogue, CPU", f"{first[0]:.1f} s", "")
truth = true_groups(small)
row(f"reports equal to the truth in every row, with and without the index: {', '.join(truth)}", len(truth), "8")
row("second `usage`, nothing changed", f"{1000 * middle(lambda: run(*ask, 'usage', 'daily')[1], 15):.0f} ms", "50 ms")


def appended():
    with open(files[0], "a") as file:
        file.write(
            '{"type":"assistant","uuid":"x","timestamp":"2026-11-15T10:00:00Z","message":{"id":"m%d",'
            '"model":"claude-haiku-4-5","usage":{"output_tokens":1},"content":[]}}\n' % time.monotonic_ns()
        )
    return run(*ask, "usage", "daily")[1]


row("`usage` after one appended line", f"{1000 * middle(appended, 11):.0f} ms", "80 ms")

status = json.dumps({"transcript_path": files[0], "model": {"display_name": "Opus"}}).encode()


def statusline():
    begun = time.monotonic()
    subprocess.run([*ask, "statusline"], input=status, stdout=subprocess.DEVNULL, env=env, check=True)
    return time.monotonic() - begun


row("`statusline`, index warm", f"{1000 * middle(statusline, 15):.0f} ms", "15 ms")

text = text_in(files)
built = run(*ask, "search", "harbour")
row("text indexed by the first `search`, CPU", f"{text / 1e6 / built[0]:.0f} MB/s ({text / 1e6:.0f} MB)", "25 MB/s")
database = sqlite3.connect(glob.glob(cache + "/quipu/*.sqlite")[0])
sizes = dict(database.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name"))
index = sum(size for name, size in sizes.items() if name.startswith("text") or name == "said")
row("size of the index against the text", f"{100 * index / text:.0f} %", "40 %")
queries = ["harbour", "tide moon", "wave", "\"tide harbour\"", "src/tide/ve.rs", "harTide", "stationRent", "kelno ti",
           "动同", "国人", "工作时", "curHar wade", "error mismatched", "harbourw*", "nothinglikethis", "vewa_id", "bourTi",
           "leyra kelsta", "mode", "expected types"]
whole, alone = [], []
for query in queries * 5:
    begun = time.monotonic()
    done = subprocess.run([*ask, "-v", "search", query], env=env, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    whole.append(1000 * (time.monotonic() - begun))
    alone.append(float(done.stderr.split("searched in ")[1].split()[0]))
for what, times, limit in (("the search", alone, "30 ms"), ("the whole command", whole, "")):
    times.sort()
    p50, p95 = (times[len(times) * p // 100] for p in (50, 95))
    row(f"indexed search, {len(queries)} queries, {what}: p50, p95", f"{p50:.0f} ms, {p95:.0f} ms", limit)
if shutil.which("rg"):
    for word in ("harbourWave", "mismatched types"):
        rg = middle(lambda: run("rg", "-c", word, small)[0])
        ours = middle(lambda: run(*ask, "search", "--exact", word, "--json")[0])
        hits = run(*ask, "search", "--exact", word, "--json", "--limit", "10000000")
        found = len(json.load(open(os.path.join(work, "out"))))
        row(f"`search --exact '{word}'` ({found} hits), CPU against `rg -c`", f"{ours / rg:.2f}× ({ours:.2f} s)", "1.5×")
shutil.rmtree(small)
large, files = tree("tree4", 4_000_000_000)
row(f"peak memory of `usage daily --no-index`, 4 GB in {len(files)} files",
    f"{peak(quipu, '--claude-dir', large, 'usage', 'daily', '--no-index'):.0f} MB", "64 MB")

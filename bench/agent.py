#!/usr/bin/env python3
"""Measures what the agent costs beside the model and prints rows for docs/bench.md.

    agent.py QUIPU QUIPU_AGENT WORK [CLAUDE]

The model is `quipu answer` on this machine. With the path of the real program as a fourth
argument, that program is measured too. `bench/run` passes it, without any network except
loopback; do not pass it otherwise.
"""
import http.client, http.server, itertools, json, os, re, statistics, subprocess, sys, threading, time, urllib.request

quipu, agent, work = (os.path.abspath(path) for path in sys.argv[1:4])
claude = sys.argv[4] if len(sys.argv) > 4 else None
home = os.path.join(work, "agent-home")
os.makedirs(home)
open(os.path.join(home, "notes.txt"), "w").write("first line\nsecond line\n")
STREAM = ["--output-format", "stream-json", "--verbose"]
TURNS, EDGE = 2000, 100
TICK = os.sysconf("SC_CLK_TCK")


def env(url):
    keep = {"PATH": os.environ["PATH"], "HOME": home, "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "any"}
    # What the real program would do besides.
    no = ["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING"]
    return {**keep, **dict.fromkeys(no, "1"), "TMPDIR": home, "CLAUDE_CODE_TMPDIR": home}


class Answering:
    """The model, played from a script."""

    def __init__(self, script):
        path = os.path.join(home, "script.json")
        with open(path, "w") as file:
            json.dump(script, file)
        self.child = subprocess.Popen([quipu, "-q", "--json", "answer", path], stdout=subprocess.PIPE)
        text = ""
        while True:
            text += self.child.stdout.readline().decode()
            try:
                self.url = json.loads(text)["url"]
                return
            except ValueError:
                assert self.child.poll() is None, "quipu answer ended"

    def __enter__(self):
        return self.url

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()


class Replaying:
    """A server that returns the given responses in turn and does not parse requests, because a
    real model uses neither time nor cache of the processor that the agent runs on."""

    def __init__(self, answers):
        calls, unread = itertools.count(), bytearray(1 << 18)
        self.told = told = []

        class Replay(http.server.BaseHTTPRequestHandler):
            protocol_version, wbufsize, disable_nagle_algorithm = "HTTP/1.1", -1, True

            def do_POST(self):
                left = int(self.headers["content-length"])
                told.append(left)
                while left:
                    left -= self.rfile.readinto(memoryview(unread)[:left])
                n = next(calls)
                body = answers[n % len(answers)].replace(b"toolu_0000000000", b"toolu_%010d" % n)
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Replay)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        return self

    def __exit__(self, *_):
        self.server.shutdown()


def answers(url, body, result):
    """What `quipu answer` says to a question, and to the result of a call."""
    said = []
    for messages in ([], result):
        asked = json.loads(body)
        asked["messages"] += messages
        request = urllib.request.Request(url + "/v1/messages", json.dumps(asked).encode(), {"content-type": "application/json"})
        said.append(re.sub(rb"toolu_\w+", b"toolu_0000000000", urllib.request.urlopen(request).read()))
    return said


def once(program, url):
    """Seconds until the first line and until the end of a run with one turn."""
    begun = time.monotonic()
    child = subprocess.Popen([program, "-p", "hi", *STREAM], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, env=env(url), cwd=home)
    child.stdout.readline()
    first = time.monotonic() - begun
    rest = child.stdout.read()
    assert child.wait() == 0 and b'"subtype":"success"' in rest, rest
    return first, time.monotonic() - begun


# A process counts the memory of the one that started it until it runs its own program,
# so a small one starts it.
PEAK = "import os,sys; p=os.posix_spawn(sys.argv[1],sys.argv[1:],os.environ); print(os.wait4(p,0)[2].ru_maxrss, file=sys.stderr)"


def peak(program, url):
    """Peak memory of a run with one turn, in MB."""
    command = [sys.executable, "-S", "-c", PEAK, program, "-p", "hi", *STREAM]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          env=env(url), cwd=home)
    return int(done.stderr.split()[-1]) / 1024


def cpu(pid):
    """Seconds on the processor so far, and those of them in the kernel."""
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK, int(fields[12]) / TICK


def talk(program, url, prompts):
    """Wall seconds of each turn of one process, its CPU seconds before each hundredth, its peak memory in MB."""
    flags = ["-p", *STREAM, "--input-format", "stream-json"]
    child = subprocess.Popen([program, *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, env={**env(url), "DISABLE_AUTO_COMPACT": "1"}, cwd=home)
    walls, used = [], []
    for n in range(prompts):
        if n % EDGE == 0:
            used.append(cpu(child.pid))
        begun = time.monotonic()
        line = json.dumps({"type": "user", "message": {"role": "user", "content": f"question {n}"}}) + "\n"
        child.stdin.write(line.encode())
        child.stdin.flush()
        while b'"type":"result"' not in (said := child.stdout.readline()):
            assert said, "the agent ended"
        assert b'"is_error":false' in said, said
        walls.append(time.monotonic() - begun)
    used.append(cpu(child.pid))
    memory = int(re.search(r"VmHWM:\s+(\d+)", open(f"/proc/{child.pid}/status").read())[1]) / 1024
    child.stdin.close()
    child.stdout.read()
    assert child.wait() == 0
    return walls, used, memory


def caught(program):
    """The body of the request that a first turn sends."""
    bodies = []

    class Catch(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_error(400)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Catch)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    subprocess.run([program, "-p", "question 0"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, env=env(f"http://127.0.0.1:{server.server_port}"), cwd=home)
    server.shutdown()
    return bodies[-1]


def bare(url, body, n):
    """Seconds that the request takes without an agent, each time on the same connection."""
    line = http.client.HTTPConnection(url.removeprefix("http://"))
    times = []
    for _ in range(n):
        begun = time.monotonic()
        line.request("POST", "/v1/messages", body, {"content-type": "application/json"})
        answer = line.getresponse()
        answer.read()
        assert answer.status == 200
        times.append(time.monotonic() - begun)
    return times


def row(what, ours, theirs, goal=""):
    print(f"| {what} | {ours} | {theirs} | {goal} |", flush=True)


def ms(seconds):
    return f"{1000 * seconds:.1f} ms"


HELLO = [{"reply": "Hello."}]
# Little usage, so that neither program compacts.
USAGE = {"input_tokens": 10, "output_tokens": 10}
LONG = [
    {"when": {"result_of": "Read"}, "reply": "The notes have two lines.", "usage": USAGE},
    {"reply": [{"text": "I look."}, {"tool": "Read", "input": {"file_path": os.path.join(home, "notes.txt")}}], "usage": USAGE},
]
no = "not measured"
print("| what | quipu-agent | the real program | goal |\n|---|--:|--:|--:|")
with Answering(HELLO) as url:
    programs = [agent] + ([claude] if claude else [])
    figures = []
    for program in programs:
        once(program, url)
        runs = [once(program, url) for _ in range(21 if program == agent else 7)]
        first, whole = (statistics.median(times) for times in zip(*runs))
        figures.append((first, whole, peak(program, url)))
    ours, theirs = figures[0], figures[1] if claude else None
    times = lambda i: f" ({theirs[i] / ours[i]:.0f}×)"
    row("start to the first line on stdout", ms(ours[0]), ms(theirs[0]) + times(0) if theirs else no, "10× faster")
    row("a whole run with one turn", ms(ours[1]), ms(theirs[1]) + times(1) if theirs else no)
    row("peak memory of that run", f"{ours[2]:.0f} MB", f"{theirs[2]:.0f} MB{times(2)}" if theirs else no, "a tenth")
    body = caught(agent)
    api = statistics.median(bare(url, body, 200))
    turns, _, _ = talk(agent, url, 60)
    turn = statistics.median(turns[10:])
    row(f"a turn without tools in a running process, of which the bare call is {ms(api)} ({len(body) / 1000:.0f} kB sent)",
        ms(turn), no)
    row("overhead per turn over the bare call", ms(turn - api), no)
with Answering(LONG) as url:
    call = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}
    said = answers(url, caught(agent), [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}])
with Replaying(said) as model:
    walls, used, memory = talk(agent, model.url, TURNS)
    spent = [[b - a for a, b in zip(*pair)] for pair in (used[:2], used[-2:])]
    sent = [sum(model.told[:2 * EDGE]), sum(model.told[-2 * EDGE:])]
    for what, (own, kernel), wall, told in zip(("first", "last"), spent, (walls[:EDGE], walls[-EDGE:]), sent):
        row(f"{TURNS} turns with a tool call each, nothing compacted: {what} {EDGE}, CPU of the agent per turn, of which in the kernel (wall, sent)",
            f"{ms(own / EDGE)}, {ms(kernel / EDGE)} ({ms(sum(wall) / EDGE)}, {told / EDGE / 1e6:.2f} MB)", no)
    row("CPU per turn, last against first; outside the kernel",
        f"{spent[1][0] / spent[0][0]:.1f}×; {(spent[1][0] - spent[1][1]) / (spent[0][0] - spent[0][1]):.1f}×", no, "flat")
    row(f"peak memory after {TURNS} turns", f"{memory:.0f} MB", no)

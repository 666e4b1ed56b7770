#!/usr/bin/env python3
"""Measures what the capture proxy adds to a call and prints rows for docs/bench.md.

    proxy.py QUIPU WORK [NAME=URL_OF_A_PROXY_TO_ITS_UPSTREAM…]

The upstream is a small server in a process of its own. `quipu capture` is measured against a
direct connection, by turns. Other proxies can be given that forward to the address in the
variable QUIPU_BENCH_UPSTREAM (for example `mitmdump --mode reverse:…`).
"""
import http.client, json, multiprocessing, os, socket, statistics, subprocess, sys, time

quipu, work = (os.path.abspath(path) for path in sys.argv[1:3])
peers = [peer.split("=", 1) for peer in sys.argv[3:]]
EVENT = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"some words"}}\n\n'
EVENTS, LARGE = 20000, 10 << 20
CHUNK = b"%x\r\n%s\r\n" % (len(EVENT), EVENT)


def serve_connection(tcp):
    tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    reader = tcp.makefile("rb", buffering=1 << 16)
    while line := reader.readline():
        path, length = line.split()[1], 0
        while (header := reader.readline()) not in (b"\r\n", b""):
            if header.lower().startswith(b"content-length:"):
                length = int(header.split(b":")[1])
        while length:
            length -= len(reader.read(min(length, 1 << 16)))
        if path == b"/small":
            tcp.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")
        elif path == b"/large":
            tcp.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % LARGE + bytes(LARGE))
        else:
            tcp.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            # One write an event, as a model sends them.
            for _ in range(1 if path == b"/first" else EVENTS):
                tcp.sendall(CHUNK)
            tcp.sendall(b"0\r\n\r\n")


def upstream(pipe):
    import threading
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    pipe.send(listener.getsockname()[1])
    while True:
        tcp, _ = listener.accept()
        threading.Thread(target=serve_connection, args=(tcp,), daemon=True).start()


class Capture:
    def __init__(self, url, out):
        self.child = subprocess.Popen([quipu, "-q", "--json", "capture", "--upstream", url, "--out", out],
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.port = int(json.loads(self.child.stdout.readline())["address"].rsplit(":", 1)[1])

    def memory(self):
        with open(f"/proc/{self.child.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024

    def end(self):
        self.child.terminate()
        self.child.wait()


def small(line):
    """Seconds of a call with a small body."""
    begun = time.perf_counter()
    line.request("POST", "/small", b'{"model":"m"}', {"x-api-key": "a key of the benchmark"})
    line.getresponse().read()
    return time.perf_counter() - begun


def first(line):
    """Seconds until the first event."""
    begun = time.perf_counter()
    line.request("POST", "/first", b'{"model":"m"}')
    answer = line.getresponse()
    answer.read(1)
    taken = time.perf_counter() - begun
    answer.read()
    return taken


def events(port):
    """Events a second that one client gets."""
    tcp = socket.create_connection(("127.0.0.1", port))
    begun = time.perf_counter()
    tcp.sendall(b"POST /events HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    buffer, received = bytearray(1 << 18), 0
    tail = b""
    while not tail.endswith(b"0\r\n\r\n"):
        count = tcp.recv_into(buffer)
        assert count, "the stream broke off"
        received += count
        tail = (tail + bytes(buffer[max(0, count - 8):count]))[-8:]
    taken = time.perf_counter() - begun
    assert received > EVENTS * len(EVENT), received
    return EVENTS / taken


def large(port):
    line = http.client.HTTPConnection("127.0.0.1", port)
    for _ in range(3):
        line.request("POST", "/large", os.urandom(LARGE))
        assert len(line.getresponse().read()) == LARGE


def by_turns(ports, measure, rounds):
    """Medians, each round of every port in turn, so that all meet the same load."""
    lines = [http.client.HTTPConnection("127.0.0.1", port) for port in ports]
    for line in lines:
        line.connect()
        line.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        measure(line)
    times = [[measure(line) for line in lines] for _ in range(rounds)]
    return [statistics.median(column) for column in zip(*times)]


ours, theirs = multiprocessing.Pipe()
server = multiprocessing.Process(target=upstream, args=(theirs,), daemon=True)
server.start()
port = ours.recv()
os.environ["QUIPU_BENCH_UPSTREAM"] = url = f"http://127.0.0.1:{port}"
capture = Capture(url, os.path.join(work, "bench.capture"))
names = ["direct", "quipu capture"] + [name for name, _ in peers]
ports = [port, capture.port] + [int(url.rsplit(":", 1)[1]) for _, url in peers]
print("| what | " + " | ".join(names) + " | goal |\n|---|" + "--:|" * (len(names) + 1))


def row(what, values, goal):
    print(f"| {what} | " + " | ".join(values) + f" | {goal} |", flush=True)


calls = by_turns(ports, small, 2000)
row("a small call, median", [f"{1000 * value:.2f} ms" for value in calls], "0.3 ms added")
starts = by_turns(ports, first, 1000)
row("the first event of a stream, median", [f"{1000 * value:.2f} ms" for value in starts], "0.6 ms added")
speeds = [statistics.median(events(port) for _ in range(5)) for port in ports]
row("events a second, one client", [f"{value / 1000:.0f}k" for value in speeds], "20k")
capture.end()
capture = Capture(url, os.path.join(work, "large.capture"))
large(capture.port)
row("peak memory with requests and responses of 10 MB", ["", f"{capture.memory():.0f} MB"] + [""] * len(peers), "40 MB")
capture.end()
server.terminate()

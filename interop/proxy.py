"""A proxy before the model that keeps what was asked: `asked` holds (headers, body) of each request."""

import http.client
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

asked = []


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path.split("?")[0] == "/v1/messages":
            asked.append((dict(self.headers.items()), json.loads(body)))
        model = http.client.HTTPConnection(urlsplit(os.environ["ANTHROPIC_BASE_URL"]).netloc)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "accept-encoding")}
        model.request("POST", self.path, body, headers)
        answer = model.getresponse()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        self.send_header("connection", "close")
        self.end_headers()
        try:
            while piece := answer.read1(65536):
                self.wfile.write(piece)
                self.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            pass  # the agent was interrupted
        self.close_connection = True

    def log_message(self, *_):
        pass


def start():
    """Starts the proxy; returns its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"

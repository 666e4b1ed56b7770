"""A model on loopback that always says the same and keeps what it was asked.

usage: answer.py PORT LOG
"""
import http.server
import json
import sys

PORT, LOG = int(sys.argv[1]), sys.argv[2]


def events(model):
    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {"id": "msg_answer", "type": "message", "role": "assistant", "model": model,
               "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield {"type": "message_start", "message": message}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I remember."}}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
           "usage": {"output_tokens": 3}}
    yield {"type": "message_stop"}


class Answer(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.send_response(200)
        self.end_headers()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with open(LOG, "a") as log:
            log.write(json.dumps({"path": self.path, "model": body.get("model"), "messages": body.get("messages")}) + "\n")
        text = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events(body.get("model", "m")))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(text.encode())


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Answer).serve_forever()

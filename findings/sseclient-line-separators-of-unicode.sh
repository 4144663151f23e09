#!/usr/bin/env bash
# sseclient 0.0.27 (PyPI), Python 3.11: a line of an event stream ends with CR, LF or both (HTML standard, 9.2.5). The client also ends it
# at U+2028, U+2029, U+0085 and a form feed, takes the rest for a field that it does not know, and leaves it out. JSON may hold the first
# three as they are (RFC 8259, 7), and many writers do not escape them. No error is set. httpx-sse 0.4.3 gives the data as they were sent. A
# consumer that hands events on to Parley compares a length or a hash that the sender gives, or uses another client.
#
# Seen:
#   a b: sseclient "a b", httpx-sse "a b"
#   a U+2028 b: sseclient "a", httpx-sse "a\u2028b"
#   a U+2029 b: sseclient "a", httpx-sse "a\u2029b"
#   a U+0085 b: sseclient "a", httpx-sse "a\u0085b"
#   a U+000c b: sseclient "a", httpx-sse "a\fb"
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check sseclient==0.0.27 requests==2.32.5 httpx==0.28.1 httpx-sse==0.4.3
cat > read.py <<'END'
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
from httpx_sse import connect_sse
from sseclient import SSEClient

LETTERS = (" ", "\u2028", "\u2029", "\u0085", "\f")


class Stream(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.end_headers()
        for letter in LETTERS:
            self.wfile.write(f"data: a{letter}b\n\n".encode())

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Stream)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}/"
events = SSEClient(address)
first = [next(events).data for _ in LETTERS]
with httpx.Client() as client, connect_sse(client, "GET", address) as source:
    second = [event.data for event in source.iter_sse()]
for letter, left, right in zip(LETTERS, first, second, strict=True):
    name = "a b" if letter == " " else f"a U+{ord(letter):04x} b"
    print(f"{name}: sseclient {json.dumps(left)}, httpx-sse {json.dumps(right)}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
a b: sseclient "a b", httpx-sse "a b"
a U+2028 b: sseclient "a", httpx-sse "a\u2028b"
a U+2029 b: sseclient "a", httpx-sse "a\u2029b"
a U+0085 b: sseclient "a", httpx-sse "a\u0085b"
a U+000c b: sseclient "a", httpx-sse "a\fb"
END

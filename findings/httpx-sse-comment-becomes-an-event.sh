#!/usr/bin/env bash
# httpx-sse 0.4.3 (PyPI) with httpx 0.28.1, Python 3.11: behind an event that has an id each empty line gives one more event, with no data
# and that id. Servers send a comment and an empty line each few seconds to keep a connection open. By the HTML standard (9.2.6, dispatch
# the event) nothing is dispatched while the data buffer is empty, and retry alone makes no event. Before the first id it is right, so that
# a short test shows nothing. eventsource-parser 4.1.3 (npm), Node 20, gives what the standard says. A consumer that hands each event on to
# Parley passes over those without data; otherwise it sends an empty message for each comment.
#
# Seen:
#   httpx-sse: "one" 7 / "" 7 / "" 7 / "two" 8
#   eventsource-parser: "one" 7 / "two" 8
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check httpx==0.28.1 httpx-sse==0.4.3
npm install --silent --no-fund --no-audit --ignore-scripts eventsource-parser@4.1.3
printf '%s\n' ': hello' '' 'id: 7' 'data: one' '' ': keep open' '' 'retry: 500' '' 'id: 8' 'data: two' '' > stream
cat > read.py <<'END'
import json

import httpx
from httpx_sse import connect_sse

with open("stream", "rb") as file:
    octets = file.read()
answer = httpx.MockTransport(lambda _: httpx.Response(200, headers={"content-type": "text/event-stream"}, content=octets))
with httpx.Client(transport=answer) as client, connect_sse(client, "GET", "http://example.net/") as source:
    events = [f"{json.dumps(event.data)} {event.id}" for event in source.iter_sse()]
print("httpx-sse:", " / ".join(events))
END
cat > read.mjs <<'END'
import { createParser } from 'eventsource-parser'
import { readFileSync } from 'node:fs'

const events = []
createParser({ onEvent: (event) => events.push(`${JSON.stringify(event.data)} ${event.id}`) }).feed(readFileSync('stream', 'utf8'))
console.log(`eventsource-parser: ${events.join(' / ')}`)
END
{ venv/bin/python read.py; node read.mjs; } | tee seen
diff seen - <<'END'
httpx-sse: "one" 7 / "" 7 / "" 7 / "two" 8
eventsource-parser: "one" 7 / "two" 8
END

#!/usr/bin/env bash
# sseclient-py 1.9.0 (PyPI), Python 3.11: where a connection ends inside of an event, the client gives the part that came as an event like
# any other. By the HTML standard (9.2.6, end of the file) pending data are discarded, and an event counts from its empty line on. Its id is
# taken too, so that a client which comes back behind that id never gets the whole event. No error is set. eventsource-parser 4.1.3 (npm)
# gives the whole events alone. A consumer that hands events on to Parley sends the length with the data, or JSON, which is refused when it
# is cut.
#
# Seen:
#   sseclient-py: 7 "pay 250" / 8 "pay 10"
#   eventsource-parser: 7 "pay 250"
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check sseclient-py==1.9.0
npm install --silent --no-fund --no-audit --ignore-scripts eventsource-parser@4.1.3
printf 'id: 7\ndata: pay 250\n\nid: 8\ndata: pay 1000\n\n' | head --bytes=39 > stream
cat > read.py <<'END'
import json

from sseclient import SSEClient

with open("stream", "rb") as file:
    events = [f"{event.id} {json.dumps(event.data)}" for event in SSEClient(file).events()]
print("sseclient-py:", " / ".join(events))
END
cat > read.mjs <<'END'
import { createParser } from 'eventsource-parser'
import { readFileSync } from 'node:fs'

const events = []
createParser({ onEvent: (event) => events.push(`${event.id} ${JSON.stringify(event.data)}`) }).feed(readFileSync('stream', 'utf8'))
console.log(`eventsource-parser: ${events.join(' / ')}`)
END
{ venv/bin/python read.py; node read.mjs; } | tee seen
diff seen - <<'END'
sseclient-py: 7 "pay 250" / 8 "pay 10"
eventsource-parser: 7 "pay 250"
END

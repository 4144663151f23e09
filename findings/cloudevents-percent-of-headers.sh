#!/usr/bin/env bash
# cloudevents 2.2.0 (PyPI), Python 3.11, beside cloudevents 10.0.0 (npm), Node 20, both the project's own SDK: in binary mode over HTTP an attribute's blanks and
# letters beyond ASCII are written with percent signs, and a reader has to decode them (HTTP binding 1.0.2, 3.1.3.2). The new calls of the Python
# package do. Its calls of version 1, which most programs use, and the SDK for Node give the text undecoded, and write it raw themselves.
#
# Seen:
#   header of the new calls: caf%C3%A9%201
#   read by the new calls "café 1", by those of version 1 "caf%C3%A9%201", in Node "caf%C3%A9%201"
#   header of the calls of version 1: café 1
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts cloudevents@10.0.0
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check cloudevents==2.2.0
cat > read.mjs <<'END'
import { HTTP } from 'cloudevents'

process.stdout.write(HTTP.toEvent({ headers: JSON.parse(process.argv[2]), body: '{}' }).subject)
END
cat > read.py <<'END'
import json
import subprocess

from cloudevents.core.bindings import http
from cloudevents.core.v1.event import CloudEvent
from cloudevents.v1 import http as first
from cloudevents.v1.conversion import to_binary

attributes = {"id": "1", "type": "example.order", "source": "/example", "specversion": "1.0", "subject": "café 1"}
message = http.to_binary_event(CloudEvent(attributes | {"datacontenttype": "application/json"}, {}))
print(f"header of the new calls: {message.headers['ce-subject']}")
new = http.from_binary_event(message).get_subject()
old = first.from_http(message.headers, message.body)["subject"]
node = subprocess.run(["node", "read.mjs", json.dumps(message.headers)], capture_output=True, text=True, check=True).stdout
print(f'read by the new calls "{new}", by those of version 1 "{old}", in Node "{node}"')
print(f"header of the calls of version 1: {to_binary(first.CloudEvent(attributes, {}))[0]['ce-subject']}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
header of the new calls: caf%C3%A9%201
read by the new calls "café 1", by those of version 1 "caf%C3%A9%201", in Node "caf%C3%A9%201"
header of the calls of version 1: café 1
END

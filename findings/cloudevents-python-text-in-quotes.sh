#!/usr/bin/env bash
# cloudevents 2.2.0 (PyPI, the project's own SDK), Python 3.11, its calls of version 1: an event of XML or plain text in binary mode has its text in
# quotes as JSON, while its content type still says application/xml. The same package reads it back without the quotes, so a test with one
# library shows nothing. Any other reader has a document that is no XML; the SDK for Node gives the text with its quotes.
#
# Seen:
#   application/xml: sent "<order/>", read back <order/>
#   text/plain: sent "12", read back 12
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check cloudevents==2.2.0
cat > read.py <<'END'
from cloudevents.v1.conversion import to_binary
from cloudevents.v1.http import CloudEvent, from_http

for content_type, text in (("application/xml", "<order/>"), ("text/plain", "12")):
    event = CloudEvent({"type": "example.order", "source": "/example", "datacontenttype": content_type}, text)
    headers, body = to_binary(event)
    print(f"{headers['content-type']}: sent {body.decode()}, read back {from_http(headers, body).data}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
application/xml: sent "<order/>", read back <order/>
text/plain: sent "12", read back 12
END

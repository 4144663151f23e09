#!/usr/bin/env bash
# nsyslog-parser 0.10.1 and glossy 0.1.7 (npm), Node 20: a message of RFC 5424 has structured data or a minus (6.3), and then a text, which
# may hold brackets. nsyslog-parser takes brackets in the text for structured data, and cuts the text there; real data with an escaped
# bracket (6.3.3) are gone in part. glossy keeps of a text with brackets behind structured data what follows the last one. No error is set.
# syslog-rfc5424-parser 0.3.2 (PyPI), Python 3.11, gives the text, and leaves the backslashes of 6.3.3 in the values. A collector that sends
# events to Parley keeps the raw line beside the fields.
#
# Seen:
#   - order 7 [part size="5"] is late
#     nsyslog-parser: [{"$id": "part", "size": "5"}] "order 7"
#     glossy: null "order 7 [part size=\"5\"] is late"
#     Python: {} "order 7 [part size=\"5\"] is late"
#   [a@1 x="1"] order [7] is late
#     nsyslog-parser: [{"$id": "a@1", "x": "1"}] "order [7] is late"
#     glossy: {"a@1": {"x": "1"}} "is late"
#     Python: {"a@1": {"x": "1"}} "order [7] is late"
#   [a@1 x="say \"no\" \]"][b@1 y="2"] late
#     nsyslog-parser: [{"$id": "b@1", "y": "2"}] "late"
#     glossy: {"a@1": {"x": "say \"no\" ]"}, "b@1": {"y": "2"}} "late"
#     Python: {"a@1": {"x": "say \\\"no\\\" \\]"}, "b@1": {"y": "2"}} "late"
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts nsyslog-parser@0.10.1 glossy@0.1.7
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check syslog-rfc5424-parser==0.3.2
cat > read.mjs <<'END'
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const nsyslog = require('nsyslog-parser')
const { Parse } = require('glossy')
for (const line of process.argv.slice(2)) {
  const one = nsyslog(line)
  const two = Parse.parse(line)
  console.log(JSON.stringify([[one.structuredData, one.message], [two.structuredData, two.message]]))
}
END
cat > read.py <<'END'
import json
import subprocess

from syslog_rfc5424_parser import SyslogMessage

HEAD = "<165>1 2026-01-01T12:00:00Z host app 10 ID47 "
TEXTS = ('- order 7 [part size="5"] is late', '[a@1 x="1"] order [7] is late', r'[a@1 x="say \"no\" \]"][b@1 y="2"] late')
lines = [HEAD + text for text in TEXTS]
results = subprocess.run(["node", "read.mjs", *lines], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
for text, line, result in zip(TEXTS, lines, results, strict=True):
    third = SyslogMessage.parse(line).as_dict()
    print(text)
    for name, found in zip(("nsyslog-parser", "glossy", "Python"), [*json.loads(result), [third["sd"], third["msg"]]], strict=True):
        print(f"  {name}: {json.dumps(found[0])} {json.dumps(found[1])}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
- order 7 [part size="5"] is late
  nsyslog-parser: [{"$id": "part", "size": "5"}] "order 7"
  glossy: null "order 7 [part size=\"5\"] is late"
  Python: {} "order 7 [part size=\"5\"] is late"
[a@1 x="1"] order [7] is late
  nsyslog-parser: [{"$id": "a@1", "x": "1"}] "order [7] is late"
  glossy: {"a@1": {"x": "1"}} "is late"
  Python: {"a@1": {"x": "1"}} "order [7] is late"
[a@1 x="say \"no\" \]"][b@1 y="2"] late
  nsyslog-parser: [{"$id": "b@1", "y": "2"}] "late"
  glossy: {"a@1": {"x": "say \"no\" ]"}, "b@1": {"y": "2"}} "late"
  Python: {"a@1": {"x": "say \\\"no\\\" \\]"}, "b@1": {"y": "2"}} "late"
END

#!/usr/bin/env bash
# mqtt-pattern 2.1.1, mqtt-match 3.0.0 and mqtt-wildcard 3.0.9 (npm), Node 20, match names of topics with filters of MQTT. A filter that
# begins with a wildcard does not match a name that begins with $ (MQTT 5.0, 4.7.2); in all three it does, so that a program which takes
# every message by # also takes those of the broker about itself. A level may be empty, and + matches it (4.7.1.3); in mqtt-pattern it does
# not, so that such messages are passed over. No error is set. paho-mqtt 2.1.0 (PyPI), Python 3.11, gives what the standard says. A route of
# messages into Parley by topic is left to the broker's own subscription.
#
# Seen:
#   # and a/b: mqtt-pattern, mqtt-match, mqtt-wildcard yes yes yes, paho yes
#   # and $SYS/uptime: mqtt-pattern, mqtt-match, mqtt-wildcard yes yes yes, paho no
#   +/uptime and $SYS/uptime: mqtt-pattern, mqtt-match, mqtt-wildcard yes yes yes, paho no
#   +/b and /b: mqtt-pattern, mqtt-match, mqtt-wildcard no yes yes, paho yes
#   a/+ and a/: mqtt-pattern, mqtt-match, mqtt-wildcard no yes yes, paho yes
#   a/+/c and a//c: mqtt-pattern, mqtt-match, mqtt-wildcard no yes yes, paho yes
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts mqtt-pattern@2.1.1 mqtt-match@3.0.0 mqtt-wildcard@3.0.9
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check paho-mqtt==2.1.0
cat > read.mjs <<'END'
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const pattern = require('mqtt-pattern')
const match = require('mqtt-match')
const wildcard = require('mqtt-wildcard')
for (const [filter, name] of JSON.parse(process.argv[2])) {
  const found = [pattern.matches(filter, name), (match.default ?? match)(filter, name), wildcard(name, filter) !== null]
  console.log(`mqtt-pattern, mqtt-match, mqtt-wildcard ${found.map((yes) => (yes ? 'yes' : 'no')).join(' ')}`)
}
END
cat > read.py <<'END'
import json
import subprocess

from paho.mqtt.client import topic_matches_sub

PAIRS = (("#", "a/b"), ("#", "$SYS/uptime"), ("+/uptime", "$SYS/uptime"), ("+/b", "/b"), ("a/+", "a/"), ("a/+/c", "a//c"))
command = ["node", "read.mjs", json.dumps(PAIRS)]
lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
for (pattern, name), line in zip(PAIRS, lines, strict=True):
    print(f"{pattern} and {name}: {line}, paho {'yes' if topic_matches_sub(pattern, name) else 'no'}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
# and a/b: mqtt-pattern, mqtt-match, mqtt-wildcard yes yes yes, paho yes
# and $SYS/uptime: mqtt-pattern, mqtt-match, mqtt-wildcard yes yes yes, paho no
+/uptime and $SYS/uptime: mqtt-pattern, mqtt-match, mqtt-wildcard yes yes yes, paho no
+/b and /b: mqtt-pattern, mqtt-match, mqtt-wildcard no yes yes, paho yes
a/+ and a/: mqtt-pattern, mqtt-match, mqtt-wildcard no yes yes, paho yes
a/+/c and a//c: mqtt-pattern, mqtt-match, mqtt-wildcard no yes yes, paho yes
END

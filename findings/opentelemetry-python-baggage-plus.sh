#!/usr/bin/env bash
# opentelemetry-api 1.45.2 (PyPI), Python 3.11, beside @opentelemetry/core 2.12.1 (npm), Node 20: in the baggage header of the W3C a plus is an octet like
# any other and a space is %20. The Python side takes a plus for a space, writes a space as a plus, and takes properties, which follow a
# semicolon, into the value. So a value changes at each hop between the two languages, and nothing is logged.
#
# Seen:
#   plan=a+b: Python "a b", JavaScript "a+b"
#   plan=a;paid: Python "a;paid", JavaScript "a"
#   "Ada Lovelace" from Python: plan=Ada+Lovelace, JavaScript "Ada+Lovelace"
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts @opentelemetry/core@2.12.1 @opentelemetry/api@1.9.1
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check opentelemetry-api==1.45.2
cat > read.mjs <<'END'
import { defaultTextMapGetter, propagation, ROOT_CONTEXT } from '@opentelemetry/api'
import { W3CBaggagePropagator } from '@opentelemetry/core'

const carrier = { baggage: process.argv[2] }
const context = new W3CBaggagePropagator().extract(ROOT_CONTEXT, carrier, defaultTextMapGetter)
process.stdout.write(propagation.getBaggage(context).getEntry('plan').value)
END
cat > read.py <<'END'
import subprocess

from opentelemetry import baggage
from opentelemetry.baggage.propagation import W3CBaggagePropagator

python = W3CBaggagePropagator()


def javascript(header):
    return subprocess.run(["node", "read.mjs", header], capture_output=True, text=True, check=True).stdout


for header in ("plan=a+b", "plan=a;paid"):
    value = baggage.get_baggage("plan", python.extract({"baggage": header}))
    print(f'{header}: Python "{value}", JavaScript "{javascript(header)}"')
carrier = {}
python.inject(carrier, baggage.set_baggage("plan", "Ada Lovelace"))
print(f'"Ada Lovelace" from Python: {carrier["baggage"]}, JavaScript "{javascript(carrier["baggage"])}"')
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
plan=a+b: Python "a b", JavaScript "a+b"
plan=a;paid: Python "a;paid", JavaScript "a"
"Ada Lovelace" from Python: plan=Ada+Lovelace, JavaScript "Ada+Lovelace"
END

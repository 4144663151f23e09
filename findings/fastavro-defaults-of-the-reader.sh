#!/usr/bin/env bash
# fastavro 1.13.1 (PyPI), Python 3.11: a field that the writer did not know has the default of the reader's schema. For bytes and fixed that
# is written as a text whose characters stand for octets (Avro 1.12, Complex Types, Records, default values), and it counts for the type
# below a logical type. fastavro gives the JSON value as it is: a text for bytes, and for a decimal or a time no value of that type, while a
# written field has one. No error is set: a sum or a comparison fails or is wrong later, when the first old message comes. avsc 5.7.9 (npm),
# Node 20, gives the octets. A consumer of messages of Parley in Avro fills new fields itself.
#
# Seen:
#   bytes: written b'\xff', default 'ÿ'
#   fixed: written b'\xff', default 'ÿ'
#   decimal: written Decimal('5.00'), default '\x01ô'
#   timestamp-millis: written datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.timezone.utc), default 0
#   avsc, default of bytes: ff
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check fastavro==1.13.1
npm install --silent --no-fund --no-audit --ignore-scripts avsc@5.7.9
cat > read.py <<'END'
import json
import subprocess
from datetime import datetime, timezone
from decimal import Decimal
from io import BytesIO

from fastavro import schemaless_reader, schemaless_writer

FIELDS = (
    ("bytes", "\u00ff", b"\xff"),
    ({"type": "fixed", "name": "F", "size": 1}, "\u00ff", b"\xff"),
    ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, "\u0001\u00f4", Decimal("5.00")),
    ({"type": "long", "logicalType": "timestamp-millis"}, 0, datetime(1970, 1, 1, tzinfo=timezone.utc)),
)


def read(value, kind, *default):
    field = {"name": "x", "type": kind}
    if default:
        field["default"] = default[0]
    written = {"type": "record", "name": "R", "fields": [] if value is None else [field]}
    octets = BytesIO()
    schemaless_writer(octets, written, {"x": value})
    octets.seek(0)
    return schemaless_reader(octets, written, {"type": "record", "name": "R", "fields": [field]})["x"]


for kind, default, value in FIELDS:
    name = kind if isinstance(kind, str) else kind.get("logicalType", kind["type"])
    print(f"{name}: written {read(value, kind)!r}, default {read(None, kind, default)!r}")
schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "x", "type": "bytes", "default": "\u00ff"}]})
code = "const { Type } = require('avsc'); const type = Type.forSchema(JSON.parse(process.argv[1])); console.log(type.clone({}).x ?? '')"
code = code.replace("type.clone({}).x ?? ''", "'avsc, default of bytes:', type.fields[0].defaultValue().toString('hex')")
print(subprocess.run(["node", "-e", code, schema], stdout=subprocess.PIPE, text=True, check=True).stdout.strip())
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
bytes: written b'\xff', default 'ÿ'
fixed: written b'\xff', default 'ÿ'
decimal: written Decimal('5.00'), default '\x01ô'
timestamp-millis: written datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.timezone.utc), default 0
avsc, default of bytes: ff
END

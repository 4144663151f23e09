#!/usr/bin/env bash
# mt940js 1.3.5 and mt940-js 1.0.0 (npm, two readers of SWIFT statements), Node 20: field 61 has a value date with its year and an entry date without one
# (MT 940, field 61, subfields 1 and 2). Both readers give the entry date the year of the value date. What was booked on 31 December with
# value of 1 January so is booked a year late, and the other way round a year early. mt-940 5.1.1 (PyPI) takes the nearest year.
#
# Seen:
#   value 2026-01-01: mt940js 2026-12-31, mt940-js 2026-12-31, mt-940 2025-12-31
#   value 2025-12-31: mt940js 2025-01-02, mt940-js 2025-01-02, mt-940 2026-01-02
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
# mt940-js requires tslib and does not name it.
npm install --silent --no-fund --no-audit --ignore-scripts mt940js@1.3.5 mt940-js@1.0.0 tslib@2.8.1
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check mt-940==5.1.1
printf '%s\r\n' ':20:STATEMENT' ':25:1234/5678' ':28C:1/1' ':60F:C251231EUR100,00' ':61:2601011231D20,00NMSCREF1' ':86:one' \
  ':61:2512310102C5,00NMSCREF2' ':86:two' ':62F:C260102EUR85,00' - > statement
cat > read.mjs <<'END'
import { createRequire } from 'node:module'
import { readFileSync } from 'node:fs'

const require = createRequire(import.meta.url)
const { Parser } = require('mt940js')
const octets = readFileSync('statement')
const first = new Parser().parse(octets.toString())[0].transactions
const second = (await require('mt940-js').read(octets))[0].transactions
const day = (date) => new Date(date).toISOString().slice(0, 10)
console.log(JSON.stringify(first.map((f, i) => [day(f.date), day(f.entryDate), second[i].entryDate])))
END
cat > read.py <<'END'
import json
import subprocess

import mt940

node = json.loads(subprocess.run(["node", "read.mjs"], stdout=subprocess.PIPE, text=True, check=True).stdout)
with open("statement") as file:
    third = mt940.parse(file).transactions
for (value, first, second), transaction in zip(node, third, strict=True):
    print(f"value {value}: mt940js {first}, mt940-js {second}, mt-940 {transaction.data['entry_date']}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
value 2026-01-01: mt940js 2026-12-31, mt940-js 2026-12-31, mt-940 2025-12-31
value 2025-12-31: mt940js 2025-01-02, mt940-js 2025-01-02, mt-940 2026-01-02
END

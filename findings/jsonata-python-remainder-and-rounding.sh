#!/usr/bin/env bash
# jsonata-python 0.7.1 (PyPI), Python 3.11, beside jsonata 2.2.2 (npm, the reference), Node 20: the remainder of a number with decimals is another one, because
# both sides are cut to whole numbers before. $formatNumber rounds a half up, where the language refers to XPath, whose format-number (Functions and
# Operators 3.1, 4.7.5) rounds a half to the even digit. A number of sixteen digits, such as that of a card, loses one as text. No error is set.
#
# Seen:
#   amount % 1: Python 0, reference 0.99
#   5.5 % 2: Python 1, reference 1.5
#   $formatNumber(0.125, "0.00"): Python "0.13", reference "0.12"
#   $string(1234567890123456): Python "1.23456789012346e+15", reference "1234567890123456"
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts jsonata@2.2.2
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check jsonata-python==0.7.1
cat > read.mjs <<'END'
import jsonata from 'jsonata'

for (const expression of process.argv.slice(2)) {
  console.log(JSON.stringify(await jsonata(expression).evaluate({ amount: 2.99 })))
}
END
cat > read.py <<'END'
import json
import subprocess

import jsonata

EXPRESSIONS = ("amount % 1", "5.5 % 2", '$formatNumber(0.125, "0.00")', "$string(1234567890123456)")
node = subprocess.run(["node", "read.mjs", *EXPRESSIONS], capture_output=True, text=True, check=True).stdout.splitlines()
for expression, reference in zip(EXPRESSIONS, node, strict=True):
    found = jsonata.Jsonata(expression).evaluate({"amount": 2.99})
    if isinstance(found, float):
        found = round(found, 9)
    shown = reference if reference.startswith('"') else f"{round(float(reference), 9):g}"
    print(f"{expression}: Python {json.dumps(found)}, reference {shown}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
amount % 1: Python 0, reference 0.99
5.5 % 2: Python 1, reference 1.5
$formatNumber(0.125, "0.00"): Python "0.13", reference "0.12"
$string(1234567890123456): Python "1.23456789012346e+15", reference "1234567890123456"
END

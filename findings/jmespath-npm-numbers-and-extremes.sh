#!/usr/bin/env bash
# jmespath 0.16.0 and @metrichor/jmespath 0.3.1 (npm), Node 20, beside jmespath 1.1.0 (PyPI), Python 3.11: max_by and min_by take an
# expression that gives numbers or texts (JMESPath, Built-in Functions, max_by and min_by). With texts, such as a date or a name, both
# packages give undefined in place of an element, so that the last order of a list is none. to_number gives null for a text that is no
# number of JSON (to_number); there an empty text is 0, and 0x10 is 16. sort_by takes texts and is right. No error is set. The Python
# package gives what the specification says for all of these.
#
# Seen:
#   max_by(@, &day).id: jmespath null, @metrichor/jmespath null, Python 2
#   min_by(@, &day).id: jmespath null, @metrichor/jmespath null, Python 1
#   max_by(@, &id).id: jmespath 2, @metrichor/jmespath 2, Python 2
#   sort_by(@, &day)[-1].id: jmespath 2, @metrichor/jmespath 2, Python 2
#   to_number(''): jmespath 0, @metrichor/jmespath 0, Python null
#   to_number('0x10'): jmespath 16, @metrichor/jmespath 16, Python null
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check jmespath==1.1.0
npm install --silent --no-fund --no-audit --ignore-scripts jmespath@0.16.0 @metrichor/jmespath@0.3.1
cat > read.mjs <<'END'
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const { orders, queries } = JSON.parse(process.argv[2])
for (const query of queries) {
  const names = ['jmespath', '@metrichor/jmespath']
  console.log(names.map((name) => `${name} ${JSON.stringify(require(name).search(orders, query))}`).join(', '))
}
END
cat > read.py <<'END'
import json
import subprocess

import jmespath

orders = [{"id": 1, "day": "2026-01-30"}, {"id": 2, "day": "2026-02-01"}]
queries = [
    "max_by(@, &day).id",
    "min_by(@, &day).id",
    "max_by(@, &id).id",
    "sort_by(@, &day)[-1].id",
    "to_number('')",
    "to_number('0x10')",
]
given = json.dumps({"orders": orders, "queries": queries})
process = subprocess.run(["node", "read.mjs", given], stdout=subprocess.PIPE, text=True, check=True)
for query, seen in zip(queries, process.stdout.splitlines(), strict=True):
    print(f"{query}: {seen}, Python {json.dumps(jmespath.search(query, orders))}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
max_by(@, &day).id: jmespath null, @metrichor/jmespath null, Python 2
min_by(@, &day).id: jmespath null, @metrichor/jmespath null, Python 1
max_by(@, &id).id: jmespath 2, @metrichor/jmespath 2, Python 2
sort_by(@, &day)[-1].id: jmespath 2, @metrichor/jmespath 2, Python 2
to_number(''): jmespath 0, @metrichor/jmespath 0, Python null
to_number('0x10'): jmespath 16, @metrichor/jmespath 16, Python null
END

#!/usr/bin/env bash
# sqlglot 30.30.0 (PyPI) with DuckDB 1.4.1 as the server, Python 3.11: ROUND of T-SQL truncates where its third argument is not 0. In the text for PostgreSQL
# that argument is gone, so that the value is rounded, and nothing is logged. For the other dialects that were tried it stays, so that a server
# which does not know it refuses the statement. For PostgreSQL an amount that was cut to cents comes out a cent higher.
#
# Seen:
#   ROUND(19.999, 2, 1), of T-SQL 19.990: SELECT ROUND(CAST(19.999 AS DECIMAL), 2) -> 20.00
#   ROUND(-0.75, 0, 1), of T-SQL 0.00: SELECT ROUND(CAST(-0.75 AS DECIMAL), 0) -> -1
#   logged: nothing
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check sqlglot==30.30.0 duckdb==1.4.1
cat > read.py <<'END'
import io
import logging

import duckdb
import sqlglot

log = io.StringIO()
logging.basicConfig(stream=log, level=logging.DEBUG)
for call, cut in (("ROUND(19.999, 2, 1)", "19.990"), ("ROUND(-0.75, 0, 1)", "0.00")):
    text = sqlglot.transpile(f"SELECT {call}", read="tsql", write="postgres")[0]
    print(f"{call}, of T-SQL {cut}: {text} -> {duckdb.sql(text).fetchone()[0]}")
print("logged:", log.getvalue() or "nothing")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
ROUND(19.999, 2, 1), of T-SQL 19.990: SELECT ROUND(CAST(19.999 AS DECIMAL), 2) -> 20.00
ROUND(-0.75, 0, 1), of T-SQL 0.00: SELECT ROUND(CAST(-0.75 AS DECIMAL), 0) -> -1
logged: nothing
END

#!/usr/bin/env bash
# sqlglot 30.30.0 (PyPI) with DuckDB 1.4.1 as the server, Python 3.11: in LIKE of T-SQL brackets are a class of characters, and [%] is how a percent sign is
# written plainly. For PostgreSQL and DuckDB, whose LIKE has no classes, sqlglot writes the pattern as it is, and logs nothing. So a filter
# finds no row there, and a constraint refuses each, while the statement runs.
#
# Seen:
#   PostgreSQL's text: SELECT 'Meyer' LIKE 'M[ae]yer' -> False
#   PostgreSQL's text: SELECT '50%' LIKE '50[%]' -> False
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
for value, pattern in (("Meyer", "M[ae]yer"), ("50%", "50[%]")):
    # T-SQL has no expression of truth: the condition stands in CASE there, and alone here.
    statement = f"SELECT CASE WHEN '{value}' LIKE '{pattern}' THEN 1 END"
    text = sqlglot.transpile(statement, read="tsql", write="postgres")[0]
    text = text.replace("CASE WHEN ", "").replace(" THEN 1 END", "")
    print(f"PostgreSQL's text: {text} -> {duckdb.sql(text).fetchone()[0]}")
print("logged:", log.getvalue() or "nothing")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
PostgreSQL's text: SELECT 'Meyer' LIKE 'M[ae]yer' -> False
PostgreSQL's text: SELECT '50%' LIKE '50[%]' -> False
logged: nothing
END

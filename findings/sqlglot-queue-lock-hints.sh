#!/usr/bin/env bash
# sqlglot 30.30.0 (PyPI), Python 3.11: the usual way to take a row of a queue table in T-SQL, TOP (1) with UPDLOCK, READPAST, becomes a SELECT for
# PostgreSQL without any lock, and nothing warns of it. FOR UPDATE SKIP LOCKED is what the hints mean, and sqlglot can write that: from a dialect that
# has it the clause is kept. So a worker that was moved by it gives one row to several workers.
#
# Seen:
#   from T-SQL: SELECT id FROM jobs ORDER BY id NULLS FIRST LIMIT 1
#   from MySQL: SELECT id FROM jobs ORDER BY id NULLS FIRST LIMIT 1 FOR UPDATE SKIP LOCKED
#   logged: nothing
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check sqlglot==30.30.0
cat > read.py <<'END'
import io
import logging

import sqlglot

log = io.StringIO()
logging.basicConfig(stream=log, level=logging.DEBUG)
take = "SELECT TOP (1) id FROM jobs WITH (ROWLOCK, UPDLOCK, READPAST) ORDER BY id"
print("from T-SQL:", sqlglot.transpile(take, read="tsql", write="postgres")[0])
take = "SELECT id FROM jobs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"
print("from MySQL:", sqlglot.transpile(take, read="mysql", write="postgres")[0])
print("logged:", log.getvalue() or "nothing")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
from T-SQL: SELECT id FROM jobs ORDER BY id NULLS FIRST LIMIT 1
from MySQL: SELECT id FROM jobs ORDER BY id NULLS FIRST LIMIT 1 FOR UPDATE SKIP LOCKED
logged: nothing
END

#!/usr/bin/env bash
# sqlglot 30.30.0 (PyPI) with DuckDB 1.4.1 as the server, Python 3.11: DATEDIFF of T-SQL counts the boundaries that lie between two times, here one year
# and one month between two days. sqlglot writes AGE for PostgreSQL, which counts whole years and months, and gives 0. For DuckDB it writes
# DATE_DIFF, which counts boundaries. So a due date or an age group moves by one where a program is moved by it, without an error.
#
# Seen:
#   PostgreSQL's text has AGE: yes
#   DuckDB's DATE_DIFF: 1 year, 1 month
#   PostgreSQL's text, run: 0 years, 0 months
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check sqlglot==30.30.0 duckdb==1.4.1
cat > read.py <<'END'
import duckdb
import sqlglot

counts, texts = {}, {}
for target in ("duckdb", "postgres"):
    for unit in ("year", "month"):
        statement = f"SELECT DATEDIFF({unit}, '20091231', '20100101')"
        texts[target] = sqlglot.transpile(statement, read="tsql", write=target)[0]
        # DuckDB has PostgreSQL's AGE, and wants dashes in a date.
        text = texts[target].replace("20091231", "2009-12-31").replace("20100101", "2010-01-01")
        counts[target, unit] = duckdb.sql(text).fetchone()[0]
print("PostgreSQL's text has AGE:", "yes" if "AGE(" in texts["postgres"] else "no")
print(f"DuckDB's DATE_DIFF: {counts['duckdb', 'year']} year, {counts['duckdb', 'month']} month")
print(f"PostgreSQL's text, run: {counts['postgres', 'year']} years, {counts['postgres', 'month']} months")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
PostgreSQL's text has AGE: yes
DuckDB's DATE_DIFF: 1 year, 1 month
PostgreSQL's text, run: 0 years, 0 months
END

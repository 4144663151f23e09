#!/usr/bin/env bash
# sqlparse 0.6.1 (PyPI, used by many tools to split scripts), Python 3.11: BEGIN DIALOG and BEGIN CONVERSATION TIMER of T-SQL open no block, but are
# taken for one, so that nothing after them is split: three statements come as one. BEGIN TRANSACTION is known and is split.
#
# Seen:
#   BEGIN TRANSACTION: 3 statements
#   BEGIN DIALOG: 1 statement
#   BEGIN CONVERSATION TIMER: 1 statement
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check sqlparse==0.6.1
cat > read.py <<'END'
import sqlparse

after = " UPDATE t SET a = 1; SELECT 2;"
for first in (
    "BEGIN TRANSACTION;",
    "BEGIN DIALOG @h FROM SERVICE a TO SERVICE 'b' ON CONTRACT c;",
    "BEGIN CONVERSATION TIMER (@h) TIMEOUT = 60;",
):
    count = len(sqlparse.split(first + after))
    name = first.split(" @")[0].split(" (")[0].rstrip(";")
    print(f"{name}: {count} statement{'s' if count > 1 else ''}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
BEGIN TRANSACTION: 3 statements
BEGIN DIALOG: 1 statement
BEGIN CONVERSATION TIMER: 1 statement
END

#!/usr/bin/env bash
# node-sql-parser 5.4.0 (npm), Node 20, T-SQL read and written back with nothing changed: a global temporary table becomes a table # under an alias, @@ROWCOUNT a
# column @, two signs before a value the begin of a comment that hides the rest of the line, and the length max loses its brackets. No error
# is set. A tool that adds a filter to each statement so reads or deletes elsewhere, or sends what is refused.
#
# Seen:
#   DELETE FROM ##u WHERE a = 1 -> DELETE FROM [#] AS [#u] WHERE [a] = 1
#   SELECT @@ROWCOUNT -> SELECT [@] AS [@ROWCOUNT]
#   SELECT a, - -b FROM t -> SELECT [a], --[b] FROM [t]
#   SELECT CAST(a AS varchar(max)) -> SELECT CAST([a] AS VARCHARmax)
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts node-sql-parser@5.4.0
cat > read.mjs <<'END'
import sql from 'node-sql-parser'

const parser = new sql.Parser()
const options = { database: 'transactsql' }
for (const statement of [
  'DELETE FROM ##u WHERE a = 1',
  'SELECT @@ROWCOUNT',
  'SELECT a, - -b FROM t',
  'SELECT CAST(a AS varchar(max))',
]) {
  console.log(`${statement} -> ${parser.sqlify(parser.astify(statement, options), options)}`)
}
END
node read.mjs | tee seen
diff seen - <<'END'
DELETE FROM ##u WHERE a = 1 -> DELETE FROM [#] AS [#u] WHERE [a] = 1
SELECT @@ROWCOUNT -> SELECT [@] AS [@ROWCOUNT]
SELECT a, - -b FROM t -> SELECT [a], --[b] FROM [t]
SELECT CAST(a AS varchar(max)) -> SELECT CAST([a] AS VARCHARmax)
END

#!/usr/bin/env bash
# pgsql-parser 18.2.8 with pgsql-deparser 18.3.8 (npm), Node 20, with PostgreSQL 18 in @electric-sql/pglite 0.5.14 as the server: a statement
# that is parsed and written back with nothing changed has lost clauses that change what it does. WITH TIES of FETCH FIRST gives all rows that
# are equal to the last one (PostgreSQL 18, SELECT, LIMIT clause), and becomes a plain LIMIT. DISTINCT of GROUP BY (7.2.4) goes, so that
# grouping sets count twice. COMMIT AND CHAIN opens no next transaction. A channel of LISTEN in quotes loses them, and is refused or another
# one. The parser's tree holds all four. No error is set when the text is written.
#
# Seen:
#   select id from jobs order by rank fetch first 2 rows with ties: 3 rows
#     SELECT id FROM jobs ORDER BY rank LIMIT 2: 2 rows
#   select rank, count(*) from jobs group by distinct rollup (rank), rollup (rank): 4 rows
#     SELECT rank, count(*) FROM jobs GROUP BY ROLLUP (rank), ROLLUP (rank): 10 rows
#   commit and chain
#     COMMIT
#   listen "Orders"
#     LISTEN Orders
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts pgsql-parser@18.2.8 pgsql-deparser@18.3.8 @electric-sql/pglite@0.5.14
cat > read.mjs <<'END'
import { PGlite } from '@electric-sql/pglite'
import { deparse, parse } from 'pgsql-parser'

const database = await PGlite.create()
await database.exec('create table jobs (id int, rank int); insert into jobs values (1, 1), (2, 2), (3, 2), (4, 3)')
const rows = async (text) => (text.toLowerCase().startsWith('select') ? `: ${(await database.query(text)).rows.length} rows` : '')
for (const text of [
  'select id from jobs order by rank fetch first 2 rows with ties',
  'select rank, count(*) from jobs group by distinct rollup (rank), rollup (rank)',
  'commit and chain',
  'listen "Orders"',
]) {
  const written = (await deparse(await parse(text))).replace(/\s+/g, ' ')
  console.log(`${text}${await rows(text)}`)
  console.log(`  ${written}${await rows(written)}`)
}
END
node read.mjs | tee seen
diff seen - <<'END'
select id from jobs order by rank fetch first 2 rows with ties: 3 rows
  SELECT id FROM jobs ORDER BY rank LIMIT 2: 2 rows
select rank, count(*) from jobs group by distinct rollup (rank), rollup (rank): 4 rows
  SELECT rank, count(*) FROM jobs GROUP BY ROLLUP (rank), ROLLUP (rank): 10 rows
commit and chain
  COMMIT
listen "Orders"
  LISTEN Orders
END

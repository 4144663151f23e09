#!/usr/bin/env bash
# pg8000 1.31.6 (PyPI), Python 3.11, with PostgreSQL 18 in @electric-sql/pglite 0.5.14 as the server, Node 20: the minus of a time in an
# interval counts for the hours alone. PostgreSQL writes minus ten minutes as -00:10:00 (8.5.5, Interval Output), and the driver gives plus
# ten minutes; minus ninety minutes are minus thirty. So a delay that is negative, or the age of a row that is due later, has the wrong sign,
# and no error is set. Whole hours come through, so a test with these passes. A program reads extract(epoch from ...) in place of the interval.
#
# Seen:
#   -10 minutes: server -00:10:00 or -600 s, driver 600 s
#   -90 minutes: server -01:30:00 or -5400 s, driver -1800 s
#   1 day -1 minute: server 1 day -00:01:00 or 86340 s, driver 86460 s
#   -2 hours: server -02:00:00 or -7200 s, driver -7200 s
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pg8000==1.31.6
npm install --silent --no-fund --no-audit --ignore-scripts @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17
cat > read.py <<'END'
import sys

import pg8000.native

connection = pg8000.native.Connection("postgres", password="none", host="127.0.0.1", port=int(sys.argv[1]), database="postgres")
COLUMNS = "cast(:given as interval), cast(cast(:given as interval) as text), extract(epoch from cast(:given as interval))"
for given in ("-10 minutes", "-90 minutes", "1 day -1 minute", "-2 hours"):
    [[read, text, seconds]] = connection.run(f"select {COLUMNS}", given=given)
    print(f"{given}: server {text} or {seconds:.0f} s, driver {read.total_seconds():.0f} s")
END
cat > serve.mjs <<'END'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { PGlite } from '@electric-sql/pglite'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'

const server = new PGLiteSocketServer({ db: await PGlite.create(), host: '127.0.0.1', port: 0 })
await server.start()
const reader = spawn('venv/bin/python', ['read.py', server.getServerConn().split(':').at(-1)], { stdio: 'inherit' })
const [status] = await once(reader, 'exit')
process.exit(status ?? 1)
END
node serve.mjs | tee seen
diff seen - <<'END'
-10 minutes: server -00:10:00 or -600 s, driver 600 s
-90 minutes: server -01:30:00 or -5400 s, driver -1800 s
1 day -1 minute: server 1 day -00:01:00 or 86340 s, driver 86460 s
-2 hours: server -02:00:00 or -7200 s, driver -7200 s
END

#!/usr/bin/env bash
# cron-converter 2.1.0 (npm), Node 20: where both a day of the month and a day of the week are given, crontab(5) runs on each day that fits
# one of the two. The iterator takes the days that fit both. A job of the 1st, the 15th and each Wednesday so runs four times in a year, and
# no error is set. The text that arrayToString gives is the same for all, so that another scheduler which gets it runs on other days.
# cronsim 2.8 (PyPI), Python 3.11, gives what Debian's cron does. A job that calls Parley by such an iterator has two expressions, one for
# the days of the month and one for those of the week.
#
# Seen:
#   0 0 15 * *: 2026-01-15 2026-02-15 2026-03-15 2026-04-15
#     cronsim: 2026-01-15 2026-02-15 2026-03-15 2026-04-15
#   0 0 * * 3: 2026-01-07 2026-01-14 2026-01-21 2026-01-28
#     cronsim: 2026-01-07 2026-01-14 2026-01-21 2026-01-28
#   0 0 1,15 * 3: 2026-04-01 2026-04-15 2026-07-01 2026-07-15
#     cronsim: 2026-01-07 2026-01-14 2026-01-15 2026-01-21
#   0 0 13 * 5: 2026-02-13 2026-03-13 2026-11-13 2027-08-13
#     cronsim: 2026-01-02 2026-01-09 2026-01-13 2026-01-16
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts cron-converter@2.1.0
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check cronsim==2.8
cat > read.mjs <<'END'
import { createRequire } from 'node:module'

const { arrayToString, getSchedule, stringToArray } = createRequire(import.meta.url)('cron-converter')
for (const expression of process.argv.slice(2)) {
  const parts = stringToArray(expression)
  const schedule = getSchedule(parts, new Date('2026-01-01T00:00:00Z'), 'UTC')
  const days = Array.from({ length: 4 }, () => schedule.next().toISO().slice(0, 10))
  console.log(`${arrayToString(parts)}: ${days.join(' ')}`)
}
END
cat > read.py <<'END'
import subprocess
from datetime import datetime
from itertools import islice

from cronsim import CronSim

EXPRESSIONS = ("0 0 15 * *", "0 0 * * 3", "0 0 1,15 * 3", "0 0 13 * 5")
command = ["node", "read.mjs", *EXPRESSIONS]
lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
for expression, line in zip(EXPRESSIONS, lines, strict=True):
    days = islice(CronSim(expression, datetime(2026, 1, 1)), 4)
    print(line)
    print(f"  cronsim: {' '.join(day.date().isoformat() for day in days)}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
0 0 15 * *: 2026-01-15 2026-02-15 2026-03-15 2026-04-15
  cronsim: 2026-01-15 2026-02-15 2026-03-15 2026-04-15
0 0 * * 3: 2026-01-07 2026-01-14 2026-01-21 2026-01-28
  cronsim: 2026-01-07 2026-01-14 2026-01-21 2026-01-28
0 0 1,15 * 3: 2026-04-01 2026-04-15 2026-07-01 2026-07-15
  cronsim: 2026-01-07 2026-01-14 2026-01-15 2026-01-21
0 0 13 * 5: 2026-02-13 2026-03-13 2026-11-13 2027-08-13
  cronsim: 2026-01-02 2026-01-09 2026-01-13 2026-01-16
END

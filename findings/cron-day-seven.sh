#!/usr/bin/env bash
# @breejs/later 4.2.0 (npm, the calendar of the job scheduler Bree), Node 20, and pycron 3.3.0 (PyPI), Python 3.11: 0 and 7 are both Sunday by crontab(5). For later 7 is
# Saturday, so that a job of Sunday runs a day early. For pycron 7 never comes. In both a range that ends with 7
# leaves Sunday out, also 1-7, each day. No error is set. cronsim 2.8 (PyPI) gives what Debian's cron does.
#
# Seen:
#   0 0 * * 0: later Sun, pycron Sun, cronsim Sun
#   0 0 * * 7: later Sat, pycron never, cronsim Sun
#   0 0 * * 0,7: later Sat Sun, pycron Sun, cronsim Sun
#   0 0 * * 5-7: later Fri Sat, pycron Fri Sat, cronsim Fri Sat Sun
#   0 0 * * 1-7: later Mon Tue Wed Thu Fri Sat, pycron Mon Tue Wed Thu Fri Sat, cronsim Mon Tue Wed Thu Fri Sat Sun
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts @breejs/later@4.2.0
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pycron==3.3.0 cronsim==2.8
cat > read.mjs <<'END'
import later from '@breejs/later'

later.date.UTC()
const first = new Date('2026-01-05T00:00:00Z')
for (const line of process.argv.slice(2)) {
  const runs = later.schedule(later.parse.cron(line)).next(7, first)
  console.log(runs.filter((run) => run - first < 7 * 86400000).map((run) => run.toUTCString().slice(0, 3)).join(' '))
}
END
cat > read.py <<'END'
import subprocess
from datetime import datetime, timedelta

import cronsim
import pycron

LINES = ("0 0 * * 0", "0 0 * * 7", "0 0 * * 0,7", "0 0 * * 5-7", "0 0 * * 1-7")
WEEK = [datetime(2026, 1, 5) + timedelta(days=n) for n in range(7)]


def told(days):
    return " ".join(day.strftime("%a") for day in days) or "never"


node = subprocess.run(["node", "read.mjs", *LINES], capture_output=True, text=True, check=True).stdout.splitlines()
for line, later in zip(LINES, node, strict=True):
    run = [day for day in WEEK if pycron.is_now(line, day)]
    standard = [day for day in WEEK if next(cronsim.CronSim(line, day - timedelta(minutes=1))) == day]
    print(f"{line}: later {later}, pycron {told(run)}, cronsim {told(standard)}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
0 0 * * 0: later Sun, pycron Sun, cronsim Sun
0 0 * * 7: later Sat, pycron never, cronsim Sun
0 0 * * 0,7: later Sat Sun, pycron Sun, cronsim Sun
0 0 * * 5-7: later Fri Sat, pycron Fri Sat, cronsim Fri Sat Sun
0 0 * * 1-7: later Mon Tue Wed Thu Fri Sat, pycron Mon Tue Wed Thu Fri Sat, cronsim Mon Tue Wed Thu Fri Sat Sun
END

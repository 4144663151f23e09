#!/usr/bin/env bash
# rrule-temporal 2.2.8 (npm), Node 20, beside python-dateutil 2.9.0 (PyPI), Python 3.11: in a yearly rule with days of the year or of the
# month, days of the week limit them (RFC 5545, 3.3.10, table of BYxxx rule parts, note 2). With BYYEARDAY the package passes over BYDAY: a
# rule for the hundredth day of a year where it is a Friday runs each year, on any day of the week. With BYMONTHDAY it limits right. No error
# is set. Work that belongs to one day of the week so runs on a Saturday and a Sunday.
#
# Seen:
#   FREQ=YEARLY;BYYEARDAY=100;BYDAY=FR
#     rrule-temporal: Fri 2026-04-10, Sat 2027-04-10, Sun 2028-04-09
#     dateutil: Fri 2026-04-10, Fri 2032-04-09, Fri 2037-04-10
#   FREQ=YEARLY;BYMONTHDAY=10;BYDAY=FR
#     rrule-temporal: Fri 2026-04-10, Fri 2026-07-10, Fri 2027-09-10
#     dateutil: Fri 2026-04-10, Fri 2026-07-10, Fri 2027-09-10
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check python-dateutil==2.9.0
npm install --silent --no-fund --no-audit --ignore-scripts rrule-temporal@2.2.8
cat > read.mjs <<'END'
import { RRuleTemporal } from 'rrule-temporal'

const rule = new RRuleTemporal({ rruleString: `DTSTART:20260410T090000Z\nRRULE:${process.argv[2]};COUNT=3` })
console.log(rule.all().map((day) => day.toPlainDate()).join(' '))
END
cat > read.py <<'END'
import subprocess
from datetime import date, datetime

from dateutil.rrule import rrulestr


def shown(days):
    return ", ".join(f"{day:%a %Y-%m-%d}" for day in days)


for rule in ("FREQ=YEARLY;BYYEARDAY=100;BYDAY=FR", "FREQ=YEARLY;BYMONTHDAY=10;BYDAY=FR"):
    process = subprocess.run(["node", "read.mjs", rule], stdout=subprocess.PIPE, text=True, check=True)
    print(rule)
    print(f"  rrule-temporal: {shown(map(date.fromisoformat, process.stdout.split()))}")
    print(f"  dateutil: {shown(rrulestr(rule + ';COUNT=3', dtstart=datetime(2026, 4, 10, 9)))}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
FREQ=YEARLY;BYYEARDAY=100;BYDAY=FR
  rrule-temporal: Fri 2026-04-10, Sat 2027-04-10, Sun 2028-04-09
  dateutil: Fri 2026-04-10, Fri 2032-04-09, Fri 2037-04-10
FREQ=YEARLY;BYMONTHDAY=10;BYDAY=FR
  rrule-temporal: Fri 2026-04-10, Fri 2026-07-10, Fri 2027-09-10
  dateutil: Fri 2026-04-10, Fri 2026-07-10, Fri 2027-09-10
END

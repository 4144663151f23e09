#!/usr/bin/env bash
# python-dateutil 2.9.0 (PyPI), Python 3.11: a yearly rule with a number of a week and no day gives all seven days of that week, where the day comes from DTSTART
# (RFC 5545, 3.3.10, on what a rule does not contain). BYSETPOS of a weekly rule counts in the first week from DTSTART on, and not from the begin
# of the week (3.3.10, BYSETPOS), so that the first date is another one. rrule-temporal 2.2.8 (npm), Node 20, gives what RFC 5545 says.
#
# Seen:
#   FREQ=YEARLY;BYWEEKNO=20;BYDAY=TU
#     dateutil 2026-05-12 2027-05-18 2028-05-16 2029-05-15
#     rrule-temporal 2026-05-12 2027-05-18 2028-05-16 2029-05-15
#   FREQ=YEARLY;BYWEEKNO=20
#     dateutil 2026-05-11 2026-05-12 2026-05-13 2026-05-14
#     rrule-temporal 2026-05-12 2027-05-18 2028-05-16 2029-05-15
#   FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=2
#     dateutil 2026-01-09 2026-01-14 2026-01-21 2026-01-28
#     rrule-temporal 2026-01-07 2026-01-14 2026-01-21 2026-01-28
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts rrule-temporal@2.2.8
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check python-dateutil==2.9.0.post0
cat > read.mjs <<'END'
import { RRuleTemporal } from 'rrule-temporal'

for (const rule of process.argv.slice(2)) {
  const dates = new RRuleTemporal({ rruleString: `DTSTART:20260106T090000Z\nRRULE:${rule}` }).all((_, count) => count < 4)
  console.log(dates.map((date) => date.toPlainDate().toString()).join(' '))
}
END
cat > read.py <<'END'
import itertools
import subprocess

from dateutil.rrule import rrulestr

RULES = ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=TU", "FREQ=YEARLY;BYWEEKNO=20", "FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=2")
node = subprocess.run(["node", "read.mjs", *RULES], capture_output=True, text=True, check=True).stdout.splitlines()
for rule, standard in zip(RULES, node, strict=True):
    every = rrulestr(f"DTSTART:20260106T090000Z\nRRULE:{rule}")
    found = " ".join(date.date().isoformat() for date in itertools.islice(every, 4))
    print(f"{rule}\n  dateutil {found}\n  rrule-temporal {standard}")
END
venv/bin/python read.py | tee seen
diff seen - <<'END'
FREQ=YEARLY;BYWEEKNO=20;BYDAY=TU
  dateutil 2026-05-12 2027-05-18 2028-05-16 2029-05-15
  rrule-temporal 2026-05-12 2027-05-18 2028-05-16 2029-05-15
FREQ=YEARLY;BYWEEKNO=20
  dateutil 2026-05-11 2026-05-12 2026-05-13 2026-05-14
  rrule-temporal 2026-05-12 2027-05-18 2028-05-16 2029-05-15
FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=2
  dateutil 2026-01-09 2026-01-14 2026-01-21 2026-01-28
  rrule-temporal 2026-01-07 2026-01-14 2026-01-21 2026-01-28
END

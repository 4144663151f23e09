#!/usr/bin/env bash
# ical.js 2.2.1 (npm), Node 20, beside rrule-temporal 2.2.8 (npm): two rules that stand as examples in RFC 5545 (3.8.5.3), Monday of week
# number 20 and the 20th Monday of the year, come once a year there and each week in ical.js. BYSETPOS of a weekly rule is passed over, so
# that the last of two days of a week is both days (3.3.10, BYSETPOS: any of the other BYxxx parts). A week number without a day gives
# nothing at all, where the day comes from DTSTART. No error is set. Work planned so runs 52 times a year, or never.
#
# Seen:
#   FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO
#     ical.js: 1997-05-19, 1997-05-26, 1997-06-02
#     rrule-temporal, as the RFC: 1997-05-12, 1998-05-11, 1999-05-17
#   FREQ=YEARLY;BYDAY=20MO
#     ical.js: 1997-05-19, 1997-05-26, 1997-06-02
#     rrule-temporal, as the RFC: 1997-05-19, 1998-05-18, 1999-05-17
#   FREQ=WEEKLY;BYDAY=TU,TH;BYSETPOS=-1
#     ical.js: 1997-09-04, 1997-09-09, 1997-09-11
#     rrule-temporal, as the RFC: 1997-09-04, 1997-09-11, 1997-09-18
#   FREQ=YEARLY;BYWEEKNO=20
#     ical.js: none
#     rrule-temporal, as the RFC: 1997-05-12, 1998-05-11, 1999-05-17
# Exits with 1 where that is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts ical.js@2.2.1 rrule-temporal@2.2.8
cat > read.mjs <<'END'
import ICAL from 'ical.js'
import { RRuleTemporal } from 'rrule-temporal'

const rules = [
  ['1997-05-12', 'FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO'],
  ['1997-05-19', 'FREQ=YEARLY;BYDAY=20MO'],
  ['1997-09-04', 'FREQ=WEEKLY;BYDAY=TU,TH;BYSETPOS=-1'],
  ['1997-05-12', 'FREQ=YEARLY;BYWEEKNO=20'],
]
for (const [first, rule] of rules) {
  const iterator = ICAL.Recur.fromString(rule).iterator(ICAL.Time.fromString(`${first}T09:00:00`))
  const seen = []
  for (let day; seen.length < 3 && (day = iterator.next()); ) seen.push(day.toString().slice(0, 10))
  const begin = first.replaceAll('-', '')
  const others = new RRuleTemporal({ rruleString: `DTSTART:${begin}T090000Z\nRRULE:${rule};COUNT=3` }).all()
  console.log(rule)
  console.log(`  ical.js: ${seen.join(', ') || 'none'}`)
  console.log(`  rrule-temporal, as the RFC: ${others.map((day) => day.toPlainDate()).join(', ')}`)
}
END
node read.mjs | tee seen
diff seen - <<'END'
FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO
  ical.js: 1997-05-19, 1997-05-26, 1997-06-02
  rrule-temporal, as the RFC: 1997-05-12, 1998-05-11, 1999-05-17
FREQ=YEARLY;BYDAY=20MO
  ical.js: 1997-05-19, 1997-05-26, 1997-06-02
  rrule-temporal, as the RFC: 1997-05-19, 1998-05-18, 1999-05-17
FREQ=WEEKLY;BYDAY=TU,TH;BYSETPOS=-1
  ical.js: 1997-09-04, 1997-09-09, 1997-09-11
  rrule-temporal, as the RFC: 1997-09-04, 1997-09-11, 1997-09-18
FREQ=YEARLY;BYWEEKNO=20
  ical.js: none
  rrule-temporal, as the RFC: 1997-05-12, 1998-05-11, 1999-05-17
END
